// The list page: applies filters while the user types, shows live changes in place, and handles favourites.

import { BASE } from "./base.js";
import { refreshAges } from "./times.js";
import "./copy.js";
import { favourites, isFavourite, mark, remember, toggle } from "./favourites.js";
import { DEFAULT_SORT, apiParameters, fillForm, formParameters } from "./filter.js";
import { goOffline, offlineRow, update } from "./rows.js";
import { isOutOfOrder } from "./order.js";
import "./keys.js";
import { followEvents } from "./live.js";

/** Time in milliseconds after which a request is shown as busy. */
const BUSY_AFTER = 200;
/** Minimum time in milliseconds between two searches for new servers. */
const SEARCH_INTERVAL = 5_000;
/** Time in milliseconds after which a filtered list is searched for servers that have begun to match. */
const FILTERED_SEARCH_INTERVAL = 60_000;
/** Maximum number of new servers that are counted. */
const MAX_NEW = 20;
/** First and maximum time in milliseconds until a failed request is repeated. */
const FIRST_RETRY = 2_000;
const MAX_RETRY = 60_000;

const form = document.getElementById("filter");
const updates = document.getElementById("updates");
const liveness = document.getElementById("liveness");

/** The rows of the table, by server ID. */
let rows = new Map();
/** Closes the event stream. */
let stopFollowing = () => {};
/** Number of the latest request: responses to earlier ones are ignored. */
let latestRequest = 0;
/** Number of failed attempts to load the list. */
let failures = 0;
let retryTimer;
/** Number of servers that were listed since the lobby started, when the list was searched for new ones last. */
let searchedListed = 0;
let searchTimer;
let searchedAt = performance.now();

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
  searchedListed = Number(list().dataset.listed);
  clearTimeout(searchTimer);
  searchTimer = undefined;
  updates.replaceChildren();
  appendOffline();
  const hint = document.getElementById("no-favourites");
  if (hint !== null && list().dataset.ids) {
    hint.hidden = Object.keys(favourites()).length > 0;
    document.querySelector(".servers").hidden = !hint.hidden;
  }
}

function nameAndAddress(row) {
  return [row.querySelector(".v-name")?.textContent ?? "", row.querySelector(".v-address")?.textContent ?? ""];
}

/** Appends favourites that are not in the list as offline, below the others. */
function appendOffline() {
  const body = document.getElementById("rows");
  const isUnfiltered = ["q", "list", "game", "map", "version", "verified", "page"].every((name) => !parameters().get(name));
  if (body === null || parameters().get("favourites") !== "1" || !isUnfiltered || !list().dataset.ids) return;
  for (const [id, favourite] of Object.entries(favourites())) {
    if (rows.has(id)) continue;
    const row = offlineRow(id, favourite);
    mark(row.querySelector(".star"), true);
    body.append(row);
    rows.set(id, row);
  }
}

/** The parameters of a request. They contain the IDs of the favourites, which are stored in the browser only. */
function withFavourites(view) {
  const parameters = new URLSearchParams(view);
  if (parameters.get("favourites") === "1") {
    // No server has an ID of zeros: without favourites the list is empty, instead of complete.
    parameters.set("ids", Object.keys(favourites()).join(",") || "0".repeat(32));
  }
  return parameters;
}

/** Loads a view: a new one, or the current one again. */
async function load(view, { push = false } = {}) {
  const request = ++latestRequest;
  const address = view.toString() === "" ? `${BASE}/` : `${BASE}/?${view}`;
  if (push && address !== location.pathname + location.search) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  clearTimeout(retryTimer);
  const busyTimer = setTimeout(() => setBusy(true), BUSY_AFTER);
  try {
    const response = await fetch(`${BASE}/?${withFavourites(view)}`, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (request !== latestRequest) return;
    const fresh = page.getElementById("list");
    if (!response.ok || fresh === null) {
      const reason = page.querySelector(".error-detail")?.textContent ?? `status ${response.status}`;
      // An invalid filter stays invalid, and so does the name of a lobby that does not exist.
      showFailure(reason, { isFinal: response.status === 400 || response.status === 404 });
      return;
    }
    if (view.get("favourites") === "1") fresh.dataset.ids = "1";
    list().replaceWith(fresh);
    form.hidden = page.getElementById("filter")?.hidden ?? false;
    for (const id of ["lists", "games", "maps", "versions", "filters-label", "totals"]) replacePart(id, page);
    failures = 0;
    removeIdsFromLinks();
    indexRows();
    follow();
  } catch {
    if (request === latestRequest) showFailure("the lobby cannot be reached", { isFinal: false });
  } finally {
    clearTimeout(busyTimer);
    if (request === latestRequest) setBusy(false);
  }
}

/** Replaces a part of the page around the list. What the user has chosen stays chosen. */
function replacePart(id, page) {
  const part = page.getElementById(id);
  const old = document.getElementById(id);
  if (part === null || old === null || old.isEqualNode(part)) return;
  if (old === document.activeElement) return;
  const { value } = old;
  old.replaceWith(part);
  if (value !== undefined) part.value = value;
}

function setBusy(isBusy) {
  list().setAttribute("aria-busy", String(isBusy));
}

/** Shows that the list could not be loaded, and tries again later. */
function showFailure(reason, { isFinal }) {
  const delay = Math.min(MAX_RETRY, FIRST_RETRY * 2 ** failures);
  failures += 1;
  const text = document.createElement("span");
  text.className = "failure";
  text.textContent = `The list could not be loaded: ${reason}`;
  updates.replaceChildren(text, button("Try again", () => load(parameters())));
  if (!isFinal) retryTimer = setTimeout(() => load(parameters()), delay * (0.5 + Math.random() / 2));
}

function button(text, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", action);
  return button;
}

/** Removes the IDs of favourites from links: they do not belong in URLs that users share. */
function removeIdsFromLinks() {
  for (const link of list().querySelectorAll(`a[href^="${BASE}/?"]`)) {
    const target = new URL(link.href);
    if (target.searchParams.get("favourites") !== "1") continue;
    target.searchParams.delete("ids");
    link.href = `${target.pathname}?${target.searchParams}`;
  }
}

/** Shows whether the event stream is connected. */
function setConnected(isConnected) {
  liveness.classList.toggle("on", isConnected);
  const label = isConnected ? "live" : "reconnecting …";
  if (liveness.textContent !== label) liveness.textContent = label;
}

/** Offers to show servers that were listed since the list was loaded. */
function offerNewServers(count) {
  if (updates.querySelector(".failure") !== null) return;
  if (count === 0) {
    updates.replaceChildren();
    return;
  }
  const label = `${count >= MAX_NEW ? `${MAX_NEW} or more` : count} new server${count === 1 ? "" : "s"}: show`;
  const existing = updates.querySelector("button");
  if (existing === null) updates.replaceChildren(button(label, () => load(parameters())));
  else if (existing.textContent !== label) existing.textContent = label;
}

/** Counts the servers that match the filters and were listed since the list was loaded. */
async function searchNewServers() {
  searchTimer = undefined;
  if (rows.size === 0 && parameters().toString() === "") {
    load(parameters());
    return;
  }
  searchedAt = performance.now();
  const view = apiParameters(withFavourites(parameters()));
  view.set("sort", "age");
  view.set("limit", String(MAX_NEW));
  const request = latestRequest;
  try {
    const response = await fetch(`${BASE}/api/v1/servers?${view}`);
    if (!response.ok || request !== latestRequest) return;
    const { servers, total } = await response.json();
    if (document.querySelector(".pager") === null) {
      const shown = [...rows.values()].filter((row) => !row.classList.contains("gone")).length;
      offerNewServers(Math.max(0, total - shown));
      return;
    }
    // Of a list in several pages, those that were listed since. The page may have been rendered a moment later.
    const loadedAt = (Number(list().dataset.now) - 5) * 1000;
    const isNew = (server) => !rows.has(server.id) && Date.parse(server.since) >= loadedAt;
    offerNewServers(servers.filter(isNew).length);
  } catch {
    // The next new server is a reason to search again.
  }
}

function handleTotals({ servers, players, bots, listed }) {
  const set = (noun, number) => {
    const element = document.getElementById(`total-${noun}s`);
    const text = number.toLocaleString("en");
    if (element === null || element.textContent === text) return;
    element.textContent = text;
    element.nextElementSibling.textContent = number === 1 ? noun : `${noun}s`;
  };
  set("server", servers);
  set("player", players);
  set("bot", bots);
  if ((parameters().get("page") ?? "1") !== "1") return;
  const isFiltered = apiParameters(parameters()).size > 0;
  const isSearchDue = isFiltered && !document.hidden && performance.now() - searchedAt > FILTERED_SEARCH_INTERVAL;
  if (listed === searchedListed && !isSearchDue) return;
  searchedListed = listed;
  const isFirst = searchTimer === undefined && updates.childElementCount === 0;
  searchTimer ??= setTimeout(searchNewServers, isFirst ? 0 : SEARCH_INTERVAL);
}

function handleChange(change) {
  const row = rows.get(change.id);
  if (row === undefined || row.querySelector(".v-players") === null) return;
  update(row, change);
  if (isFavourite(change.id)) remember(change.id, ...nameAndAddress(row));
  const resort = document.getElementById("resort");
  if (resort?.disabled && isOutOfOrder(row, change, parameters().get("sort") ?? DEFAULT_SORT)) resort.disabled = false;
}

/** Follows the events of the servers in the list. The first digits of their IDs keep the address short. */
function follow() {
  stopFollowing();
  const ids = [...rows.keys()].map((id) => id.slice(0, 8)).join(",") || "00000000";
  stopFollowing = followEvents(list().dataset.cursor, { ids }, {
    connected: setConnected,
    changed: handleChange,
    listed: handleChange,
    unlisted({ id }) {
      if (rows.has(id)) goOffline(rows.get(id));
    },
    totals: handleTotals,
    // The lobby was restarted, or this page was away for too long. Not all pages reload at the same moment.
    reset() {
      clearTimeout(retryTimer);
      retryTimer = setTimeout(() => load(parameters()), Math.random() * 1_000);
    },
  });
}

/** The field that the current entry of the history belongs to: typing on in it does not add another. */
let editedField;
let inputTimer;
form.addEventListener("input", ({ target }) => {
  const isTyped = !target.matches("select, [type=checkbox]");
  const push = !isTyped || editedField !== target;
  editedField = isTyped ? target : undefined;
  clearTimeout(inputTimer);
  const isPending = form.dataset.push === "1";
  form.dataset.push = push || isPending ? "1" : "";
  inputTimer = setTimeout(applyForm, isTyped ? 250 : 0);
});
form.addEventListener("focusout", () => {
  editedField = undefined;
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  applyForm();
});

function applyForm() {
  clearTimeout(inputTimer);
  const push = form.dataset.push === "1";
  form.dataset.push = "";
  load(formParameters(form), { push });
}

document.addEventListener("click", (event) => {
  const star = event.target.closest("#rows button.star");
  if (star !== null) {
    const row = star.closest("tr");
    mark(star, toggle(row.dataset.id, ...nameAndAddress(row)));
    return;
  }
  if (event.target.closest("#resort") !== null) {
    load(parameters());
    return;
  }
  const link = event.target.closest("#list th a, #list .pager a");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const view = new URLSearchParams(new URL(link.href).search);
  form.elements.sort.value = view.get("sort") ?? DEFAULT_SORT;
  load(view, { push: true }).then(() => {
    if (link.closest(".pager") !== null) scrollTo({ top: 0 });
  });
});

// Back and forward: the form and the list follow the URL.
addEventListener("popstate", () => {
  const view = parameters();
  editedField = undefined;
  fillForm(form, view);
  load(view);
});

// Favourites can change in another tab.
addEventListener("storage", () => {
  for (const [id, row] of rows) {
    const star = row.querySelector(".star");
    if (star !== null) mark(star, isFavourite(id));
  }
});

indexRows();
if (parameters().get("favourites") === "1") load(parameters());
else follow();
setInterval(refreshAges, 30_000);
