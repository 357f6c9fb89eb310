// The live connection. It comes back by itself, however often the server goes, and says how it stands.

const FIRST_WAIT = 500; // milliseconds until the first new attempt; the next ones wait longer
const LONGEST_WAIT = 8_000;
const SILENT = 6_000; // a tick comes every second: after so long without one the line is dead, whatever it says

export class Stream extends EventTarget {
  #source = null;
  #waiting = null;
  #attempts = 0;
  #heard = 0;
  #session;

  /** `session` asks whether we are in, and gives `{ secured, in }`. */
  constructor(session) {
    super();
    this.#session = session;
    this.state = "connecting";
    setInterval(() => this.#check(), 1_000);
    addEventListener("online", () => this.#again(0));
  }

  /** Connect, or say that somebody has to log in first. */
  async connect() {
    this.#close();
    let session;
    try {
      session = await this.#session();
    } catch {
      this.#later();
      return;
    }
    if (session.secured && !session.in) {
      this.#tell("locked");
      return;
    }
    this.#listen();
  }

  #listen() {
    if (this.state === "locked") this.#tell("connecting");
    const source = new EventSource("/api/stream");
    this.#source = source;
    this.#heard = performance.now();
    const take = (event) => {
      if (source !== this.#source) return;
      this.#heard = performance.now();
      this.#attempts = 0;
      this.#tell("live");
      this.dispatchEvent(new MessageEvent(event.type, { data: JSON.parse(event.data) }));
    };
    source.addEventListener("house", take);
    source.addEventListener("tick", take);
    // The browser would try again by itself, but gives up for good if it is told no, as by a server that is closing.
    source.addEventListener("error", () => {
      if (source === this.#source) this.#later();
    });
  }

  #later() {
    this.#close();
    this.#tell("reconnecting");
    this.#attempts += 1;
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (this.#attempts - 1));
    this.#again(wait * (0.75 + Math.random() / 2));
  }

  #again(wait) {
    if (this.#source || this.state === "locked") return;
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(() => this.connect(), wait);
  }

  #check() {
    if (this.#source && performance.now() - this.#heard > SILENT) this.#later();
  }

  #close() {
    clearTimeout(this.#waiting);
    this.#source?.close();
    this.#source = null;
  }

  #tell(state) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}
