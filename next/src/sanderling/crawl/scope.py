"""Which addresses belong to a crawl, and which are never requested."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from sanderling.crawl.pattern import UrlPattern
from sanderling.files import FolderError, read_small
from sanderling.ids import HostError, UrlError, normalise_host, normalise_url

LARGEST_LIST = 64 << 20  # bytes of a file with addresses


class ScopeRules(msgspec.Struct, frozen=True):
    """What decides it, as plain data for readers."""

    hosts: frozenset[str] = frozenset()
    below: tuple[str, ...] = ()  # hosts below which all belong
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @classmethod
    def of(cls, hosts: Iterable[str], only: Iterable[str] = (), skip: Iterable[str] = ()) -> "ScopeRules":
        """The rules for hosts in their one spelling; `*.example.org` is that host and all below it."""
        exact = {host.removeprefix("*.") for host in hosts}
        below = tuple(host[2:] for host in hosts if host.startswith("*."))
        return cls(frozenset(exact), below, tuple(only), tuple(skip))


class CrawlScope:
    """Whether a normal address belongs to a crawl. `more` are hosts that came to belong while it ran."""

    def __init__(self, rules: ScopeRules, more: Iterable[str] = ()) -> None:
        self.rules = rules
        self.hosts = set(rules.hosts).union(more)
        self._below = tuple(f".{host}" for host in rules.below)
        self._only = [UrlPattern(text) for text in rules.only]
        self._skip = [UrlPattern(text) for text in rules.skip]

    def has_host(self, host: str) -> bool:
        """Whether the host belongs."""
        return host in self.hosts or host.endswith(self._below)

    def wants(self, url: str) -> bool:
        """Whether the normal address belongs."""
        if not self.has_host(url.split("/", 3)[2]):
            return False
        if self._only and all(each.match(url) is None for each in self._only):
            return False
        return not any(each.match(url) is not None for each in self._skip)


class LeaveOut:
    """What is never requested: pages, beginnings of addresses, and hosts. http and https are one."""

    def __init__(self, lines: Iterable[str], origin: str) -> None:
        self._hosts: set[str] = set()
        self._below: tuple[str, ...] = ()
        self._pages: set[str] = set()
        self._beginnings: dict[str, list[str]] = {}  # by host
        for number, line in enumerate(lines, 1):
            text = line.partition(" #")[0].strip()
            if text and not text.startswith("#"):
                try:
                    self._add(text)
                except (UrlError, HostError) as error:
                    raise FolderError(
                        f"{origin}, line {number}: {error}", "write a page, a beginning with * at its end, or a host"
                    ) from None

    def _add(self, text: str) -> None:
        if "//" not in text:
            name = normalise_host(text.removeprefix("*."))
            self._hosts.add(name)
            if text.startswith("*."):
                self._below += (f".{name}",)
        elif text.endswith("*"):
            start = normalise_url(text.removesuffix("*")).partition("//")[2]
            self._beginnings.setdefault(start.partition("/")[0], []).append(start)
        else:
            self._pages.add(normalise_url(text).partition("//")[2])

    def names(self, url: str) -> bool:
        """Whether the normal address is left out."""
        bare = url.partition("//")[2]
        host = bare.partition("/")[0]
        if host in self._hosts or bare in self._pages or host.endswith(self._below):
            return True
        return any(bare.startswith(start) for start in self._beginnings.get(host, ()))


def read_seeds(path: Path | None) -> list[str]:
    """The addresses in a file, one a line. Raises FolderError with the line that is wrong."""
    found: dict[str, None] = {}
    for number, line in enumerate(lines_of(path) if path is not None else (), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                found[normalise_url(text)] = None
            except UrlError as error:
                raise FolderError(f"{path}, line {number}: {error}") from None
    return list(found)


def lines_of(path: Path) -> list[str]:
    """The lines of a file. Raises FolderError."""
    try:
        return read_small(path, LARGEST_LIST).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise FolderError(f"{path} is no text in UTF-8", "save it as UTF-8") from None
