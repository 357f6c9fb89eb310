// What people do: asked first where it is large, told afterwards how it went, and listed with all that was done before.

import { clock, words } from "./format.js";
import { h, keyed, say, show } from "./dom.js";
import { Refusal } from "./api.js";

const SHOWN = 6_000; // milliseconds that good news stay; bad news stay until somebody has read them
const SHOWN_UNDO = 15_000; // and what can be undone
const EVERY = 10_000; // between two looks at what others did
const MOST_TOASTS = 4;

/** Ask whether that is meant. */
export function confirmed({ title, text, yes }) {
  const dialog = document.getElementById("ask");
  say(document.getElementById("ask-title"), title);
  say(document.getElementById("ask-text"), text);
  const agree = document.getElementById("ask-yes");
  say(agree, yes);
  return new Promise((resolve) => {
    const end = () => dialog.close();
    const accept = () => dialog.close("yes");
    const refuse = document.getElementById("ask-no");
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        agree.removeEventListener("click", accept);
        refuse.removeEventListener("click", end);
        resolve(dialog.returnValue === "yes");
      },
      { once: true },
    );
    agree.addEventListener("click", accept);
    refuse.addEventListener("click", end);
    dialog.showModal();
    refuse.focus();
  });
}

/** A note of what happened. `undo` takes it back; the focus goes to the part of the page that `from` is in. */
export function toast(text, { refused = false, undo = null, from = null } = {}) {
  const place = document.getElementById("toasts");
  const toasted = h(
    `div.toast.${refused ? "refused" : "done"}`,
    {},
    h("p", {}, h("b", {}, refused ? "Refused: " : "Done: "), text),
  );
  const close = () => {
    const inside = toasted.contains(document.activeElement);
    toasted.remove();
    // Not to the button itself, which may have become another host's.
    if (inside) from?.closest("[tabindex='0']")?.focus({ preventScroll: true });
  };
  const take = () => {
    close();
    undo();
  };
  if (undo) toasted.append(h("button.small", { type: "button", click: take }, "Undo"));
  toasted.append(h("button.quiet.close", { type: "button", "aria-label": "Close this note", click: close }, "×"));
  place.append(toasted);
  while (place.childElementCount > MOST_TOASTS) place.firstElementChild.remove();
  if (!refused) closeLater(toasted, close, undo ? SHOWN_UNDO : SHOWN);
}

/** Close it after a while; not while somebody points at it, or is in it. */
function closeLater(toasted, close, after) {
  let timer = null;
  const hold = () => clearTimeout(timer);
  const wait = () => {
    hold();
    timer = setTimeout(close, after);
  };
  for (const name of ["pointerenter", "focusin"]) toasted.addEventListener(name, hold);
  for (const name of ["pointerleave", "focusout"]) toasted.addEventListener(name, wait);
  wait();
}

export class Actions extends EventTarget {
  #api;

  constructor(api) {
    super();
    this.#api = api;
  }

  /**
   * Do something; `sure` is asked first, and `undo` is offered afterwards. The button that was pressed rests meanwhile.
   * True if it was done.
   */
  async act(body, { sure = null, button = null, undo = null } = {}) {
    if (button?.ariaDisabled || (sure && !(await confirmed(sure)))) return false;
    // A button that is disabled in earnest would lose the focus.
    if (button) button.ariaDisabled = "true";
    try {
      const { done } = await this.#api.act(body);
      toast(done, { undo, from: button });
      return true;
    } catch (error) {
      toast(error instanceof Refusal ? error.message : "The server does not answer; nothing is known of what it did.", {
        refused: true,
        from: button,
      });
      return false;
    } finally {
      if (button) button.ariaDisabled = null;
      this.dispatchEvent(new Event("acted"));
    }
  }
}

/** Who did what, the newest first. */
export class Audit {
  #api;
  #asked = false;

  constructor(section, api, actions) {
    this.#api = api;
    this.rows = h("tbody");
    const heads = ["When", "Who", "What", "System", "How it went"].map((name) => h("th", { scope: "col" }, name));
    this.table = h(
      "table.plain.audit",
      { "aria-labelledby": "audit-title" },
      h("thead", {}, h("tr", {}, ...heads)),
      this.rows,
    );
    this.nothing = h("p.muted", {}, "Nobody has done anything here yet.");
    section.append(
      h("h2", { id: "audit-title" }, "Actions taken"),
      h("div.scrolled", { tabindex: "0", role: "group", "aria-labelledby": "audit-title" }, this.table),
      this.nothing,
    );
    actions.addEventListener("acted", () => this.look());
    setInterval(() => {
      if (!document.hidden && this.live) this.look();
    }, EVERY);
  }

  async look() {
    if (this.#asked) return;
    this.#asked = true;
    try {
      this.#draw(await this.#api.get("/api/audit", { limit: 100 }));
    } catch {
      // The stream says that the server is gone; the next look will tell.
    } finally {
      this.#asked = false;
    }
  }

  #draw(answer) {
    const entries = Array.isArray(answer) ? answer : (answer.entries ?? []);
    show(this.nothing, entries.length === 0);
    show(this.table, entries.length > 0);
    const key = (entry) => JSON.stringify(entry);
    keyed(this.rows, entries, key, (entry) =>
      h(
        "tr",
        {},
        h("td.when", {}, clock(entry.at)),
        h("td.who", { title: entry.from ?? "" }, entry.who),
        h("td.did", {}, h("span", {}, words(entry.action)), " ", h("span.what", {}, entry.what ?? "")),
        h("td.of", {}, entry.system),
        h(
          "td.went",
          {},
          h(`span.badge.${entry.done ? "good" : "bad"}`, {}, entry.done ? "done" : "refused"),
          entry.why ? ` ${entry.why}` : "",
        ),
      ),
    );
  }
}
