// One run: its state and what can be done to it, its figures, ten minutes of any of them, its hosts, its tasks.

import { Refusal, act, get } from "./api.js";
import { bytes, clock, duration, fill, h, number, say, short, shown, words } from "./dom.js";
import { Chart, Spark } from "./plot.js";
import { Hosts } from "./hosts.js";
import { Tasks } from "./tasks.js";

const ENDED = { 0: "done", 3: "ended, something is left", 130: "stopped" };
const TONES = { running: "good", done: "off", paused: "wait", stopping: "wait", stopped: "off" };
const REMEMBERED = 600;
const ALL_HOSTS = "rate of all hosts";

/** How a run is, in some words, and the tone that goes with it. */
export function stateOf(report) {
  const state = report.state ?? "running";
  const word = state === "ended" ? (ENDED[report.exit] ?? "failed") : state;
  if (word === "running" && report.troubles?.length) return [word, "bad"];
  return [word, TONES[word] ?? (report.exit === 3 ? "wait" : "bad")];
}

/** Have something done, and say how it went. */
export async function request(folder, action, items = []) {
  try {
    const { said } = await act(folder, action, items);
    note(`${action} ${items.filter(Boolean).join(" ")}: ${said}`);
    return true;
  } catch (error) {
    note(error instanceof Refusal ? error.message : "The server does not answer.", true);
    return false;
  }
}

function note(text, refused = false) {
  const place = document.getElementById("notes");
  const element = h("p.note", { "data-tone": refused ? "bad" : "good" }, text);
  element.append(h("button", { type: "button", "aria-label": "Close", click: () => element.remove() }, "×"));
  place.append(element);
  while (place.childElementCount > 4) place.firstChild.remove();
  if (!refused) setTimeout(() => element.remove(), 6000);
}

/** Ask whether that is meant. */
function confirmed(title, text, yes) {
  const dialog = document.getElementById("ask");
  say(document.getElementById("ask-title"), title);
  say(document.getElementById("ask-text"), text);
  say(document.getElementById("ask-yes"), yes);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

export class Panel {
  #tiles = new Map(); // by the name of a fact
  #points = new Map(); // by the same: [[wall, value], …]
  #chosen = null; // the fact of the large curve

  constructor(name, title) {
    this.name = name;
    this.badge = h("span.badge");
    this.since = h("span.muted");
    this.path = h("code.path");
    this.buttons = {
      pause: h("button", { type: "button", click: () => this.#pause() }, "Pause"),
      drain: h("button", { type: "button", click: () => this.#end("drain") }, "Drain"),
      stop: h("button", { type: "button", click: () => this.#end("stop") }, "Stop"),
    };
    this.doing = h("p.now");
    this.progress = h("div.progress", { role: "progressbar", "aria-label": "Progress" }, h("span.done"));
    this.progressText = h("p.muted");
    this.troubles = h("ul.troubles");
    this.figures = h("div.figures");
    this.tables = h("div.tables");
    this.chart = new Chart();
    this.hosts = new Hosts(name);
    this.tasks = new Tasks(name);
    this.hints = h("div.hints");
    this.element = h(
      "div.panel",
      {},
      h("header", {}, h("h2", {}, title), this.badge, this.since, h("menu", {}, Object.values(this.buttons))),
      this.path,
      this.doing,
      this.progress,
      this.progressText,
      this.troubles,
      this.figures,
      this.chart.element,
      this.tables,
      this.hosts.element,
      this.tasks.element,
      this.hints,
    );
    this.#load();
  }

  async #load() {
    const found = await get("api/folder", { folder: this.name }).catch(() => null);
    if (!found) return;
    say(this.path, found.path);
    this.#wanted(found.wanted);
    const { wall, ...series } = found.history;
    for (const [name, values] of Object.entries(series)) {
      const later = this.#points.get(name) ?? [];
      const before = values.map((value, place) => [wall[place], value]);
      const end = before.at(-1)?.[0] ?? 0;
      this.#points.set(name, [...before, ...later.filter(([each]) => each > end)]);
    }
    if (this.report) this.update(this.report);
  }

  #wanted({ paused, blocked }) {
    this.paused = paused;
    say(this.buttons.pause, paused ? "Resume" : "Pause");
    this.hosts.blocked = new Set(blocked);
  }

  update(report) {
    const fresh = report.wall !== this.report?.wall;
    this.report = report;
    const [word, tone] = stateOf(report);
    const live = !["ended", "killed"].includes(report.state ?? "running");
    say(this.badge, word);
    this.badge.dataset.tone = tone;
    const lasted = duration(report.wall - (report.started ?? report.wall));
    say(this.since, live ? `for ${lasted}` : `${lasted}, until ${clock(report.wall)}`);
    say(this.doing, report.doing);
    this.doing.hidden = !report.doing;
    if (live && (report.state === "paused") !== Boolean(this.paused)) this.#again();
    this.buttons.drain.hidden = this.buttons.stop.hidden = !live || report.state === "stopping";
    const [done, whole] = report.progress ?? [0, 0];
    this.progress.hidden = this.progressText.hidden = !whole;
    this.progress.firstChild.style.width = `${whole ? Math.min(100, (100 * done) / whole) : 0}%`;
    this.progress.setAttribute("aria-valuenow", whole ? Math.round((100 * done) / whole) : 0);
    say(this.progressText, `${number(done)} of ${number(whole)}`);
    fill(this.troubles, (report.troubles ?? []).map((trouble) => h("li", {}, trouble)));
    this.troubles.hidden = !report.troubles?.length;
    if (fresh && live) this.#remember(report);
    this.#draw(report);
    this.hosts.update(report.hosts ?? []);
    this.tasks.update(live);
    fill(
      this.hints,
      (report.hints ?? []).map(({ why, words: typed }) =>
        h("p", {}, h("span.muted", {}, `${why}: `), h("code", {}, ["sanderling", ...typed].join(" "))),
      ),
    );
  }

  async #again() {
    const found = await get("api/folder", { folder: this.name }).catch(() => null);
    if (found) this.#wanted(found.wanted);
  }

  #remember(report) {
    const add = (name, value) => {
      const points = this.#points.get(name) ?? [];
      points.push([report.wall, value]);
      this.#points.set(name, points.slice(-REMEMBERED));
    };
    for (const { name, kind, value, rate } of report.facts ?? [])
      if (typeof value === "number") add(name, kind === "count" ? (rate ?? 0) : value);
    if (report.hosts?.length) add(ALL_HOSTS, report.hosts.reduce((sum, host) => sum + (host.rate ?? 0), 0));
  }

  #draw(report) {
    const facts = (report.facts ?? []).filter(({ more, value }) => !more && value !== null && value !== "");
    const single = facts.filter(
      ({ name, value }, place) => typeof value !== "object" && (value !== 0 || place === 0 || this.#tiles.has(name)),
    );
    if (!single.some(({ name }) => name === this.#chosen))
      this.#chosen = single.find(({ kind }) => kind === "count")?.name ?? single.find(({ kind }) => kind !== "text")?.name ?? null;
    fill(
      this.figures,
      single.map((fact) => this.#tile(fact)),
    );
    const chosen = single.find(({ name }) => name === this.#chosen);
    this.chart.element.hidden = !chosen;
    if (chosen) {
      const rate = chosen.kind === "count";
      const form = { seconds: duration, bytes }[chosen.kind] ?? short;
      this.chart.update(
        words(chosen.name) + (rate ? " a second" : ""),
        this.#points.get(chosen.name) ?? [],
        rate ? (value) => `${short(value)}/s` : form,
      );
    }
    fill(
      this.tables,
      facts.filter(({ value }) => typeof value === "object" && Object.keys(value).length).map((fact) => table(fact)),
    );
  }

  #tile(fact) {
    const known = this.#tiles.get(fact.name);
    const tile = known ?? this.#newTile(fact);
    say(tile.value, shown(fact.kind, fact.value));
    tile.value.classList.toggle("long", typeof fact.value === "string");
    say(tile.rate, fact.rate ? `${short(fact.rate)}/s` : "");
    tile.spark.update(this.#points.get(fact.name) ?? []);
    tile.element.setAttribute("aria-pressed", String(fact.name === this.#chosen));
    return tile.element;
  }

  #newTile(fact) {
    const tile = { value: h("b"), rate: h("span.rate"), spark: new Spark() };
    const choose = () => {
      this.#chosen = fact.name;
      this.#draw(this.report);
    };
    tile.element = h(
      "button.figure",
      { type: "button", title: fact.help, click: choose, disabled: fact.kind === "text" },
      h("span.label", {}, words(fact.name)),
      tile.value,
      tile.rate,
      fact.kind === "text" ? null : tile.spark.element,
    );
    this.#tiles.set(fact.name, tile);
    return tile;
  }

  async #pause() {
    if (await request(this.name, this.paused ? "resume" : "pause")) this.#again();
  }

  async #end(action) {
    const text = {
      stop: "It sends no more requests, ends what is in flight, and then itself. Nothing is lost.",
      drain: "It takes nothing new, ends all that it knows, and then itself. That may take long. Nothing is lost.",
    }[action];
    const yes = action === "stop" ? "Stop it" : "Drain it";
    if (await confirmed(`${yes.replace(" it", "")} ${this.name}?`, text, yes)) request(this.name, action);
  }
}

/** A fact that has a value for each name: the largest eight, as bars. */
function table({ name, help, kind, value }) {
  const rows = Object.entries(value).sort(([, one], [, other]) => other - one);
  const most = Math.max(...rows.map(([, each]) => each), 1e-9);
  return h(
    "section",
    { title: help },
    h("h3", {}, words(name)),
    rows.slice(0, 8).map(([label, each]) =>
      h(
        "p.row",
        {},
        h("span", {}, label),
        h("span.bar", { "aria-hidden": "true" }, h("span.done", { style: `width:${(100 * each) / most}%` })),
        h("b", {}, shown(kind, each)),
      ),
    ),
    rows.length > 8 ? h("p.muted", {}, `and ${rows.length - 8} more`) : null,
  );
}
