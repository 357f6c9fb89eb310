"""`sanderling demo repos`: a real crawl, over real HTTP, of a small fleet on this machine, then proof of it."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sanderling.cli.demos.shell import DemoEnd, next_steps
from sanderling.cli.options import Options
from sanderling.cli.report_screen import fitting
from sanderling.cli.repos.crawl import open_stores, run_crawl
from sanderling.cli.repos.directory import FILE
from sanderling.cli.repos.flags import ArchiveFlags, RepoNetwork
from sanderling.cli.repos.progress import ArchiveFolder
from sanderling.clock import Clock, ScaledClock
from sanderling.executor import in_threads
from sanderling.extras import have
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.ids import host_of
from sanderling.limit import Limiter
from sanderling.observe.report import Report
from sanderling.repos.archives import Archive, ArchiveProblem
from sanderling.repos.directory import SqliteDirectory
from sanderling.repos.inspect import verify
from sanderling.repos.replay import RepoReplay
from sanderling.repos.replay_parquet import ParquetSink
from sanderling.repos.report import ReposFacts
from sanderling.repos.segments import segments_in
from sanderling.repos.update import UpdateResources as UpdateTools
from sanderling.repos.update import follow_log
from sanderling.words import count, duration, size
from sanderling.worlds.pds import Fleet, FleetServer
from sanderling.worlds.server import HostTally

SEED = 1  # the same fleet each time, so that what one person sees another can look for
HOSTS, REPOS = 6, 220  # healthy ones; the largest of them takes half a minute at the pace of a crawl without flags
# Without those that take an hour to answer, or fail for ever: nobody would wait for them to be given up.
OTHERS = ("limited", "silent", "slow", "failing", "cutting", "lying", "gone", "leading")
SPEED = 3.0  # times as fast as by the clock on the wall, hosts and crawl alike
ASKING = RepoNetwork(private=True)
KEEPING = ArchiveFlags(segment_size="512KB")  # so that there are a few


@dataclass(frozen=True, slots=True)
class RepoProof:
    """What the archive has, beside what it should have."""

    live: int
    once: int  # of these, in the archive exactly once
    strangers: int  # in the archive, and should not be
    dead: int
    filed: int  # of these, under the reason that the fleet knows
    problems: tuple[ArchiveProblem, ...]
    sound: int  # repos whose checksums are right
    records: int  # that were replayed; 0 if they were not

    @property
    def ok(self) -> bool:
        """Whether nothing is missing, nothing is there twice, and all is sound."""
        exact = self.once == self.live == self.sound and self.filed == self.dead
        return exact and not self.strangers and not self.problems


async def run(out: Path, options: Options, *, as_json: bool) -> DemoEnd:
    """Serve a fleet, learn its directory, crawl it, and compare what was archived with what there is."""
    clock, place = ScaledClock(SPEED), ArchiveFolder(out=out)
    async with FleetServer(Fleet.make(SEED, HOSTS, REPOS, others=OTHERS), clock) as server:
        names = {str(host_of(host.origin)): host.name.removesuffix(".example") for host in server.fleet.pds}
        screen = fitting(json=as_json, names=names)
        screen.note(
            f"{len(names)} simulated hosts, each a port of this machine: nothing leaves it. Time passes {SPEED:g}x."
        )
        dids = await _learn(server.fleet.plc.origin, out / FILE, clock)
        screen.note(f"{count(dids, 'DID')} learned from the simulated log of did:plc")
        transport, rules = ASKING.transport(clock), KEEPING.rules(ASKING)
        with open_stores(place, ASKING, KEEPING, screen, clock) as stores:
            ran = await run_crawl(stores, transport, rules, options, clock, screen)
            stores.segments.close()
            failed = stores.progress.view().failed
    proof = await asyncio.to_thread(_prove, server.fleet, failed, out)
    document = _document(ran.last, proof) | {"complete": ran.complete, "output_dir": str(out)}
    story = [*_describe_hosts(failed, server.tallies), *describe_proof(proof)] if ran.complete else []
    lines = [_describe_run(ran.last, complete=ran.complete), *story, *_next(out)]
    return DemoEnd(screen, ["", *lines], document, proof.ok or ran.stopped, ran.stopped)


async def _learn(plc: str, path: Path, clock: Clock) -> int:
    """Fill the directory from the simulated log; how many DIDs that are."""
    limiter = Limiter(clock=clock)
    with closing(SqliteDirectory(path)) as directory, ThreadPoolExecutor(1, "directory") as thread:
        async with Http(guard=GuardRules(private=True, raw_addresses=True), clock=clock) as http:
            tools = UpdateTools(Fetcher(http, limiter, clock=clock), limiter, clock, in_threads(thread), plain=True)
            await follow_log(tools, directory, plc)
        return directory.count()


def _prove(fleet: Fleet, failed: dict[str, int], folder: Path) -> RepoProof:
    paths, problems = segments_in(folder), list[ArchiveProblem]()
    sound = verify(paths, problems.append)
    archived: Counter[str] = Counter()
    for path in paths:
        with Archive(path, problems.append) as archive:
            archived.update(head.did for head in archive.heads(check=False))
    ends = fleet.expected()
    live = {did for did, end in ends.items() if end.archived}
    dead = Counter(end.category.value for end in ends.values() if end.category is not None)
    records = 0
    if have("pyarrow"):
        records = RepoReplay(ParquetSink(folder / "parquet"), problems.append).run(paths).records
    return RepoProof(
        live=len(live),
        once=sum(archived[did] == 1 for did in live),
        strangers=len(archived.keys() - live),
        dead=dead.total(),
        filed=(dead & Counter(failed)).total(),
        problems=tuple(problems),
        sound=sound.repos,
        records=records,
    )


def _document(last: Report[ReposFacts], proof: RepoProof) -> dict[str, Any]:
    return {
        "ok": proof.ok,
        "seconds": round(last.process.seconds / SPEED, 3),
        "archived": last.facts.archived,
        "records": last.facts.records,
        "live": proof.live,
        "dead": proof.dead,
        "filed": proof.filed,
        "sound": proof.sound,
        "replayed": proof.records,
    }


def _describe_run(last: Report[ReposFacts], *, complete: bool) -> str:
    facts = last.facts
    done = f"{count(facts.archived, 'repo')} with {count(facts.records, 'record')}, {size(facts.bytes_read)}"
    took = f"from {count(facts.hosts, 'host')} in {duration(last.process.seconds / SPEED)}"
    return f"{'Archived' if complete else 'Ended early, with'} {done}, {took}."


def _describe_hosts(failed: Mapping[str, int], tallies: Mapping[str, HostTally]) -> Iterator[str]:
    limited, failing, lying = (tallies[f"{name}.example"] for name in ("limited", "failing", "lying"))
    yield (
        f"limited allows 30 requests in 10 s, and says what is left: it was asked {limited.asked} times and had to "
        f"refuse {limited.answered[429]}."
    )
    yield (
        f"failing said 503 for its first 20 s: it was left alone after {failing.answered[503]} of those, and asked for "
        "its repos when it was well."
    )
    lies = sum(failed.get(name, 0) for name in ("parse_error", "did_mismatch", "too_large", "incomplete"))
    yield f"lying sends broken hashes, others' repos, rings and bombs, {lying.asked} in all: {lies} caught, none kept."


def describe_proof(proof: RepoProof) -> Iterator[str]:
    """What the archive has, in words."""
    here = "each is in the archive once" if proof.once == proof.live else f"only {proof.once} are in the archive once"
    yield f"The fleet has {proof.live} live repos: {here}."
    yield f"Of {proof.dead} repos that are unavailable, {proof.filed} are filed under the right reason."
    checked = "all checksums are right" if not proof.problems else f"wrong: {proof.problems[0]}"
    replayed = f" {proof.records:,} records were replayed into Parquet." if proof.records else ""
    yield f"Verified {proof.sound} repos: {checked}.{replayed}"


def _next(folder: Path) -> Iterator[str]:
    out = shlex.quote(str(folder))
    first = shlex.quote(str(next(iter(segments_in(folder)), folder / "segment_0001.rca")))
    commands = {
        f"sanderling status {out}": "what failed, and why",
        f"sanderling repos inspect {first}": "what is in a segment",
        f"sanderling repos replay {out} --to chdb:{out}/records": "the records as a table",
        "sanderling world pds": "serve a larger fleet, to crawl by hand",
    }
    yield from next_steps(f"The archive is in {folder}. To try next:", commands)
