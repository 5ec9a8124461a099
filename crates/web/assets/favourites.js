// Favourites, stored in this browser with their last name and address, which are shown while they are offline.

const KEY = "rallypoint.favourites";

/** Maximum number of favourites: one request has to name them all. */
const MAX_FAVOURITES = 300;

/** All favourites: { id: { name, address } }. */
export function favourites() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return stored !== null && typeof stored === "object" && !Array.isArray(stored) ? stored : {};
  } catch {
    return {};
  }
}

function store(all) {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // Favourites are not kept if storage is disabled.
  }
}

export function isFavourite(id) {
  return Object.hasOwn(favourites(), id);
}

/** Adds a favourite or removes it. Returns whether it is one now. */
export function toggle(id, name, address) {
  const all = favourites();
  if (Object.hasOwn(all, id)) {
    delete all[id];
  } else if (Object.keys(all).length < MAX_FAVOURITES) {
    all[id] = { name, address };
  }
  store(all);
  return Object.hasOwn(all, id);
}

/** Updates the stored name and address of a favourite. */
export function remember(id, name, address) {
  const all = favourites();
  const stored = all[id];
  if (stored !== undefined && (stored.name !== name || stored.address !== address)) {
    all[id] = { name, address };
    store(all);
  }
}

/** Sets the state of a star button. */
export function mark(star, isFavourite) {
  star.setAttribute("aria-pressed", String(isFavourite));
}
