// The page: a list of runs, and the one that is chosen.

import { follow } from "./api.js";
import { fill, h, say } from "./dom.js";
import { Panel, stateOf } from "./panel.js";

const find = (id) => document.getElementById(id);
const cards = new Map(); // by the name of the folder
let panel = null;
let reports = {};

/** What a folder is called: the home itself by its system. */
function title(name) {
  return name === "." ? reports[name].system : name;
}

function card(name) {
  const known = cards.get(name);
  if (known) return known;
  const parts = { dot: h("span.dot"), name: h("b"), doing: h("span.doing"), bar: h("span.done") };
  const element = h(
    "button.folder",
    { type: "button", click: () => (location.hash = encodeURIComponent(name)) },
    h("span.line", {}, parts.dot, parts.name),
    parts.doing,
    h("span.bar", { "aria-hidden": "true" }, parts.bar),
  );
  const made = { element, ...parts };
  cards.set(name, made);
  return made;
}

function draw() {
  const names = Object.keys(reports).sort();
  for (const name of cards.keys()) if (!(name in reports)) cards.delete(name);
  const wanted = decodeURIComponent(location.hash.slice(1));
  const running = names.find((name) => reports[name].state === undefined || reports[name].state === "running");
  const chosen = wanted in reports ? wanted : (running ?? names[0]);
  fill(
    find("folders"),
    names.map((name) => {
      const { element, dot, name: label, doing, bar } = card(name);
      const report = reports[name];
      const [word, tone] = stateOf(report);
      dot.dataset.tone = tone;
      say(label, title(name));
      say(doing, report.troubles?.[0] ?? (word === "running" ? report.doing : word));
      const [done, whole] = report.progress ?? [0, 0];
      bar.style.width = `${whole ? Math.min(100, (100 * done) / whole) : 0}%`;
      bar.parentElement.hidden = !whole;
      element.setAttribute("aria-current", String(name === chosen));
      return element;
    }),
  );
  if (chosen === undefined) {
    panel = null;
    fill(find("panel"), empty());
    return;
  }
  if (panel?.name !== chosen) {
    panel = new Panel(chosen, title(chosen));
    fill(find("panel"), panel.element);
  }
  panel.update(reports[chosen]);
  document.title = `${title(chosen)}: ${stateOf(reports[chosen])[0]} – Sanderling`;
}

function empty() {
  return h(
    "div.empty",
    {},
    h("h2", {}, "Nothing has run below this folder yet"),
    h("p", {}, "A run shows up as soon as it begins. To try one, type this in the same folder, in another terminal:"),
    h("code", {}, "sanderling pages crawl https://example.org/ --out example"),
  );
}

const THEMES = { "": "Auto", light: "Light", dark: "Dark" };

function theme(name) {
  document.documentElement.dataset.theme = name;
  say(find("theme"), THEMES[name]);
  find("theme").setAttribute("aria-label", `Theme: ${THEMES[name]}`);
  localStorage.setItem("theme", name);
}

find("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  theme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});
const kept = localStorage.getItem("theme") ?? "";
theme(kept in THEMES ? kept : "");
window.addEventListener("hashchange", draw);
follow(
  (found) => {
    reports = found;
    draw();
  },
  (yes) => {
    find("live").dataset.live = yes ? "yes" : "no";
    say(find("live-text"), yes ? "Live" : "Reconnecting");
  },
);
