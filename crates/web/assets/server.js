// The page of a server: favourite, copy buttons, graphs, and live changes.

import { BASE } from "./base.js";
import { refreshAges } from "./times.js";
import "./copy.js";
import "./graph.js";
import { isFavourite, mark, remember, toggle } from "./favourites.js";
import { goOffline, update } from "./rows.js";
import { followEvents } from "./live.js";

const server = document.getElementById("server");
const { id, cursor } = server.dataset;
const star = document.querySelector("button.star");
const nameAndAddress = () => [
  document.querySelector(".v-name")?.textContent ?? "",
  document.querySelector(".v-address")?.textContent ?? "",
];

mark(star, isFavourite(id));
star.addEventListener("click", () => mark(star, toggle(id, ...nameAndAddress())));

function show(change) {
  if (change.id !== id) return;
  update(server, change);
  remember(id, ...nameAndAddress());
  if (change.verified !== undefined || change.differs !== undefined) replaceTags();
}

/** What differs is in words on the page, but not in events. */
async function replaceTags() {
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const tags = page.getElementById("tags");
    if (response.ok && tags !== null) document.getElementById("tags").replaceWith(tags);
  } catch {
    // The next change is a reason to try again.
  }
}

/** The lobby was restarted: fetches the current state. */
async function refresh() {
  try {
    const response = await fetch(`${BASE}/api/v1/servers/${id}`);
    if (response.ok) show(await response.json());
    else if (response.status === 404) goOffline(server);
  } catch {
    // The stream reconnects, and starts with another reset.
  }
}

if (cursor) {
  followEvents(cursor, { ids: id }, {
    changed: show,
    listed: show,
    unlisted: (removed) => {
      if (removed.id === id) goOffline(server);
    },
    reset: () => setTimeout(refresh, Math.random() * 1_000),
  });
}

setInterval(refreshAges, 30_000);
