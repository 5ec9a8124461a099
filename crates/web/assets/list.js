// The list comes alive: filters at once, changes in place, favourites.

import { refreshAges } from "./times.js";
import "./copy.js";
import { favourites, isFavourite, mark, remember, toggle } from "./favourites.js";
import { fits, parametersOf } from "./filter.js";
import { goOffline, nameOf, offlineRow, update } from "./rows.js";
import "./keys.js";
import { listen } from "./live.js";

const form = document.getElementById("filter");
const news = document.getElementById("news");
const liveness = document.getElementById("liveness");

/** The rows that are shown, by ID. */
let rows = new Map();
/** Servers that came since the list was loaded. */
let newcomers = new Set();
let stop = () => {};
/** The lobby that is listened to. */
let heard;
let asked = 0;

const list = () => document.getElementById("list");
const parameters = () => new URLSearchParams(location.search);

/** Takes note of what the page shows. */
function adopt() {
  rows = new Map([...document.querySelectorAll("#rows tr")].map((row) => [row.dataset.id, row]));
  for (const [id, row] of rows) {
    const star = row.querySelector(".star");
    if (star === null) continue;
    mark(star, isFavourite(id));
    if (isFavourite(id)) remember(id, ...facts(row));
  }
  newcomers = new Set();
  news.replaceChildren();
  appendOffline();
}

function facts(row) {
  return [row.querySelector(".v-name")?.textContent ?? "", row.querySelector(".v-address")?.textContent ?? ""];
}

/** Favourites that are not in the list are shown as offline, below the others. */
function appendOffline() {
  const body = document.getElementById("rows");
  const onlyThese = ["q", "lobby", "game", "map", "version", "verified", "page"].every((name) => !parameters().get(name));
  if (body === null || parameters().get("favourites") !== "1" || !onlyThese || !list().dataset.ids) return;
  for (const [id, known] of Object.entries(favourites())) {
    if (rows.has(id)) continue;
    const row = offlineRow(id, known);
    mark(row.querySelector(".star"), true);
    body.append(row);
    rows.set(id, row);
  }
}

/** The address that is asked for a view: favourites are named. */
function question(view) {
  const wanted = new URLSearchParams(view);
  if (wanted.get("favourites") === "1") {
    // Nobody has an ID of zeros: no favourites are an empty list, not all servers.
    wanted.set("ids", Object.keys(favourites()).join(",") || "0".repeat(32));
  }
  return `/?${wanted}`;
}

/** Shows another view, or the same as it is now. */
async function load(view, { push = false } = {}) {
  const number = ++asked;
  const address = view.toString() === "" ? "/" : `/?${view}`;
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  try {
    const answer = await fetch(question(view), { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("list");
    if (number !== asked) return;
    if (!answer.ok || fresh === null) {
      list().querySelector("#count").textContent = page.querySelector(".sorry")?.textContent ?? "try again later";
      return;
    }
    if (view.get("favourites") === "1") fresh.dataset.ids = "1";
    list().replaceWith(fresh);
    for (const id of ["games", "maps", "versions", "totals"]) {
      const part = page.getElementById(id);
      if (part !== null) document.getElementById(id)?.replaceWith(part);
    }
    cleanLinks();
    adopt();
    follow();
  } catch {
    setState(false);
  }
}

/** IDs of favourites are asked for, but do not belong into addresses that are shared. */
function cleanLinks() {
  for (const link of list().querySelectorAll('a[href^="/?"]')) {
    const there = new URLSearchParams(link.getAttribute("href").slice(2));
    if (there.get("favourites") !== "1") continue;
    there.delete("ids");
    link.href = `/?${there}`;
  }
}

function setState(isOn) {
  liveness.classList.toggle("on", isOn);
  const words = isOn ? "live" : "reconnecting …";
  if (liveness.textContent !== words) liveness.textContent = words;
}

function announce() {
  if (newcomers.size === 0) {
    news.replaceChildren();
    return;
  }
  const button = news.querySelector("button") ?? document.createElement("button");
  button.type = "button";
  button.textContent = `${newcomers.size} new server${newcomers.size === 1 ? "" : "s"}: show`;
  if (!button.isConnected) {
    button.addEventListener("click", () => load(parameters()));
    news.replaceChildren(button);
  }
}

/** A server came, or one that is there has changed. */
function handleServer(server, { isListed = false } = {}) {
  const row = rows.get(server.id);
  if (row !== undefined) {
    if (row.querySelector(".v-players") === null) {
      // A favourite that was offline came back: its row has nothing to show that in.
      newcomers.add(server.id);
      announce();
      return;
    }
    update(row, server);
    remember(server.id, nameOf(server), server.connect);
    return;
  }
  const view = parameters();
  const isWanted = view.get("favourites") !== "1" || isFavourite(server.id);
  const isFirstPage = (view.get("page") ?? "1") === "1";
  // One that only changes may be on a page further back: then it is not new.
  const isElsewhere = !isListed && document.querySelector(".pager") !== null;
  if (isWanted && isFirstPage && !isElsewhere && fits(server, view)) {
    newcomers.add(server.id);
    announce();
  } else if (newcomers.delete(server.id)) {
    announce();
  }
}

/** Listens to what happens after the list that is shown. */
function follow() {
  const lobby = parameters().get("lobby") ?? "";
  if (heard === lobby) return;
  stop();
  heard = lobby;
  stop = listen(list().dataset.cursor, lobby, {
    state: setState,
    changed: (server) => handleServer(server),
    listed: (server) => handleServer(server, { isListed: true }),
    unlisted({ id }) {
      if (rows.has(id)) goOffline(rows.get(id));
      if (newcomers.delete(id)) announce();
    },
    reset() {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "The list is out of date: show the current one";
      button.addEventListener("click", () => load(parameters()));
      news.replaceChildren(button);
    },
  });
}

async function refreshTotals() {
  if (document.hidden) return;
  try {
    const { servers, players } = await (await fetch("/api/v1/lobbies")).json();
    document.getElementById("total-servers").textContent = servers.toLocaleString("en");
    document.getElementById("total-players").textContent = players.toLocaleString("en");
  } catch {
    // The next time will do.
  }
}

let typing;
function handleInput(delay) {
  clearTimeout(typing);
  typing = setTimeout(() => load(parametersOf(form)), delay);
}

form.addEventListener("input", (event) => handleInput(event.target.matches("select, [type=checkbox]") ? 0 : 250));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  handleInput(0);
});

document.addEventListener("click", (event) => {
  const star = event.target.closest("#rows button.star");
  if (star !== null) {
    const row = star.closest("tr");
    mark(star, toggle(row.dataset.id, ...facts(row)));
    return;
  }
  const link = event.target.closest("#list th a, #list .pager a");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const view = new URLSearchParams(new URL(link.href).search);
  form.elements.sort.value = view.get("sort") ?? "-players";
  load(view, { push: true }).then(() => {
    if (link.closest(".pager") !== null) scrollTo({ top: 0 });
  });
});

// What the address says is what is shown, also on the way back; the fields of the form follow.
addEventListener("popstate", () => {
  const view = parameters();
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = view.get(field.name) === field.value;
    else if (field.name) field.value = view.get(field.name) ?? (field.name === "sort" ? "-players" : "");
  }
  load(view);
});

// Other tabs may have other favourites.
addEventListener("storage", () => {
  for (const [id, row] of rows) {
    const star = row.querySelector(".star");
    if (star !== null) mark(star, isFavourite(id));
  }
});

if (matchMedia("(max-width: 760px)").matches) document.getElementById("more").open = false;
adopt();
if (parameters().get("favourites") === "1") load(parameters());
else follow();
setInterval(refreshAges, 30_000);
setInterval(refreshTotals, 20_000);
