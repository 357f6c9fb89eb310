// Counts by name, as a table with a bar in each row.

import { whole, words } from "./format.js";
import { h, keyed, put, say, show } from "./dom.js";

/** The largest first. `toneOf` gives the colour of a name. */
export class Bars {
  constructor(label, toneOf = () => "kept") {
    this.toneOf = toneOf;
    this.body = h("tbody");
    this.table = h("table.bars", { "aria-label": label }, this.body);
    this.nothing = h("p.muted", {}, "None so far.");
    this.element = h("div", {}, this.table, this.nothing);
  }

  update(counts, most = 8) {
    const all = Object.entries(counts ?? {}).filter(([, number]) => number > 0);
    const shown = all.sort((one, other) => other[1] - one[1]).slice(0, most);
    const top = shown.length ? shown[0][1] : 1;
    show(this.table, shown.length > 0);
    show(this.nothing, shown.length === 0);
    keyed(
      this.body,
      shown,
      ([name]) => name,
      ([name]) => this.#row(name),
      (row, [, number]) => {
        say(row.cells[1], whole(number));
        row.cells[2].firstElementChild.style.inlineSize = `${Math.max(1, (number / top) * 100)}%`;
      },
    );
  }

  #row(name) {
    const bar = h(`div.bar.${this.toneOf(name)}`);
    const label = words(name);
    return h(
      "tr",
      {},
      h("th", { scope: "row", title: label }, label),
      h("td.number"),
      h("td.room", { "aria-hidden": "true" }, bar),
    );
  }
}
