// Numbers and times as people read them. What is not known is a dash.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const ROUGH = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const TINY = 0.001;
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export const NONE = "–";

export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function whole(value) {
  return known(value) ? WHOLE.format(value) : NONE;
}

/** For where there is little room: 12, 3.4K. */
export function short(value) {
  return known(value) ? SHORT.format(value) : NONE;
}

/** A number that may be small, or large: three digits are enough to compare. */
export function fine(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 10_000) return ROUGH.format(value);
  if (size >= 100 || value === 0) return WHOLE.format(value);
  if (size >= 10) return value.toFixed(1);
  if (size < TINY) return `<${TINY}`;
  return size >= 0.095 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
}

/** The same of something, a second. */
export function finePerSecond(value) {
  return known(value) ? `${fine(value)}/s` : NONE;
}

/** Of something, a second. */
export function perSecond(value) {
  if (!known(value)) return NONE;
  if (value >= 10_000) return `${ROUGH.format(value)}/s`;
  return `${value >= 100 || value === 0 ? WHOLE.format(value) : value.toFixed(1)}/s`;
}

export function share(value) {
  if (!known(value)) return NONE;
  const percent = value * 100;
  return `${percent === 0 || percent >= 10 ? percent.toFixed(0) : percent.toFixed(1)}%`;
}

export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1) return `${size < 0.01 ? Number((seconds * 1000).toPrecision(2)) : Math.round(seconds * 1000)} ms`;
  if (size < 100) return `${seconds.toFixed(size < 9.95 ? 1 : 0)} s`;
  if (size < 600) {
    const rest = Math.round(size) % 60;
    return `${Math.sign(seconds) * Math.floor(Math.round(size) / 60)} min${rest ? ` ${rest} s` : ""}`;
  }
  const minutes = Math.round(seconds / 60);
  if (Math.abs(minutes) < 100) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 10 && hours < 48) return `${hours} h`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${WHOLE.format(Math.floor(hours / 24))} days`;
}

export function bytes(number) {
  if (!known(number)) return NONE;
  for (const [unit, factor] of [
    ["PB", 1e15],
    ["TB", 1e12],
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ]) {
    if (number >= factor) return `${(number / factor).toFixed(1)} ${unit}`;
  }
  return `${WHOLE.format(number)} B`;
}

/** The time of day of a wall time, with the day if it is not today's. */
export function clock(wall) {
  if (!known(wall)) return NONE;
  const then = new Date(wall * 1000);
  const time = CLOCK.format(then);
  return Math.abs(Date.now() - then) < 43_200_000 ? time : `${DAY.format(then)} ${time}`;
}

/** The time of day alone, to the second and to the minute. */
export function second(wall) {
  return known(wall) ? CLOCK.format(new Date(wall * 1000)) : NONE;
}

export function minute(wall) {
  return known(wall) ? MINUTE.format(new Date(wall * 1000)) : NONE;
}

/** A name from the code as words: `half_open` is "half open". What is in capitals is a code, and stays one. */
export function words(name) {
  return /[a-z]/.test(name) ? name.replaceAll("_", " ") : name;
}

export function count(number, what) {
  return `${whole(number)} ${what}${number === 1 ? "" : "s"}`;
}
