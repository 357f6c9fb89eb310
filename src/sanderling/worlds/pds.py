"""A simulated fleet of ATProto hosts, as arithmetic: asked at a time, it says what would be answered, and how.

Deterministic: the same seed and the same questions at the same times give the same answers. `FleetServer` puts it
behind real HTTP. Repos are made when they are asked for, and never kept.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Self

from sanderling.apis.atproto import AtprotoCategory
from sanderling.worlds.pds_accounts import AccountCensus
from sanderling.worlds.pds_characters import DIRECTORY, HEALTHY, OTHERS, RELAY, SMALL, PdsCharacter
from sanderling.worlds.pds_fates import complaint
from sanderling.worlds.pds_hosts import GET_REPO, XRPC, Expected, FleetHost, PdsHost, Relay, parse_query
from sanderling.worlds.pds_keys import SigningKey
from sanderling.worlds.pds_plc import PlcDirectory
from sanderling.worlds.server import WorldServer
from sanderling.worlds.site_pages import SitePage, deliver, negotiate
from sanderling.worlds.weather import TransportFault, Weather, WorldAnswer

LONGEST_PATH = 4096
FEW = 10  # repos; a host with fewer is somebody's own
SKEW = 2.0  # of the sizes: the second host has a quarter of the first, the third a ninth, and so on
ALL = tuple(character.word for character in OTHERS)
# What a host says when it does not serve.
_FAILS = ("InternalServerError", "Internal Server Error")
_TROUBLE = {429: ("RateLimitExceeded", "Rate Limit Exceeded"), 500: _FAILS, 503: _FAILS}


class Fleet:
    """The hosts of repos, a relay and the directory, and the weather over each. `sent` counts whole repos by DID."""

    def __init__(
        self, pds: tuple[PdsHost, ...], relay: Relay, plc: PlcDirectory, weather: Mapping[str, Weather]
    ) -> None:
        self.pds = pds
        self.relay = relay
        self.plc = plc
        self.sent: Counter[str] = Counter()
        self._by_name: dict[str, FleetHost] = {place.name: place for place in (*pds, relay, plc)}
        self._weather = weather

    def __repr__(self) -> str:
        return f"<Fleet of {len(self.pds)} hosts, {sum(host.size for host in self.pds)} repos>"

    @classmethod
    def make(
        cls,
        seed: int,
        hosts: int = 20,
        repos: int = 2000,
        *,
        others: Collection[str] = ALL,
        large: int = 0,
        signed: bool = False,
    ) -> Self:
        """So many healthy hosts, with so many repos among them, and one of each other character that is named.

        `large` is the size of the largest repo in bytes, 0 for none in particular. `signed` makes the signatures real,
        at some milliseconds each.
        """
        if hosts < 0 or repos < hosts or large < 0:
            raise ValueError(f"{hosts} hosts, {repos} repos, large {large}; expected a repo per host, none below 0")
        if unknown := set(others) - set(ALL):
            raise ValueError(f"no character {', '.join(sorted(unknown))}; expected some of {', '.join(ALL)}")
        census = AccountCensus.make(seed, large)
        pds, first = [], 0
        for name, character, size in _cast(hosts, repos, others):
            key = SigningKey.of(f"{seed} {name}")
            pds.append(PdsHost(name, character, f"http://{name}", census, key, first, size, signed))
            first += size
        relay = Relay("relay.example", RELAY, "http://relay.example", tuple(pds))
        plc = PlcDirectory("plc.example", DIRECTORY, "http://plc.example", census, tuple(pds))
        weather = {place.name: place.character.weather(Random(f"{seed} {place.name}")) for place in (*pds, relay, plc)}
        return cls(tuple(pds), relay, plc, weather)

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same fleet, weather included, at other addresses: name to http://address:port."""
        pds = tuple(replace(host, origin=origins[host.name], character=_addressed(host.character)) for host in self.pds)
        relay = replace(self.relay, origin=origins[self.relay.name], hosts=pds)
        plc = replace(self.plc, origin=origins[self.plc.name], hosts=pds)
        return type(self)(pds, relay, plc, self._weather)

    @property
    def hosts(self) -> tuple[FleetHost, ...]:
        """Everything at an address: the hosts of repos, the relay, the directory."""
        return tuple(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        """Whether the name leads to an address."""
        return name in self._by_name and self._by_name[name].character.named

    def host(self, name: str) -> FleetHost:
        """The host of that name."""
        if name not in self._by_name:
            raise ValueError(f"no host {name[:80]!r} among the {len(self._by_name)} of this fleet")
        return self._by_name[name]

    def expected(self) -> dict[str, Expected]:
        """For each DID, what an honest archive ends with; the archive is patient."""
        return {did: end for host in self.pds for did, end in host.expected().items()}

    def directory(self) -> Iterator[tuple[str, str]]:
        """Each DID and where its repo is; what folding the export of the directory gives."""
        return ((host.census.did(number), host.origin) for host in self.pds for number in host.numbers)

    def ask(self, host: str, path: str, headers: Mapping[str, str], now: float) -> WorldAnswer:
        """What a GET for the path gets that is sent at `now`, in seconds from wherever; a host's first is its zero."""
        place, sky = self.host(host), self._weather[host].meet(now)
        page = _served(place, path, headers) if sky.status == 200 else complaint(*_TROUBLE[sky.status], sky.status)
        answer = deliver(sky, page, listens=place.listens)
        if answer.status == 200 and answer.fault is TransportFault.NONE and (did := _repo_asked_for(path)):
            self.sent[did] += 1
        return answer


def _served(place: FleetHost, path: str, headers: Mapping[str, str]) -> SitePage:
    if len(path) > LONGEST_PATH:
        return SitePage(414)
    return negotiate(place.page(path), {name.lower(): value for name, value in headers.items()})


def _repo_asked_for(path: str) -> str:
    where, _, query = path.partition("?")
    return parse_query(query).get("did", "") if where == XRPC + GET_REPO else ""


def _cast(hosts: int, repos: int, others: Collection[str]) -> Iterator[tuple[str, PdsCharacter, int]]:
    for number, size in enumerate(_sizes(hosts, repos), start=1):
        character = HEALTHY if size >= FEW else SMALL
        yield f"{character.word}-{number}.example", character, size
    for character in OTHERS:
        if character.word in others:
            yield f"{character.word}.example", character, character.size


def _sizes(hosts: int, repos: int) -> list[int]:
    """From the largest host to the smallest, which has one repo at least; together they have all."""
    shares = [rank**-SKEW for rank in range(1, hosts + 1)]
    sizes = [1 + int((repos - hosts) * share / sum(shares)) for share in shares]
    return [sizes[0] + repos - sum(sizes), *sizes[1:]] if sizes else []


def _addressed(character: PdsCharacter) -> PdsCharacter:
    """The same, with an address: then there is no name that could fail to lead there."""
    return character if character.named else replace(character, named=True, end=AtprotoCategory.CONNECTION_ERROR)


class FleetServer(WorldServer[Fleet]):
    """`async with FleetServer(fleet, clock) as server`: every host of the fleet, at `server.url(name)`."""

    @property
    def fleet(self) -> Fleet:
        """The fleet at its addresses: its directory and what is expected of it are those served."""
        return self.world
