"""`sanderling demo pages`: a real crawl, over real HTTP, of a small web on this machine; three of its hosts are odd."""

import asyncio
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sanderling.cli.demos.folder import make_room, mark
from sanderling.cli.loop import explain_end
from sanderling.cli.options import Options
from sanderling.cli.pages.crawl import RPS, CrawlFlags, Network, crawl_folder, open_folder
from sanderling.cli.pages.ledger import ENDS
from sanderling.cli.pages.summary import Summary, summarise
from sanderling.cli.report_screen import fitting
from sanderling.clock import Clock, ScaledClock, SystemClock
from sanderling.crawls.verify import CrawlProof
from sanderling.ids import host_of
from sanderling.observe.report import HostReport
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.words import count, size
from sanderling.worlds.hosts import BucketQuota, SimulatedHost, steady, steps
from sanderling.worlds.server import HostTally
from sanderling.worlds.site import SiteHost, SiteServer, World
from sanderling.worlds.site_characters import ORDINARY
from sanderling.worlds.site_pages import Tree
from sanderling.worlds.weather import Weather, fair

SEED = 1  # the same web each time, so that what one person sees another can look for
NETWORK = Network(private=True)
OUT = Path("sanderling-demo-pages")
COMMAND = "sanderling demo pages"

# Pages of each host. The largest takes half a minute at eight a second, the pace of a crawl without flags.
ORDINARY_HOSTS = {
    "library": 230,
    "museum": 160,
    "harbour": 110,
    "gazette": 80,
    "archive": 60,
    "school": 40,
    "market": 25,
    "ferry": 12,
}
SLOW, THROTTLING, FAILING = "slow", "throttling", "failing"
SERVES = 4.0  # a second, of the slow host
ALLOWS = 4.0  # a second, of the throttling one
DOWN_FROM, DOWN_UNTIL = 6.0, 18.0  # seconds after the failing one was first asked


def _slow(rng: Random) -> Weather:
    return Weather(SimulatedHost(rng, network=0.05, service=steady(1 / SERVES)))


def _throttling(rng: Random) -> Weather:
    return Weather(SimulatedHost(rng, network=0.05, quota=BucketQuota(steady(ALLOWS), depth=4.0), retry_after=2.0))


def _failing(rng: Random) -> Weather:
    down = steps([(0.0, 0.0), (DOWN_FROM, 1.0), (DOWN_UNTIL, 0.0)])
    return Weather(SimulatedHost(rng, network=0.05, failing=down))


ODD_HOSTS = {SLOW: (90, _slow), THROTTLING: (110, _throttling), FAILING: (70, _failing)}


@dataclass(frozen=True, slots=True)
class Odd:
    """One of the odd hosts, after the crawl."""

    name: str  # as people are shown it
    pages: int
    tally: HostTally  # what it was asked, by its own account
    view: HostReport  # what the limiter made of it


def demo_pages(out: Path, options: Options, speed: float) -> None:
    """Crawl a small simulated web over real HTTP: one of its hosts is slow, one throttles, one fails for a while."""
    make_room(out, COMMAND, "--out")
    clock: Clock = SystemClock() if speed == 1 else ScaledClock(speed)
    with explain_end(COMMAND, (FolderError,)):
        stopped = asyncio.run(_run(out, clock, options))
    if stopped:
        raise KeyboardInterrupt


def small_web() -> World:
    """The web of the demo."""
    cast = {name: (pages, fair) for name, pages in ORDINARY_HOSTS.items()} | ODD_HOSTS
    trees = {name: Tree(seed=SEED, name=f"{name}.example", size=pages, origin="") for name, (pages, _) in cast.items()}
    hosts = tuple(SiteHost(name, ORDINARY, tree) for name, tree in trees.items())
    return World(hosts, {name: weather(Random(f"{SEED} {name}")) for name, (_, weather) in cast.items()})


async def _run(out: Path, clock: Clock, options: Options) -> bool:
    """Serve, crawl, tell; whether somebody stopped it."""
    async with SiteServer(small_web(), clock) as server:
        hosts = {str(host_of(host.tree.origin)): host.name for host in server.world.hosts}
        screen = fitting(json=False, names={host: f"{name} ({host})" for host, name in hosts.items()})
        screen.note(f"{len(hosts)} simulated hosts, each a port of this machine: nothing leaves it.")
        first, *others = hosts
        plan, flags = CrawlPlan((f"http://{first}/",), tuple(others), 16), CrawlFlags(network=NETWORK, options=options)
        with open_folder(out, plan, resume=False, clock=clock) as folder:
            mark(out, COMMAND)
            ran = await crawl_folder(folder, NETWORK.transport(clock), flags.rules(), flags, clock, screen)
            summary = summarise(folder, ran.last, complete=ran.complete)
    views = {hosts[host.host]: host for host in ran.last.hosts}
    odd = {
        name: Odd(f"{name} ({views[name].host})", pages, server.tallies[name], views[name])
        for name, (pages, _) in ODD_HOSTS.items()
        if name in views
    }
    screen.end(_words(summary, odd, verify(out)), summary.as_json())
    return ran.stopped


def _words(summary: Summary, odd: Mapping[str, Odd], proof: CrawlProof) -> Iterator[str]:
    """What happened, as lines; those that are indented must not be broken."""
    fetched = f"{count(summary.fetched, 'page')}, {size(summary.bytes)}, from {count(summary.hosts, 'host')}"
    yield ""
    yield f"{'Fetched' if summary.complete else 'Ended early, with'} {fetched} in {summary.seconds:.0f} s."
    for name, tell in STORIES.items():
        if name in odd:
            yield ""
            yield " ".join(tell(odd[name]))
    yield ""
    yield _adds_up(proof)
    yield ""
    yield f"The output is in {summary.out}: pages.jsonl has a row for each page, failed.jsonl a reason for the rest."
    yield from _next(summary, odd)


def _slow_story(host: Odd) -> Iterator[str]:
    yield f"{host.name} gets {SERVES:g} requests a second done, and lets more of them wait."
    yield f"{_settled(host)}, from latency alone."
    if host.view.latency is not None:
        yield f"An answer took {1000 * host.view.latency:.0f} ms at the end, {1000 / SERVES:.0f} ms of it work."


def _throttling_story(host: Odd) -> Iterator[str]:
    refused = host.tally.answered[429]
    yield f"{host.name} allows {ALLOWS:g} requests a second, and says 429 to more."
    yield f"It refused {refused} of {host.tally.asked}; what was refused was asked for again when its time had come."
    yield f"{_settled(host)}."


def _failing_story(host: Odd) -> Iterator[str]:
    down, failures = DOWN_UNTIL - DOWN_FROM, host.tally.answered[500]
    yield f"{host.name} says 500 to everything for {down:g} s, soon after it is first asked."
    yield f"It was sent {count(failures, 'request')} meanwhile;"
    yield f"a pace of {NETWORK.most(RPS):g} a second would have sent {NETWORK.most(RPS) * down:.0f}."
    if host.tally.answered[200] >= host.pages:
        yield f"When it was well again it was asked for the rest, and all of its {host.pages} pages are here."


def _settled(host: Odd) -> str:
    ceiling = host.view.ceiling
    return "No limit was learned yet" if ceiling is None else f"The limiter learned {ceiling:.1f} a second"


STORIES = {SLOW: _slow_story, THROTTLING: _throttling_story, FAILING: _failing_story}


def _adds_up(proof: CrawlProof) -> str:
    parts = " + ".join(f"{proof.counts[end]:,} {end.name.lower()}" for end in ENDS if proof.counts[end])
    if not proof.ok:
        return f"The ledger does NOT add up: {'; '.join(proof.problems)}"
    broken = " The failed ones are broken links, on purpose." if proof.finished and proof.counts[End.FAILED] else ""
    return f"The ledger adds up: {proof.known:,} known URLs = {parts}.{broken}"


def _next(summary: Summary, odd: Mapping[str, Odd]) -> Iterator[str]:
    out = shlex.quote(summary.out)
    commands = {f"pages failed {out}": "what failed, and why", f"verify {out}": "the sum again, in full"}
    if THROTTLING in odd:
        commands[f"why {odd[THROTTLING].view.host} --out {out}"] = "why a host is as slow as it is"
    commands["world site"] = "serve a larger web, to crawl by hand"
    commands["demo limiter"] = "how the limiter learns"
    width = max(map(len, commands))
    yield ""
    yield "To try next:"
    yield ""
    yield from (f"    sanderling {command:<{width}}  # {what}" for command, what in commands.items())
    yield ""
