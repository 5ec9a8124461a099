// The keyboard: / to search, arrows through the rows, f for favourite, c to copy. Enter follows the link by itself.

function rowOf(element) {
  return element?.closest?.("#rows tr") ?? null;
}

function step(by) {
  const rows = [...document.querySelectorAll("#rows tr")];
  const at = rows.indexOf(rowOf(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
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
      step(1);
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
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    f: () => row?.querySelector("button.star")?.click(),
    c: () => row?.querySelector("button.copy")?.click(),
  };
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
  if (action === undefined || ((event.key === "f" || event.key === "c") && row === null)) return;
  event.preventDefault();
  action();
});
