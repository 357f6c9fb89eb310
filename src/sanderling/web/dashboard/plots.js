// What is drawn of series: areas and lines over some minutes, stacks by the minute, and small lines where there is no
// room. Over every plot lies a slider that cannot be seen: so it can be read by mouse, finger, keyboard, screen reader.

import { clock, minute, second } from "./format.js";
import { bridged, newest } from "./history.js";
import { h, put, s, say } from "./dom.js";

const FOOT = 18; // pixels below the plot, for the time
const HEAD = 8; // and above it
const SIDE = 46; // and before it, for the scale; as in the stylesheet
// By the seconds that are shown: those between two marks of time, and how long that is.
const MARKS = { 60: 15, 120: 30, 180: 60, 300: 60, 600: 120, 3_600: 600, 21_600: 3_600, 86_400: 14_400 };
const ROOM = 50; // pixels that such a mark needs
const DIGIT = 3.3; // and half of one of its digits
const LASTING = {
  60: "the last minute",
  120: "the last two minutes",
  180: "the last three minutes",
  300: "the last five minutes",
  600: "the last ten minutes",
  3_600: "the last hour",
  21_600: "the last six hours",
  86_400: "the last day",
};

/** What all plots share: a title, a legend that reads out, a drawing, and the slider over it. */
class Plot {
  #pointed = null;

  constructor({ title, legend, height = 150 }) {
    this.width = 0;
    this.height = height;
    this.at = h("span.at");
    this.values = new Map();
    const keys = legend.map(({ name, label, tone, kind }) => {
      const value = h("b");
      this.values.set(name, value);
      return h("span.key", {}, h(`i.swatch.${kind ?? "line"}.${tone}`, { "aria-hidden": "true" }), `${label} `, value);
    });
    this.scale = s("g.scale");
    this.nothing = s("text.nothing", {}, "Nothing is known of this time.");
    this.drawing = s("svg.plot", { role: "img", "aria-label": title, height });
    this.slider = h("input.reader", {
      type: "range",
      min: 0,
      max: 1,
      step: 1,
      "aria-label": `${title}: read out`,
      input: () => this.#point(Number(this.slider.value)),
      focus: () => this.#point(Number(this.slider.value)),
      blur: () => this.#point(null),
      pointermove: (event) => this.#follow(event),
      pointerleave: () => this.#point(null),
    });
    const caption = h("figcaption", {}, h("h3", {}, title), h("p.legend", {}, ...keys, this.at));
    this.frame = h("div.frame", {}, this.drawing, this.slider);
    this.element = h("figure.chart", {}, caption, this.frame);
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.draw();
    }).observe(this.frame);
  }

  /** How many places the slider has. */
  set places(number) {
    const most = Math.max(0, number - 1);
    const atEnd = this.slider.value === this.slider.max;
    put(this.slider, "max", most);
    if (atEnd) this.slider.value = String(most);
  }

  /** The place that somebody looks at; null if nobody does. */
  get pointed() {
    return this.#pointed;
  }

  get inner() {
    return this.height - FOOT - HEAD;
  }

  /** Where the plot ends below. */
  get floor() {
    return HEAD + this.inner;
  }

  /** Draw the scale from 0 to `top`, and these marks of time: `[x, text]`. */
  drawScale(top, unit, times) {
    put(this.drawing, "viewBox", `0 0 ${this.width} ${this.height}`);
    const marks = [0, top / 2, top].flatMap((value) => {
      const at = Math.round(this.floor - (this.inner * value) / top) + 0.5;
      const line = s(value ? "line.grid" : "line.floor", { x1: SIDE, x2: this.width, y1: at, y2: at });
      return [line, s("text.tick.value", { x: SIDE - 8, y: at + 3.5 }, value ? plain(unit(value)) : "0")];
    });
    for (const [x, text] of times) {
      const half = text.length * DIGIT;
      if (x < SIDE + half || x > this.width - half) continue;
      marks.push(s("text.tick.time", { x, y: this.height - 4 }, text));
    }
    this.scale.replaceChildren(...marks);
  }

  /** Say so if there is nothing to draw. */
  drawNothing(empty) {
    put(this.scale, "data-empty", empty);
    put(this.nothing, "x", (SIDE + this.width) / 2);
    put(this.nothing, "y", HEAD + this.inner / 2 + 4);
    put(this.nothing, "hidden", !empty);
  }

  #follow(event) {
    const box = this.slider.getBoundingClientRect();
    const most = Number(this.slider.max);
    const place = Math.round(((event.clientX - box.left) / box.width) * most);
    this.#point(Math.max(0, Math.min(most, place)));
  }

  #point(place) {
    this.#pointed = place;
    this.read();
  }
}

/**
 * Series over the last minutes. Each is `{ name, label, tone, kind }` with the kinds area, line and dash; `unit`
 * makes text of a value, `ceiling` gives the top of the scale.
 */
export class Chart extends Plot {
  constructor({ title, series, unit, ceiling: roundUp = ceiling, height }) {
    super({ title, legend: series, height });
    this.ceiling = roundUp;
    this.title = title;
    this.series = series;
    this.unit = unit;
    this.points = new Map(series.map(({ name }) => [name, new Float64Array()]));
    this.span = 0;
    this.every = 1; // seconds from one point to the next
    this.end = null; // the wall time of the last point
    this.gaps = s("g");
    this.paths = new Map(
      series.map(({ name, tone, kind = "line" }) => [
        name,
        { fill: s(`path.fill.${tone}`), line: s(`path.line.${kind}.${tone}`) },
      ]),
    );
    this.cursor = s("line.hair", { y1: HEAD, hidden: true });
    const drawn = [...this.paths.values()];
    this.drawing.append(
      this.gaps,
      this.scale,
      ...drawn.map(({ fill }) => fill),
      ...drawn.map(({ line }) => line),
      this.cursor,
      this.nothing,
    );
  }

  update(history) {
    for (const { name } of this.series) this.points.set(name, bridged(history.points(name)));
    this.end = history.end;
    this.span = history.span;
    this.every = history.every;
    this.places = this.span;
    this.draw();
  }

  draw() {
    if (!this.width || !this.span) return;
    const top = this.ceiling(Math.max(0, ...[...this.points.values()].map(highest)));
    const x = (index) => this.#x(index);
    const y = (value) => HEAD + this.inner * (1 - value / top);
    this.drawScale(top, this.unit, this.#times());
    this.#drawGaps(x);
    for (const { name, kind } of this.series) {
      const { line, fill } = this.paths.get(name);
      const runs = runsOf(this.points.get(name));
      put(line, "d", runs.map((run) => lineOf(run, x, y)).join(""));
      if (kind === "area") put(fill, "d", runs.map((run) => areaOf(run, x, y, this.floor)).join(""));
    }
    this.drawNothing([...this.points.values()].every((points) => points.every(Number.isNaN)));
    this.read();
  }

  #x(index) {
    return SIDE + (index / (this.span - 1)) * (this.width - SIDE);
  }

  #wall(index) {
    return this.end === null ? NaN : this.end - (this.span - 1 - index) * this.every;
  }

  #times() {
    if (this.end === null) return [];
    let step = MARKS[this.span * this.every];
    const text = step < 60 ? second : minute;
    while (this.#x(step / this.every) - this.#x(0) < ROOM) step *= 2;
    const first = this.#wall(0);
    const times = [];
    for (let wall = Math.ceil(first / step) * step; wall <= this.end; wall += step) {
      times.push([this.#x((wall - first) / this.every), text(wall)]);
    }
    return times;
  }

  /** What is unknown between two things we know was missed, and looks like it. */
  #drawGaps(x) {
    const all = [...this.points.values()];
    const heard = (index) => all.some((points) => !Number.isNaN(points[index]));
    const gaps = [];
    let last = -1;
    for (let index = 0; index < this.span; index += 1) {
      if (!heard(index)) continue;
      if (last >= 0 && index > last + 1) {
        const [left, right] = [x(last), x(index)];
        gaps.push(s("rect.gap", { x: left, y: HEAD, width: right - left, height: this.inner }));
      }
      last = index;
    }
    this.gaps.replaceChildren(...gaps);
  }

  read() {
    const place = this.pointed;
    const at = (points) => (place === null ? newest(points) : points[place]);
    const texts = this.series.map(({ name, label }) => {
      const text = this.unit(at(this.points.get(name)));
      say(this.values.get(name), text);
      return `${label} ${text}`;
    });
    const time = place === null ? "" : clock(this.#wall(place));
    say(this.at, time);
    put(this.slider, "aria-valuetext", `${time || "now"}: ${texts.join(", ")}`);
    put(this.drawing, "aria-label", this.#described());
    put(this.cursor, "hidden", place === null);
    if (place === null) return;
    for (const name of ["x1", "x2"]) put(this.cursor, name, this.#x(place));
    put(this.cursor, "y2", this.floor);
  }

  #described() {
    const each = this.series.map(({ name, label }) => {
      const points = this.points.get(name);
      return `${label} ${this.unit(newest(points))}, at most ${this.unit(highest(points))}`;
    });
    return `${this.title}, ${LASTING[this.span * this.every]}. Now: ${each.join("; ")}.`;
  }
}

/** Counts by the minute, one upon the other. Each of `layers` is `{ name, label, tone }`, the lowest first. */
export class Stack extends Plot {
  constructor({ title, layers, unit, height }) {
    super({ title, legend: layers.map((layer) => ({ ...layer, kind: "area" })), height });
    this.title = title;
    this.layers = layers;
    this.unit = unit;
    this.minutes = [];
    this.bars = s("g");
    this.drawing.append(this.scale, this.bars, this.nothing);
  }

  update(minutes) {
    this.minutes = minutes;
    this.places = minutes.length;
    this.draw();
  }

  draw() {
    if (!this.width) return;
    const total = (each) => this.layers.reduce((sum, { name }) => sum + (each[name] ?? 0), 0);
    const top = wholeCeiling(Math.max(0, ...this.minutes.map(total)));
    const step = (this.width - SIDE) / Math.max(1, this.minutes.length);
    const thick = Math.max(1, Math.min(22, step - Math.min(3, step / 4)));
    const every = Math.ceil(60 / Math.max(1, step));
    const drawn = [];
    const times = [];
    this.minutes.forEach((each, index) => {
      let low = this.floor;
      const x = SIDE + (index + 0.5) * step;
      for (const { name, tone } of this.layers) {
        const height = (this.inner * (each[name] ?? 0)) / top;
        low -= height;
        if (height) drawn.push(s(`rect.bar.${tone}`, { x: x - thick / 2, y: low, width: thick, height }));
      }
      if ((this.minutes.length - 1 - index) % every === 0) times.push([x, minute(each.at)]);
    });
    this.drawScale(top, this.unit, times);
    this.bars.replaceChildren(...drawn);
    this.drawNothing(drawn.length === 0);
    this.read();
  }

  read() {
    const place = this.pointed ?? this.minutes.length - 1;
    const each = this.minutes[Math.min(place, this.minutes.length - 1)];
    const texts = this.layers.map(({ name, label }) => {
      const text = this.unit(each?.[name]);
      say(this.values.get(name), text);
      return `${label} ${text}`;
    });
    const time = each ? minute(each.at) : "";
    say(this.at, this.pointed === null ? "" : time);
    put(this.slider, "aria-valuetext", `${time}: ${texts.join(", ")}`);
    put(this.drawing, "aria-label", `${this.title}, by the minute. The last one: ${texts.join(", ")}.`);
  }
}

/** A line of a series in the size of a word. */
export class Spark {
  constructor(width = 64, height = 20) {
    this.size = [width, height];
    this.line = s("path.line.kept");
    this.element = s(
      "svg.spark",
      { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
      this.line,
    );
  }

  update(points) {
    const [width, height] = this.size;
    const top = Math.max(1e-9, highest(points));
    const x = (index) => (index / (points.length - 1)) * width;
    const y = (value) => height - 2 - (value / top) * (height - 4);
    put(
      this.line,
      "d",
      runsOf(bridged(points))
        .map((run) => lineOf(run, x, y))
        .join(""),
    );
  }
}

function highest(points) {
  let most = 0;
  for (const point of points) if (point > most) most = point;
  return most;
}

/** The next round number, of which the half is round as well. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.2, 1.6, 2, 4, 6, 8].find((step) => value <= step * power * 1.0001) ?? 10);
}

/** The same for what there are no halves of. */
export function wholeCeiling(value) {
  return Math.max(2, ceiling(value));
}

/** The same for seconds: minutes and hours have sixty. */
export function secondsCeiling(value) {
  if (value <= 10) return ceiling(value);
  return [20, 60, 120, 240, 600, 1_200, 3_600, 7_200, 14_400, 43_200].find((step) => value <= step) ?? ceiling(value);
}

/** A number on a scale: 50/s, not 50.0/s. */
function plain(text) {
  return text.replace(/\.0+(?=\D|$)/, "");
}

/** The stretches of points that are known, as lists of [index, value]. */
function runsOf(points) {
  const runs = [];
  let run = null;
  points.forEach((point, index) => {
    if (Number.isNaN(point)) {
      run = null;
      return;
    }
    if (!run) runs.push((run = []));
    run.push([index, point]);
  });
  return runs;
}

function lineOf(run, x, y) {
  const path = run.map(([index, value], place) => `${place ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
  // A point alone is a line without length, which round ends make visible.
  return run.length > 1 ? path.join("") : `${path[0]}h0.01`;
}

function areaOf(run, x, y, floor) {
  const [first, last] = [x(run[0][0]).toFixed(1), x(run.at(-1)[0]).toFixed(1)];
  return `${lineOf(run, x, y)}L${last} ${floor}L${first} ${floor}Z`;
}
