"""A simulated web of many hosts, as arithmetic: asked at a time, it says what would be answered, and how it arrives.

Deterministic: the same seed and the same questions at the same times give the same answers. `SiteServer` puts it
behind real HTTP.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Self

from sanderling.stores.frontier_rows import End
from sanderling.worlds.server import WorldServer
from sanderling.worlds.site_characters import ORDINARY, OTHERS, SiteCharacter
from sanderling.worlds.site_documents import sitemap_parts
from sanderling.worlds.site_pages import SitePage, Tree, deliver, negotiate
from sanderling.worlds.weather import Weather, WorldAnswer

SMALLEST = 10  # pages of the smallest ordinary host
LONGEST_PATH = 4096  # a trap's may grow for ever
ALL = tuple(character.word for character in OTHERS)


@dataclass(frozen=True, slots=True)
class SiteHost:
    """One host: what it is like, what it serves, and what a polite crawl of it comes to."""

    name: str
    character: SiteCharacter
    tree: Tree

    @property
    def origin(self) -> str:
        """Where it is."""
        return self.tree.origin

    @property
    def listens(self) -> bool:
        """Whether anyone is there to connect to."""
        return self.character.listens

    @property
    def pages(self) -> int:
        """How many documents a polite crawl fetches; of a trap, those before it begins."""
        return self.expected()[End.FETCHED]

    @property
    def endless(self) -> bool:
        """Whether it has pages without end, from `character.begins` on; they are not among the `ends`."""
        return bool(self.character.begins)

    def expected(self) -> Counter[End]:
        """How many of its URLs come to which end."""
        return Counter(end for _, end in self.ends())

    def ends(self) -> Iterator[tuple[str, End]]:
        """Each path that a crawl gets to know, and what becomes of it; the crawl is polite, and patient with trouble.

        Sitemaps are among them, robots.txt is not.
        """
        if self.character.shut or not self.listens:
            yield "/", End.WAITING  # for a later run: it was never asked for
            return
        for number in range(self.tree.size):
            yield self.tree.path(number), End.FETCHED
        for path, extra in self.character.extras.items():
            if extra.end is not None:
                yield path, extra.end
        if self.character.bare:
            yield from ((path, End.FETCHED) for path in sitemap_parts(self.tree))

    def forbids(self, path: str) -> bool:
        """Whether its robots.txt says that the path is not to be asked for."""
        extra = self.character.extras.get(path)
        return self.character.shut if extra is None else extra.end is End.REFUSED

    def page(self, path: str, headers: Mapping[str, str]) -> SitePage:
        """What is at a path, before the weather; the names of the headers are in lower case."""
        if len(path) > LONGEST_PATH:
            return SitePage(414)
        return negotiate(self._find(path) or SitePage(404, (("Content-Type", "text/plain"),), b"Not here.\n"), headers)

    def _find(self, path: str) -> SitePage | None:
        if (extra := self.character.extras.get(path)) is not None:
            return extra.make(self.tree)
        if (number := self.tree.number(path)) is not None:
            return self.tree.page(number)
        return self.character.beyond(self.tree, path)


class World:
    """The hosts, and the weather over each."""

    def __init__(self, hosts: tuple[SiteHost, ...], weather: Mapping[str, Weather]) -> None:
        self.hosts = hosts
        self._by_name = {host.name: host for host in hosts}
        self._weather = weather

    def __repr__(self) -> str:
        return f"<World of {len(self.hosts)} hosts>"

    @classmethod
    def make(cls, seed: int, ordinary: int = 8, pages: int = 300, others: Collection[str] = ALL) -> Self:
        """So many ordinary hosts, the largest of so many pages, and one of each other character that is named."""
        if ordinary < 0 or pages < 1:
            raise ValueError(f"ordinary is {ordinary} and pages {pages}; expected 0 or more, and 1 or more")
        if unknown := set(others) - set(ALL):
            raise ValueError(f"no character {', '.join(sorted(unknown))}; expected some of {', '.join(ALL)}")
        sizes = _sizes(ordinary, pages)
        cast = [(f"ordinary-{number}.example", ORDINARY, size) for number, size in enumerate(sizes, start=1)]
        cast += [(f"{each.word}.example", each, each.size) for each in OTHERS if each.word in others]
        hosts = tuple(
            SiteHost(
                name, character, Tree(seed=seed, name=name, size=size, origin=f"http://{name}", bare=character.bare)
            )
            for name, character, size in cast
        )
        weather = {host.name: host.character.weather(Random(f"{seed} {host.name}")) for host in hosts}
        return cls(_linked(hosts), weather)

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same world, weather included, with its hosts at other addresses: name to http://address:port."""
        moved = (replace(host, tree=replace(host.tree, origin=origins[host.name])) for host in self.hosts)
        return type(self)(_linked(tuple(moved)), self._weather)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def host(self, name: str) -> SiteHost:
        """The host of that name."""
        if name not in self._by_name:
            raise ValueError(f"no host {name[:80]!r} among the {len(self.hosts)} of this world")
        return self._by_name[name]

    def ask(self, host: str, path: str, headers: Mapping[str, str], now: float) -> WorldAnswer:
        """What a GET for the path gets that is sent at `now`, in seconds from wherever; a host's first is its zero."""
        asked, sky = self.host(host), self._weather[host].meet(now)
        if sky.status == 200 and asked.listens:
            page = asked.page(path, {name.lower(): value for name, value in headers.items()})
        else:
            page = SitePage(sky.status, (("Content-Type", "text/plain"),), b"Not now.\n")
        return deliver(sky, page, listens=asked.listens)


SiteServer = WorldServer[World]


def _sizes(ordinary: int, pages: int) -> Iterator[int]:
    """From the smallest host to the largest, each larger than the last by the same factor."""
    smallest = min(SMALLEST, pages)
    for number in range(ordinary):
        yield round(smallest * (pages / smallest) ** (number / max(1, ordinary - 1)))


def _linked(hosts: tuple[SiteHost, ...]) -> tuple[SiteHost, ...]:
    """The hosts with links between them: the first knows all, each knows the first and the next."""
    fronts = [f"{host.tree.origin}/" for host in hosts]
    linked = []
    for at, host in enumerate(hosts):
        elsewhere = fronts[1:] if at == 0 else [fronts[0], *fronts[at + 1 : at + 2]]
        extras = [path for path, extra in host.character.extras.items() if extra.linked]
        tree = replace(host.tree, elsewhere=tuple(elsewhere), extras=(*extras, *host.character.begins))
        linked.append(replace(host, tree=tree))
    return tuple(linked)
