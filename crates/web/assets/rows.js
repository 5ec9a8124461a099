// Updates rows in place. Texts of servers are inserted as text, never as HTML.

import { BASE } from "./base.js";

const NO_NAME = "(no name)";

const SIGNS = { not_queried: "", verified: "✓", differs: "≠", unreachable: "?" };

function verifiedText(verified, origin, differs) {
  if (verified === "verified") {
    return origin === "registered"
      ? "Verified: the server's reply matches its registration"
      : "Verified: the lobby queried the server itself";
  }
  if (verified === "differs") return `Differs: the server answers other values for ${(differs ?? []).join(", ")}`;
  return verified === "unreachable" ? "The server does not reply to queries" : "";
}

const countOf = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export function nameOf(server) {
  return server.name.trim() === "" ? NO_NAME : server.name;
}

function widthPercent(part, of) {
  return Math.min(100, Math.max(part > 0 ? 2 : 0, Math.floor((part * 100) / Math.max(1, of))));
}

function flash(cell) {
  if (cell === null || cell.classList.contains("flash")) return;
  cell.classList.add("flash");
  cell.addEventListener("animationend", () => cell.classList.remove("flash"), { once: true });
}

function setText(row, name, text, title = text) {
  const element = row.querySelector(`.v-${name}`);
  if (element === null || (element.textContent === text && element.title === title)) return;
  const isChanged = element.textContent !== text;
  element.textContent = text;
  element.title = title;
  if (isChanged) flash(element.closest("td, dd"));
}

function setPlayers(row, change) {
  const { dataset } = row;
  dataset.players = change.numplayers ?? dataset.players;
  dataset.bots = change.numbots ?? dataset.bots;
  dataset.slots = change.maxplayers ?? dataset.slots;
  const [players, bots, slots] = [dataset.players, dataset.bots, dataset.slots].map(Number);
  const inWords = `${countOf(players, "player")}${bots > 0 ? ` and ${countOf(bots, "bot")}` : ""}, ${countOf(slots, "slot")}`;
  // A registration without a number of slots has 0.
  setText(row, "players", slots > 0 ? `${players} / ${slots}` : `${players}`, inWords);
  setText(row, "bots", bots > 0 ? `+ ${countOf(bots, "bot")}` : "", "");
  const people = widthPercent(players, slots);
  const [first, second] = row.querySelectorAll(".bar rect");
  first?.setAttribute("width", people);
  second?.setAttribute("x", people);
  second?.setAttribute("width", Math.min(100 - people, widthPercent(bots, slots)));
}

function setVerified(row, change) {
  const badge = row.querySelector(".v-verified");
  row.dataset.origin = change.origin ?? row.dataset.origin;
  if (badge === null || change.verified === undefined) return;
  const text = verifiedText(change.verified, row.dataset.origin, change.differs);
  badge.className = `v-verified badge ${change.verified}`;
  badge.textContent = SIGNS[change.verified] ?? "";
  badge.title = text;
  badge.setAttribute("aria-label", text);
}

/** Updates the row of a server without moving it. A change has only the fields that are different now. */
export function update(row, change) {
  row.classList.remove("gone");
  if (change.name !== undefined) setText(row, "name", nameOf(change));
  if (change.map !== undefined) setText(row, "map", change.map || "");
  if (change.game_name !== undefined || change.game !== undefined) setText(row, "game", change.game_name || change.game || "");
  if (change.version !== undefined) setText(row, "version", change.version || "");
  if ([change.numplayers, change.numbots, change.maxplayers].some((number) => number !== undefined)) setPlayers(row, change);
  if (change.connect) setText(row, "address", change.connect);
  if (Number.isFinite(change.ping)) setText(row, "latency", `${Math.max(1, change.ping)} ms`);
  const lock = row.querySelector(".v-lock");
  if (lock !== null && change.password !== undefined) lock.hidden = !change.password;
  setVerified(row, change);
}

/** Marks the row of an unlisted server, which stays, so that nothing moves under the cursor. */
export function goOffline(row) {
  row.classList.add("gone");
}

/** Creates a row for a favourite that is not in the list. */
export function offlineRow(id, { name, address }) {
  const row = document.createElement("tr");
  row.dataset.id = id;
  row.setAttribute("role", "row");
  row.className = "gone";
  for (const key of ["star", "name", "map", "players", "trend", "game", "address", "latency", "age"]) {
    const cell = row.insertCell();
    cell.className = `c-${key}`;
    cell.setAttribute("role", "cell");
  }
  const link = document.createElement("a");
  link.className = "v-name";
  link.href = `${BASE}/servers/${encodeURIComponent(id)}`;
  link.dir = "auto";
  link.textContent = name;
  row.querySelector(".c-name").append(link);
  const code = document.createElement("code");
  code.className = "v-address";
  code.textContent = address ?? "";
  row.querySelector(".c-address").append(code);
  const star = document.createElement("button");
  star.type = "button";
  star.className = "star";
  star.textContent = "★";
  star.setAttribute("aria-label", "Favourite");
  row.querySelector(".c-star").append(star);
  return row;
}
