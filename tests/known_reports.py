"""Reports of all systems as they might be, for whatever draws, sends or reads them."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from sanderling.engine.host_report import EngineStanding, report_host
from sanderling.engine.limiter_metrics import limiter_metrics
from sanderling.events.lately import Lately, Minute, ShortError
from sanderling.events.modes import Modes
from sanderling.events.report import EventsFacts, Messages, report_events
from sanderling.jobs.report import JobFacts, report_job
from sanderling.limit import HostView
from sanderling.limit.snapshot import Snapshot
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric
from sanderling.observe.metrics import Metrics, report_metrics
from sanderling.observe.report import AnyReport, HostReport, Process, Report
from sanderling.pages.report import PagesFacts, report_pages
from sanderling.polling.measures import Late
from sanderling.polling.report import LiveTargets, Next, PollingFacts, ShortChange, SubscriberReport, report_polling
from sanderling.repos.report import ReposFacts, report_repos
from sanderling.sequence.report import SequenceFacts, WorkerDecision, report_sequence
from sanderling.stores.status_file import read_status, write_status
from sanderling.web.house import KINDS, Found, HouseReader

WALL = 1_800_000_100.0
PROCESS = Process(pid=4711, started=WALL - 100, wall=WALL)
R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=msgspec.Struct)

# What strangers may be called; none of it may be harmed, nor do harm.
HOSTILE = "</script><img src=x onerror=alert(1)>\r\n\r\ndata: x\u2028\x1b[31m\u202e.example"

VIEW = HostView(
    host="a.example",
    requests=100,
    rejected=0,
    rate=8.0,
    ceiling=None,
    tokens=1.0,
    latency=0.05,
    p95=0.1,
    error_rate=0.0,
    state="closed",
    failures=0,
    not_before=0.0,
    inflight=1,
    waiting=0,
    why="growing until the host objects",
    learned=None,
    usual=0.05,
    cap=None,
    cap_why=None,
)
SNAPSHOT = Snapshot(
    requests=100,
    throttled=40,
    denied=7,
    retries=6,
    rejected=5,
    hosts=10,
    open=2,
    half_open=1,
    waits=((0.005, 60), (0.5, 30), (inf, 10)),
    waited=12.5,
    top=(
        replace(
            VIEW,
            rate=2.5,
            ceiling=8.0,
            tokens=-1.5,
            latency=0.25,
            p95=0.75,
            error_rate=0.125,
            failures=3,
            not_before=30.0,
            inflight=4,
            waiting=5,
        ),
    ),
)


def host(
    name: str = "a.example",
    waiting: int = 10,
    trouble: str = "",
    *,
    aside: bool = False,
    **view: Any,  # noqa: ANN401 - fields of what the limiter knows
) -> HostReport:
    """A host that is asked."""
    return report_host(replace(VIEW, host=name, **view), waiting, trouble, aside=aside)


def standing(*hosts: HostReport, process: dict[str, Any] | None = None, **changes: Any) -> EngineStanding:  # noqa: ANN401
    """Of a process that asks these hosts."""
    asked, refused = sum(each.requests for each in hosts), sum(each.refused for each in hosts)
    at = EngineStanding(msgspec.structs.replace(PROCESS, **(process or {})), hosts, asked, refused)
    return at._replace(**changes)


def changed(report: Report[R], **changes: Any) -> Report[R]:  # noqa: ANN401 - fields of the process or of the facts
    """The same with some changes, and all that follows from them; `hosts` are reports of hosts."""
    process = {name: changes.pop(name) for name in Process.__struct_fields__ if name in changes}
    hosts = changes.pop("hosts", report.hosts)
    trouble = changes.pop("disk_trouble", "")
    if "hosts_known" in changes:
        changes["hosts"] = changes.pop("hosts_known")
    at = standing(*hosts, disk_trouble=trouble)
    at = at._replace(process=msgspec.structs.replace(report.process, **process))
    made: Report[R] = MAKE[report.system](msgspec.structs.replace(report.facts, **changes), at)
    return made


MAKE: dict[str, Callable[..., Any]] = {
    "pages": report_pages,
    "jobs": report_job,
    "repos": report_repos,
    "sequence": report_sequence,
    "polling": report_polling,
    "events": report_events,
}


def put(folder: Path, report: AnyReport, at: float | None = None, name: str = "status.json") -> Path:
    """Write a report, as if at that time, by the clock of the file as well."""
    folder.mkdir(parents=True, exist_ok=True)
    write_status(folder, report if at is None else changed(report, wall=at), name)
    if at is not None:
        os.utime(folder / name, (at, at))
    return folder


def published(folder: Path, name: str = "status.json") -> Any:  # noqa: ANN401 - a report of any system
    """The report that was last written there; None if there is none."""
    try:
        said = msgspec.json.decode((folder / name).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return read_status(folder, KINDS[said["system"]], name)


PAGES_FACTS = PagesFacts(
    counts={"fetched": 60, "unchanged": 0, "moved": 5, "refused": 1, "failed": 4, "left": 0},
    known=100,
    waiting=30,
    inflight=2,
    bytes=1_234_567,
    hosts=2,
)
PAGES = report_pages(
    PAGES_FACTS,
    standing(
        host("a.example", 20, requests=70, rejected=3),
        host("b.example", 10, "TIMEOUT", requests=10, state="open"),
        process={"pid": 1},
    ),
)
JOBS = report_job(
    JobFacts(
        name="posts",
        counts={"fetched": 50, "failed": 3, "left_out": 1},
        requests=61,
        records=480,
        known=90,
        waiting=36,
        set_aside=7,
        inflight=4,
        bytes=2_345_678,
        hosts=1,
        gone={"detail": 7},
        over_budget=False,
    ),
    standing(host("api.example", 32, requests=61, rejected=2), process={"pid": 4}),
)
REPOS_FACTS = ReposFacts(
    done=550,
    known=1000,
    eta=100.0,
    categories={"archived": 400, "not_found": 50, "timeout": 10},
    records=123_456,
    waiting=500,
    inflight=20,
    bytes_read=10**9,
    bytes_written=10**8,
    segment=3,
    segment_bytes=5_000_000,
    hosts=1,
    blocked=1,
)
REPOS = report_repos(
    REPOS_FACTS, standing(host("pds.example", 500, "timeout", aside=True, requests=600, failures=7), process={"pid": 2})
)
DECISION = WorkerDecision(
    wall=WALL - 50,
    before=25,
    workers=50,
    strategy="catch_up",
    why="25 workers become 50: slew: 120 are more than 2 times 25. Without that: 300 s behind with 0.0 % not found.",
    held=("slew: 120 are more than 2 times 25", "little: 50 are enough", "slew: again"),
    lag=300.0,
    missing=0.012,
)
SEQUENCE_FACTS = SequenceFacts(
    api="bungie",
    host="stats.example",
    cursor=16_000_000_500,
    newest=16_000_000_505,
    head=16_000_006_000,
    behind=5500,
    head_rate=60.0,
    lag=135.0,
    rate=42.0,
    workers=50,
    period=10_000,
    strategy="catch_up",
    why="135 s behind: 25 workers become 50.",
    inflight=48,
    waiting=7,
    decisions=(DECISION,),
    missed={"gap": 9996, "hidden": 3},
    answers={"success": 20, "skipped": 470, "not_found": 10, "error": 2, "rate_limited": 1, "hidden": 3},
    probes=13,
    gaps=1,
    skipped=9996,
    published=20,
    stored=17,
    available=True,
    queue={"ready": 2, "taken": 1, "delayed": 0, "dead": 0},
)
SEQUENCE = report_sequence(
    SEQUENCE_FACTS,
    standing(host("stats.example", requests=519, rejected=1, latency=0.16, why="growing"), process={"pid": 3}),
)
POLLING_FACTS = PollingFacts(
    source="trackside",
    host="race.example",
    event="5a2b",
    current="race be0e8021",
    targets={"all": 50, "paused": 4, "due": 9, "accelerated": 1, "failing": 2, "gone": 6},
    discovered=WALL - 7.5,
    discovery_trouble="",
    runs={"race": 490, "results": 2},
    failed=2,
    changes=68,
    missed=3,
    rate=5.4,
    late={"accelerated": Late(0.002, 0.011, 50), "usual": Late(0.04, 0.2, 4)},
    inflight=1,
    slots=2,
    ready=8,
    loaded=40,
    pending=5,
    newest=1068,
    followers=3,
    subscribers=(
        SubscriberReport(name="webhook", position=1060, behind=8, trouble="https://hook.example: status 503"),
        SubscriberReport(name="queue", position=1068, behind=0, trouble=""),
    ),
    store_trouble="",
    problems=("scheduler.burst is 'many', expected a whole number from 1 up",),
    accelerated=(LiveTargets(kind="race", id="be0e8021", interval=0.2, left=21.5, late=0.002),),
    recent=(
        ShortChange(seq=1067, at=WALL - 1, op="insert", table="laps", key="lap-60", fields=()),
        ShortChange(seq=1068, at=WALL - 0.8, op="update", table="races", key="be0e8021", fields=("end", "valid")),
    ),
    next=(
        Next(kind="race", id="be0e8021", due=0.1, interval=0.2, status="ok"),
        Next(kind="results", id="5a2b", due=-0.4, interval=2.0, status="error: TIMEOUT"),
    ),
)
RACE = report_host(
    replace(VIEW, host="race.example", requests=492, rejected=1, rate=20.0, latency=0.06, p95=0.11, why="growing"),
    8,
    lasting=True,
)
POLLING = report_polling(POLLING_FACTS, standing(RACE))
EVENTS_FACTS = EventsFacts(
    messages=Messages(received=120, processed=110, failed=2, duplicates=4, reused=0, postponed=5),
    batches=106,
    posts=4290,
    errors=310,
    odd=0,
    lately=Lately(batches=1.1, items=46.0, errors=3.1),
    platforms={"tiktok": 4000, "youtube": 600},
    categories={"rate_limiting": 250, "parsing": 50, "generic": 10},
    codes={"RATE_LIMITED": 250, "PARSE_ERROR": 50, "other": 10},
    sentiments={"POSITIVE": 900, "NEUTRAL": 2000, "NEGATIVE": 70},
    skipped={"too short": 400, "spam": 12},
    minutes=(
        Minute(at=WALL - 120, positive=500, neutral=1000, negative=20, skipped=200, errors=200),
        Minute(at=WALL - 60, positive=400, neutral=1000, negative=50, skipped=212, errors=110),
    ),
    queue={"ready": 40, "taken": 3, "delayed": 7, "dead": 2},
    pool=20,
    modes=Modes(new=True, legacy=True, inline=False, canary=0.1),
    outbox=11,
    sent={"crawl.retry": 18, "analyze.result": 106},
    recent=(
        ShortError(
            at=WALL - 1,
            platform="tiktok",
            code="RATE_LIMITED",
            category="rate_limiting",
            content_id="7441234567890123456",
            message="429 Too Many Requests",
        ),
    ),
)
EVENTS = report_events(EVENTS_FACTS, standing())
ALL: dict[str, AnyReport] = {
    "events": EVENTS,
    "jobs": JOBS,
    "pages": PAGES,
    "polling": POLLING,
    "repos": REPOS,
    "sequence": SEQUENCE,
}


def events(at: EngineStanding | None = None, **changes: Any) -> Report[EventsFacts]:  # noqa: ANN401 - see `changed`
    """The same with some changes; so below."""
    return changed(EVENTS, **changes) if at is None else report_events(_with(EVENTS_FACTS, changes), at)


def polling(at: EngineStanding | None = None, **changes: Any) -> Report[PollingFacts]:  # noqa: ANN401
    return changed(POLLING, **changes) if at is None else report_polling(_with(POLLING_FACTS, changes), at)


def sequence(at: EngineStanding | None = None, **changes: Any) -> Report[SequenceFacts]:  # noqa: ANN401
    return changed(SEQUENCE, **changes) if at is None else report_sequence(_with(SEQUENCE_FACTS, changes), at)


def pages(*hosts: HostReport, process: dict[str, Any] | None = None, **changes: Any) -> Report[PagesFacts]:  # noqa: ANN401
    return changed(PAGES, hosts=hosts, **{"hosts_known": len(hosts), **(process or {}), **changes})


def _with(facts: F, changes: dict[str, Any]) -> F:
    return msgspec.structs.replace(facts, **changes)


def many_hosts(number: int) -> Report[PagesFacts]:
    """A crawl of so many."""
    hosts = (
        host(
            f"host-{each:05}.example",
            each % 13,
            "TIMEOUT" if each % 100 == 0 else "",
            requests=each % 997,
            rate=(each * 7919 % 10_007) / 10,
            latency=None if each % 5 == 0 else each / number,
        )
        for each in range(number)
    )
    return pages(*hosts)


def found(report: AnyReport, home: Path, at: float = WALL) -> Found:
    """A report as it is read from a home."""
    put(home / report.system, report, at)
    return next(each for each in HouseReader(home).read() if each.name == report.system)


def histogram_of(bounds: Sequence[float], *values: float) -> Histogram:
    made = Histogram(bounds)
    for value in values:
        made.add(value)
    return made


def registry_of(*takes: Callable[[], Iterable[Metric]]) -> CollectorRegistry:
    """What a process serves."""
    registry = CollectorRegistry()
    for take in takes:
        Metrics(registry, take)
    return registry


def registry_for(report: Callable[[], AnyReport]) -> CollectorRegistry:
    """What a system serves: its own metrics and the limiter's."""
    return registry_of(lambda: report_metrics(report()), lambda: limiter_metrics(SNAPSHOT))
