// Times in the visitor's own zone; ages that go on.

/** How long, in one unit: the same words as the server's. */
export function span(seconds) {
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400).toLocaleString("en")} d`;
}

/** Writes all ages below an element anew. */
export function refreshAges(root = document) {
  const now = Math.floor(Date.now() / 1000);
  for (const age of root.querySelectorAll(".v-age[data-since]")) {
    age.textContent = span(Math.max(0, now - Number(age.dataset.since)));
  }
}

const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime())) {
    time.title = `${time.textContent} (UTC)`;
    time.textContent = zone.format(at);
  }
}
