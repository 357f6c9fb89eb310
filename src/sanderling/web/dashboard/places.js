// The place of each system: a kind has the same key and the same place, whether it runs, has ended, or is not there.

export const ORDER = ["pages", "sequence", "repos", "polling", "events", "jobs"]; // by key, from 1

export class Places {
  #kinds = new Map(); // what each was last known to be: a status that cannot be read does not say

  constructor() {
    this.rows = []; // { kind, key, system }, without a system where there is none of that kind
  }

  /** Those that are there, from the first place to the last. */
  get systems() {
    return this.rows.map(({ system }) => system).filter(Boolean);
  }

  take(systems) {
    for (const { name, system } of systems) {
      if (ORDER.includes(system) || !this.#kinds.has(name)) this.#kinds.set(name, system);
    }
    const sorted = [...systems].sort((one, other) => (one.name < other.name ? -1 : 1));
    const known = ORDER.flatMap((kind, index) => {
      const row = { kind, key: index + 1 };
      const here = sorted.filter(({ name }) => this.#kinds.get(name) === kind);
      return here.length ? here.map((system) => ({ ...row, system })) : [{ ...row, system: null }];
    });
    const others = sorted.filter(({ name }) => !ORDER.includes(this.#kinds.get(name)));
    this.rows = [...known, ...others.map((system) => ({ kind: system.system, key: null, system }))];
  }

  /** The system that a key is for; the next one of its kind if `chosen` is one of them already. Null if there is none. */
  byKey(key, chosen) {
    const here = this.rows.filter((row) => row.key === key && row.system).map(({ system }) => system.name);
    return here.length ? here[(here.indexOf(chosen) + 1) % here.length] : null;
  }
}
