"""A crawl of repos under way: the flags that make it, its threads, its signals, and whoever watches it."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli import CommandError
from sanderling.cli.client import client
from sanderling.cli.flag_files import listing
from sanderling.cli.limits import Law, make_limiter
from sanderling.cli.loop import finishing, stoppable
from sanderling.cli.options import Options, beside, disk_room, observed, pace_of, showing
from sanderling.cli.repos.progress import HOSTS_SHOWN, Kept
from sanderling.cli.repos.screen import Screen
from sanderling.cli.watching import drawn, kept, obey, told, watched
from sanderling.clock import Clock
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.desk import desk_in
from sanderling.flow.memory import Memory
from sanderling.formats.repo import Cids
from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.observe.metrics_repos import RepoMetrics
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory
from sanderling.repos.handler import Hands
from sanderling.repos.hosts import CLOSE_AFTER, LARGE_RPS
from sanderling.repos.leave_out import LeaveOut
from sanderling.repos.plc import EndpointError, host_at
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.repos.since import EarlierRevs
from sanderling.repos.status import RepoStatus, Watched
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.ports import Progress, ProgressView
from sanderling.stores.status_file import write_status

MOST_BODY = 100 * 2**20  # bytes of a repo; the largest known has seventy million
LONGEST = 1200.0  # seconds for one of those, on a slow line
# Bytes that bodies may hold at once: five of the largest repos, or fifty of ten megabytes. Reading one takes three
# times its size for a moment, as many at once as there are cores.
BODIES = 512 * 2**20
LONGEST_OPEN = 60.0  # seconds that a failing host is not asked at all
PUBLISHED = 1_000  # hosts that status.json has


def _listed(_type: object, value: str) -> list[str]:
    """The words of a variable that holds several."""
    return [word for word in re.split(r"[\s,]+", value) if word]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How hosts are asked."""

    workers: Annotated[int, Parameter(env_var="WORKERS", validator=Number(gte=1, lte=10_000))] = 50
    """Requests in flight at most, to all hosts together."""

    default_pds_rps: Annotated[float, Parameter(env_var="DEFAULT_PDS_RPS", validator=Number(gt=0, lte=1000))] = 5.0
    """Requests a second to a host of 100 to 999 repos at most; smaller ones get 2, larger ones 10."""

    pace: Law = "governor"
    """How the pace of a host is found: governor learns what it allows; aimd is the plain law, to compare with."""

    skip_pds: Annotated[
        tuple[str, ...], Parameter(env_var="SKIP_PDS", env_var_split=_listed, negative=(), show_default=False)
    ] = ()
    """Leave this host alone, as https://host.example; may be repeated."""

    leave_out: Path | None = None
    """A file of DIDs and hosts that are never asked for, one per line."""

    patience: Annotated[float, Parameter(validator=Number(gt=0))] = 600.0
    """Seconds to wait for a host, or a repo, that is only refused or fails; the next run asks for it first."""

    contact: str | None = None
    """Where a host's owner can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, and hosts without TLS, which are refused otherwise."""

    def left_out(self) -> LeaveOut:
        """The DIDs and hosts to leave alone. Raises CommandError."""
        try:
            skipped = [host_at(url, plain=True) for url in self.skip_pds]
        except EndpointError as error:
            raise CommandError(f"--skip-pds: {error}", code=2) from None
        listed = LeaveOut() if self.leave_out is None else listing("--leave-out", self.leave_out, LeaveOut.read)
        return listed.and_hosts(skipped)

    def client(self, memory: Memory, clock: Clock) -> Http:
        """The client that goes with the flags. Raises CommandError."""
        rules = HttpRules(
            total=LONGEST,
            most_raw=MOST_BODY,
            most_decoded=MOST_BODY,
            connections=self.workers,
            connections_per_host=RepoRules().per_host,
        )
        return client(rules, self.contact, private=self.private, clock=clock, memory=memory)

    def limiter(self, clock: Clock) -> Limiter:
        """A limiter for hosts of repos: it stands back where a host is blocked anyway."""
        most = max(LARGE_RPS, self.default_pds_rps)
        pace = PaceRules.up_to(most)
        breaker = BreakerRules(consecutive=CLOSE_AFTER, longest=LONGEST_OPEN)
        return make_limiter(LimiterRules(pace=pace, breaker=breaker, strategy=self.pace), clock)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What is archived, and how."""

    segment_size: Annotated[str, Parameter(env_var="SEGMENT_SIZE")] = "2GB"
    """How large a segment grows: bytes, or with KB, MB, GB or TB."""

    zstd_level: Annotated[int, Parameter(env_var="ZSTD_LEVEL", validator=Number(gte=1, lte=19))] = 3
    """How hard to compress, from 1 to 19."""

    page_size: Annotated[int, Parameter(env_var="PAGE_SIZE", validator=Number(gte=1, lte=1_000_000))] = 50_000
    """DIDs to read from the directory at once."""

    cids: Cids = "strip"
    """Whether to keep entries called `cid` in records."""

    directory: str | None = None
    """Which DIDs exist and where: sqlite:PATH, chdb:PATH or clickhouse://…; by default directory.db in the folder."""

    did_file: Path | None = None
    """A file of lines `did https://host` instead of a directory."""

    since_archive: Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)] = ()
    """The folder of an earlier archive: repos that have not changed since are left out; may be repeated."""

    def rules(self, asking: Asking) -> RepoRules:
        """The rules of the crawl that go with the flags."""
        return RepoRules(
            workers=asking.workers,
            usual_rps=asking.default_pds_rps,
            page_size=self.page_size,
            patience=asking.patience,
            leave_out=asking.left_out(),
            level=self.zstd_level,
            cids=self.cids,
        )


@dataclass(frozen=True, slots=True)
class Tools:
    """What a crawl is run with, beside what it works in."""

    http: Http
    memory: Memory
    limiter: Limiter
    rules: RepoRules

    @classmethod
    def make(cls, asking: Asking, keeping: Keeping, clock: Clock) -> Self:
        """Those that go with the flags. Raises CommandError."""
        memory = Memory(BODIES)
        return cls(asking.client(memory, clock), memory, asking.limiter(clock), keeping.rules(asking))


class Opened(NamedTuple):
    """What a crawl works in."""

    directory: Directory
    segments: Segments
    progress: Progress
    earlier: EarlierRevs | None
    before: ProgressView


class Ran(NamedTuple):
    """How a run went: how it stood at its end, the crawl's progress, and whether somebody stopped it."""

    last: RepoStatus
    kept: Kept
    complete: bool
    stopped: bool


async def run_crawl(parts: Opened, tools: Tools, options: Options, *, clock: Clock, screen: Screen) -> Ran:
    """Crawl until every DID was seen to or somebody stops it."""
    limiter, started, folder = tools.limiter, clock.now(), parts.segments.folder
    recall(limiter, folder)
    # The threads end before the segments are closed: what they are at comes to its end, in one piece.
    with ThreadPoolExecutor(1, "disk") as disk, ThreadPoolExecutor(os.cpu_count(), "cores") as cores:
        desk = desk_in(disk)
        hands = Hands(desk, desk_in(cores), tools.memory)
        now = _made(parts, tools, hands, await desk(parts.directory.count), clock)
        crawl = now.crawl
        async with (
            observed(options, pace_of(limiter), showing(RepoMetrics, now.readings), say=screen.note),
            beside(options, folder, screen.note),
            tools.http,
        ):
            with stoppable(crawl.stop, screen.note, lambda: finishing(crawl.inflight)) as stops, screen:
                complete = await watched(
                    crawl.run(),
                    drawn(screen, lambda: now.status(clock.now() - started)),
                    told(folder, lambda: now.status(clock.now() - started, PUBLISHED), desk),
                    kept(limiter, folder, desk),
                    obey(folder, crawl.control, screen.note, disk_room(options, folder)),
                )
                last = now.status(clock.now() - started, running=False)
                screen.show(last)
                await desk(write_status, folder, last)
        if complete:
            # So that the next run begins at the first DID, and comes by all that is not complete.
            await desk(_clear_cursor, parts)
        await desk(keep, folder, list(limiter.saving()))
        saved = Kept(await desk(parts.progress.view), tuple(await desk(parts.progress.aside, HOSTS_SHOWN)))
    return Ran(last, saved, complete, bool(stops))


def _made(parts: Opened, tools: Tools, hands: Hands, known: int, clock: Clock) -> Watched:
    stores = Stores(parts.directory, parts.progress, parts.segments, parts.earlier)
    crawl = RepoCrawl(stores, tools.http, tools.limiter, hands, rules=tools.rules, clock=clock)
    return Watched(crawl, parts.segments, known, parts.before)


def _clear_cursor(parts: Opened) -> None:
    parts.progress.record([], [], cursor="", segment=parts.segments.number)
