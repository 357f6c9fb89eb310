// Tells screen readers what changed, with restraint: the newest thing, and not more often than somebody can listen to.

const EVERY = 8_000; // milliseconds

let last = -EVERY;
let waiting = null;
let text = "";

/** Say something when it is time; what was to be said before it is not any more. */
export function announce(what) {
  text = what;
  if (waiting !== null) return;
  const wait = Math.max(0, last + EVERY - performance.now());
  waiting = setTimeout(() => {
    waiting = null;
    last = performance.now();
    document.getElementById("said").textContent = text;
  }, wait);
}
