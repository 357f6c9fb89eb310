// The hosts as the server has them in order: fetched by the hundred as they are looked at, and remembered for a while.

const SIZE = 100;
const FRESH = 2_000; // milliseconds after which what is looked at is asked for again
const MOST_PAGES = 60; // that are remembered
const SETTLE = 60; // milliseconds: who scrolls fast does not want what is in between

export class HostPages extends EventTarget {
  #api;
  #pages = new Map(); // by number: { hosts, at }
  #asked = new Map(); // by number: AbortController
  #query = { system: "", search: "", sort: "asked", descending: true };
  #timer = null;
  #former = false; // whether what is here was asked for otherwise; it is shown until the answer comes

  constructor(api) {
    super();
    this.#api = api;
    this.total = 0;
    this.matching = 0;
    this.trouble = "";
  }

  get query() {
    return this.#query;
  }

  /** Ask for others from now on, or in another order. */
  ask(change) {
    this.#query = { ...this.#query, ...change };
    for (const asked of this.#asked.values()) asked.abort();
    this.#asked.clear();
    this.#former = true;
    this.dispatchEvent(new Event("query"));
  }

  /** Ask again for what is here: something was done to it. What is old is shown until then. */
  renew() {
    for (const page of this.#pages.values()) page.at = -Infinity;
  }

  /** The hosts of that name, in whatever order the others are. */
  find(host, system) {
    return this.#api.get("/api/hosts", { search: host, system, sort: "host", descending: false, limit: 100 });
  }

  /** The host at that place; undefined if it is not here yet. */
  at(index) {
    return this.#pages.get(Math.floor(index / SIZE))?.hosts[index % SIZE];
  }

  /** See to it that these places are here, and not old. `hold` leaves alone what is here: somebody points at it. */
  want(first, last, { hold = false } = {}) {
    clearTimeout(this.#timer);
    const fetch = () => this.#fetch(Math.floor(first / SIZE), Math.floor(Math.max(first, last) / SIZE), hold);
    if (this.#pages.size && !this.#former) this.#timer = setTimeout(fetch, SETTLE);
    else fetch();
  }

  #fetch(first, last, hold) {
    for (const [number, asked] of this.#asked) {
      if (number >= first && number <= last) continue;
      asked.abort();
      this.#asked.delete(number);
    }
    for (let number = first; number <= last; number += 1) {
      const page = this.#pages.get(number);
      const old = !page || this.#former || (!hold && performance.now() - page.at > FRESH);
      if (old && !this.#asked.has(number)) this.#load(number);
    }
  }

  async #load(number) {
    const asked = new AbortController();
    this.#asked.set(number, asked);
    try {
      const query = { ...this.#query, offset: number * SIZE, limit: SIZE };
      const answer = await this.#api.get("/api/hosts", query, asked.signal);
      if (asked.signal.aborted) return;
      this.total = answer.total;
      this.matching = answer.matching;
      this.trouble = "";
      if (this.#former) this.#pages.clear();
      this.#former = false;
      this.#pages.delete(number);
      this.#pages.set(number, { hosts: answer.hosts, at: performance.now() });
      // Maps keep the order in which things came: the first one is the oldest.
      if (this.#pages.size > MOST_PAGES) this.#pages.delete(this.#pages.keys().next().value);
    } catch (error) {
      if (asked.signal.aborted) return;
      this.trouble = error.message;
    } finally {
      if (this.#asked.get(number) === asked) this.#asked.delete(number);
    }
    this.dispatchEvent(new Event("page"));
  }
}
