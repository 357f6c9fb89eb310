// What waits and what ended without a record: counted by state and code, listed, tried again.

import { get } from "./api.js";
import { clock, fill, h, number, say } from "./dom.js";
import { request } from "./panel.js";

const EVERY = 10_000; // milliseconds between two counts

export class Tasks {
  #chosen = null; // [state, code]
  #looked = 0;

  constructor(folder) {
    this.folder = folder;
    this.counts = h("div.counts");
    this.said = h("p.muted");
    this.body = h("tbody");
    this.retry = h("button.small", { type: "button", click: () => this.#retry() }, "Try these again");
    this.list = h("div.scrolled", { tabindex: "0", hidden: true }, h("table", {}, this.body));
    this.element = h("section.tasks", {}, h("h3", {}, "Tasks"), this.counts, this.said, this.retry, this.list);
    this.retry.hidden = true;
    this.#look();
  }

  update(live) {
    if (live && Date.now() - this.#looked > EVERY) this.#look();
  }

  async #look() {
    this.#looked = Date.now();
    try {
      const { counts } = await get("api/tasks", { folder: this.folder });
      say(this.said, counts.length ? "" : "Nothing waits, nothing failed.");
      fill(
        this.counts,
        counts.map(([state, code, count]) => this.#chip(state, code, count)),
      );
      if (this.#chosen) await this.#show(...this.#chosen);
    } catch (error) {
      say(this.said, error.message);
    }
  }

  #chip(state, code, count) {
    const pressed = this.#chosen?.[0] === state && this.#chosen?.[1] === code;
    return h(
      "button",
      { type: "button", "aria-pressed": String(pressed), click: () => this.#choose(state, code) },
      `${state} ${code.toLowerCase() === state ? "" : code} `,
      h("b", {}, number(count)),
    );
  }

  #choose(state, code) {
    const same = this.#chosen?.[0] === state && this.#chosen?.[1] === code;
    this.#chosen = same ? null : [state, code];
    if (same) {
      fill(this.body);
      this.list.hidden = this.retry.hidden = true;
    }
    this.#look();
  }

  async #show(state, code) {
    const { tasks, more } = await get("api/tasks", { folder: this.folder, state, code });
    this.list.hidden = !tasks.length;
    this.retry.hidden = !tasks.length;
    fill(
      this.body,
      tasks.map(({ key, code: why, detail, due }) =>
        h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, why), h("td", {}, detail), h("td", {}, when(due))),
      ),
    );
    say(this.said, more ? `The first ${tasks.length}; the command tasks lists all.` : "");
  }

  async #retry() {
    const [state, code] = this.#chosen;
    if (await request(this.folder, "retry", [state, "", code])) this.#look();
  }
}

function when(due) {
  if (typeof due !== "number") return "";
  return due > Date.now() / 1000 ? `due ${clock(due)}` : "due now";
}
