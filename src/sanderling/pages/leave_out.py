"""URLs that are never asked for, since somebody wants them left alone: a list that people write."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self

from sanderling.fetch.attempts import LeavingOut, Sends
from sanderling.formats.list_file import read_list
from sanderling.pages.urls import CrawlScope, UrlError, normalise

EXPECTED = (
    "a URL like https://example.org/page, the beginning of URLs like https://example.org/people/*, "
    "or a host like example.org or *.example.org"
)


Kind = Literal["host", "url", "beginning"]
Thing = tuple[Kind, str]  # a line, as it is compared


class ExcludedUrls:
    """What is listed: URLs; with a star behind them all that begin so; hosts, with `*.` all below them too.

    http and https are one: who asks for a page to be left alone does not mean one of them.
    """

    def __init__(self, things: Sequence[Thing]) -> None:
        self._hosts = CrawlScope.of((), [thing for kind, thing in things if kind == "host"], 0)
        self._urls = frozenset(thing for kind, thing in things if kind == "url")
        self._beginnings = _shortest(thing for kind, thing in things if kind == "beginning")

    @classmethod
    def of(cls, *lines: str) -> Self:
        """A list of these lines. Raises UrlError for one that is none."""
        return cls([read_thing(line) for line in lines])

    @classmethod
    def read(cls, path: Path) -> Self:
        """The list in a file. Raises ListError, which says the line."""
        return cls(read_list(path, read_thing))

    def before(self, http: Sends) -> Sends:
        """A client that asks for nothing that is listed, wherever a redirect leads."""
        return LeavingOut(http, lambda task: self.why(task.url, task.host))

    def why(self, url: str, host: str) -> str:
        """What is listed that a URL, which is normal, is left out for; empty if it may be asked for."""
        if self._hosts.allows(host):
            return host
        rest = behind_scheme(url)
        if rest in self._urls:
            return rest
        # None begins another, so that of those which sort before it only the last can begin it.
        at = bisect_right(self._beginnings, rest)
        last = self._beginnings[at - 1] if at else ""
        return f"{last}*" if last and rest.startswith(last) else ""


def read_thing(line: str) -> Thing:
    """What a line means. Raises UrlError."""
    kind: Kind = "host" if "://" not in line else "beginning" if line.endswith("*") else "url"
    try:
        if kind == "host":
            CrawlScope.of((), [line], 0)
            return kind, line
        thing = line.removesuffix("*") if kind == "beginning" else line
        spelled = behind_scheme(normalise(thing))
    except UrlError as error:
        raise UrlError(f"{str(error).removeprefix('allowed ').partition(';')[0]}; expected {EXPECTED}") from None
    if kind == "beginning" and spelled[-1] != thing[-1]:
        # `https://example.org*` would be all of the host, and `https://example.org/?*` too.
        raise UrlError(f"{line[:120]!r} does not say where its beginning ends; expected {EXPECTED}")
    return kind, spelled


def behind_scheme(url: str) -> str:
    """A URL without http:// or https://: those are one."""
    return url.partition("://")[2]


def _shortest(beginnings: Iterable[str]) -> list[str]:
    """In order, without those that begin with another."""
    kept: list[str] = []
    for each in sorted(beginnings):
        if not kept or not each.startswith(kept[-1]):
            kept.append(each)
    return kept
