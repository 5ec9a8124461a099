// The list page: applies filters while the user types, shows live changes in place, and handles favourites.

import { refreshAges } from "./times.js";
import "./copy.js";
import { favourites, isFavourite, mark, remember, toggle } from "./favourites.js";
import { formParameters, matches } from "./filter.js";
import { goOffline, nameOf, offlineRow, update } from "./rows.js";
import "./keys.js";
import { followEvents } from "./live.js";

const form = document.getElementById("filter");
const updates = document.getElementById("updates");
const liveness = document.getElementById("liveness");

/** The rows of the table, by server ID. */
let rows = new Map();
/** IDs of matching servers that were listed since the list was loaded. */
let newServers = new Set();
/** Closes the event stream. */
let stopFollowing = () => {};
/** The lobby whose events are followed; empty for all. */
let followedLobby;
/** Number of the latest request: responses to earlier ones are ignored. */
let latestRequest = 0;

const list = () => document.getElementById("list");
const parameters = () => new URLSearchParams(location.search);

/** Indexes the rows of a new table, and marks favourites. */
function indexRows() {
  rows = new Map([...document.querySelectorAll("#rows tr")].map((row) => [row.dataset.id, row]));
  for (const [id, row] of rows) {
    const star = row.querySelector(".star");
    if (star === null) continue;
    mark(star, isFavourite(id));
    if (isFavourite(id)) remember(id, ...nameAndAddress(row));
  }
  newServers = new Set();
  updates.replaceChildren();
  appendOffline();
}

function nameAndAddress(row) {
  return [row.querySelector(".v-name")?.textContent ?? "", row.querySelector(".v-address")?.textContent ?? ""];
}

/** Appends favourites that are not in the list as offline, below the others. */
function appendOffline() {
  const body = document.getElementById("rows");
  const isUnfiltered = ["q", "lobby", "game", "map", "version", "verified", "page"].every((name) => !parameters().get(name));
  if (body === null || parameters().get("favourites") !== "1" || !isUnfiltered || !list().dataset.ids) return;
  for (const [id, favourite] of Object.entries(favourites())) {
    if (rows.has(id)) continue;
    const row = offlineRow(id, favourite);
    mark(row.querySelector(".star"), true);
    body.append(row);
    rows.set(id, row);
  }
}

/** The URL to fetch for a view. It contains the IDs of the favourites, which are stored in the browser only. */
function requestUrl(view) {
  const parameters = new URLSearchParams(view);
  if (parameters.get("favourites") === "1") {
    // No server has an ID of zeros: without favourites the list is empty, instead of complete.
    parameters.set("ids", Object.keys(favourites()).join(",") || "0".repeat(32));
  }
  return `/?${parameters}`;
}

/** Loads a view: a new one, or the current one again. */
async function load(view, { push = false } = {}) {
  const request = ++latestRequest;
  const address = view.toString() === "" ? "/" : `/?${view}`;
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  try {
    const response = await fetch(requestUrl(view), { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("list");
    if (request !== latestRequest) return;
    if (!response.ok || fresh === null) {
      list().querySelector("#count").textContent = page.querySelector(".error-detail")?.textContent ?? "The list could not be loaded.";
      return;
    }
    if (view.get("favourites") === "1") fresh.dataset.ids = "1";
    list().replaceWith(fresh);
    for (const id of ["games", "maps", "versions", "totals"]) {
      const part = page.getElementById(id);
      if (part !== null) document.getElementById(id)?.replaceWith(part);
    }
    removeIdsFromLinks();
    indexRows();
    follow();
  } catch {
    setConnected(false);
  }
}

/** Removes the IDs of favourites from links: they do not belong in URLs that users share. */
function removeIdsFromLinks() {
  for (const link of list().querySelectorAll('a[href^="/?"]')) {
    const target = new URLSearchParams(link.getAttribute("href").slice(2));
    if (target.get("favourites") !== "1") continue;
    target.delete("ids");
    link.href = `/?${target}`;
  }
}

/** Shows whether the event stream is connected. */
function setConnected(isConnected) {
  liveness.classList.toggle("on", isConnected);
  const label = isConnected ? "live" : "reconnecting …";
  if (liveness.textContent !== label) liveness.textContent = label;
}

/** Offers to show servers that were listed since the list was loaded. */
function offerNewServers() {
  if (newServers.size === 0) {
    updates.replaceChildren();
    return;
  }
  const button = updates.querySelector("button") ?? document.createElement("button");
  button.type = "button";
  button.textContent = `${newServers.size} new server${newServers.size === 1 ? "" : "s"}: show`;
  if (!button.isConnected) {
    button.addEventListener("click", () => load(parameters()));
    updates.replaceChildren(button);
  }
}

/** Handles a server that was listed or has changed. */
function handleServer(server, { isListed = false } = {}) {
  const row = rows.get(server.id);
  if (row !== undefined) {
    if (row.querySelector(".v-players") === null) {
      // A favourite that was offline is back: its row has no cells for the details.
      newServers.add(server.id);
      offerNewServers();
      return;
    }
    update(row, server);
    remember(server.id, nameOf(server), server.connect);
    return;
  }
  const view = parameters();
  const isIncluded = view.get("favourites") !== "1" || isFavourite(server.id);
  const isFirstPage = (view.get("page") ?? "1") === "1";
  // A server that only changed may be on a later page: then it is not new.
  const isOnOtherPage = !isListed && document.querySelector(".pager") !== null;
  if (isIncluded && isFirstPage && !isOnOtherPage && matches(server, view)) {
    newServers.add(server.id);
    offerNewServers();
  } else if (newServers.delete(server.id)) {
    offerNewServers();
  }
}

/** Follows the events after the list that is shown. */
function follow() {
  const lobby = parameters().get("lobby") ?? "";
  if (followedLobby === lobby) return;
  stopFollowing();
  followedLobby = lobby;
  stopFollowing = followEvents(list().dataset.cursor, lobby, {
    connected: setConnected,
    changed: (server) => handleServer(server),
    listed: (server) => handleServer(server, { isListed: true }),
    unlisted({ id }) {
      if (rows.has(id)) goOffline(rows.get(id));
      if (newServers.delete(id)) offerNewServers();
    },
    reset() {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "The list is out of date: reload";
      button.addEventListener("click", () => load(parameters()));
      updates.replaceChildren(button);
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
    // Retried at the next interval.
  }
}

let inputTimer;
function handleInput(delay) {
  clearTimeout(inputTimer);
  inputTimer = setTimeout(() => load(formParameters(form)), delay);
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
    mark(star, toggle(row.dataset.id, ...nameAndAddress(row)));
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

// Back and forward: the form and the list follow the URL.
addEventListener("popstate", () => {
  const view = parameters();
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = view.get(field.name) === field.value;
    else if (field.name) field.value = view.get(field.name) ?? (field.name === "sort" ? "-players" : "");
  }
  load(view);
});

// Favourites can change in another tab.
addEventListener("storage", () => {
  for (const [id, row] of rows) {
    const star = row.querySelector(".star");
    if (star !== null) mark(star, isFavourite(id));
  }
});

if (matchMedia("(max-width: 760px)").matches) document.getElementById("more").open = false;
indexRows();
if (parameters().get("favourites") === "1") load(parameters());
else follow();
setInterval(refreshAges, 30_000);
setInterval(refreshTotals, 20_000);
