// Rows that change in place. Text goes in as text, never as HTML.

const NAMELESS = "(no name)";

const SIGNS = { unasked: "", verified: "✓", differs: "≠", unreachable: "?" };

function verdictOf({ verified, origin, differs }) {
  if (verified === "verified") {
    return origin === "registered" ? "Verified: the server itself says the same" : "Verified: the lobby asked the server itself";
  }
  if (verified === "differs") return `Differs: asked for its ${(differs ?? []).join(", ")}, the server says something else`;
  return verified === "unreachable" ? "The server does not answer questions" : "";
}

const many = (count, thing) => `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;

export function nameOf(server) {
  return server.name.trim() === "" ? NAMELESS : server.name;
}

function players(server) {
  const bots = server.numbots > 0 ? ` + ${server.numbots}` : "";
  return `${server.numplayers}${bots} / ${server.maxplayers}`;
}

function spoken(server) {
  const bots = server.numbots > 0 ? ` and ${many(server.numbots, "bot")}` : "";
  return `${many(server.numplayers, "player")}${bots}, ${many(server.maxplayers, "slot")}`;
}

function share(part, of) {
  return Math.min(100, Math.max(part > 0 ? 2 : 0, Math.floor((part * 100) / Math.max(1, of))));
}

function flash(cell) {
  if (cell === null || cell.classList.contains("flash")) return;
  cell.classList.add("flash");
  cell.addEventListener("animationend", () => cell.classList.remove("flash"), { once: true });
}

function write(row, name, text, title = text) {
  const place = row.querySelector(`.v-${name}`);
  if (place === null || (place.textContent === text && place.title === title)) return;
  const differs = place.textContent !== text;
  place.textContent = text;
  place.title = title;
  if (differs) flash(place.closest("td, dd"));
}

/** Shows a server as it is now, where it stands. */
export function update(row, server) {
  row.classList.remove("gone");
  write(row, "name", nameOf(server));
  write(row, "map", server.map);
  write(row, "game", server.game_name || server.game);
  write(row, "version", server.version);
  write(row, "players", players(server), spoken(server));
  if (server.connect !== null) write(row, "address", server.connect);
  if (server.ping !== null) write(row, "latency", `${Math.max(1, server.ping)} ms`);
  const lock = row.querySelector(".v-lock");
  if (lock !== null) lock.hidden = !server.password;
  const people = share(server.numplayers, server.maxplayers);
  const bots = Math.min(100 - people, share(server.numbots, server.maxplayers));
  const [first, second] = row.querySelectorAll(".bar rect");
  first?.setAttribute("width", people);
  second?.setAttribute("x", people);
  second?.setAttribute("width", bots);
  const words = verdictOf(server);
  const verdict = row.querySelector(".v-verified");
  if (verdict !== null && (verdict.title !== words || !verdict.classList.contains(server.verified))) {
    verdict.className = `v-verified badge ${server.verified}`;
    verdict.textContent = SIGNS[server.verified] ?? "";
    verdict.title = words;
    verdict.setAttribute("aria-label", words);
  }
}

/** A server that went keeps its row, so that nothing moves under the cursor. */
export function goOffline(row) {
  row.classList.add("gone");
}

/** A row for a favourite that is not in the list. */
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
