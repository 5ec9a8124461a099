// The page of a server comes alive: its star, copying, and the players of now.

import { refreshAges } from "./times.js";
import "./copy.js";
import { isFavourite, mark, remember, toggle } from "./favourites.js";
import { goOffline, nameOf, update } from "./rows.js";
import { listen } from "./live.js";

const server = document.getElementById("server");
const { id, lobby, cursor } = server.dataset;
const star = document.querySelector("button.star");
const facts = () => [
  document.querySelector(".v-name")?.textContent ?? "",
  document.querySelector(".v-address")?.textContent ?? "",
];

mark(star, isFavourite(id));
star.addEventListener("click", () => mark(star, toggle(id, ...facts())));

if (cursor) {
  const show = (now) => {
    if (now.id !== id) return;
    update(server, now);
    remember(id, nameOf(now), now.connect);
  };
  listen(cursor, lobby, {
    changed: show,
    listed: show,
    unlisted: (gone) => {
      if (gone.id === id) goOffline(server);
    },
  });
}

setInterval(refreshAges, 30_000);
