// What is special about pages, repos and sequences.

import { bytes, clock, count, duration, finePerSecond, NONE, share, short, whole, words } from "./format.js";
import { block, h, keyed, put, say, show } from "./dom.js";
import { Bars } from "./bars.js";
import { Chart, secondsCeiling, wholeCeiling } from "./plots.js";

const BAD = /fail|error|refus|gone|lost|block|timeout|unreach|denied|bad|unavail/;

/** Ends and categories that are no good news are drawn as such. */
export function toneOf(name) {
  return BAD.test(name) ? "failed" : "kept";
}

function waitingChart() {
  return new Chart({
    title: "Waiting",
    unit: short,
    ceiling: wholeCeiling,
    series: [{ name: "waiting", label: "now", tone: "waiting", kind: "area" }],
  });
}

/** How far something is, as a bar with words. */
class Progress {
  constructor(label) {
    this.fill = h("div.fill");
    this.bar = h(
      "div.progress",
      { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 },
      this.fill,
    );
    this.text = h("p.progress-text");
    this.element = h("div", {}, this.bar, this.text);
  }

  update(done, known, text) {
    const part = known > 0 ? Math.min(1, done / known) : 0;
    this.fill.style.inlineSize = `${part * 100}%`;
    put(this.bar, "aria-valuenow", Math.floor(part * 100));
    put(this.bar, "aria-valuetext", text);
    say(this.text, text);
  }
}

export class PagesPart {
  static items = "pages";
  ratesWidth = 4;
  item = "URL";

  constructor() {
    const { items } = this.constructor;
    this.waiting = waitingChart();
    this.ends = new Bars(`How ${items} ended`, toneOf);
    this.progress = new Progress("How much of what is known has ended");
    this.blocks = [
      h("div.block.w2", {}, this.waiting.element),
      block(`How ${items} ended`, 4, this.ends.element),
      block("Of what is known", 2, this.progress.element),
    ];
  }

  update({ facts }, history) {
    this.waiting.update(history);
    this.ends.update(facts.counts);
    const ended = Math.max(0, facts.known - facts.waiting - (facts.inflight ?? 0));
    const part = share(facts.known ? ended / facts.known : 0);
    const read = `${bytes(facts.bytes)} read from ${count(facts.hosts, "host")}`;
    const text = `${whole(ended)} of ${count(facts.known, this.item)} ended (${part}); ${read}.`;
    this.progress.update(ended, facts.known, text);
  }
}

export class JobsPart extends PagesPart {
  static items = "requests";
  item = "request";
}

export class ReposPart {
  ratesWidth = 3;

  constructor() {
    this.archived = new Chart({
      title: "Archived",
      unit: finePerSecond,
      series: [{ name: "archived", label: "repos", tone: "kept", kind: "area" }],
    });
    this.progress = new Progress("Repos archived");
    this.left = h("p.large");
    this.categories = new Bars("How repos ended", toneOf);
    this.segment = h("p.large");
    this.segmentText = h("p.muted");
    this.blocks = [
      h("div.block.w3", {}, this.archived.element),
      block("How far it is", 2, this.left, this.progress.element),
      block("How repos ended", 2, this.categories.element),
      block("Segment", 2, this.segment, this.segmentText),
    ];
  }

  update({ facts, running }, history) {
    this.archived.update(history);
    const rest = Math.max(0, facts.known - facts.done);
    const time = facts.eta === null ? "Time left is unknown" : `${duration(facts.eta)} left`;
    const left = running ? time : `${count(rest, "repo")} left`;
    say(this.left, rest ? left : "Nothing is left");
    this.progress.update(
      facts.done,
      facts.known,
      `${whole(facts.done)} of ${count(facts.known, "repo")} (${share(facts.known ? facts.done / facts.known : 0)})`,
    );
    this.categories.update(facts.categories);
    say(this.segment, `Number ${whole(facts.segment)}`);
    const hosts = `${count(facts.hosts, "host")}, ${whole(facts.blocked)} set aside`;
    say(this.segmentText, `${bytes(facts.segment_bytes)} written to it so far. ${hosts}.`);
  }
}

export class SequencePart {
  ratesWidth = 2;

  constructor() {
    this.lag = new Chart({
      title: "Lag",
      unit: duration,
      ceiling: secondsCeiling,
      series: [{ name: "lag", label: "behind", tone: "waiting", kind: "area" }],
    });
    this.workers = new Chart({
      title: "Workers",
      unit: whole,
      ceiling: wholeCeiling,
      series: [{ name: "workers", label: "at work", tone: "kept", kind: "area" }],
    });
    this.position = new Position();
    this.strategy = h("b");
    this.reason = h("span");
    this.now = h("p", {}, this.strategy, ": ", this.reason);
    this.decisions = h("ol.log.decisions");
    this.nothing = h("p.muted", {}, "None yet.");
    this.missed = new Bars("Ids to ask again", () => "waiting");
    this.gaps = h("p.muted");
    this.blocks = [
      h("div.block.w2", {}, this.lag.element),
      h("div.block.w2", {}, this.workers.element),
      block("Where it is", 6, this.position.element),
      block(
        "Decisions about the workers",
        4,
        this.now,
        h("div.scrolled.list", { tabindex: "0", role: "group", "aria-label": "Decisions" }, this.decisions),
        this.nothing,
      ),
      block("To ask again", 2, this.missed.element, this.gaps),
    ];
  }

  update({ facts }, history) {
    this.lag.update(history);
    this.workers.update(history);
    this.position.update(facts);
    say(this.strategy, words(facts.strategy));
    say(this.reason, facts.why || "no reason given");
    show(this.now, facts.why !== facts.decisions.at(-1)?.why); // it would be there twice
    show(this.nothing, facts.decisions.length === 0);
    const newestFirst = [...facts.decisions].reverse();
    keyed(this.decisions, newestFirst, (made) => `${made.wall} ${made.workers}`, decision);
    this.missed.update(facts.missed);
    say(this.gaps, `${count(facts.gaps, "gap")} found, ${count(facts.skipped, "id")} in them skipped.`);
  }
}

function decision(made) {
  const way = made.workers > made.before ? "up" : made.workers < made.before ? "down" : "same";
  return h(
    "li",
    {},
    h("time", {}, clock(made.wall)),
    h(`span.change.${way}`, {}, made.before === made.workers ? `${made.workers}` : `${made.before} → ${made.workers}`),
    h("span.why", {}, h("b", {}, words(made.strategy)), ` ${made.why}`),
  );
}

/** The ids as a line: what has its fate, what is on its way, and where the head is. */
class Position {
  constructor() {
    this.done = h("div.done");
    this.open = h("div.open");
    this.bar = h("div.ids", { "aria-hidden": "true" }, this.done, this.open);
    this.marks = Object.fromEntries(["cursor", "behind", "head"].map((name) => [name, h("dd")]));
    const cells = Object.entries(this.marks).map(([name, value]) => h(`div.${name}`, {}, h("dt", {}, name), value));
    this.element = h("div.position", {}, this.bar, h("dl", {}, ...cells));
  }

  update({ cursor, head, behind, available }) {
    // On a scale of powers of ten: from one id behind, which is nothing, to ten million.
    const open = Math.log10(Math.max(1, behind ?? 1)) / 7;
    this.open.style.inlineSize = `${Math.min(100, open * 100)}%`;
    put(this.bar, "data-off", available === false);
    say(this.marks.cursor, whole(cursor));
    say(this.marks.head, head === null || head === undefined ? "unknown" : whole(head));
    say(this.marks.behind, behind === null || behind === undefined ? NONE : `${count(behind, "id")} to go`);
  }
}
