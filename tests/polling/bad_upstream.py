"""An upstream with many live documents that is slow, away or wrong about one of them; and a store that goes away.

The world decides: what the upstream was asked for and when is all that is judged, and the rows that are there after it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

from live_polling import LIVE_FROM, ORIGIN, Absent, Live, Outage, answer, during, refused_connection, saying, silence

from sanderling.apis.json_source import JsonSource
from sanderling.stores.polling_store import PollingStore
from sanderling.task import Reply

BEGIN = 20.0  # seconds after which something goes wrong
MORE = 10.0  # seconds that are polled when it is over
AFTER = 1.0  # seconds, and one interval, in which the cadence must be back
TOLERANCE = 0.05  # seconds by which a run may be late on a machine that does nothing else
OUTAGES: dict[str, Outage] = {"dropped": refused_connection, "hanging": silence, "503": saying(503)}


async def garbage() -> Reply:
    """Half a document."""
    return answer(200, b'{"id": "live0", "sta')


BAD_TARGETS: dict[str, Outage] = {
    "500": saying(500),
    "hanging": silence,
    "dropped": refused_connection,
    "garbage": garbage,
}


@dataclass(slots=True)
class Watched:
    """When each live document was asked for, and which version of it is stored."""

    interval: float
    until: float  # seconds that were polled
    times: dict[str, list[float]]
    stored: dict[str, int]  # of each document
    newest: int  # the version that an answer of the last moment had

    def gaps(self, begin: float, end: float, without: str = "") -> Iterator[tuple[float, float]]:
        """When each request of a live document left, and seconds since the one before; ends count as requests."""
        for name, times in self.times.items():
            if name != without:
                inside = [at for at in times if begin <= at < end]
                yield from ((later, later - one) for one, later in pairwise([begin, *inside, end]))

    def worst_gap(self, begin: float, end: float, without: str = "") -> float:
        """The longest time without a request for a document, in intervals."""
        return max(gap for _, gap in self.gaps(begin, end, without)) / self.interval

    def back_after(self, back: float, end: float) -> float:
        """Seconds after `back` until the last document is in cadence: from then on no request is missed up to `end`."""
        late = [at for at, gap in self.gaps(back, end) if gap > 1.5 * self.interval + TOLERANCE]
        return max(late, default=back) - back

    def asked(self, begin: float, end: float) -> int:
        """Requests for live documents in that time."""
        return sum(begin <= at < end for times in self.times.values() for at in times)

    def stale(self) -> list[str]:
        """Documents whose newest version is not stored."""
        return [name for name in self.times if self.stored.get(name, -1) < self.newest]


class BadLive(Live):
    """So many live documents, each asked for once in an interval; what a person has set is never too much."""

    def __init__(self, folder: Path, live: int, interval: float) -> None:
        super().__init__(folder, live)
        described: dict[str, object] = {
            "url": f"{ORIGIN}/match/{{id}}",
            "ids_url": f"{ORIGIN}/list",
            "active_when": 'state = "live"',
            "seconds": 10.0,
            "active_seconds": interval,
        }
        self.source = JsonSource.from_settings({"name": "scores", "kinds": {"match": described}})
        self.max_rps = 4 * live / interval
        self.interval = interval
        self.upstream.changes = 5.0
        self._rows: dict[str, int] = {}

    async def after(self, store: PollingStore) -> None:
        """Read what is stored."""
        rows = [row.values for row in await store.rows("match")]
        self._rows = {str(row["target"]): json.loads(str(row["record"]))["version"] for row in rows}

    def watch(self, seconds: float) -> Watched:
        """Poll for so long."""
        self.poll(seconds)
        names = [name for name, state in self.upstream.ids.items() if state == "live"]
        times = {name: self.upstream.times.get(f"/match/{name}", []) for name in names}
        newest = int((seconds - self.interval - AFTER) / self.upstream.changes)
        return Watched(self.interval, seconds, times, self._rows, newest)


def through_outage(folder: Path, kind: str, seconds: float, live: int, interval: float) -> Watched:
    """Poll up to an outage, through it, and some seconds more."""
    polling = BadLive(folder, live, interval)
    polling.upstream.outage = during(BEGIN, seconds, OUTAGES[kind])
    return polling.watch(BEGIN + seconds + MORE)


def climb(folder: Path, peak: float, up: float, live: int, interval: float) -> tuple[Watched, float]:
    """Poll while the latency climbs from 8 ms to `peak` within `up` seconds, and falls as slowly.

    Also the longest time without a request, in what is allowed: the interval, and what an answer takes if that is more.
    """
    polling = BadLive(folder, live, interval)

    def latency(now: float) -> float:
        share = max(0.0, 1.0 - abs(now - BEGIN - up) / up)
        return float(0.008 * (peak / 0.008) ** share)

    polling.upstream.latency = latency
    run = polling.watch(BEGIN + 2 * up + MORE)
    slow = ((gap, max(latency(at - gap), latency(at))) for at, gap in run.gaps(BEGIN, run.until))
    return run, max(gap / (interval + max(interval, took)) for gap, took in slow)


def without_store(folder: Path, seconds: float, takes: float, live: int, interval: float) -> Watched:
    """Poll while the store is away for so long, and takes so many seconds each time to say so."""
    polling = BadLive(folder, live, interval)
    polling.wrapped = lambda store: cast("PollingStore", Absent(store, BEGIN, BEGIN + seconds, takes))
    return polling.watch(BEGIN + seconds + MORE)


def beside_bad_target(folder: Path, kind: str, live: int, interval: float, seconds: float) -> Watched:
    """Poll so many live documents and one that always fails, from the moment that all are under way."""
    polling, fault = BadLive(folder, live + 1, interval), BAD_TARGETS[kind]
    polling.upstream.outage = lambda path, now: fault if path == "/match/live0" and now >= LIVE_FROM else None
    return polling.watch(seconds)
