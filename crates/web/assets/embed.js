// A server in a frame of another site. It polls once a minute, because
// the number of event streams is limited and there can be many frames.

import { BASE } from "./base.js";
import { goOffline, update } from "./rows.js";

const server = document.getElementById("server");

setInterval(async () => {
  if (document.hidden) return;
  try {
    const response = await fetch(`${BASE}/api/v1/servers/${server.dataset.id}`);
    if (response.ok) update(server, await response.json());
    else if (response.status === 404) goOffline(server);
  } catch {
    // Retried after a minute.
  }
}, 60_000);
