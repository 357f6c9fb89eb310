// The last ten minutes of some series, by the second. A second of which nobody told us anything is unknown.

export const SPAN = 600;
const SPANS = [60, 120, 180, 300, SPAN]; // seconds that are shown: what was begun a moment ago would be lost in ten minutes

export class History {
  constructor() {
    this.every = 1; // seconds from one point to the next
    this.end = null; // the newest second
    this.first = Infinity; // the oldest of which something is known
    this.series = new Map();
  }

  /** How many seconds are shown: as few as have all that is known. */
  get span() {
    return SPANS.find((span) => this.end - this.first < span) ?? SPAN;
  }

  /** Take what the server remembers. It does not take away what we know: a server that was restarted knows less. */
  take(history) {
    const { every, from, ...series } = history;
    const length = Math.max(0, ...Object.values(series).map((points) => points.length));
    if (length) this.#advance(Math.floor(from + every * (length - 1)));
    for (const [name, points] of Object.entries(series)) {
      points.forEach((point, index) => this.#set(name, Math.floor(from + every * index), point));
    }
  }

  /** Take the newest point of each series. */
  put(wall, points) {
    const second = Math.floor(wall);
    this.#advance(second);
    for (const [name, point] of Object.entries(points)) this.#set(name, second, point);
  }

  /** The series from the oldest second that is shown to the newest; NaN where it is not known. */
  points(name) {
    const ring = this.series.get(name);
    if (!ring || this.end === null) return new Float64Array(this.span).fill(NaN);
    const first = (this.end + 1) % SPAN;
    const points = new Float64Array(SPAN);
    points.set(ring.subarray(first), 0);
    points.set(ring.subarray(0, first), SPAN - first);
    return points.subarray(SPAN - this.span);
  }

  #advance(second) {
    // A clock that was set back: what we have is of a time that is yet to come.
    if (this.end !== null && second < this.end - 5) {
      this.end = null;
      this.first = Infinity;
      this.series.clear();
    }
    if (this.end === null) {
      this.end = second;
      return;
    }
    const missed = Math.min(second - this.end, SPAN);
    for (const ring of this.series.values()) {
      for (let back = 0; back < missed; back += 1) ring[(second - back) % SPAN] = NaN;
    }
    this.end = Math.max(this.end, second);
  }

  #set(name, second, point) {
    if (second > this.end || second <= this.end - SPAN) return;
    if (!this.series.has(name)) this.series.set(name, new Float64Array(SPAN).fill(NaN));
    if (typeof point !== "number") return;
    this.series.get(name)[second % SPAN] = point;
    this.first = Math.min(this.first, second);
  }
}

/** The newest point that is known, if it is not older than a few seconds. */
export function newest(points) {
  for (let index = points.length - 1; index >= points.length - 5; index -= 1) {
    if (!Number.isNaN(points[index])) return points[index];
  }
  return null;
}

/** Points without the holes of a second or two: those are the beat of two clocks, and no silence. */
export function bridged(points, widest = 3) {
  const whole = points.slice();
  let last = -1;
  points.forEach((point, index) => {
    if (Number.isNaN(point)) return;
    const hole = index - last - 1;
    if (last >= 0 && hole > 0 && hole < widest) {
      for (let step = 1; step <= hole; step += 1) {
        whole[last + step] = points[last] + ((point - points[last]) * step) / (hole + 1);
      }
    }
    last = index;
  });
  return whole;
}
