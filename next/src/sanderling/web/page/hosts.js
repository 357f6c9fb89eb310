// The hosts of a run: how fast each is requested, why, and blocking one.

import { duration, fill, h, number, say } from "./dom.js";
import { request } from "./panel.js";

const COLUMNS = [
  ["host", "Host", (host) => host.host],
  ["rate", "Requests/s", (host) => host.rate ?? 0],
  ["waiting", "Waiting", (host) => host.waiting ?? 0],
  ["in_flight", "In flight", (host) => host.in_flight ?? 0],
  ["refused", "Refused", (host) => host.refused ?? 0],
  ["failed", "Failed", (host) => host.failed ?? 0],
  ["latency", "Latency", (host) => host.latency ?? 0],
];
const TONES = { ok: "good", done: "off", slowed: "wait" };

export class Hosts {
  #rows = new Map();
  #order = null; // a column; none: as the report has them
  #down = true;

  constructor(folder) {
    this.folder = folder;
    this.blocked = new Set();
    this.hosts = [];
    this.body = h("tbody");
    this.heads = COLUMNS.map(([name, label]) =>
      h("th", { scope: "col" }, h("button", { type: "button", click: () => this.#sort(name) }, label)),
    );
    this.count = h("span.muted");
    const head = h("tr", {}, this.heads, h("th", { scope: "col" }, "Why this rate"), h("th"));
    this.element = h(
      "section.hosts",
      {},
      h("h3", {}, "Hosts ", this.count),
      h("div.scrolled", { tabindex: "0" }, h("table", {}, h("thead", {}, head), this.body)),
    );
  }

  update(hosts) {
    this.hosts = hosts;
    this.element.hidden = !hosts.length;
    say(this.count, hosts.length);
    const column = COLUMNS.find(([name]) => name === this.#order);
    const sorted = column ? [...hosts].sort((one, other) => compare(column[2](one), column[2](other))) : hosts;
    if (column && this.#down) sorted.reverse();
    fill(
      this.body,
      sorted.map((host) => this.#row(host)),
    );
  }

  #sort(name) {
    this.#down = this.#order === name ? !this.#down : name !== "host";
    this.#order = name;
    COLUMNS.forEach(([each], place) => {
      const sorted = each === name ? (this.#down ? "descending" : "ascending") : "none";
      this.heads[place].setAttribute("aria-sort", sorted);
    });
    this.update(this.hosts);
  }

  #row(host) {
    const known = this.#rows.get(host.host) ?? this.#newRow(host.host);
    const state = this.blocked.has(host.host) ? "blocked" : (host.state ?? "ok");
    known.dot.dataset.tone = TONES[state] ?? "bad";
    known.dot.title = state;
    say(known.state, state === "ok" ? "" : state);
    say(known.rate, number(host.rate ?? 0));
    say(known.allowed, typeof host.allowed === "number" ? ` of ${number(host.allowed)}` : "");
    [host.waiting, host.in_flight, host.refused, host.failed].forEach((value, place) =>
      say(known.numbers[place], number(value ?? 0)),
    );
    say(known.latency, duration(host.latency));
    say(known.why, host.why ?? "");
    say(known.button, this.blocked.has(host.host) ? "Allow" : "Block");
    return known.element;
  }

  #newRow(host) {
    const row = {
      dot: h("span.dot"),
      state: h("span.muted"),
      rate: h("b"),
      allowed: h("span.muted"),
      numbers: [0, 1, 2, 3].map(() => h("td.number")),
      latency: h("td.number"),
      why: h("td.why"),
      button: h("button.small", { type: "button", click: () => this.#block(host) }, "Block"),
    };
    row.element = h(
      "tr",
      {},
      h("th", { scope: "row" }, row.dot, h("span", {}, host), " ", row.state),
      h("td.number", {}, row.rate, row.allowed),
      row.numbers,
      row.latency,
      row.why,
      h("td", {}, row.button),
    );
    this.#rows.set(host, row);
    return row;
  }

  async #block(host) {
    const blocked = this.blocked.has(host);
    if (!(await request(this.folder, blocked ? "allow" : "block", [host]))) return;
    if (blocked) this.blocked.delete(host);
    else this.blocked.add(host);
    this.update(this.hosts);
  }
}

function compare(one, other) {
  return typeof one === "string" ? one.localeCompare(other) : one - other;
}
