"""Good hosts of repos beside some that refuse everything, are dead, or fail half of what they are asked.

The world decides: a fleet says what each request gets, and `Watch` notes who asked when and when each repo had come.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random

from fleet_crawl import crawl_fleet

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Sends
from sanderling.repos.rules import RepoRules
from sanderling.task import Reply, Task
from sanderling.worlds.hosts import SimulatedHost, steady
from sanderling.worlds.pds import Fleet
from sanderling.worlds.pds_accounts import AccountCensus
from sanderling.worlds.pds_characters import DIRECTORY, HEALTHY, RELAY, PdsCharacter
from sanderling.worlds.pds_hosts import PdsHost, Relay
from sanderling.worlds.pds_keys import SigningKey
from sanderling.worlds.pds_plc import PlcDirectory
from sanderling.worlds.weather import Weather, fair, mute, with_faults

REFUSED = 5  # repos of a host that refuses us
GOOD = 20  # hosts
DEAD = {
    AtprotoCategory.CONNECTION_ERROR: 1,
    AtprotoCategory.DNS_ERROR: 1,
    AtprotoCategory.TIMEOUT: 3,
}  # and how many of each there are
PATIENCE = 600.0  # seconds, as the command has it


class NoQuota:
    """Allows nothing."""

    def admits(self, now: float) -> bool:  # noqa: ARG002 - the protocol's argument; this one does not care
        """Never."""
        return False


def throttled(status: int = 429, retry_after: float | None = 60.0) -> PdsCharacter:
    """A host that refuses everything, for ever."""

    def weather(rng: Random) -> Weather:
        return Weather(SimulatedHost(rng, NoQuota(), network=0.05, retry_after=retry_after, refusal=status))

    end = AtprotoCategory.RATE_LIMITED
    return PdsCharacter(word="throttled", sentence="refuses everything", size=REFUSED, weather=weather, end=end)


def dead(kind: AtprotoCategory, size: int) -> PdsCharacter:
    """A host where nobody listens, whose name leads nowhere, or which never answers."""
    return PdsCharacter(
        word=f"dead-{kind.value.partition('_')[0]}",
        sentence="nothing can be had of it",
        size=size,
        listens=kind is AtprotoCategory.TIMEOUT,
        named=kind is not AtprotoCategory.DNS_ERROR,
        weather=mute if kind is AtprotoCategory.TIMEOUT else fair,
        end=kind,
    )


def failing_half(kind: str, size: int) -> PdsCharacter:
    """A host that answers half of its requests with this status, or cuts them: before (reset) or in the body (cut)."""

    def errors(rng: Random) -> Weather:
        return Weather(SimulatedHost(rng, network=0.05, failing=steady(0.5), failure=int(kind)))

    weather = errors if kind.isdigit() else with_faults(**{kind: 0.5})
    return PdsCharacter(word=f"half-{kind}", sentence="fails half of its requests", size=size, weather=weather)


def make_fleet(seed: int, sizes: Sequence[int], bad: Sequence[PdsCharacter] = (), *, well: bool = False) -> Fleet:
    """Good hosts of so many repos each, and the bad ones, which are `well` again if that is said. The same DIDs."""
    census, pds, first = AccountCensus.make(seed), [], 0
    cast = [(HEALTHY, size) for size in sizes] + [(each, each.size) for each in bad]
    for number, (character, size) in enumerate(cast):
        name = f"{character.word}-{number}.example"
        now = HEALTHY if well else character
        pds.append(
            PdsHost(name, now, f"http://{name}", census, SigningKey.of(f"{seed} {name}"), first, size, signed=False)
        )
        first += size
    relay = Relay("relay.example", RELAY, "http://relay.example", tuple(pds))
    plc = PlcDirectory("plc.example", DIRECTORY, "http://plc.example", census, tuple(pds))
    weather = {place.name: place.character.weather(Random(f"{seed} {place.name}")) for place in (*pds, relay, plc)}
    return Fleet(tuple(pds), relay, plc, weather)


@dataclass(slots=True)
class Watch:
    """Who was asked when, which requests were refused, and when each repo had come whole."""

    asked: list[tuple[float, str, str]] = field(default_factory=list)  # seconds, host, DID
    refused: list[tuple[float, str]] = field(default_factory=list)
    served: dict[str, float] = field(default_factory=dict)
    _network: Sends | None = None

    def through(self, network: Sends) -> Sends:
        """Stand before the network."""
        self._network = network
        return self

    async def send(self, task: Task) -> Reply:
        """What the network says."""
        assert self._network is not None
        loop, did = asyncio.get_running_loop(), task.url.partition("did=")[2].replace("%3A", ":")
        self.asked.append((loop.time(), task.host, did))
        reply = await self._network.send(task)
        if reply.status == 200:
            self.served.setdefault(did, loop.time())
        elif reply.status in (429, 503):
            self.refused.append((loop.time(), task.host))
        return reply

    def last(self, dids: Sequence[str]) -> float:
        """When the last of these had come; infinity if one never did."""
        return max((self.served.get(did, inf) for did in dids), default=0.0)

    def impatient(self, host: str, seconds: float) -> int:
        """Requests to a host that were sent within so many seconds after it refused one."""
        refusals = [at for at, of in self.refused if of == host]
        sent = [at for at, of, _ in self.asked if of == host]
        return sum(any(one < at < one + seconds for one in refusals) for at in sent)


@dataclass(slots=True)
class BadRun:
    """What came of a crawl, as the world saw it and as it is on disk."""

    complete: bool
    seconds: float
    last_good: float  # when the last repo of the good hosts had come
    missing: set[str]  # repos that a patient archive has, and this one has not
    twice: list[str]
    listed: dict[str, int]  # DIDs by the reason for which they are not archived
    due: int  # DIDs that have a due time
    impatient: int  # requests to a host that had asked to be left alone for longer


# What the bad hosts of a case are, by its name. Their repos are few, or some dozens.
CASES: dict[str, Callable[[], list[PdsCharacter]]] = {
    "none": list,
    "429, Retry-After: 60": lambda: [throttled()],
    "503, Retry-After: 60": lambda: [throttled(503)],
    "429, Retry-After: 3600": lambda: [throttled(retry_after=3600.0)],
    "429": lambda: [throttled(retry_after=None)],
    # Those that never answer are the dearest, so there are more of them.
    "dead": lambda: [dead(kind, size) for kind, times in DEAD.items() for size in (1, 5, 30, 60) * times],
    "40 that hang": lambda: [dead(AtprotoCategory.TIMEOUT, 3) for _ in range(40)],
    "half": lambda: [failing_half(kind, 30) for kind in ("500", "503", "reset", "cut")],
}


def crawl_case(folder: Path, seed: int, case: str, about: int, *, well: bool = False) -> BadRun:
    """Crawl 20 good hosts of about so many repos, and the bad ones of the case; or go on in a folder."""
    rng, watch, bad = Random(f"sizes {seed}"), Watch(), CASES[case]()
    sizes = [rng.randrange(about // 2, about * 3 // 2 + 1) for _ in range(GOOD)]
    fleet = make_fleet(seed, sizes, bad, well=well)
    crawled = crawl_fleet(folder, fleet, rules=RepoRules(patience=PATIENCE), through=watch.through)
    return BadRun(
        crawled.complete,
        crawled.seconds,
        watch.last([did for host in fleet.pds[:GOOD] for did in _live(host)]),
        {did for host in fleet.pds for did in _live(host)} - set(crawled.archive),
        [did for did, times in crawled.archive.items() if times > 1],
        dict(crawled.view.failed),
        crawled.view.scheduled,
        sum(watch.impatient(host.name, 60.0) for host in fleet.pds[GOOD:]),
    )


def _live(host: PdsHost) -> list[str]:
    """The repos of a host that anybody can have."""
    return [did for did, end in host.expected().items() if end.archived and host.character.end is None]
