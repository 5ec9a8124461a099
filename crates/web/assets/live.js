// What changes, as it happens. The browser reconnects by itself and says what it has seen last.

/** Listens after a cursor, to all lobbies or to one. Gives back how to stop. */
export function listen(cursor, lobby, on) {
  const parameters = new URLSearchParams({ after: cursor });
  if (lobby) parameters.set("lobby", lobby);
  const source = new EventSource(`/api/v1/events?${parameters}`);
  const handle = (name) => {
    source.addEventListener(name, (event) => {
      on.state?.(true);
      on[name]?.(JSON.parse(event.data));
    });
  };
  ["listed", "changed", "unlisted", "reset"].forEach(handle);
  source.addEventListener("open", () => on.state?.(true));
  source.addEventListener("error", () => on.state?.(false));
  return () => source.close();
}
