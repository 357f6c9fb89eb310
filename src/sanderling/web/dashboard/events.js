// What is special about events: how posts were meant, what went wrong, what was given up, and what is processed at all.

import { clock, count, perSecond, share, short, whole, words } from "./format.js";
import { block, h, keyed, say, show } from "./dom.js";
import { Bars } from "./bars.js";
import { Chart, Stack } from "./plots.js";

const MODES = [
  ["new", "Messages of the new format"],
  ["legacy", "Messages of the older format"],
  ["inline", "Batches within messages"],
];

const SETTLING = 3_000; // milliseconds until a status tells what was just applied

export class EventsPart {
  ratesWidth = 2;

  constructor(actions, system) {
    this.items = new Chart({
      title: "Posts and errors",
      unit: perSecond,
      series: [
        { name: "posts", label: "posts", tone: "kept", kind: "area" },
        { name: "errors", label: "errors", tone: "failed", kind: "dash" },
      ],
    });
    this.sentiment = new Stack({
      title: "How posts were meant",
      unit: short,
      layers: [
        { name: "negative", label: "negative", tone: "failed" },
        { name: "neutral", label: "neutral", tone: "asked" },
        { name: "positive", label: "positive", tone: "kept" },
      ],
    });
    this.categories = new Bars("Errors by category", () => "failed");
    this.codes = new Bars("Errors by code", () => "failed");
    this.dead = new DeadLetters(actions, system);
    this.modes = new ModeSwitches(actions, system);
    this.recent = h("ol.log.errors");
    this.noRecent = h("p.muted", {}, "None so far.");
    this.queue = h("p.muted");
    this.blocks = [
      h("div.block.w2", {}, this.items.element),
      h("div.block.w2", {}, this.sentiment.element),
      block("Errors by category", 2, this.categories.element),
      block("Given up", 2, this.dead.element),
      block("What is processed", 2, this.modes.element, this.queue),
      block("Errors by code", 2, this.codes.element),
      block(
        "The last errors",
        4,
        h("div.scrolled.list", { tabindex: "0", role: "group", "aria-label": "The last errors" }, this.recent),
        this.noRecent,
      ),
    ];
  }

  update({ facts }, history) {
    this.items.update(history);
    this.sentiment.update(facts.minutes);
    this.categories.update(facts.categories);
    this.codes.update(facts.codes, 6);
    this.dead.update(facts);
    this.modes.update(facts.modes);
    const depth = facts.queue
      ? Object.entries(facts.queue)
          .map(([name, number]) => `${whole(number)} ${name}`)
          .join(", ")
      : "not to be had";
    say(
      this.queue,
      `In the queue: ${depth}. ${facts.outbox ? `${count(facts.outbox, "message")} in the outbox.` : ""}`,
    );
    show(this.noRecent, facts.recent.length === 0);
    const newestFirst = [...facts.recent].reverse();
    keyed(
      this.recent,
      newestFirst,
      (error) => JSON.stringify(error),
      ({ at, platform, code, category, message }) =>
        h(
          "li",
          {},
          h("time", {}, clock(at)),
          h("span.badge.bad", {}, words(category)),
          h("span.why", {}, h("b", {}, `${platform} ${code}`), ` ${message}`),
        ),
    );
  }
}

class DeadLetters {
  constructor(actions, system) {
    this.actions = actions;
    this.system = system;
    this.list = h("ul.log.dead");
    this.nothing = h("p.muted");
    this.all = h("button", { type: "button", click: () => this.#replayAll() }, "Replay all");
    this.element = h(
      "div",
      {},
      h("div.scrolled.list", { tabindex: "0", role: "group", "aria-label": "Messages that were given up" }, this.list),
      this.nothing,
      this.all,
    );
  }

  update({ dead, queue, elsewhere }) {
    const letters = dead ?? [];
    this.number = queue?.dead ?? letters.length;
    show(this.list.parentElement, letters.length > 0);
    show(this.all, letters.length > 0);
    show(this.nothing, letters.length === 0);
    say(this.nothing, dead ? "No message was given up." : elsewhere || "They have not been asked for yet.");
    say(this.all, `Replay all ${whole(this.number)}`);
    keyed(
      this.list,
      letters,
      ({ key }) => key,
      ({ key, why, at, tries }) =>
        h(
          "li",
          {},
          h(
            "div",
            {},
            h("code", {}, key),
            h("p", {}, why),
            h("p.muted", {}, `${clock(at)}, ${afterTries(tries)}`),
          ),
          h(
            "button.small",
            {
              type: "button",
              "aria-label": `Replay ${key}`,
              click: ({ currentTarget }) => this.#replay({ key }, { button: currentTarget }),
            },
            "Replay",
          ),
        ),
    );
  }

  #replay(what, options) {
    return this.actions.act({ action: "replay_dead", system: this.system().name, ...what }, options);
  }

  #replayAll() {
    const sure = {
      title: `Replay all ${whole(this.number)}?`,
      text: "Every message that was given up goes back to the queue. Those that fail once more come back here.",
      yes: "Replay all",
    };
    this.#replay({ all: true }, { sure, button: this.all });
  }
}

function afterTries(tries) {
  if (tries === 0) return "at once";
  return `after ${tries === 1 ? "1 try" : `${whole(tries)} tries`}`;
}

/** Switches that do nothing until they are applied together; what comes in meanwhile does not move them. */
class ModeSwitches {
  constructor(actions, system) {
    this.actions = actions;
    this.system = system;
    this.modes = null; // as they are
    this.until = 0;
    this.switches = MODES.map(([name, label]) => {
      const box = h("input", { type: "checkbox", role: "switch", change: () => this.#changed() });
      return { name, box, element: h("label.switch", {}, box, h("span", {}, label)) };
    });
    this.canary = h("input", { type: "range", min: 0, max: 100, step: 1, input: () => this.#changed() });
    this.canaryText = h("output");
    this.apply = h("button.primary", { type: "submit", hidden: true }, "Apply");
    this.undo = h("button", { type: "button", hidden: true, click: () => this.#show() }, "Leave it");
    const canary = h("label.canary", {}, h("span", {}, "Share of the new ones"), this.canary, this.canaryText);
    const submit = (event) => {
      event.preventDefault();
      this.#send();
    };
    this.element = h(
      "form.modes",
      { submit },
      ...this.switches.map(({ element }) => element),
      canary,
      h("div.choices", {}, this.undo, this.apply),
    );
  }

  update(modes) {
    // What was just applied is told a moment later; until then it would look undone.
    if (performance.now() < this.until) return;
    const touched = this.modes !== null && !this.#same();
    this.modes = modes;
    if (!touched) this.#show();
    else this.#changed();
  }

  get #wanted() {
    const wanted = Object.fromEntries(this.switches.map(({ name, box }) => [name, box.checked]));
    // Within a step of the slider it is still what it was, to all its digits.
    const near = Math.abs(this.modes.canary * 100 - Number(this.canary.value)) < 0.5;
    return { ...wanted, canary: near ? this.modes.canary : Number(this.canary.value) / 100 };
  }

  #same() {
    return Object.entries(this.#wanted).every(([name, value]) => value === this.modes[name]);
  }

  #show() {
    for (const { name, box } of this.switches) box.checked = this.modes[name];
    this.canary.value = String(Math.round(this.modes.canary * 100));
    this.#changed();
  }

  #changed() {
    say(this.canaryText, share(this.#wanted.canary));
    const same = this.#same();
    // They will be gone, and the focus must not be.
    if (same && [this.apply, this.undo].includes(document.activeElement)) this.switches[0].box.focus();
    show(this.apply, !same);
    show(this.undo, !same);
  }

  async #send() {
    const wanted = this.#wanted;
    const off = MODES.filter(([name]) => this.modes[name] && !wanted[name]).map(([, label]) => label.toLowerCase());
    const sure = off.length
      ? {
          title: "Switch off?",
          text: `These wait in the queue until they are switched on again: ${off.join("; ")}.`,
          yes: "Switch off",
        }
      : null;
    const before = this.modes;
    const undo = () => this.#apply(before);
    if (!(await this.#apply(wanted, { sure, button: this.apply, undo }))) this.#changed();
  }

  async #apply(modes, options) {
    const done = await this.actions.act({ action: "modes", system: this.system().name, modes }, options);
    if (done) {
      this.modes = modes;
      this.until = performance.now() + SETTLING;
      this.#show();
    }
    return done;
  }
}
