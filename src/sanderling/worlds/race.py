"""A simulated upstream that plays a race day, as arithmetic: asked at a time, it says what would be answered.

Deterministic: the same seed and the same questions at the same times give the same answers. `RaceServer` puts it
behind real HTTP. The day is planned when it is made (`race_day`), and of each document only the version that
was asked for last is kept.

Times are seconds since the day began, everywhere.
"""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import ceil, exp, floor, inf
from random import Random
from typing import NamedTuple

from sanderling.clock import Clock
from sanderling.task import Headers
from sanderling.worlds.hosts import HostQuota, OpenQuota, SlidingWindowQuota
from sanderling.worlds.race_day import LONG_AGO, NEVER, DayRules, Heat, RacePlan
from sanderling.worlds.race_documents import RaceDocuments, front_page
from sanderling.worlds.server import PATIENCE, OneHost, OneHostServer
from sanderling.worlds.weather import TransportFault, WorldAnswer

NAME = "race.example"
ORIGIN = f"http://{NAME}"
BEGAN = 1_800_000_000.0  # Unix seconds when a day began, unless told otherwise; clocks of tests begin there too
JSON, HTML = "application/json", "text/html; charset=utf-8"
OTHER = "other"  # what paths that never exist are counted under, so that strangers cannot fill the memory

HANG = 120.0  # seconds: more than a client should wait, and still an end for the server
PIECE = b" " * 2**16
HUGE = 8000  # pieces: 500 MiB of blanks before the document, which is JSON all the same
ROUNDING = 0.001  # milliseconds; more than the error of a Unix time in a float
# Valid JSON, and nothing that a document could be.
WRONG = (
    b"{}",
    b"null",
    b'"no data"',
    b'[1,"two",null,[]]',
    b'[{"ID":7,"Name":[],"Start":{},"End":12,"Valid":"yes","Races":"none","Rounds":3,"Laps":"x","Detections":true}]',
)


class RaceKind(StrEnum):
    """What an answer is, as the day itself knows it."""

    DOCUMENT = "document"
    PAGE = "page"
    UNCHANGED = "unchanged"  # 304
    MISSING = "missing"  # there is no such path, or not yet
    HALF_WRITTEN = "half_written"
    REFUSED = "refused"  # over the quota
    ERROR = "error"  # 500
    SLOW = "slow"  # the right answer, late
    HANG = "hang"
    EMPTY = "empty"
    WRONG = "wrong"  # JSON of other types than those expected
    HUGE = "huge"
    RESET = "reset"


FAULTS = (
    RaceKind.ERROR,
    RaceKind.SLOW,
    RaceKind.HANG,
    RaceKind.EMPTY,
    RaceKind.WRONG,
    RaceKind.HUGE,
    RaceKind.RESET,
)


@dataclass(frozen=True, slots=True)
class RaceWeather:
    """What happens to requests on the way. Times in seconds; the defaults are a fair day in a local network."""

    latency: float = 0.004  # the median
    jitter: float = 0.3  # sigma of its lognormal
    quota: float = inf  # requests per second
    retry_after: float = 1.0  # the header of a refusal
    half_written: float = 0.0  # for so long after a change a document is cut short
    slow: float = 0.8  # more latency for who is answered late
    faults: Mapping[RaceKind, float] = field(default_factory=dict)  # the share of requests that meets each of FAULTS


@dataclass(frozen=True, slots=True)
class RaceRules:
    """What a race day is like, and how its upstream serves it."""

    day: DayRules = field(default_factory=DayRules)
    weather: RaceWeather = field(default_factory=RaceWeather)
    etag: bool = False  # the real one sends none
    utc_offset: float = 2.0  # hours that its local times are ahead; nothing in the documents says so


class DocumentChange(NamedTuple):
    """A document says something else from then on."""

    at: float
    path: str


@dataclass(frozen=True, slots=True)
class RaceAnswer(WorldAnswer):
    """What comes back, and how."""

    kind: RaceKind = RaceKind.DOCUMENT
    blanks: int = 0  # pieces that are sent before the body: so a large one takes no memory

    def pieces(self) -> Iterator[tuple[float, bytes]]:
        """What arrives of the body: seconds to wait, and then bytes."""
        for _ in range(self.blanks):
            yield 0.0, PIECE
        yield 0.0, self.body


@dataclass(slots=True)
class RaceTally:
    """What a day was asked."""

    asked: int = 0
    paths: Counter[str] = field(default_factory=Counter)
    kinds: Counter[RaceKind] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)  # 0 where there was no answer

    def note(self, path: str, answer: RaceAnswer) -> None:
        """Count one answer."""
        self.asked += 1
        self.paths[path] += 1
        self.kinds[answer.kind] += 1
        self.statuses[answer.status] += 1


class RaceDay:
    """The day, and what is answered at any time of it. `tally` says what it was asked so far."""

    def __init__(self, seed: int, rules: RaceRules | None = None, began: float = BEGAN) -> None:
        self.rules = rules or RaceRules()
        self.began = began
        self.tally = RaceTally()
        self._plan = RacePlan.make(seed, self.rules.day)
        local = datetime.fromtimestamp(began, UTC) + timedelta(hours=self.rules.utc_offset)
        self._documents = RaceDocuments(self._plan, self.rules.day, local, seed)
        self._times = {
            path: sorted(at for at in times if LONG_AGO // 2 < at < NEVER)
            for path, times in self._documents.changes().items()
        }
        self._changes = sorted((at, path) for path, times in self._times.items() for at in times)
        self._made: dict[str, tuple[int, bytes | None]] = {}  # the last version of each that was asked for
        self._front = front_page(self.event)
        self._chance = Random(f"race weather {seed}")
        weather = self.rules.weather
        self._quota: HostQuota = SlidingWindowQuota(round(weather.quota), 1.0) if weather.quota < inf else OpenQuota()

    def __repr__(self) -> str:
        return f"<RaceDay of {len(self.heats)} heats, asked {self.tally.asked} times>"

    @property
    def event(self) -> str:
        """The id of the event."""
        return self._plan.event

    @property
    def heats(self) -> tuple[Heat, ...]:
        """All heats of the day, in the order in which they are flown."""
        return tuple(self._plan.heats)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where documents are, or will be."""
        return tuple(self._times)

    @property
    def over(self) -> float:
        """When nothing changes any more."""
        return self._plan.over / 1000

    def path(self, name: str) -> str:
        """Where a document of the event is: Event, Pilots, Rounds or Results."""
        return self._documents.path(name)

    def race_path(self, race: str) -> str:
        """Where the document of a race is, by its id."""
        return f"/events/{self.event}/{race}/Race.json"

    def changes(self, after: float, until: float) -> tuple[DocumentChange, ...]:
        """Which documents change when, in order: those after the one time, up to and including the other."""
        first, last = (bisect_right(self._changes, (_instant(at), "\uffff")) for at in (after, until))
        return tuple(DocumentChange(at / 1000, path) for at, path in self._changes[first:last])

    def active(self, now: float) -> str | None:
        """The id of the race that is running; None between two."""
        instant = _instant(now)
        return next((heat.id for heat in self._plan.heats if heat.start <= instant < heat.end), None)

    def document(self, path: str, now: float) -> bytes | None:
        """What a document says; None where there is none, or not yet."""
        if path not in self._times:
            return None
        instant = _instant(now)
        version = bisect_right(self._times[path], instant)
        known = self._made.get(path)
        if known is None or known[0] != version:
            known = self._made[path] = (version, self._documents.body(path, instant))
        return known[1]

    def half_written(self, path: str, now: float) -> bool:
        """Whether a document changed so recently that not all of it is there."""
        times, instant = self._times.get(path, []), _instant(now)
        version = bisect_right(times, instant)
        return version > 0 and instant < times[version - 1] + self.rules.weather.half_written * 1000

    def ask(self, path: str, headers: Mapping[str, str], now: float) -> RaceAnswer:
        """What a GET gets that is sent at `now`; the names of the headers are in lower case."""
        path = path.partition("?")[0]
        answer = self._answer(self._meet(now), path, headers, now)
        self.tally.note(path if path == "/" or path in self._times else OTHER, answer)
        return answer

    def _meet(self, now: float) -> RaceKind:
        """What a request meets on the way; a document, if nothing."""
        if not self._quota.admits(now):
            return RaceKind.REFUSED
        faults = self.rules.weather.faults
        if not faults:
            return RaceKind.DOCUMENT
        kinds, shares = (*faults, RaceKind.DOCUMENT), (*faults.values(), max(0.0, 1 - sum(faults.values())))
        return self._chance.choices(kinds, shares)[0]

    def _answer(self, met: RaceKind, path: str, headers: Mapping[str, str], now: float) -> RaceAnswer:
        weather = self.rules.weather
        latency = weather.latency * exp(self._chance.gauss(0, weather.jitter))
        if met is RaceKind.RESET:
            return RaceAnswer(0, (), b"", latency, TransportFault.RESET, kind=met)
        if met is RaceKind.REFUSED:
            return _told(429, b"", HTML, latency, met, (("Retry-After", str(ceil(weather.retry_after))),))
        if met is RaceKind.ERROR:
            return _told(500, b"<h1>500 Internal Server Error</h1>\n", HTML, latency, met)
        found, body = self._found(path, now)
        if body is None:
            return _told(404, b"<h1>404 Not Found</h1>\n", HTML, latency, found)
        latency += {RaceKind.SLOW: weather.slow, RaceKind.HANG: HANG}.get(met, 0.0)
        if met is RaceKind.EMPTY:
            body = b""
        elif met is RaceKind.WRONG:
            body = self._chance.choice(WRONG)
        kind = found if met is RaceKind.DOCUMENT else met
        return self._sent(kind, HTML if path == "/" else JSON, body, latency, headers)

    def _found(self, path: str, now: float) -> tuple[RaceKind, bytes | None]:
        if path == "/":
            return RaceKind.PAGE, self._front
        body = self.document(path, now)
        if body is None:
            return RaceKind.MISSING, None
        if body and self.half_written(path, now):
            return RaceKind.HALF_WRITTEN, body[: self._chance.randrange(1, len(body))]
        return RaceKind.DOCUMENT, body

    def _sent(
        self, kind: RaceKind, content: str, body: bytes, latency: float, headers: Mapping[str, str]
    ) -> RaceAnswer:
        blanks = HUGE if kind is RaceKind.HUGE else 0
        if not self.rules.etag:
            return _told(200, body, content, latency, kind, blanks=blanks)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if headers.get("if-none-match") == etag and not blanks:
            return RaceAnswer(304, (("ETag", etag),), b"", latency, kind=RaceKind.UNCHANGED)
        return _told(200, body, content, latency, kind, (("ETag", etag),), blanks=blanks)


def _told(  # noqa: PLR0913 - the parts of an answer
    status: int, body: bytes, content: str, latency: float, kind: RaceKind, more: Headers = (), *, blanks: int = 0
) -> RaceAnswer:
    length = len(PIECE) * blanks + len(body)
    headers = (("Content-Type", content), ("Content-Length", str(length)), *more)
    return RaceAnswer(status, headers, body, latency, kind=kind, blanks=blanks)


def _instant(now: float) -> int:
    """The millisecond that a time is in; a change is seen by who asks at the very time that `changes` says."""
    return floor(min(max(now, -1e10), 1e10) * 1000 + ROUNDING)


def race_upstream(day: RaceDay, clock: Clock) -> OneHost:
    """The day at ORIGIN. Races say when they started, so it goes by the clock on the wall."""
    return OneHost(NAME, ORIGIN, lambda path, headers: day.ask(path, headers, clock.wall() - day.began))


class RaceServer(OneHostServer):
    """`async with RaceServer(day, clock) as server`: the day, at `server.url()`."""

    def __init__(self, day: RaceDay, clock: Clock, *, port: int = 0, patience: float = PATIENCE) -> None:
        super().__init__(race_upstream(day, clock), clock, first_port=port, patience=patience)
        self.day = day

    @property
    def tally(self) -> RaceTally:
        """What was asked, also by others who ask the same day."""
        return self.day.tally


def day() -> RaceRules:
    """Two hours with twenty heats, some aborted, and pilots who come and go."""
    return RaceRules()


def demo() -> RaceRules:
    """Two and a half minutes with two short races; the second is added after the first."""
    short = DayRules(pilots=6, late=0, removed=1, rounds=2, aborted=0, first=20.0, heat=45.0, pause=40.0, lap=5.0)
    return RaceRules(short)


def hostile() -> RaceRules:
    """A shorter day on which everything goes wrong that can: files half-written, errors, hangs, a quota."""
    shares = {
        RaceKind.ERROR: 0.03,
        RaceKind.SLOW: 0.03,
        RaceKind.HANG: 0.005,
        RaceKind.EMPTY: 0.02,
        RaceKind.WRONG: 0.02,
        RaceKind.HUGE: 0.001,
        RaceKind.RESET: 0.02,
    }
    weather = RaceWeather(quota=40.0, half_written=0.06, faults=shares)
    return RaceRules(DayRules(first=15.0, heat=60.0, pause=30.0, lap=5.0), weather)


PRESETS: Mapping[str, Callable[[], RaceRules]] = {each.__name__: each for each in (demo, day, hostile)}
