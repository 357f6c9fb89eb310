// What is special about polling: what is live, how late it is asked, what changed just now, and the settings.

import { clock, count, duration, words } from "./format.js";
import { block, h, keyed, put, say, show } from "./dom.js";
import { announce } from "./announce.js";
import { Bars } from "./bars.js";
import { Chart, secondsCeiling } from "./plots.js";

const SETTLING = 7_000; // milliseconds until a setting is read again

export class PollingPart {
  ratesWidth = 3;

  constructor(actions, system) {
    this.actions = actions;
    this.system = system;
    this.newest = null; // the number of the newest change that we have seen
    this.late = new Chart({
      title: "Lateness",
      unit: duration,
      ceiling: secondsCeiling,
      series: [{ name: "late_p99", label: "99 of 100 within", tone: "waiting", kind: "area" }],
    });
    this.lately = h("tbody");
    this.targets = new Bars("Targets", (name) => (name === "failing" ? "failed" : "kept"));
    this.live = h("ul.log.targets");
    this.noLive = h("p.muted", {}, "No target is asked more often than usual.");
    this.next = h("ul.log.targets");
    this.recent = h("ol.log.changes");
    this.noRecent = h("p.muted", {}, "Nothing has changed yet.");
    this.settings = new Settings(actions, system);
    const heads = ["Pace", "Half within", "99 of 100 within"].map((name) => h("th", { scope: "col" }, name));
    this.lateTable = h(
      "table.plain.small",
      { "aria-label": "Lateness by pace" },
      h("thead", {}, h("tr", {}, ...heads)),
      this.lately,
    );
    this.blocks = [
      h("div.block.w3", {}, this.late.element),
      block("Live now", 2, this.live, this.noLive, h("h4", {}, "Next"), this.next),
      block(
        "Changed just now",
        2,
        h("div.scrolled.list", { tabindex: "0", role: "group", "aria-label": "Changes" }, this.recent),
        this.noRecent,
      ),
      block("Targets", 2, this.targets.element, this.lateTable, otherTarget(actions, system)),
      this.settings.element,
    ];
  }

  update({ facts }, history) {
    this.late.update(history);
    this.targets.update(facts.targets);
    show(this.lateTable, Object.keys(facts.late).length > 0);
    keyed(
      this.lately,
      Object.entries(facts.late),
      ([pace]) => pace,
      ([pace]) => h("tr", {}, h("th", { scope: "row" }, words(pace)), h("td.number"), h("td.number")),
      (row, [, { p50, p99 }]) => {
        say(row.cells[1], duration(p50));
        say(row.cells[2], duration(p99));
      },
    );
    show(this.noLive, facts.accelerated.length === 0);
    this.#list(this.live, facts.accelerated, ({ interval }) => `every ${duration(interval)}`, [
      ["Pause", "pause_target"],
    ]);
    this.#list(this.next, facts.next.slice(0, 6), ({ due }) => (due > 0 ? `in ${duration(due)}` : "now"), [
      ["Promote", "promote_target"],
      ["Pause", "pause_target"],
    ]);
    this.#showChanges(facts.recent);
    this.settings.update(facts);
  }

  #list(place, targets, about, verbs) {
    const make = (target) =>
      h(
        "li",
        {},
        h("span.target", { title: target.id }, h("b", {}, target.kind), ` ${target.id}`),
        h("span.when"),
        ...verbs.map(([label, action]) => this.#button(label, action, target)),
      );
    keyed(
      place,
      targets,
      ({ kind, id }) => `${kind} ${id}`,
      make,
      (item, target) => say(item.querySelector(".when"), about(target)),
    );
  }

  #button(label, action, { kind, id }) {
    const act = ({ currentTarget }) =>
      this.actions.act({ action, system: this.system().name, kind, id }, { button: currentTarget });
    return h("button.small", { type: "button", "aria-label": `${label} ${kind} ${id}`, click: act }, label);
  }

  #showChanges(recent) {
    const newestFirst = [...recent].sort((one, other) => other.seq - one.seq);
    show(this.noRecent, newestFirst.length === 0);
    keyed(
      this.recent,
      newestFirst,
      ({ seq }) => seq,
      (change) => changeItem(change, this.newest),
    );
    const newest = newestFirst[0]?.seq ?? 0;
    if (this.newest !== null && newest > this.newest) {
      const { op, table, key } = newestFirst[0];
      announce(`${count(newest - this.newest, "change")}, the last: ${words(op)} ${table} ${key}`);
    }
    this.newest = newest;
  }
}

function changeItem({ seq, at, op, table, key, fields }, newest) {
  const item = h(
    "li",
    {},
    h("time", {}, clock(at)),
    h(`span.op.${["insert", "update", "delete"].includes(op) ? op : "other"}`, {}, words(op)),
    h(
      "span.why",
      {},
      h("b", {}, table),
      ` ${key}`,
      fields.length ? h("span.muted", {}, ` ${fields.join(", ")}`) : null,
    ),
  );
  if (newest !== null && seq > newest) item.classList.add("fresh");
  return item;
}

/** For targets that are not on a list: paused ones are not. */
function otherTarget(actions, system) {
  const kind = h("input", {
    name: "kind",
    required: true,
    maxlength: 1000,
    placeholder: "race",
    "aria-label": "Kind of the target",
  });
  const id = h("input", {
    name: "id",
    required: true,
    maxlength: 1000,
    placeholder: "id",
    "aria-label": "Id of the target",
  });
  const verbs = [
    ["Resume", "resume_target"],
    ["Promote", "promote_target"],
    ["Pause", "pause_target"],
  ];
  const buttons = verbs.map(([label, action]) => h("button.small", { type: "submit", value: action }, label));
  const submit = (event) => {
    event.preventDefault();
    actions.act(
      { action: event.submitter.value, system: system().name, kind: kind.value.trim(), id: id.value.trim() },
      { button: event.submitter },
    );
  };
  return h("details", {}, h("summary", {}, "Another target"), h("form.inline", { submit }, kind, id, ...buttons));
}

/** The settings, each with a field. What somebody types is not overwritten by what comes in meanwhile. */
class Settings {
  constructor(actions, system) {
    this.actions = actions;
    this.system = system;
    this.rows = h("tbody");
    const heads = ["Setting", "Value", "Default", "Meaning"].map((name) => h("th", { scope: "col" }, name));
    this.table = h(
      "table.plain.settings",
      { "aria-label": "Settings" },
      h("thead", {}, h("tr", {}, ...heads)),
      this.rows,
    );
    this.nothing = h("p.muted");
    this.element = block("Settings", 6, this.table, this.nothing);
  }

  update({ settings, elsewhere }) {
    show(this.table, Boolean(settings?.length));
    show(this.nothing, !settings?.length);
    say(this.nothing, elsewhere || "They have not been read yet.");
    keyed(
      this.rows,
      settings ?? [],
      ({ key }) => key,
      (setting) => this.#row(setting),
      showSetting,
    );
  }

  #row(setting) {
    const field = h("input", { "aria-label": setting.key, maxlength: 1000, spellcheck: "false", autocomplete: "off" });
    const apply = h("button.small.primary", { type: "submit", hidden: true }, "Set");
    const reset = h("button.small", { type: "button", hidden: true }, "Default");
    const dirty = () => show(apply, field.value !== field.kept);
    const set = async (value, button) => {
      const done = await this.actions.act(
        { action: "set", system: this.system().name, key: setting.key, value },
        { button },
      );
      if (done) {
        field.kept = field.value = value ?? setting.default;
        field.until = performance.now() + SETTLING;
      }
      dirty();
    };
    field.addEventListener("input", dirty);
    reset.addEventListener("click", () => set(null, reset));
    const submit = (event) => {
      event.preventDefault();
      set(field.value, apply);
    };
    const form = h("form.inline", { submit }, field, apply, reset);
    const row = h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, setting.key)),
      h("td", {}, form),
      h("td.default"),
      h("td.muted", {}, setting.meaning),
    );
    Object.assign(row, { field, apply, reset });
    return row;
  }
}

function showSetting(row, { value, default: usual, set }) {
  const { field, apply, reset } = row;
  // What was just set is read again a moment later; until then it would look undone.
  if (performance.now() < (field.until ?? 0)) return;
  const untouched = field.kept === undefined || field.value === field.kept;
  if (untouched && document.activeElement !== field) field.value = value;
  if (untouched) field.kept = value;
  show(apply, field.value !== field.kept);
  show(reset, set ?? value !== usual);
  put(row, "data-set", Boolean(set ?? value !== usual));
  say(row.querySelector(".default"), usual);
}
