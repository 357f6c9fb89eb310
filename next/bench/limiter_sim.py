"""How well does a policy find a limit that nobody tells it? Hosts as arithmetic, from a minute to three hours.

Delivered in percent of what the host allows, refused in percent of requests: means over the seeds. Of everything else
the worst seed. Beside each row stands what the second edition got there (`limiter_sim_before.json`). `--others` plays
hosts and seeds that nobody tunes by, `--only WORD` the rows with that word, `--quick` one seed of one host a row,
`--policy aimd` another policy, `--processes N` in so many.
"""

import argparse
import heapq
import json
import sys
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count, pairwise
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from bars import Bar, report
from hosts import REFUSALS, Host, Reply
from limiter_hosts import CAP, HOUR, MINUTE, OUTAGE, ROWS, WORKERS, Case, Row

from sanderling.clock import FakeClock
from sanderling.limit import Limiter
from sanderling.limit.permit import Permit, outcome_of

SEEDS, OTHER_SEEDS = 3, 4200  # how many; where the others begin
PATIENCE, PROBE_PATIENCE = 30.0, 10.0  # seconds until the client gives a request up
NEVER = 9999.0  # stands for `inf`, which JSON does not know
LEAST = ("delivered", "hour 2", "hour 3", "before")  # figures of which more is better
MEANS = ("delivered", "refused", "median")  # of all others the worst seed counts
BEFORE = Path(__file__).with_suffix("").with_name("limiter_sim_before.json")
HOST = "host.example"


class Client:
    """The real limiter, through its public API, on a clock that the simulation moves."""

    def __init__(self, policy: str, case: Case, seed: int) -> None:
        limits: dict[str, Any] = {"max_rps": CAP, "initial_rps": 5.0, "min_rps": 0.25} | dict(case.limits)
        self._clock = FakeClock()
        self._limiter = Limiter(policy=policy, clock=self._clock, random=Random(seed), **limits)
        self._named = case.named
        self._new = count()
        self._failed = deque[int]()  # an item that failed is requested again before any new one

    def ready_at(self, now: float) -> float:
        self._clock.advance_to(now)
        return self._limiter.ready_at(HOST)

    def send(self, now: float) -> tuple["Client", Permit, int | None]:
        self._clock.advance_to(now)
        permit = self._limiter.try_acquire(HOST)
        assert permit is not None, "ready_at promised it"
        item = (self._failed.popleft() if self._failed else next(self._new)) if self._named else None
        return self, permit, item

    def receive(self, permit: Permit, item: int | None, now: float, reply: Reply) -> None:
        self._clock.advance_to(now)
        if item is not None and reply.status not in (200, 429):
            self._failed.append(item)
        outcome = outcome_of(reply.status, reply.headers, reply.error or None, reply.retry_after, self._clock.wall())
        permit.report(outcome, latency=reply.latency, headers=reply.headers, item=item)


@dataclass(slots=True)
class Play:
    """What came of a run. Instants are those of sending, for `served_at` and `refused_at` those of the responses."""

    failed: int = 0
    early: int = 0  # requests sent before a Retry-After had passed
    sent_at: list[float] = field(default_factory=list)
    served_at: list[float] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def count(self, now: float, reply: Reply) -> None:
        if reply.status in REFUSALS:
            self.refused_at.append(now)
        elif reply.status == 200:
            self.served_at.append(now)
            self.latencies.append(reply.latency)
        else:
            self.failed += 1

    def served_between(self, start: float, end: float) -> int:
        return bisect_left(self.served_at, end) - bisect_left(self.served_at, start)

    def longest_gap(self, start: float, end: float) -> float:
        within = self.sent_at[bisect_left(self.sent_at, start) : bisect_right(self.sent_at, end)]
        return max(later - earlier for earlier, later in pairwise([start, *within, end]))


def first_burst(times: Sequence[float], need: int, window: float) -> float:
    """When so many instants had first come within `window` seconds; `inf` if never."""
    ends = zip(times, times[need - 1 :], strict=False)
    return next((last for first, last in ends if last - first <= window), inf)


def play(host: Host, clients: Sequence[Client], wanted: Callable[[float], float], seconds: float) -> Play:
    """Let the workers send for so long, each request from the client that may send first."""
    result, idle, now, not_before = Play(), WORKERS, 0.0, 0.0
    replies: list[tuple[float, int, tuple[Client, Permit, int | None], Reply]] = []
    order = count()
    while True:
        ready, first = inf, clients[0]
        if idle:
            if len(clients) > 1:
                first = min(clients, key=lambda client: client.ready_at(now))
            ready = max(wanted(now), first.ready_at(now))
        arrives = replies[0][0] if replies else inf
        if ready <= now:
            result.early += now < not_before
            result.sent_at.append(now)
            sent = first.send(now)
            reply = host.request(now)
            patience = PROBE_PATIENCE if sent[1].probe else PATIENCE
            if reply.latency > patience:
                reply = Reply(0, patience, error="timed out")
            heapq.heappush(replies, (now + reply.latency, next(order), sent, reply))
            idle -= 1
        elif min(ready, arrives) >= seconds:
            return result
        elif ready < arrives:
            now = ready
        else:
            now, _, (client, permit, item), reply = heapq.heappop(replies)
            idle += 1
            not_before = max(not_before, now + (reply.retry_after or 0.0))
            result.count(now, reply)
            client.receive(permit, item, now, reply)


def measure(others: bool, row_at: int, case_at: int, policy: str, seed: int) -> dict[str, float]:
    """One seed of one host; rows and cases by their place, as processes cannot send them to each other."""
    row = ROWS[row_at]
    case = (row.others if others else row.cases)[case_at]
    seconds = row.minutes * MINUTE
    seeds = [seed] if case.clients == 1 else [1000 * seed + each for each in range(case.clients)]
    result = play(case.host(seed), [Client(policy, case, each) for each in seeds], case.wanted, seconds)
    requests = len(result.served_at) + len(result.refused_at) + result.failed
    figures = {
        "delivered": 100 * len(result.served_at) / case.allows(seed, seconds),
        "refused": 100 * len(result.refused_at) / max(1, requests),
        "median": sorted(result.latencies or [0.0])[max(0, len(result.latencies) - 1) // 2],
    }
    return figures | {name: _more(name, result, case) for name in row.more if name not in figures}


def _more(name: str, result: Play, case: Case) -> float:
    """A figure that only some rows have."""
    if name.startswith("hour"):  # delivered in the host's second and third hour, or its first two that are whole
        start = (case.since or HOUR) + HOUR * (name == "hour 3")
        return 100 * result.served_between(start, start + HOUR) / case.allows(0, HOUR)
    if name == "at 250/s":
        return min(NEVER, first_burst(result.sent_at, 250, 1.0))
    if name == "at first":
        return sum(refused < 2 * MINUTE for refused in result.refused_at)
    if name == "early":
        return result.early
    before = result.served_between(case.since - MINUTE, case.since) / MINUTE
    end = case.since + OUTAGE
    if name == "gap":
        return result.longest_gap(case.since, end)
    if name == "before":
        return before
    after = result.served_at[bisect_left(result.served_at, end) :]
    return min(NEVER, first_burst(after, max(1, round(9 * before)), 10.0) - end)


def together(runs: list[dict[str, float]]) -> dict[str, float]:
    """The mean over the seeds of what is a share, and the worst of what must hold every time."""
    figures = {}
    for name in runs[0]:
        values = [each[name] for each in runs]
        figures[name] = fmean(values) if name in MEANS else (min if name in LEAST else max)(values)
    return figures


def judge(row: Row, case: Case, figures: dict[str, float], before: dict[str, float]) -> list[Bar]:
    """The bars of one host; each of several clients must find out for itself, so each may be refused as often."""
    needs = dict(row.more)
    if row.delivered is not None:
        needs["delivered"] = row.delivered
    if row.refused is not None:
        needs["refused"] = row.refused * case.clients
    title = f"{row.name}: {case.name}" if case.name else row.name
    bars = [Bar(f"{title}, {name}", figures[name], need, name in LEAST) for name, need in needs.items()]
    if before:
        bars.append(
            Bar(f"{title}, delivered before, less 1", figures["delivered"], before["delivered"] - 1, least=True)
        )
        bars.append(Bar(f"{title}, refused before, and 1", figures["refused"], before["refused"] + 1))
    return bars


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--policy", default="governor")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--figures", type=Path, help="write all figures to this file")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first, seeds = OTHER_SEEDS if given.others else 0, 1 if given.quick else given.seeds
    before = json.loads(BEFORE.read_text()) if BEFORE.exists() else {}
    bars, written = list[Bar](), dict[str, dict[str, float]]()
    with ProcessPoolExecutor(given.processes) as pool:
        running = [
            (
                row,
                case,
                [pool.submit(measure, given.others, at, place, given.policy, first + seed) for seed in range(seeds)],
            )
            for at, row in enumerate(ROWS)
            for place, case in enumerate(row.others if given.others else row.cases)
            if given.only in f"{row.name}: {case.name}" and not (given.quick and (place or row.minutes > 60))
        ]
        for row, case, futures in running:
            figures = together([each.result() for each in futures])
            title = f"{row.name}: {case.name}" if case.name else row.name
            written[title] = {name: round(each, 3) for name, each in figures.items()}
            known = before.get("others" if given.others else "tuned", {}).get(title, {})
            met = judge(row, case, figures, known)
            bars += met
            if not given.json:
                was = f"({known['delivered']:5.1f} {known['refused']:5.2f})" if known else ""
                more = ", ".join(f"{name} {figures[name]:.4g}" for name in row.more)
                short = ", ".join(f"{bar.what.rpartition(', ')[2]} {bar.need:g}" for bar in met if not bar.ok)
                line = f"{title:52} {figures['delivered']:6.1f} % {figures['refused']:5.2f} % {was:14} {more}"
                print(line + (f"  SHORT: {short}" if short else ""), flush=True)
    if given.figures:
        given.figures.write_text(json.dumps(written, indent=1) + "\n")
    return report([bar for bar in bars if not bar.ok] or bars[:1])


if __name__ == "__main__":
    sys.exit(main())
