// Favourites: they stay in this browser, with the last name and address, so that they are known when they are offline.

const KEY = "rallypoint.favourites";

/** As many as one request can name. */
const MOST = 300;

/** All favourites: { id: { name, address } }. */
export function favourites() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return kept !== null && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
  } catch {
    return {};
  }
}

function keep(all) {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // The browser keeps nothing: then there are no favourites.
  }
}

export function isFavourite(id) {
  return Object.hasOwn(favourites(), id);
}

/** Makes a server a favourite, or not one any more. Says which. */
export function toggle(id, name, address) {
  const all = favourites();
  if (Object.hasOwn(all, id)) {
    delete all[id];
  } else if (Object.keys(all).length < MOST) {
    all[id] = { name, address };
  }
  keep(all);
  return Object.hasOwn(all, id);
}

/** Remembers the present name and address of a favourite. */
export function remember(id, name, address) {
  const all = favourites();
  const known = all[id];
  if (known !== undefined && (known.name !== name || known.address !== address)) {
    all[id] = { name, address };
    keep(all);
  }
}

/** Shows on a star whether it is one. */
export function mark(star, is) {
  star.setAttribute("aria-pressed", String(is));
}
