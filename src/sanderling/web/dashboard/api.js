// Asks the server. What it refuses is a Refusal with the server's own words.

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Api extends EventTarget {
  #csrf = null;
  hasSession = false; // that somebody could end

  /** Whether a token is needed, and whether we are in. Has to be asked again whenever the server may be another one. */
  async session() {
    const session = await this.#ask("/api/session", {});
    this.#csrf = session.csrf;
    this.hasSession = session.secured && session.csrf !== null;
    return session;
  }

  async login(token) {
    const answer = await this.#ask("/api/login", this.#posted({ token }));
    this.#csrf = answer.csrf;
  }

  async logout() {
    await this.#post("/api/logout", {});
  }

  async get(path, query = {}, signal = undefined) {
    const wanted = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    const search = new URLSearchParams(wanted).toString();
    return this.#ask(search ? `${path}?${search}` : path, { signal });
  }

  /** Have something done. */
  async act(body) {
    return this.#post("/api/actions", body);
  }

  /** Post something. The server may be a new one that does not know our session's mark: then once more. */
  async #post(path, body) {
    try {
      return await this.#ask(path, this.#posted(body));
    } catch (refusal) {
      const before = this.#csrf;
      if (!(refusal instanceof Refusal) || refusal.status !== 403) throw refusal;
      await this.session();
      if (this.#csrf === before) throw refusal;
      return this.#ask(path, this.#posted(body));
    }
  }

  #posted(body) {
    const headers = { "Content-Type": "application/json" };
    if (this.#csrf) headers["X-CSRF-Token"] = this.#csrf;
    return { method: "POST", headers, body: JSON.stringify(body) };
  }

  async #ask(path, options) {
    const response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
    const text = await response.text();
    let answer = {};
    try {
      answer = JSON.parse(text);
    } catch {
      if (response.ok) throw new Refusal(response.status, "the server answered with something that is not JSON");
    }
    if (response.ok) return answer;
    if (response.status === 401 && path !== "/api/login") this.dispatchEvent(new Event("out"));
    throw new Refusal(response.status, answer.detail ?? `the server answered with ${response.status}`);
  }
}
