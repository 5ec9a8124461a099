// Live events. The browser reconnects by itself, and sends the ID of the last event that it has received.

/** Follows the events after a cursor, of one lobby or of all. Returns a function that closes the stream. */
export function followEvents(cursor, lobby, handlers) {
  const parameters = new URLSearchParams({ after: cursor });
  if (lobby) parameters.set("lobby", lobby);
  const source = new EventSource(`/api/v1/events?${parameters}`);
  const handle = (name) => {
    source.addEventListener(name, (event) => {
      handlers.connected?.(true);
      handlers[name]?.(JSON.parse(event.data));
    });
  };
  ["listed", "changed", "unlisted", "reset"].forEach(handle);
  source.addEventListener("open", () => handlers.connected?.(true));
  source.addEventListener("error", () => handlers.connected?.(false));
  return () => source.close();
}
