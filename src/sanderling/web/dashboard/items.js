// What the numbers of a system count, one by one: which failed, why, and when each is next. A page at a time.

import { clock, NONE, whole, words } from "./format.js";
import { h, keyed, put, say, show } from "./dom.js";
import { announce } from "./announce.js";

const TYPING = 250; // milliseconds that somebody may take for the next letter
const EVERY = 15_000; // milliseconds until what is shown is asked for again
const LABELS = { replay_dead: "Replay", retry_missed: "Ask now", promote_target: "Run now", resume_target: "Resume" };

export class Items {
  #system = null; // the name of the one that is shown
  #asked = ""; // what the last question was
  #answer = null; // to it
  #at = -Infinity; // when it was asked
  #live = false;

  constructor(section, api, actions, address) {
    this.section = section;
    this.api = api;
    this.actions = actions;
    this.address = address;
    this.#build();
    actions.addEventListener("acted", () => this.#ask({ again: true }));
    setInterval(() => this.#renew(), 1_000);
  }

  /** Whether the server is there to be asked. */
  set live(live) {
    this.#live = live;
    if (live) this.#ask({ again: true });
  }

  /** Show those of a system: its name. */
  show(system) {
    const other = system !== this.#system;
    this.#system = system;
    show(this.section, system !== null);
    if (other) this.#answer = null;
    if (document.activeElement !== this.search) this.search.value = this.address.view.search ?? "";
    this.#ask();
    if (other) this.#draw();
  }

  #build() {
    let typing = null;
    const go = (change, options) => this.address.go({ after: "", ...change }, options);
    this.state = h("select", { "aria-label": "Which items", change: () => go({ items: this.state.value }) });
    this.search = h("input", {
      type: "search",
      placeholder: "Search these items",
      maxlength: 300,
      spellcheck: "false",
      "aria-label": "Search these items",
      input: () => {
        clearTimeout(typing);
        typing = setTimeout(() => go({ search: this.search.value.trim() }, { refines: true }), TYPING);
      },
    });
    this.first = h("button.small", { type: "button", click: () => go({}) }, "First page");
    this.next = h(
      "button.small",
      { type: "button", click: () => this.address.go({ after: this.#answer?.after ?? "" }) },
      "Next page",
    );
    this.rows = h("tbody");
    const heads = ["Item", "Why", "Tries", "Since", "Next"].map((name) => h("th", { scope: "col" }, name));
    this.actHead = h("th", { scope: "col" }, h("span.hidden", {}, "Actions"));
    this.table = h(
      "table.plain.items",
      { "aria-labelledby": "items-title" },
      h("thead", {}, h("tr", {}, ...heads, this.actHead)),
      this.rows,
    );
    this.window = h("div.scrolled", { tabindex: "0", role: "group", "aria-labelledby": "items-title" }, this.table);
    this.nothing = h("p.muted");
    this.how = h("p.muted.how");
    this.section.append(
      h("header", {}, h("h2", { id: "items-title" }, "Items"), h("div.tools", {}, this.search, this.state)),
      this.window,
      this.nothing,
      h("div.choices", {}, this.how, this.first, this.next),
    );
  }

  get #query() {
    const { items, search, after } = this.address.view;
    return { system: this.#system, state: items, search, after };
  }

  /** Ask again for what is old, unless somebody is about to press something in it. */
  #renew() {
    const old = performance.now() - this.#at > EVERY;
    const held = this.section.matches(":hover") || this.section.contains(document.activeElement);
    if (old && !held && !document.hidden) this.#ask({ again: true });
  }

  async #ask({ again = false } = {}) {
    const query = this.#query;
    const asked = JSON.stringify(query);
    if (!this.#live || this.#system === null || (asked === this.#asked && !again)) return;
    const told = asked !== this.#asked && this.#answer !== null;
    this.#asked = asked;
    this.#at = performance.now();
    let answer;
    try {
      answer = await this.api.get("/api/items", query);
    } catch (error) {
      answer = { trouble: error.message };
    }
    if (asked !== this.#asked) return; // somebody wants something else by now
    this.#answer = answer;
    this.#draw();
    if (told) announce(this.nothing.hidden ? `${whole(answer.items.length)} items` : this.nothing.textContent);
  }

  #draw() {
    const { items = [], states = [], state = "", after = "", read = 0, again = "", how = "", trouble = "" } =
      this.#answer ?? { trouble: "Asking for them." };
    keyed(
      this.state,
      states,
      (each) => each,
      (each) => h("option", { value: each }, words(each)),
    );
    this.state.value = state;
    show(this.state, states.length > 1);
    show(this.window, items.length > 0);
    show(this.nothing, items.length === 0);
    say(this.nothing, trouble || this.#none(state, after, read));
    show(this.first, Boolean(this.address.view.after));
    show(this.next, Boolean(after));
    say(this.how, how);
    show(this.actHead, Boolean(again));
    keyed(
      this.rows,
      items,
      (item) => JSON.stringify([item, again]),
      (item) => this.#row(item, again),
    );
  }

  #none(state, after, read) {
    const searched = this.address.view.search ? " with that in it" : "";
    if (after) return `None${searched} among ${whole(read)} that were read; the next page goes on from there.`;
    return this.address.view.after ? `No more${searched}.` : `Nothing is ${words(state)}${searched}.`;
  }

  #row(item, again) {
    const { id, kind, host, why, tries, at, next } = item;
    const named = kind ? `${kind} ${id}` : id;
    const cells = [
      h("th.id", { scope: "row", title: named }, h("code", {}, named)),
      h("td.why", { title: host && host !== id ? host : null }, why || NONE),
      figure("tries", tries ? whole(tries) : NONE),
      figure("since", at ? clock(at) : NONE),
      figure("next", soon(next)),
    ];
    const row = h("tr", {}, ...cells);
    if (!again) return row;
    const act = ({ currentTarget }) => {
      const what = { replay_dead: { key: id }, retry_missed: { id } }[again] ?? { kind, id };
      this.actions.act({ action: again, system: this.#system, ...what }, { button: currentTarget });
    };
    const button = h("button.small", { type: "button", click: act }, LABELS[again]);
    put(button, "aria-label", `${LABELS[again]} ${named}`);
    row.append(h("td.act", {}, button));
    return row;
  }
}

function figure(label, text) {
  return h("td.number", { "data-label": label, "data-known": text !== NONE }, text);
}

function soon(wall) {
  if (wall === null || wall === undefined) return NONE;
  return wall * 1000 <= Date.now() ? "due" : clock(wall);
}
