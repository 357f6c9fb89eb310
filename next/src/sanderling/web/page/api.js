// Requests to the server, and its stream of reports.

/** What the server refused, in its words. */
export class Refusal extends Error {}

export async function get(path, query) {
  return answer(await fetch(`${path}?${new URLSearchParams(query)}`, { cache: "no-store" }));
}

export async function act(folder, action, words = []) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ folder, action, words });
  return answer(await fetch("api/actions", { method: "POST", headers, body }));
}

async function answer(response) {
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(found.detail ?? `the server answered with ${response.status}`);
  return found;
}

/** Call `take(reports)` with all reports by folder, again and again; `live(yes)` when the stream begins and breaks. */
export function follow(take, live) {
  let reports = {};
  const source = new EventSource("api/stream");
  source.addEventListener("reports", ({ data }) => {
    reports = JSON.parse(data);
    live(true);
    take(reports);
  });
  source.addEventListener("changes", ({ data }) => {
    for (const [name, report] of Object.entries(JSON.parse(data))) {
      if (report) reports[name] = report;
      else delete reports[name];
    }
    take(reports);
  });
  source.addEventListener("error", () => {
    live(false);
    // The browser comes back by itself, except where the server answered with an error.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(take, live), 2000);
  });
}
