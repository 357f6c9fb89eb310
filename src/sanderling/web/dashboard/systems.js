// The systems: a tab for each, beside its lane of the road, and a panel with all there is to know about the chosen one.

import { clock, duration, perSecond, whole } from "./format.js";
import { h, keyed, newId, put, say, show } from "./dom.js";
import { Chart, Spark } from "./plots.js";
import { History } from "./history.js";
import { Road } from "./road.js";
import { JobsPart, PagesPart, ReposPart, SequencePart } from "./crawls.js";
import { PollingPart } from "./polling.js";
import { EventsPart } from "./events.js";
import { announce } from "./announce.js";
import { Range } from "./past.js";
import { Places } from "./places.js";

const PARTS = {
  pages: PagesPart,
  jobs: JobsPart,
  sequence: SequencePart,
  repos: ReposPart,
  polling: PollingPart,
  events: EventsPart,
};
const ENDING = { stop: "stopping", drain: "draining" }; // what the process was told
const STOPPING = "It asks for nothing more, and ends. What is in flight comes to its end, and nothing is lost.";
const DRAINING =
  "It takes nothing new, ends what is known and due, and then itself. That may take a while; nothing is lost.";
const PAUSING =
  "It begins nothing new until somebody resumes it, also after a restart. " +
  "What is under way comes to its end, and nothing is lost.";

/** What a system is called: its folder, or if it is the home itself, what it does. */
export function title(system) {
  return system.name === "." ? system.system : system.name;
}

/** In one word, and in the colour that goes with it. */
export function stateOf(system) {
  if (system.silent) return ["silent", "bad"];
  if (!system.running) return ["ended", "off"];
  if (system.paused) return ["paused", "wait"];
  if (system.ending) return [ENDING[system.ending] ?? system.ending, "wait"];
  if (!system.troubles.length) return ["running", "good"];
  return ["troubled", system.severities?.[0] === "warning" ? "wait" : "bad"];
}

export class Systems {
  #views = new Map(); // by name

  constructor({ tabs, drawing, panels, actions, api, address }) {
    this.tabs = tabs;
    this.address = address;
    this.places = new Places();
    this.range = new Range(api, address);
    this.panels = panels;
    this.actions = actions;
    this.chosen = null; // the name of a system
    this.road = new Road((name) => this.choose(name));
    drawing.append(this.road.element);
    tabs.addEventListener("keydown", (event) => this.#onTabKey(event));
    document.addEventListener("keydown", (event) => this.#onKey(event));
    address.addEventListener("view", () => this.#show());
  }

  /** Take all of them, with what was. */
  takeHouse(house) {
    for (const system of house.systems) if (system.history) this.#view(system).history.take(system.history);
    this.#take(house);
  }

  /** Take all of them as they stand now. */
  takeTick(tick) {
    for (const system of tick.systems) if (system.points) this.#view(system).history.put(tick.wall, system.points);
    this.#take(tick);
  }

  #take({ systems }) {
    this.places.take(systems);
    const names = new Set(systems.map(({ name }) => name));
    for (const name of this.#views.keys()) if (!names.has(name)) this.#forget(name);
    if (!names.has(this.chosen)) this.chosen = null;
    this.#show();
  }

  choose(name, { focus = false } = {}) {
    this.address.go({ system: name, host: "", of: "", items: "", search: "", after: "" });
    if (focus) this.#views.get(name).tab.focus();
  }

  /** Show the system of the address; one that runs if it names none, or none that is there. */
  #show() {
    const { systems } = this.places;
    const named = systems.find(({ name }) => name === this.address.view.system);
    const usual = systems.find(({ name }) => name === this.chosen) ?? systems.find(({ running }) => running);
    this.chosen = (named ?? usual ?? systems[0])?.name ?? null;
    this.#draw();
  }

  #draw() {
    const { rows } = this.places;
    keyed(
      this.tabs,
      rows,
      ({ kind, system }) => (system ? tabKey(system.name) : `no ${kind}`),
      ({ kind, key, system }) => (system ? this.#view(system).tab : absent(kind, key)),
    );
    for (const { key, system } of rows) {
      if (!system) continue;
      const view = this.#view(system);
      view.updateTab(system, key, system.name === this.chosen);
      if (system.name === this.chosen) view.updatePanel(system, this.range, () => this.#draw());
    }
    this.road.update(rows, this.chosen);
  }

  #view(system) {
    const known = this.#views.get(system.name);
    if (known && known.kind === system.system) return known;
    if (known) this.#forget(system.name);
    const view = new View(system, this.actions, () => this.choose(system.name));
    this.#views.set(system.name, view);
    this.panels.append(view.panel);
    return view;
  }

  #forget(name) {
    const view = this.#views.get(name);
    view.tab.remove();
    view.panel.remove();
    this.tabs.keyed?.delete(tabKey(name));
    this.#views.delete(name);
  }

  #onKey(event) {
    const typing =
      event.target instanceof Element && event.target.closest("input:not([type=range]), select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !/^[1-9]$/.test(event.key)) return;
    const name = this.places.byKey(Number(event.key), this.chosen);
    const place = this.places.rows.find(({ key }) => key === Number(event.key));
    if (name !== null) this.choose(name, { focus: true });
    else if (place) announce(`There is no ${place.kind} in this home.`);
  }

  #onTabKey(event) {
    const { systems } = this.places;
    const place = systems.findIndex(({ name }) => name === this.chosen);
    const last = systems.length - 1;
    const steps = {
      ArrowDown: place + 1,
      ArrowRight: place + 1,
      ArrowUp: place - 1,
      ArrowLeft: place - 1,
      Home: 0,
      End: last,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = (steps[event.key] + last + 1) % (last + 1);
    this.choose(systems[next].name, { focus: true });
  }
}

/** So that no folder's name is that of a place without a system. */
function tabKey(name) {
  return `tab ${name}`;
}

/** The place of a kind that is not there. */
function absent(kind, key) {
  const names = h("span.names", {}, h("span.name", {}, kind), h("span.about", {}, "not here"));
  return h("div.tab.absent", { role: "presentation" }, h("span.dot"), names, h("kbd", {}, key));
}

/** One system: its tab, its panel, and what it has told so far. */
class View {
  constructor(system, actions, choose) {
    this.kind = system.system;
    this.history = new History();
    this.actions = actions;
    this.system = system;
    this.#makeTab(choose);
    this.panel = h("section.card.panel", {
      id: newId("panel"),
      role: "tabpanel",
      tabindex: "0",
      "aria-labelledby": this.tab.id,
      hidden: true,
    });
    put(this.tab, "aria-controls", this.panel.id);
  }

  #makeTab(choose) {
    this.spark = new Spark();
    this.dot = h("span.dot", { "aria-hidden": "true" });
    this.name = h("span.name");
    this.state = h("span.about");
    this.rate = h("span.rate", { "aria-hidden": "true" }); // a name that changes every second is none
    this.key = h("kbd", { "aria-hidden": "true" });
    this.tab = h(
      "button.tab",
      { id: newId("tab"), type: "button", role: "tab", click: choose },
      this.dot,
      h("span.names", {}, this.name, this.state),
      this.spark.element,
      this.rate,
      this.key,
    );
  }

  updateTab(system, key, chosen) {
    const [state, tone] = stateOf(system);
    say(this.name, title(system));
    put(this.name, "title", title(system));
    say(this.state, title(system) === system.system ? state : `${system.system}, ${state}`);
    say(this.rate, system.running ? perSecond(system.flow.kept) : "");
    say(this.key, key ?? "");
    show(this.key, key !== null);
    put(this.tab, "aria-keyshortcuts", key);
    put(this.dot, "data-tone", tone);
    put(this.tab, "data-running", system.running);
    put(this.tab, "aria-selected", String(chosen));
    put(this.tab, "tabindex", chosen ? 0 : -1);
    show(this.panel, chosen);
    put(this.spark.element, "hidden", !system.running);
    this.spark.update(this.history.points("kept"));
  }

  updatePanel(system, range, drawn) {
    this.system = system;
    if (!this.heading) this.#makePanel(system);
    const history = range.of(system.name, this.history, drawn);
    if (range.element.parentElement !== this.ranges) this.ranges.append(range.element);
    const [state, tone] = stateOf(system);
    say(this.heading, title(system));
    say(this.badge, state);
    put(this.badge, "class", `badge ${tone}`);
    say(this.doing, system.doing);
    say(this.since, since(system));
    say(this.pause, system.paused ? "Resume" : "Pause");
    show(this.pause, system.running || system.paused); // what is started again would still be paused
    show(this.drain, system.running && !system.ending);
    show(this.stop, system.running && system.ending !== "stop");
    show(this.troubles, system.troubles.length > 0);
    keyed(
      this.troubles,
      system.troubles.map((text, place) => [system.severities?.[place] ?? "error", text]),
      ([severity, text]) => `${severity} ${text}`,
      ([severity, text]) => h("li", { "data-severity": severity }, h("b.severity", {}, severity), ` ${text}`),
    );
    put(this.troubles, "data-severity", system.severities?.[0] ?? "error"); // the worst comes first
    keyed(
      this.numbers,
      system.numbers,
      ([label]) => label,
      ([label]) => h("div", {}, h("dt", {}, label), h("dd")),
      (cell, [, value]) => {
        say(cell.lastElementChild, value);
        put(cell.lastElementChild, "data-long", value.length > 11);
        put(cell.lastElementChild, "title", value.length > 20 ? value : null);
      },
    );
    this.rates.update(history);
    if (!this.part) return;
    // A status that cannot be read leaves nothing to be told but that.
    const told = Object.keys(system.facts).length > 0;
    for (const each of this.part.blocks) show(each, told);
    if (told) this.part.update(system, history);
  }

  #makePanel(system) {
    this.heading = h("h2");
    this.badge = h("span.badge");
    this.doing = h("p.doing");
    this.since = h("p.since.muted");
    this.pause = h("button", { type: "button", click: () => this.#onPause() });
    this.drain = h("button", { type: "button", click: () => this.#end("drain", DRAINING, this.drain) }, "Drain");
    this.stop = h("button", { type: "button", click: () => this.#end("stop", STOPPING, this.stop) }, "Stop");
    this.troubles = h("ul.troubles", { "aria-label": "What is wrong" });
    this.numbers = h("dl.numbers");
    this.ranges = h("div");
    const Part = PARTS[system.system];
    this.part = Part ? new Part(this.actions, () => this.system) : null;
    const wide = this.part?.ratesWidth ?? 6;
    this.rates = new Chart({
      title: "Asked and kept",
      unit: perSecond,
      series: [
        { name: "asked", label: "asked", tone: "asked", kind: "area" },
        { name: "kept", label: "kept", tone: "kept", kind: "line" },
        { name: "failed", label: "failed", tone: "failed", kind: "dash" },
      ],
    });
    this.panel.append(
      h(
        "header",
        {},
        h("div.title", {}, this.heading, this.badge, this.doing),
        h("div.choices", {}, this.since, this.pause, this.drain, this.stop),
      ),
      this.troubles,
      this.numbers,
      this.ranges,
      h("div.blocks", {}, h(`div.block.w${wide}`, {}, this.rates.element), ...(this.part?.blocks ?? [])),
    );
  }

  /** What was ended is started by whoever started it, so there is no way back. */
  #end(action, text, button) {
    const word = action === "drain" ? "Drain" : "Stop";
    const sure = { title: `${word} ${title(this.system)}?`, text, yes: `${word} it` };
    this.actions.act({ action, system: this.system.name }, { sure, button });
  }

  #onPause() {
    const { name, paused } = this.system;
    const action = paused ? "resume" : "pause";
    const sure = paused
      ? null
      : {
          title: `Pause ${title(this.system)}?`,
          text: PAUSING,
          yes: "Pause it",
        };
    const undo = () => this.actions.act({ action: paused ? "pause" : "resume", system: name });
    this.actions.act({ action, system: name }, { sure, button: this.pause, undo });
  }
}

function ended(system) {
  const paused = system.paused ? "; it is paused, also when it is started again" : "";
  const when = `${clock(system.ended)}, ${duration(system.age)} ago`;
  if (system.silent) return `last heard of at ${when}; it did not say that it ended${paused}`;
  return `ended at ${when}${system.ending ? `, told to ${system.ending}` : ""}${paused}`;
}

function since(system) {
  if (!system.running) return ended(system);
  if (!system.started) return "";
  const silent = system.age > 3 ? `, silent for ${duration(system.age)}` : "";
  return `since ${clock(system.started)}, process ${whole(system.pid).replaceAll(",", "")}${silent}`;
}
