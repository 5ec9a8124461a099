// Updates rows in place. Texts of servers are inserted as text, never as HTML.

const NO_NAME = "(no name)";

const SIGNS = { not_queried: "", verified: "✓", differs: "≠", unreachable: "?" };

function verifiedText({ verified, origin, differs }) {
  if (verified === "verified") {
    return origin === "registered"
      ? "Verified: the server's reply matches its registration"
      : "Verified: the lobby queried the server itself";
  }
  if (verified === "differs") return `Differs: the server reports different values for ${(differs ?? []).join(", ")}`;
  return verified === "unreachable" ? "The server does not reply to queries" : "";
}

const countOf = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export function nameOf(server) {
  return server.name.trim() === "" ? NO_NAME : server.name;
}

function players(server) {
  const bots = server.numbots > 0 ? ` + ${server.numbots}` : "";
  // A registration without a number of slots has 0.
  const slots = server.maxplayers > 0 ? ` / ${server.maxplayers}` : "";
  return `${server.numplayers}${bots}${slots}`;
}

function playersInWords(server) {
  const bots = server.numbots > 0 ? ` and ${countOf(server.numbots, "bot")}` : "";
  return `${countOf(server.numplayers, "player")}${bots}, ${countOf(server.maxplayers, "slot")}`;
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

/** Updates the row of a server without moving it. */
export function update(row, server) {
  row.classList.remove("gone");
  setText(row, "name", nameOf(server));
  setText(row, "map", server.map);
  setText(row, "game", server.game_name || server.game);
  setText(row, "version", server.version);
  setText(row, "players", players(server), playersInWords(server));
  if (server.connect !== null) setText(row, "address", server.connect);
  if (server.ping !== null) setText(row, "latency", `${Math.max(1, server.ping)} ms`);
  const lock = row.querySelector(".v-lock");
  if (lock !== null) lock.hidden = !server.password;
  const people = widthPercent(server.numplayers, server.maxplayers);
  const bots = Math.min(100 - people, widthPercent(server.numbots, server.maxplayers));
  const [first, second] = row.querySelectorAll(".bar rect");
  first?.setAttribute("width", people);
  second?.setAttribute("x", people);
  second?.setAttribute("width", bots);
  const text = verifiedText(server);
  const badge = row.querySelector(".v-verified");
  if (badge !== null && (badge.title !== text || !badge.classList.contains(server.verified))) {
    badge.className = `v-verified badge ${server.verified}`;
    badge.textContent = SIGNS[server.verified] ?? "";
    badge.title = text;
    badge.setAttribute("aria-label", text);
  }
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
  const cells = ["star", "lock", "name", "map", "players", "game", "version", "address", "latency", "age", "verified"];
  for (const key of cells) {
    const cell = row.insertCell();
    cell.className = `c-${key}`;
    cell.setAttribute("role", "cell");
  }
  const link = document.createElement("a");
  link.className = "v-name";
  link.href = `/servers/${encodeURIComponent(id)}`;
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
