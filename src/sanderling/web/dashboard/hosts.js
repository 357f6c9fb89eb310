// The table of hosts. However many there are, only the rows that can be seen exist.

import { count, duration, finePerSecond, NONE, share, short, whole, words } from "./format.js";
import { h, put, say, show } from "./dom.js";
import { announce } from "./announce.js";
import { toast } from "./actions.js";
import { HostPages } from "./host_pages.js";

const ROW = 36; // pixels, as in the stylesheet
const HEAD = 39; // and of the head of the table with its lines
const BEYOND = 8; // rows that exist above and below what can be seen
const MOST_ROWS = 600_000; // browsers cannot scroll further than some 30 million pixels
const LOOK = 1_000; // milliseconds between two looks whether something is old
const STILL = 10_000; // milliseconds after which a pointer that does not move holds nothing any more
const SETTLING = 1_500; // milliseconds until the server has seen what was done
const TYPING = 150; // milliseconds that somebody may take for the next letter
const PAUSABLE = ["pages", "jobs", "repos", "sequence"]; // whose hosts can be left alone

// name, heading, text of a host, class; `numeric` sorts the largest first.
const COLUMNS = [
  { name: "host", head: "Host", text: (host) => host.host },
  { name: "system", head: "System", text: (host) => host.system, kind: "wide" },
  { name: "state", head: "Breaker", text: (host) => (host.paused ? "paused" : words(host.state)) },
  { name: "asked", head: "Asked", text: (host) => finePerSecond(host.asked), numeric: true },
  { name: "rate", head: "Allowed", text: (host) => finePerSecond(host.rate), numeric: true },
  {
    name: "ceiling",
    head: "Ceiling",
    text: (host) => finePerSecond(host.ceiling),
    numeric: true,
    kind: "wide",
  },
  { name: "latency", head: "Latency", text: (host) => duration(host.latency), numeric: true, kind: "wide" },
  { name: "p95", head: "p95", text: (host) => duration(host.p95), numeric: true, kind: "wide" },
  { name: "error_rate", head: "Errors", text: (host) => share(host.error_rate), numeric: true, kind: "wide" },
  {
    name: "not_before",
    head: "Waits",
    text: (host) => (host.not_before > 0 ? duration(host.not_before) : NONE),
    numeric: true,
    kind: "wide",
  },
  { name: "queued", head: "Queued", text: (host) => short(host.queued), numeric: true, kind: "wide" },
  { name: "why", head: "Why", text: (host) => host.trouble || host.why, kind: "wide why" },
];
const TONES = { closed: "good", "half open": "wait", open: "bad", "set aside": "bad", paused: "wait" };

export class Hosts {
  #rows = new Map(); // by place in the order
  #free = [];
  #kinds = new Map(); // of systems, by name
  #running = new Set(); // their names
  #pointed = -Infinity; // when somebody last pointed at a row
  #seen = false;
  #live = false;
  #asked = false; // whether somebody waits to hear how many there are

  constructor(section, api, actions, address) {
    this.address = address;
    this.pages = new HostPages(api);
    this.actions = actions;
    this.dialog = document.getElementById("host");
    this.#build(section);
    this.pages.addEventListener("page", () => this.#took());
    address.addEventListener("view", () => this.#showNamed());
    this.dialog.addEventListener("close", () => address.go({ host: "", of: "" }));
    this.pages.addEventListener("query", () => this.#restart());
    actions.addEventListener("acted", () => setTimeout(() => this.#renew(), SETTLING));
    new IntersectionObserver(([entry]) => {
      this.#seen = entry.isIntersecting;
      this.#look();
    }).observe(section);
    setInterval(() => this.#look(), LOOK);
  }

  /** Whether the server is there to be asked. */
  set live(live) {
    this.#live = live;
    if (live) {
      this.#look({ now: true });
      this.#showNamed();
    }
  }

  /** Open the host of the address, or close what is open. */
  async #showNamed() {
    const { host, of } = this.address.view;
    if (!host) this.dialog.close();
    if (!host || !this.#live) return;
    try {
      const { hosts } = await this.pages.find(host, of);
      const found = hosts.find((each) => each.host === host);
      if (this.address.view.host !== host) return;
      if (found) this.#show(found);
      else {
        toast(`${host} is not among the hosts that are listed here.`, { refused: true });
        this.address.go({ host: "", of: "" }, { refines: true });
      }
    } catch {
      // The stream says that the server is gone; when it is back, this is asked again.
    }
  }

  /** Take note of which systems there are. */
  takeSystems(systems) {
    this.#kinds = new Map(systems.map(({ name, system }) => [name, system]));
    this.#running = new Set(systems.filter(({ running }) => running).map(({ name }) => name));
    const names = systems.map(({ name }) => name);
    const shown = [...this.system.options].slice(1).map(({ value }) => value);
    if (names.join("\n") === shown.join("\n")) return;
    const chosen = this.system.value;
    this.system.replaceChildren(
      h("option", { value: "" }, "All systems"),
      ...names.map((name) => h("option", { value: name }, name)),
    );
    this.system.value = names.includes(chosen) ? chosen : "";
    if (this.system.value !== chosen) this.pages.ask({ system: "" });
  }

  #build(section) {
    let typing = null;
    this.search = h("input", {
      type: "search",
      placeholder: "Search hosts",
      maxlength: 300,
      spellcheck: "false",
      "aria-label": "Search hosts",
      input: () => {
        clearTimeout(typing);
        typing = setTimeout(() => this.pages.ask({ search: this.search.value.trim() }), TYPING);
      },
    });
    this.system = h(
      "select",
      { "aria-label": "Hosts of which system", change: () => this.pages.ask({ system: this.system.value }) },
      h("option", { value: "" }, "All systems"),
    );
    this.number = h("p.muted");
    this.held = h("p.muted.held", { hidden: true }, "The order is held while you point at it.");
    this.heads = COLUMNS.map((column) => this.#head(column));
    this.above = h("tr.space", { "aria-hidden": "true" }, h("td"));
    this.below = h("tr.space", { "aria-hidden": "true" }, h("td"));
    this.body = h("tbody", {}, this.above, this.below);
    const last = h("th.act", { scope: "col" }, h("span.hidden", {}, "Actions"));
    this.table = h(
      "table.hosts",
      { "aria-labelledby": "hosts-title" },
      h("thead", {}, h("tr", { "aria-rowindex": 1 }, ...this.heads, last)),
      this.body,
    );
    const point = () => {
      this.#pointed = performance.now();
    };
    for (const name of ["pointermove", "focusin", "keydown"]) this.body.addEventListener(name, point);
    this.body.addEventListener("pointerleave", () => {
      this.#pointed = -Infinity;
    });
    this.window = h(
      "div.window",
      { tabindex: "0", role: "group", "aria-labelledby": "hosts-title", scroll: () => this.#scrolled() },
      this.table,
    );
    this.nothing = h("p.muted", { hidden: true });
    const tools = h("div.tools", {}, this.number, this.search, this.system);
    const head = h("header", {}, h("h2", { id: "hosts-title" }, "Hosts"), tools);
    section.append(head, this.window, this.held, this.nothing); // held below: above, it would move what is pointed at
    this.#showOrder();
    new ResizeObserver(() => this.#draw()).observe(this.window);
  }

  #head({ name, head, numeric, kind = "" }) {
    const sort = () => {
      const { sort: by, descending } = this.pages.query;
      this.pages.ask({ sort: name, descending: by === name ? !descending : Boolean(numeric) });
      this.#showOrder();
    };
    const button = h("button", { type: "button", click: sort }, head);
    return h("th", { scope: "col", class: `${kind} ${numeric ? "number" : ""} c-${name}`, "data-name": name }, button);
  }

  #showOrder() {
    const { sort, descending } = this.pages.query;
    for (const head of this.heads) {
      put(head, "aria-sort", head.dataset.name === sort ? (descending ? "descending" : "ascending") : null);
    }
  }

  #took() {
    this.#draw();
    if (this.#asked) announce((this.nothing.hidden ? this.number : this.nothing).textContent);
    this.#asked = false;
  }

  #renew() {
    this.pages.renew();
    this.#look();
  }

  #restart() {
    this.#asked = true;
    this.window.scrollTop = 0;
    this.#draw();
    this.#look({ now: true });
  }

  /** Whether somebody is about to press something in a row, which must not become another one under their hand. */
  get #holding() {
    return performance.now() - this.#pointed < STILL;
  }

  get #range() {
    const top = Math.floor(this.window.scrollTop / ROW);
    const rows = Math.ceil(this.window.clientHeight / ROW);
    const most = Math.min(this.pages.matching, MOST_ROWS);
    return [Math.max(0, Math.min(top, most) - BEYOND), Math.min(most, top + rows + BEYOND)];
  }

  /** Have what can be seen fetched, if it is old. */
  #look({ now = false } = {}) {
    if (!this.#live || document.hidden || !(this.#seen || now)) return;
    const hold = this.#holding && !now;
    show(this.held, hold && this.#seen);
    const [first, last] = this.#range;
    this.pages.want(first, Math.max(first, last - 1), { hold });
  }

  #scrolled() {
    this.#draw();
    this.#look();
  }

  #draw() {
    const { total, matching, trouble } = this.pages;
    const rows = Math.min(matching, MOST_ROWS);
    const [first, last] = this.#range;
    say(this.number, matching === total ? count(total, "host") : `${whole(matching)} of ${count(total, "host")}`);
    show(this.nothing, matching === 0);
    show(this.window, matching > 0);
    say(this.nothing, trouble || (total ? "No host has that in its name." : "No host has been asked yet."));
    put(this.table, "aria-rowcount", rows + 1);
    // Few rows need little room; the stylesheet says what is the most.
    this.window.style.setProperty("--rows", `${Math.min(rows, 100) * ROW + HEAD}px`);
    this.above.style.blockSize = `${first * ROW}px`;
    this.below.style.blockSize = `${Math.max(0, rows - last) * ROW}px`;
    show(this.above, first > 0);
    show(this.below, last < rows);
    this.#recycle(first, last);
    let before = this.above;
    for (let index = first; index < last; index += 1) {
      let row = this.#rows.get(index);
      if (!row) {
        row = this.#free.pop() ?? this.#row();
        this.#rows.set(index, row);
      }
      if (before.nextElementSibling !== row) before.after(row);
      this.#fill(row, index, this.pages.at(index));
      before = row;
    }
  }

  #recycle(first, last) {
    for (const [index, row] of this.#rows) {
      if (index >= first && index < last) continue;
      if (row.contains(document.activeElement)) this.window.focus({ preventScroll: true });
      row.remove();
      this.#rows.delete(index);
      this.#free.push(row);
    }
  }

  #row() {
    const cells = COLUMNS.map(({ name, kind = "", numeric }) => {
      const cell = h(name === "host" ? "th" : "td", { class: `${kind} ${numeric ? "number" : ""} c-${name}` });
      if (name === "host") put(cell, "scope", "row");
      return cell;
    });
    const row = h("tr");
    row.open = h("button.link", { type: "button", click: () => row.host && this.address.go({ host: row.host.host, of: row.host.system }) });
    cells[0].append(row.open);
    row.badge = h("span.badge");
    cells[2].append(row.badge);
    row.act = h("button.small", { type: "button", click: () => this.#onPause(row.host, row.act) });
    row.append(...cells, h("td.act", {}, row.act));
    return row;
  }

  #fill(row, index, host) {
    // A row that became another host's is not what the focus was put on.
    const other = row.host && (row.host.host !== host?.host || row.host.system !== host?.system);
    if (other && row.contains(document.activeElement)) this.window.focus({ preventScroll: true });
    row.host = host;
    put(row, "aria-rowindex", index + 2);
    put(row, "data-odd", index % 2 === 1);
    put(row, "data-loading", !host);
    COLUMNS.forEach((column, place) => {
      const text = host ? column.text(host) : place === 0 ? "…" : "";
      const cell = row.cells[place];
      say(column.name === "host" ? row.open : column.name === "state" ? row.badge : cell, text);
      if (column.name === "state") put(row.badge, "class", `badge ${TONES[text] ?? "off"}`);
      if (["host", "why", "system"].includes(column.name)) put(cell, "title", text);
    });
    show(row.badge, host);
    const pausable = host && this.#pausable(host);
    show(row.act, pausable);
    if (!pausable) return;
    say(row.act, host.paused ? "Resume" : "Pause");
    put(row.act, "aria-label", `${host.paused ? "Resume" : "Pause"} ${host.host}`);
  }

  #pausable({ system, paused }) {
    return PAUSABLE.includes(this.#kinds.get(system)) && (paused || this.#running.has(system));
  }

  /** Pause a host, or resume it. */
  async #onPause(wanted, button) {
    const { system, host, paused } = wanted;
    const action = paused ? "resume_host" : "pause_host";
    const undo = () => this.#onPause(wanted, null);
    const done = await this.actions.act({ action, system, host }, { button, undo });
    if (!done) return;
    // It is so, though the server may need a moment to see it.
    wanted.paused = !paused;
    this.#draw();
  }

  /** All there is to know about one host: what no row has room for. */
  #show(host) {
    const facts = [
      ["System", host.system],
      ["Breaker", host.paused ? "paused" : words(host.state)],
      ["Asked, over the last seconds", finePerSecond(host.asked)],
      ["Allowed", finePerSecond(host.rate)],
      ["Ceiling", host.ceiling === null ? "not known yet" : finePerSecond(host.ceiling)],
      ["Cap", host.cap === null ? "none" : finePerSecond(host.cap)],
      ["Latency", duration(host.latency)],
      ["95 of 100 answer within", duration(host.p95)],
      ["Answers that fail", share(host.error_rate)],
      ["Failures in a row", whole(host.failures)],
      ["Not asked for another", host.not_before > 0 ? duration(host.not_before) : NONE],
      ["Requests", whole(host.requests)],
      ["In flight", whole(host.inflight)],
      ["Waiting for leave", whole(host.waiting)],
      ["Queued", whole(host.queued)],
    ];
    const close = h("button", { type: "button", click: () => this.dialog.close() }, "Close");
    const pause = () => {
      this.dialog.close(); // the focus is then where it was opened
      this.#onPause(host, document.activeElement);
    };
    const act = h("button", { type: "button", click: pause }, host.paused ? "Resume" : "Pause");
    show(act, this.#pausable(host));
    this.dialog.replaceChildren(
      h("h2", { id: "host-title" }, host.host),
      h("p.doing", {}, host.why),
      ...(host.trouble ? [h("p.refused", {}, host.trouble)] : []),
      h("dl.facts", {}, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      h("div.choices", {}, act, close),
    );
    if (!this.dialog.open) this.dialog.showModal();
    close.focus();
  }
}
