"""`sanderling demo pages`: a real crawl, over real HTTP, of a small web on this machine; three of its hosts are odd."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from sanderling.cli.demos.shell import DemoEnd, mark_folder, next_steps
from sanderling.cli.options import Options
from sanderling.cli.pages.crawl import RPS, PagesFlags, PagesNetwork, crawl_folder, open_folder
from sanderling.cli.pages.ledger import ENDS
from sanderling.cli.pages.summary import PageSummary, summarise
from sanderling.cli.report_screen import fitting
from sanderling.clock import Clock, ScaledClock, SystemClock
from sanderling.crawls.verify import CrawlProof
from sanderling.ids import host_of
from sanderling.observe.report import HostReport
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End
from sanderling.words import count, size
from sanderling.worlds.hosts import BucketQuota, SimulatedHost, steady, steps
from sanderling.worlds.server import HostTally
from sanderling.worlds.site import SiteHost, SiteServer, World
from sanderling.worlds.site_characters import ORDINARY
from sanderling.worlds.site_pages import Tree
from sanderling.worlds.weather import Weather, fair

SEED = 1  # the same web each time, so that what one person sees another can look for
NETWORK = PagesNetwork(private=True)

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


Weathers = Callable[[Random], Weather]


def slow(serves: float) -> Weathers:
    """A host that gets so many requests a second done, and lets more of them wait."""
    return lambda rng: Weather(SimulatedHost(rng, network=0.05, service=steady(1 / serves)))


def throttling(allows: float) -> Weathers:
    """A host that says 429 to more than so many a second."""
    quota = partial(BucketQuota, steady(allows), depth=allows)
    return lambda rng: Weather(SimulatedHost(rng, network=0.05, quota=quota(), retry_after=2.0))


def failing(since: float, until: float) -> Weathers:
    """A host that says 500 to everything from one second to the other after it was first asked."""
    down = steps([(0.0, 0.0), (since, 1.0), (until, 0.0)])
    return lambda rng: Weather(SimulatedHost(rng, network=0.05, failing=down))


ODD_HOSTS = {
    SLOW: (90, slow(SERVES)),
    THROTTLING: (110, throttling(ALLOWS)),
    FAILING: (70, failing(DOWN_FROM, DOWN_UNTIL)),
}


@dataclass(frozen=True, slots=True)
class OddHost:
    """One of the odd hosts, after the crawl."""

    name: str  # as people are shown it
    pages: int
    tally: HostTally  # what it was asked, by its own account
    view: HostReport  # what the limiter made of it


def small_web() -> World:
    """The web of the demo."""
    return make_web({name: (pages, fair) for name, pages in ORDINARY_HOSTS.items()} | ODD_HOSTS)


def make_web(cast: Mapping[str, tuple[int, Weathers]]) -> World:
    """A web of hosts with so many pages and such weather, the same each time."""
    trees = {name: Tree(seed=SEED, name=f"{name}.example", size=pages, origin="") for name, (pages, _) in cast.items()}
    hosts = tuple(SiteHost(name, ORDINARY, tree) for name, tree in trees.items())
    return World(hosts, {name: weather(Random(f"{SEED} {name}")) for name, (_, weather) in cast.items()})


async def run(out: Path, options: Options, *, as_json: bool, speed: float = 1.0) -> DemoEnd:
    """Crawl a small simulated web over real HTTP: one of its hosts is slow, one throttles, one fails for a while."""
    clock: Clock = SystemClock() if speed == 1 else ScaledClock(speed)
    async with SiteServer(small_web(), clock) as server:
        hosts = {str(host_of(host.tree.origin)): host.name for host in server.world.hosts}
        screen = fitting(json=as_json, names={host: f"{name} ({host})" for host, name in hosts.items()})
        screen.note(f"{len(hosts)} simulated hosts, each a port of this machine: nothing leaves it.")
        first, *others = hosts
        plan, flags = CrawlPlan((f"http://{first}/",), tuple(others), 16), PagesFlags(network=NETWORK, options=options)
        with open_folder(out, plan, resume=False, clock=clock) as folder:
            mark_folder(out, "pages")
            ran = await crawl_folder(folder, NETWORK.transport(clock), flags.rules(), flags, clock, screen)
            summary = summarise(folder, ran.last, complete=ran.complete)
    views = {hosts[host.host]: host for host in ran.last.hosts}
    odd = {
        name: OddHost(f"{name} ({views[name].host})", pages, server.tallies[name], views[name])
        for name, (pages, _) in ODD_HOSTS.items()
        if name in views
    }
    proof = verify(out)
    return DemoEnd(screen, _describe(summary, odd, proof), summary.as_json(), proof.ok, ran.stopped)


def _describe(summary: PageSummary, odd: Mapping[str, OddHost], proof: CrawlProof) -> Iterator[str]:
    """What happened, as lines; those that are indented must not be broken."""
    fetched = f"{count(summary.fetched, 'page')}, {size(summary.bytes)}, from {count(summary.hosts, 'host')}"
    yield ""
    yield f"{'Fetched' if summary.complete else 'Ended early, with'} {fetched} in {summary.seconds:.0f} s."
    for name, tell in STORIES.items():
        if name in odd:
            yield " ".join(tell(odd[name]))
    yield _adds_up(proof)
    yield f"The output is in {summary.out}: pages.jsonl has a row for each page, failed.jsonl a reason for the rest."
    out = shlex.quote(summary.out)
    commands = {f"sanderling pages failed {out}": "what failed, and why"}
    commands[f"sanderling verify {out}"] = "the sum again, in full"
    if THROTTLING in odd:
        commands[f"sanderling why {odd[THROTTLING].view.host} --out {out}"] = "why a host is as slow as it is"
    commands["sanderling world site"] = "serve a larger web, to crawl by hand"
    commands["sanderling demo limiter"] = "how the limiter learns"
    yield from next_steps("To try next:", commands)


def _slow_story(host: OddHost) -> Iterator[str]:
    yield f"{host.name} gets {SERVES:g} requests a second done, and lets more of them wait."
    yield f"{_settled(host)}, from latency alone."
    if host.view.latency is not None:
        yield f"An answer took {1000 * host.view.latency:.0f} ms at the end, {1000 / SERVES:.0f} ms of it work."


def _throttling_story(host: OddHost) -> Iterator[str]:
    refused = host.tally.answered[429]
    yield f"{host.name} allows {ALLOWS:g} requests a second, and says 429 to more."
    yield f"It refused {refused} of {host.tally.asked}; what was refused was asked for again when its time had come."
    yield f"{_settled(host)}."


def _failing_story(host: OddHost) -> Iterator[str]:
    down, failures = DOWN_UNTIL - DOWN_FROM, host.tally.answered[500]
    yield f"{host.name} says 500 to everything for {down:g} s, soon after it is first asked."
    yield f"It was sent {count(failures, 'request')} meanwhile;"
    yield f"a pace of {NETWORK.most(RPS):g} a second would have sent {NETWORK.most(RPS) * down:.0f}."
    if host.tally.answered[200] >= host.pages:
        yield f"When it was well again it was asked for the rest, and all of its {host.pages} pages are here."


def _settled(host: OddHost) -> str:
    ceiling = host.view.ceiling
    return "No limit was learned yet" if ceiling is None else f"The limiter learned {ceiling:.1f} a second"


STORIES = {SLOW: _slow_story, THROTTLING: _throttling_story, FAILING: _failing_story}


def _adds_up(proof: CrawlProof) -> str:
    parts = " + ".join(f"{proof.counts[end]:,} {end.name.lower()}" for end in ENDS if proof.counts[end])
    if not proof.ok:
        return f"The ledger does NOT add up: {'; '.join(proof.problems)}"
    broken = " The failed ones are broken links, on purpose." if proof.finished and proof.counts[End.FAILED] else ""
    return f"The ledger adds up: {proof.known:,} known URLs = {parts}.{broken}"
