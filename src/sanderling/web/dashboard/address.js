// The address of what is shown: a system, a host, a range of time, a list of items. It can be shared, and reloaded.
// It is behind the #, so that no server and no proxy gets to know which hosts somebody looks at.

const SAID = ["range", "host", "of", "items", "search", "after"]; // beside the system, in this order

export class Address extends EventTarget {
  constructor() {
    super();
    this.view = read(location.hash);
    addEventListener("popstate", () => this.#took());
    addEventListener("hashchange", () => this.#took());
  }

  /** Show something else: an entry of the browser's history, unless it only `refines` what is shown. */
  go(change, { refines = false } = {}) {
    const view = tidy({ ...this.view, ...change });
    const hash = written(view);
    if (hash === written(this.view)) return;
    this.view = view;
    history[refines ? "replaceState" : "pushState"](null, "", hash || location.pathname);
    this.dispatchEvent(new Event("view"));
  }

  #took() {
    const view = read(location.hash);
    if (written(view) === written(this.view)) return;
    this.view = view;
    this.dispatchEvent(new Event("view"));
  }
}

/** `#/sequence?range=3600` as `{ system: "sequence", range: "3600" }`; whatever else is there is left out. */
function read(hash) {
  const [, name, query = ""] = /^#\/([^?]*)(?:\?(.*))?$/.exec(hash) ?? [];
  const said = new URLSearchParams(query);
  const view = Object.fromEntries(SAID.map((each) => [each, said.get(each) ?? ""]));
  try {
    return tidy({ ...view, system: decodeURIComponent(name ?? "") });
  } catch {
    return tidy({ ...view, system: "" }); // no text in any encoding
  }
}

function tidy(view) {
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value));
}

function written(view) {
  const said = SAID.filter((each) => view[each]).map((each) => [each, view[each]]);
  const query = new URLSearchParams(said).toString();
  return view.system || query ? `#/${encodeURIComponent(view.system ?? "")}${query ? `?${query}` : ""}` : "";
}
