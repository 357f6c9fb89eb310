// What is special about polling: what is live, how late it is asked, what changed just now, and the settings.

import { clock, duration, words } from "./format.js";
import { block, h, keyed, put, say, show } from "./dom.js";
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
      onTarget(this.actions, { action, system: this.system().name, kind, id }, currentTarget);
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
    this.newest = newestFirst[0]?.seq ?? 0;
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

const OPPOSITES = { pause_target: "resume_target", resume_target: "pause_target" }; // what was run now stays run

function onTarget(actions, body, button) {
  const opposite = OPPOSITES[body.action];
  const undo = opposite ? () => actions.act({ ...body, action: opposite }) : null;
  return actions.act(body, { button, undo });
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
    const target = { kind: kind.value.trim(), id: id.value.trim() };
    onTarget(actions, { action: event.submitter.value, system: system().name, ...target }, event.submitter);
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
    const named = (verb) => ({ hidden: true, "aria-label": `${verb} ${setting.key}` });
    const apply = h("button.small.primary", { type: "submit", ...named("Set") }, "Set");
    const reset = h("button.small", { type: "button", ...named("Default of") }, "Default");
    const dirty = () => show(apply, field.value !== field.kept);
    const set = async (value, button) => {
      const { before } = row;
      const undo = () => set(before, button);
      const done = await this.actions.act(
        { action: "set", system: this.system().name, key: setting.key, value },
        { button, undo },
      );
      if (done) {
        if (document.activeElement === button) field.focus(); // it will be gone
        isSet(row, value);
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
      h("th.key", { scope: "row" }, h("code", {}, setting.key)),
      h("td.value", {}, form),
      h("td.default"),
      h("td.meaning.muted", {}, setting.meaning),
    );
    Object.assign(row, { field, apply, reset });
    return row;
  }
}

/** Show whether somebody set it; null is its default. */
function isSet(row, value) {
  row.before = value; // to which undoing goes back
  show(row.reset, value !== null);
  put(row, "data-set", value !== null);
}

function showSetting(row, { value, default: usual, set }) {
  const { field, apply } = row;
  // What was just set is read again a moment later; until then it would look undone.
  if (performance.now() < (field.until ?? 0)) return;
  const untouched = field.kept === undefined || field.value === field.kept;
  if (untouched && document.activeElement !== field) field.value = value;
  if (untouched) field.kept = value;
  show(apply, field.value !== field.kept);
  isSet(row, (set ?? value !== usual) ? value : null);
  say(row.querySelector(".default"), usual);
}
