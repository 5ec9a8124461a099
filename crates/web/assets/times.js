// Times in the user's time zone, and ages that are updated.

/** A duration in the largest unit that fits, in the same form as the server renders it. */
export function age(seconds) {
  if (seconds < 60) return "new";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400).toLocaleString("en")} d`;
}

/** Updates all ages below an element. */
export function refreshAges(root = document) {
  const now = Math.floor(Date.now() / 1000);
  for (const element of root.querySelectorAll(".v-age[data-since]")) {
    const text = age(Math.max(0, now - Number(element.dataset.since)));
    if (element.textContent !== text) element.textContent = text;
  }
}

// The same form as the server's, "2026-11-16 08:30", so that nothing moves.
const localTime = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });

const localDate = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short" });

/** Shows the times below an element in the user's time zone. */
export function showLocalTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.title = `${time.textContent} (UTC)`;
      time.textContent = (time.classList.contains("date") ? localDate : localTime).format(at);
    }
  }
}

showLocalTimes();
