// The last hours of a system, as the server keeps them on disk: asked for while somebody looks, and drawn as the last minutes.

import { h, put } from "./dom.js";

export const RANGES = [
  [600, "10 min"],
  [3_600, "1 h"],
  [21_600, "6 h"],
  [86_400, "24 h"],
];
const FRESH = 10_000; // milliseconds until it is asked for again
const NOW = RANGES[0][0]; // what the page knows by itself, to the second

/** Series as `History` has them, of which a point is `every` seconds. */
class Past {
  constructor({ every, from, series }, range) {
    this.every = every;
    this.span = range / every;
    this.end = from + (this.span - 1) * every;
    this.series = new Map(
      Object.entries(series).map(([name, points]) => [name, Float64Array.from(points, (point) => point ?? NaN)]),
    );
  }

  points(name) {
    return this.series.get(name) ?? new Float64Array(this.span).fill(NaN);
  }
}

/** The range that the address says, and what is known of it for one system. */
export class Range {
  #past = null;
  #asked = ""; // the system and the range
  #at = -Infinity;

  constructor(api, address) {
    this.api = api;
    this.address = address;
    this.buttons = RANGES.map(([seconds, label]) => {
      const go = () => address.go({ range: seconds === NOW ? "" : String(seconds) });
      return h("button.small", { type: "button", click: go }, label);
    });
    this.element = h("div.ranges", { role: "group", "aria-label": "Range of the plots" }, ...this.buttons);
  }

  get seconds() {
    return RANGES.map(([seconds]) => seconds).find((seconds) => String(seconds) === this.address.view.range) ?? NOW;
  }

  /** What is drawn of a system: `history`, or what the server has of more. `drawn` is called when that has come. */
  of(name, history, drawn) {
    const { seconds } = this;
    this.buttons.forEach((button, index) => put(button, "aria-pressed", String(RANGES[index][0] === seconds)));
    if (seconds === NOW) return history;
    const asked = `${seconds} ${name}`;
    if (asked !== this.#asked) this.#past = null;
    if (asked !== this.#asked || performance.now() - this.#at > FRESH) this.#ask(asked, name, seconds, drawn);
    const unknown = { every: 120, from: Math.floor(Date.now() / 1000) - seconds, series: {} };
    return this.#past ?? new Past(unknown, seconds);
  }

  async #ask(asked, system, range, drawn) {
    this.#asked = asked;
    this.#at = performance.now();
    try {
      const answer = await this.api.get("/api/history", { system, range });
      if (asked !== this.#asked) return;
      this.#past = new Past(answer, range);
      drawn();
    } catch {
      // The stream says that the server is gone; it is asked for again.
    }
  }
}
