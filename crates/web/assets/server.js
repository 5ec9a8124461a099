// The page of a server: favourite, copy buttons, and live changes.

import { refreshAges } from "./times.js";
import "./copy.js";
import { isFavourite, mark, remember, toggle } from "./favourites.js";
import { goOffline, nameOf, update } from "./rows.js";
import { followEvents } from "./live.js";

const server = document.getElementById("server");
const { id, lobby, cursor } = server.dataset;
const star = document.querySelector("button.star");
const nameAndAddress = () => [
  document.querySelector(".v-name")?.textContent ?? "",
  document.querySelector(".v-address")?.textContent ?? "",
];

mark(star, isFavourite(id));
star.addEventListener("click", () => mark(star, toggle(id, ...nameAndAddress())));

if (cursor) {
  const show = (current) => {
    if (current.id !== id) return;
    update(server, current);
    remember(id, nameOf(current), current.connect);
  };
  followEvents(cursor, lobby, {
    changed: show,
    listed: show,
    unlisted: (removed) => {
      if (removed.id === id) goOffline(server);
    },
  });
}

setInterval(refreshAges, 30_000);
