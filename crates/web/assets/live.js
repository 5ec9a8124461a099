// Live events. A browser reconnects by itself after the connection has broken off, and sends the ID of the last event. After
// a response such as 502, 503 or 429, which is what a proxy answers while the lobby restarts, it gives up: then this opens a
// new stream, later and later.

import { BASE } from "./base.js";

/** Time in milliseconds until a stream that was refused is opened again, for the first time and at most. */
const FIRST_DELAY = 1_000;
const MAX_DELAY = 60_000;

/** Follows the events after a cursor. Returns a function that closes the stream. */
export function followEvents(cursor, parameters, handlers) {
  let source;
  let timer;
  let last = cursor;
  let failures = 0;
  const open = () => {
    source = new EventSource(`${BASE}/api/v1/events?${new URLSearchParams({ ...parameters, after: last })}`);
    for (const name of ["listed", "changed", "unlisted", "totals", "reset"]) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId !== "") last = event.lastEventId;
        handlers.connected?.(true);
        handlers[name]?.(JSON.parse(event.data));
      });
    }
    source.addEventListener("open", () => {
      failures = 0;
      handlers.connected?.(true);
    });
    source.addEventListener("error", () => {
      handlers.connected?.(false);
      if (source.readyState !== EventSource.CLOSED) return;
      const delay = Math.min(MAX_DELAY, FIRST_DELAY * 2 ** failures);
      failures += 1;
      // Not all pages at the same moment.
      timer = setTimeout(open, delay * (0.5 + Math.random() / 2));
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
