"""`sanderling demo repos`: a real crawl, over real HTTP, of a small fleet on this machine, then proof of it."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sanderling.cli.command_error import CommandError
from sanderling.cli.demos.folder import make_room, mark
from sanderling.cli.loop import explain_end
from sanderling.cli.options import Options
from sanderling.cli.report_screen import fitting
from sanderling.cli.repos.crawl import KNOWN, open_stores, run_crawl
from sanderling.cli.repos.directory import FILE
from sanderling.cli.repos.flags import Asking, Keeping
from sanderling.cli.repos.progress import Place
from sanderling.cli.running import Ran
from sanderling.clock import Clock, ScaledClock
from sanderling.executor import in_threads
from sanderling.extras import have
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.ids import host_of
from sanderling.limit import Limiter
from sanderling.observe.report import Report
from sanderling.repos.archives import Archive, Problem
from sanderling.repos.directory import SqliteDirectory
from sanderling.repos.inspect import verify
from sanderling.repos.replay import Replay
from sanderling.repos.replay_parquet import ParquetSink
from sanderling.repos.report import ReposFacts
from sanderling.repos.segments import segments_in
from sanderling.repos.update import Tools as UpdateTools
from sanderling.repos.update import follow_log
from sanderling.words import count, duration, size
from sanderling.worlds.pds import Fleet, FleetServer
from sanderling.worlds.server import HostTally

OUT = Path("sanderling-demo-repos")
COMMAND = "sanderling demo repos"
SEED = 1  # the same fleet each time, so that what one person sees another can look for
HOSTS, REPOS = 6, 220  # healthy ones; the largest of them takes half a minute at the pace of a crawl without flags
# Without those that take an hour to answer, or fail for ever: nobody would wait for them to be given up.
OTHERS = ("limited", "silent", "slow", "failing", "cutting", "lying", "gone", "leading")
SPEED = 3.0  # times as fast as by the clock on the wall, hosts and crawl alike
ASKING = Asking(private=True)
KEEPING = Keeping(segment_size="512KB")  # so that there are a few


@dataclass(frozen=True, slots=True)
class Proof:
    """What the archive has, beside what it should have."""

    live: int
    once: int  # of these, in the archive exactly once
    strangers: int  # in the archive, and should not be
    dead: int
    filed: int  # of these, under the reason that the fleet knows
    problems: tuple[Problem, ...]
    sound: int  # repos whose checksums are right
    records: int  # that were replayed; 0 if they were not

    @property
    def ok(self) -> bool:
        """Whether nothing is missing, nothing is there twice, and all is sound."""
        exact = self.once == self.live == self.sound and self.filed == self.dead
        return exact and not self.strangers and not self.problems


def demo_repos(out: Path, options: Options, *, as_json: bool) -> None:
    """Serve a fleet, learn its directory, crawl it, and compare what was archived with what there is."""
    here = Place(out=out)
    make_room(out, COMMAND, "--out")
    mark(out, COMMAND)
    with explain_end(COMMAND, KNOWN):
        stopped = asyncio.run(_run(here, options, ScaledClock(SPEED), as_json=as_json))
    if stopped:
        raise KeyboardInterrupt


async def _run(place: Place, options: Options, clock: Clock, *, as_json: bool) -> bool:
    """Serve, learn, crawl, prove, tell; whether somebody stopped it."""
    async with FleetServer(Fleet.make(SEED, HOSTS, REPOS, others=OTHERS), clock) as server:
        names = {str(host_of(host.origin)): f"{host.name.removesuffix('.example')}" for host in server.fleet.pds}
        screen = fitting(json=as_json, names=names)
        screen.note(
            f"{len(names)} simulated hosts, each a port of this machine: nothing leaves it. Time passes {SPEED:g}x."
        )
        dids = await _learn(server.fleet.plc.origin, place.out / FILE, clock)
        screen.note(f"{count(dids, 'DID')} learned from the simulated log of did:plc")
        transport, rules = ASKING.transport(clock), KEEPING.rules(ASKING)
        with open_stores(place, ASKING, KEEPING, screen, clock) as stores:
            ran = await run_crawl(stores, transport, rules, options, clock, screen)
            stores.segments.close()
            failed = stores.progress.view().failed
    proof = await asyncio.to_thread(_prove, server.fleet, failed, place.out)
    screen.end(_words(ran, failed, proof, server.tallies, place.out), _document(ran, proof, place.out))
    if not ran.stopped and not proof.ok:
        raise CommandError("the archive is not what it should be; please tell us")
    return ran.stopped


async def _learn(plc: str, path: Path, clock: Clock) -> int:
    """Fill the directory from the simulated log; how many DIDs that are."""
    directory, limiter = SqliteDirectory(path), Limiter(clock=clock)
    try:
        with ThreadPoolExecutor(1, "directory") as thread:
            async with Http(guard=GuardRules(private=True, raw_addresses=True), clock=clock) as http:
                tools = UpdateTools(Fetcher(http, limiter, clock=clock), limiter, clock, in_threads(thread), plain=True)
                await follow_log(tools, directory, plc)
        return directory.count()
    finally:
        directory.close()


def _prove(fleet: Fleet, failed: dict[str, int], folder: Path) -> Proof:
    paths, problems = segments_in(folder), list[Problem]()
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
        records = Replay(ParquetSink(folder / "parquet"), problems.append).run(paths).records
    return Proof(
        live=len(live),
        once=sum(archived[did] == 1 for did in live),
        strangers=len(archived.keys() - live),
        dead=dead.total(),
        filed=(dead & Counter(failed)).total(),
        problems=tuple(problems),
        sound=sound.repos,
        records=records,
    )


def _document(ran: Ran[Report[ReposFacts]], proof: Proof, folder: Path) -> dict[str, Any]:
    return {
        "complete": ran.complete,
        "ok": proof.ok,
        "seconds": round(ran.last.process.seconds / SPEED, 3),
        "archived": ran.last.facts.archived,
        "records": ran.last.facts.records,
        "live": proof.live,
        "dead": proof.dead,
        "filed": proof.filed,
        "sound": proof.sound,
        "replayed": proof.records,
        "output_dir": str(folder),
    }


def _words(
    ran: Ran[Report[ReposFacts]], failed: dict[str, int], proof: Proof, tallies: dict[str, HostTally], folder: Path
) -> Iterator[str]:
    """What happened, as lines; those that are indented must not be broken."""
    last = ran.last.facts
    yield ""
    done = f"{count(last.archived, 'repo')} with {count(last.records, 'record')}, {size(last.bytes_read)}"
    took = duration(ran.last.process.seconds / SPEED)
    how = "Archived" if ran.complete else "Ended early, with"
    yield f"{how} {done}, from {count(last.hosts, 'host')} in {took}."
    if ran.complete:
        yield from _stories(failed, tallies)
        yield ""
        yield from _proven(proof)
    out = shlex.quote(str(folder))
    first = next(iter(segments_in(folder)), folder / "segment_0001.rca")
    yield ""
    yield f"The archive is in {folder}. To try next:"
    yield ""
    yield f"    sanderling status {out}  # what failed, and why"
    yield f"    sanderling repos inspect {shlex.quote(str(first))}  # what is in a segment"
    yield f"    sanderling repos replay {out} --to chdb:{out}/records  # the records as a table"
    yield "    sanderling world pds  # serve a larger fleet, to crawl by hand"
    yield ""


def _stories(ended: dict[str, int], tallies: dict[str, HostTally]) -> Iterator[str]:
    limited, failing, lying = (tallies[f"{name}.example"] for name in ("limited", "failing", "lying"))
    yield ""
    yield (
        f"limited allows 30 requests in 10 s, and says what is left: it was asked {limited.asked} times and had to "
        f"refuse {limited.answered[429]}."
    )
    yield (
        f"failing said 503 for its first 20 s: it was left alone after {failing.answered[503]} of those, and asked for "
        "its repos when it was well."
    )
    lies = sum(ended.get(name, 0) for name in ("parse_error", "did_mismatch", "too_large", "incomplete"))
    yield f"lying sends broken hashes, others' repos, rings and bombs, {lying.asked} in all: {lies} caught, none kept."


def _proven(proof: Proof) -> Iterator[str]:
    here = "each is in the archive once" if proof.once == proof.live else f"only {proof.once} are in the archive once"
    yield f"The fleet has {proof.live} live repos: {here}."
    yield f"Of {proof.dead} repos that are not to be had, {proof.filed} are filed under the right reason."
    checked = "all checksums are right" if not proof.problems else f"wrong: {proof.problems[0]}"
    replayed = f" {proof.records:,} records were replayed into Parquet." if proof.records else ""
    yield f"Verified {proof.sound} repos: {checked}.{replayed}"
