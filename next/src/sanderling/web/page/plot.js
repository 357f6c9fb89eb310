// Curves of ten minutes: small ones inside the figures, and a large one with a scale, a time axis and a reading.

import { clock, fill, h, s, say, short } from "./dom.js";

const MINUTES = 10;

/** Where points lie: x by their time within ten minutes, y by their value; a gap in time breaks the line. */
function path(points, width, height, top, end) {
  let drawn = "";
  let before = null;
  for (const [wall, value] of points) {
    if (value === null || value === undefined) {
      before = null;
      continue;
    }
    const x = width * (1 - (end - wall) / (MINUTES * 60));
    const y = height - (value / top) * height;
    drawn += `${before !== null && wall - before < 15 ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    before = wall;
  }
  return drawn;
}

function recent(points) {
  const end = points.length ? points.at(-1)[0] : 0;
  return points.filter(([wall]) => wall >= end - MINUTES * 60);
}

/** The next round number above. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => value <= step * power * 1.0001);
}

/** A curve without a scale, in the size of a word. */
export class Spark {
  constructor() {
    this.line = s("path");
    this.element = s("svg.spark", { viewBox: "0 0 96 24", preserveAspectRatio: "none", "aria-hidden": "true" }, this.line);
  }

  update(points) {
    const kept = recent(points);
    const top = ceiling(Math.max(...kept.map(([, value]) => value ?? 0), 0));
    this.line.setAttribute("d", kept.length > 1 ? path(kept, 96, 22, top, kept.at(-1)[0]) : "");
  }
}

/** A curve that can be read: the pointer or the arrow keys choose a moment. */
export class Chart {
  constructor() {
    this.points = [];
    this.chosen = null;
    this.format = short;
    this.area = s("path.area");
    this.line = s("path.line");
    this.mark = s("line.mark", { y1: 0, y2: 180 });
    this.scale = [0, 0.5, 1].map((share) => h("span", { style: `bottom:${share * 100}%` }));
    this.drawing = s(
      "svg",
      { viewBox: "0 0 960 180", preserveAspectRatio: "none", tabindex: "0", role: "img" },
      [0, 90, 180].map((y) => s("line.grid", { x1: 0, x2: 960, y1: y, y2: y })),
      this.area,
      this.line,
      this.mark,
    );
    this.drawing.addEventListener("pointermove", (event) => this.#point(event));
    this.drawing.addEventListener("pointerleave", () => this.#choose(null));
    this.drawing.addEventListener("keydown", (event) => this.#key(event));
    this.title = h("b");
    this.reading = h("span.reading");
    this.times = h("p.times");
    fill(this.times, ["10 min ago", "5 min", "now"].map((text) => h("span", {}, text)));
    this.element = h(
      "figure.chart",
      {},
      h("figcaption", {}, this.title, this.reading),
      h("div.frame", {}, h("div.scale", { "aria-hidden": "true" }, this.scale), this.drawing),
      this.times,
    );
  }

  update(title, points, format) {
    this.points = recent(points);
    this.format = format;
    say(this.title, title);
    const end = this.points.at(-1)?.[0] ?? 0;
    this.top = ceiling(Math.max(...this.points.map(([, value]) => value ?? 0), 0));
    const drawn = path(this.points, 960, 180, this.top, end);
    this.line.setAttribute("d", drawn);
    const first = drawn.match(/^M([\d.-]+)/)?.[1];
    const whole = first !== undefined && drawn.lastIndexOf("M") === 0;
    this.area.setAttribute("d", whole ? `${drawn}L960 180L${first} 180Z` : "");
    this.scale.forEach((label, place) => say(label, format((this.top * place) / 2)));
    this.#read();
  }

  #point(event) {
    const box = this.drawing.getBoundingClientRect();
    const end = this.points.at(-1)?.[0] ?? 0;
    const wall = end - (1 - (event.clientX - box.left) / box.width) * MINUTES * 60;
    let nearest = null;
    this.points.forEach(([each], place) => {
      if (nearest === null || Math.abs(each - wall) < Math.abs(this.points[nearest][0] - wall)) nearest = place;
    });
    this.#choose(nearest);
  }

  #key(event) {
    const step = { ArrowLeft: -10, ArrowRight: 10, Escape: null }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const last = this.points.length - 1;
    this.#choose(step === null ? null : Math.max(0, Math.min(last, (this.chosen ?? last) + step)));
  }

  #choose(place) {
    this.chosen = place;
    this.#read();
  }

  #read() {
    const last = this.points.at(-1);
    const point = this.points[this.chosen ?? -1] ?? last;
    const known = point && point[1] !== null && point[1] !== undefined;
    const text = point ? `${known ? this.format(point[1]) : "–"}${this.chosen === null ? "" : ` at ${clock(point[0])}`}` : "";
    say(this.reading, text);
    this.drawing.setAttribute("aria-label", `${this.title.textContent} in the last ten minutes; ${text}`);
    const x = this.chosen === null || !point ? -10 : 960 * (1 - (last[0] - point[0]) / (MINUTES * 60));
    this.mark.setAttribute("x1", x);
    this.mark.setAttribute("x2", x);
  }
}
