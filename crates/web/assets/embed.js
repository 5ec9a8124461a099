// A server in somebody's frame asks once a minute: many frames must not take the places of those who listen.

import { goOffline, update } from "./rows.js";

const server = document.getElementById("server");

setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(`/api/v1/servers/${server.dataset.id}`);
    if (answer.ok) update(server, await answer.json());
    else if (answer.status === 404) goOffline(server);
  } catch {
    // The next minute will do.
  }
}, 60_000);
