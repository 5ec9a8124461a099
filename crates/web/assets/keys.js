// Keyboard shortcuts: / searches, arrows move through the rows, f toggles a favourite, c copies.
// Enter follows the focused link.

function rowOf(element) {
  return element?.closest?.("#rows tr") ?? null;
}

/** Moves the focus by a number of rows. */
function moveFocus(by) {
  const rows = [...document.querySelectorAll("#rows tr")];
  const current = rows.indexOf(rowOf(document.activeElement));
  const next = current < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, current + by));
  const link = rows[next]?.querySelector(".v-name");
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const field = event.target.closest("input, select, textarea");
  const search = document.getElementById("q");
  if (field !== null) {
    if (field === search && event.key === "ArrowDown") {
      event.preventDefault();
      moveFocus(1);
    } else if (field === search && event.key === "Escape") {
      search.blur();
    }
    return;
  }
  const row = rowOf(document.activeElement);
  const actions = {
    "/": () => {
      search?.focus();
      search?.select();
    },
    ArrowDown: () => moveFocus(1),
    ArrowUp: () => moveFocus(-1),
    f: () => row?.querySelector("button.star")?.click(),
    c: () => row?.querySelector("button.copy")?.click(),
  };
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
  if (action === undefined || ((event.key === "f" || event.key === "c") && row === null)) return;
  event.preventDefault();
  action();
});
