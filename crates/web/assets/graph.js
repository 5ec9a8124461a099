// Graphs: local times, values under the pointer, and tabs that replace the graph in place.

import { showLocalTimes } from "./times.js";

const TICKS = {
  "24h": { hours: 4, format: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } },
  "7d": { hours: 24, format: { month: "2-digit", day: "2-digit" } },
  "30d": { hours: 120, format: { month: "2-digit", day: "2-digit" } },
};

const SVG = "http://www.w3.org/2000/svg";
const pointerTime = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });

/** Marks round local times instead of those in UTC. */
function drawTicks(graph) {
  const { from, to, span } = graph.dataset;
  const [start, end] = [Number(from) * 1000, Number(to) * 1000];
  const ticks = graph.querySelector(".ticks");
  if (!(end > start) || ticks === null) return;
  const { hours, format } = TICKS[span] ?? TICKS["24h"];
  const label = new Intl.DateTimeFormat("sv-SE", format);
  const marks = [];
  const at = new Date(start);
  at.setHours(0, 0, 0, 0);
  for (; at.getTime() < end && marks.length < 40; at.setHours(at.getHours() + hours)) {
    const percent = (100 * (at.getTime() - start)) / (end - start);
    if (percent < 3 || percent > 97) continue;
    const text = document.createElementNS(SVG, "text");
    text.setAttribute("x", `${percent}%`);
    text.setAttribute("y", "13");
    text.setAttribute("text-anchor", "middle");
    text.textContent = label.format(at);
    marks.push(text);
  }
  ticks.replaceChildren(...marks);
}

/** Shows the values at a position, given as a share of the width; nothing for null. */
function showValues(graph, share) {
  const output = graph.querySelector(".values");
  const pointer = graph.querySelector(".pointer");
  const values = graph.dataset.values.split(" ");
  if (share === null || values.length === 0) {
    output.textContent = "";
    pointer.setAttribute("d", "");
    return;
  }
  const index = Math.min(values.length - 1, Math.floor(share * values.length));
  const x = (1000 * (index + 0.5)) / values.length;
  const { from, to } = graph.dataset;
  const time = Number(from) + ((Number(to) - Number(from)) * index) / values.length;
  const [average, maximum, slots] = values[index].split(",");
  const players = average === "-" ? "no data" : `${average} players, at most ${maximum}${slots ? ` of ${slots}` : ""}`;
  output.textContent = `${pointerTime.format(new Date(time * 1000))}: ${players}`;
  pointer.setAttribute("d", `M${x} 0V100`);
}

/** Prepares the graphs below an element. */
export function prepareGraphs(root = document) {
  for (const graph of root.querySelectorAll(".graph")) {
    drawTicks(graph);
    const plot = graph.querySelector(".plot");
    plot.addEventListener("pointermove", (event) => {
      const { left, width } = plot.getBoundingClientRect();
      showValues(graph, Math.min(0.999, Math.max(0, (event.clientX - left) / width)));
    });
    plot.addEventListener("pointerleave", () => showValues(graph, null));
  }
}

document.addEventListener("click", async (event) => {
  const tab = event.target.closest("#history .tabs a");
  if (tab === null || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const address = tab.href.split("#")[0];
  try {
    const response = await fetch(address, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("history");
    if (!response.ok || fresh === null) throw new Error();
    document.getElementById("history").replaceWith(fresh);
    history.replaceState(null, "", address);
    showLocalTimes(fresh);
    prepareGraphs(fresh);
    fresh.querySelector(".tabs [aria-current]")?.focus();
  } catch {
    location.href = tab.href;
  }
});

prepareGraphs();
