// The road that every request takes, drawn: a lane for each system that runs, as thick as much goes through it.

import { perSecond, short } from "./format.js";
import { keyed, put, s, say } from "./dom.js";

const STATIONS = ["what next?", "may we?", "ask", "understand", "keep"];
const [NEXT, LEAVE, ASK, UNDERSTAND, KEEP] = [0, 1, 2, 3, 4];
const NARROW = 560; // pixels below which there is no room for numbers along the lanes,
const LOW = 30; // nor between two of them
const ROOMY = 780; // and from which there is some for words
const SMALL = 400; // and below which there is hardly any beside them
const TIGHT = 80; // pixels between two stations below which their names take two lines
const LINE = 13; // pixels from one to the other
const MOST_DOTS = 5; // for those who wait
const STEP = 80; // milliseconds between two moves
const SPEED = 16; // pixels a second
const WAVE = 24; // pixels from one wave to the next, as in the stylesheet
const TELL = 10_000; // milliseconds between two changes of what a screen reader is told

export class Road {
  constructor(chosen) {
    this.chosen = chosen;
    this.width = 0;
    this.rows = [];
    this.alone = matchMedia("(max-width: 699px)"); // where the lanes are not beside their tabs, as in the stylesheet
    this.selected = "";
    this.told = -TELL;
    this.back = s("g.back");
    this.lanes = s("g");
    this.stations = s("g");
    this.element = s("svg", { role: "img", "aria-label": "The road" }, this.back, this.lanes, this.stations);
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.calm.addEventListener("change", () => this.draw());
    setInterval(() => this.#move(), STEP);
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.draw();
    }).observe(this.element);
  }

  /** `rows` are the places of the tabs, in their order: a lane is beside its tab. */
  update(rows, selected) {
    this.rows = rows;
    this.selected = selected;
    this.draw();
  }

  draw() {
    if (!this.width) return;
    const styles = getComputedStyle(this.element);
    this.head = parseFloat(styles.getPropertyValue("--head"));
    this.pitch = parseFloat(styles.getPropertyValue("--pitch"));
    this.narrow = this.width < NARROW || this.pitch < LOW;
    const rows = this.alone.matches ? this.rows.filter(({ system }) => system?.running) : this.rows;
    const running = rows.map(({ system }, index) => ({ system, index })).filter(({ system }) => system?.running);
    this.systems = running.map(({ system }) => system);
    this.foot = this.head + Math.max(1, rows.length) * this.pitch;
    this.height = this.foot + 44;
    put(this.element, "viewBox", `0 0 ${this.width} ${this.height}`);
    put(this.element, "height", this.height);
    const [left, right] = !this.narrow ? [104, 128] : this.width < SMALL ? [34, 28] : [52, 36];
    this.x = STATIONS.map((_, index) => left + ((this.width - left - right) * index) / (STATIONS.length - 1));
    this.#drawStations();
    this.#drawBack();
    const placed = running.map(({ system, index }) => ({ system, y: this.head + (index + 0.5) * this.pitch }));
    keyed(
      this.lanes,
      placed,
      ({ system }) => system.name,
      (each) => this.#newLane(each),
      (lane, each) => this.#drawLane(lane, each),
    );
    this.#tell();
  }

  #drawStations() {
    const tight = this.x[1] - this.x[0] < TIGHT;
    const pills = STATIONS.map((name, index) => {
      const x = this.x[index];
      const lines = tight ? name.split(" ") : [name];
      const y = (row) => this.head - 14 - LINE * (lines.length - 1 - row);
      return s(
        "g.station",
        {},
        s("text", {}, ...lines.map((line, row) => s("tspan", { x, y: y(row) }, line))),
        s("rect", { x: x - 6, y: this.head - 2, width: 12, height: this.foot - this.head + 4, rx: 6 }),
      );
    });
    this.stations.replaceChildren(...pills);
  }

  /** What happened teaches what to ask next, and whether we may. */
  #drawBack() {
    const floor = this.foot + 4;
    const low = floor + 18;
    const [next, leave, from] = [this.x[NEXT], this.x[LEAVE], this.x[UNDERSTAND]];
    const path = `M${from} ${floor}v8q0 10 -10 10H${next + 10}q-10 0 -10 -10v-3`;
    const branch = `M${leave + 10} ${low}q-10 0 -10 -10v-3`;
    const said = this.systems.length ? "the outcome teaches both" : "nothing runs now";
    const head = (x) => s("path.tip", { d: `M${x - 4} ${floor + 7}l4 -6l4 6` });
    this.back.replaceChildren(
      s("path.teach", { d: path }),
      s("path.teach", { d: branch }),
      head(next),
      head(leave),
      s("text", { x: (this.x[LEAVE] + this.x[UNDERSTAND]) / 2, y: low + 16 }, said),
    );
  }

  #newLane({ system }) {
    const lane = s("g.lane", { click: () => this.chosen(system.name) });
    lane.hit = s("rect.hit");
    lane.segments = [NEXT, LEAVE, ASK, UNDERSTAND, KEEP].map(() => s("line.segment"));
    lane.flow = s("path.flow");
    lane.moved = 0;
    lane.dots = s("g.dots");
    lane.numbers = ["asked", "waiting", "allowed", "kept", "failed"].map((name) => s(`text.${name}`));
    lane.append(lane.hit, ...lane.segments, lane.flow, lane.dots, ...lane.numbers);
    return lane;
  }

  #drawLane(lane, { system, y }) {
    const { asked, allowed, waiting, kept } = system.flow;
    const passive = system.system === "events";
    put(lane, "data-chosen", system.name === this.selected);
    put(lane, "data-paused", Boolean(system.paused));
    for (const [name, value] of Object.entries({ x: 0, y: y - this.pitch / 2, width: this.width, height: this.pitch }))
      put(lane.hit, name, value);
    const ends = [0, this.x[NEXT], this.x[LEAVE], this.x[ASK], this.x[UNDERSTAND], this.x[KEEP]];
    const rates = [asked, asked, allowed, allowed, kept];
    lane.segments.forEach((line, index) => {
      const place = {
        x1: ends[index],
        x2: ends[index + 1],
        y1: y,
        y2: y,
        "stroke-width": thickness(rates[index]).toFixed(2),
      };
      for (const [name, value] of Object.entries(place)) put(line, name, value);
      put(line, "data-beside", passive && index > 0 && index < 4);
    });
    put(lane.flow, "d", `M0 ${y}H${this.x[KEEP]}`);
    this.#flow(lane, system.paused ? 0 : asked);
    this.#drawDots(lane, waiting ?? 0, y);
    this.#number(lane, system.flow, y);
  }

  /** Small waves along the lane: the more is asked, the faster they go. */
  #flow(lane, rate) {
    const still = this.calm.matches || !rate;
    lane.speed = still ? 0 : SPEED * (0.5 + Math.log10(1 + rate));
    put(lane.flow, "data-still", still);
  }

  /** By a slow clock, and not with every frame: it is there all day, and must cost next to nothing. */
  #move() {
    if (document.hidden) return;
    for (const lane of this.lanes.children) {
      if (!lane.speed) continue;
      lane.moved = (lane.moved + (lane.speed * STEP) / 1_000) % WAVE;
      lane.flow.style.strokeDashoffset = String(-lane.moved);
    }
  }

  #drawDots(lane, waiting, y) {
    const number = Math.min(MOST_DOTS, Math.ceil(Math.log2(1 + waiting)));
    if (lane.dots.childElementCount !== number) {
      lane.dots.replaceChildren(...Array.from({ length: number }, () => s("circle", { r: 2.5 })));
    }
    [...lane.dots.children].forEach((dot, index) => {
      put(dot, "cx", this.x[LEAVE] - 14 - index * 8);
      put(dot, "cy", y);
    });
  }

  #number(lane, flow, y) {
    const [asked, waiting, allowed, kept, failed] = lane.numbers;
    const middle = (one, other) => (this.x[one] + this.x[other]) / 2;
    const words = (text) => (this.width < ROOMY ? "" : ` ${text}`);
    const texts = [
      [asked, this.x[NEXT] / 2 + 4, y - 7, `${perSecond(flow.asked)}${words("asked")}`],
      [waiting, this.x[LEAVE] - 14, y - 7, flow.waiting ? `${short(flow.waiting)}${words("waiting")}` : ""],
      [allowed, middle(LEAVE, ASK), y - 7, `${perSecond(flow.allowed)}${words("accepted")}`],
      [kept, this.x[KEEP] + 14, y + 4, `${perSecond(flow.kept)} kept`],
      [
        failed,
        middle(UNDERSTAND, KEEP),
        y - 7,
        flow.failed > 0.005 ? `${perSecond(flow.failed)}${words("failed")}` : "",
      ],
    ];
    for (const [text, x, at, what] of texts) {
      put(text, "x", x);
      put(text, "y", at);
      say(text, this.narrow ? "" : what);
    }
  }

  /** The picture in words; not every second, since a reader may be at it. */
  #tell() {
    const now = performance.now();
    if (now - this.told < TELL) return;
    this.told = now;
    const each = this.systems.map(({ name, flow }) => {
      const failed = flow.failed > 0.005 ? `, ${perSecond(flow.failed)} fail` : "";
      const kept = `${perSecond(flow.kept)} are kept`;
      return `${name} asks ${perSecond(flow.asked)}, ${short(flow.waiting)} wait, ${kept}${failed}`;
    });
    const steps = `${STATIONS.join(", then ")}; and the outcome teaches the first two`;
    put(this.element, "aria-label", `The road: ${steps}. ${each.length ? each.join(". ") : "Nothing runs now"}.`);
  }
}

/** Pixels for a rate: ten times as much is a little thicker, since rates differ by thousands. */
function thickness(rate) {
  return rate ? Math.min(10, 1.5 + 2 * Math.log10(1 + rate)) : 1;
}
