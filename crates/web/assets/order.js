// Whether the rows are still in the order in which they were loaded.

/** The fields of a server that each order depends on. A new latency alone is no event. */
const FIELDS = {
  name: ["name"],
  map: ["map"],
  bots: ["numbots"],
  slots: ["maxplayers"],
  game: ["game"],
  version: ["version"],
  password: ["password"],
  verified: ["verified"],
  address: ["connect", "addresses"],
};

/** Whether a change of a row puts it out of order. `sort` is the order, such as "-players". */
export function isOutOfOrder(row, change, sort) {
  const column = sort.replace(/^-/, "");
  if (column !== "players") return (FIELDS[column] ?? []).some((field) => change[field] !== undefined);
  if (change.numplayers === undefined) return false;
  const sign = sort.startsWith("-") ? -1 : 1;
  const players = (one) => (one?.dataset.players === undefined ? null : sign * Number(one.dataset.players));
  const [before, here, after] = [row.previousElementSibling, row, row.nextElementSibling].map(players);
  return (before !== null && before > here) || (after !== null && here > after);
}
