"""Which addresses belong to a crawl, and which are never requested; patterns of addresses."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from sanderling.files import FolderError, read_small
from sanderling.ids import HostError, UrlError, normalise_host, normalise_url

LARGEST_LIST = 64 << 20  # bytes of a file with addresses

_PART = re.compile(r"\*\*|\*|\{([^{}]*)\}|[^*{]+|\{")


class UrlPattern:
    """`*` stands for any characters but a slash, `**` for any, `{name}` for one part of the path, which is captured.

    Without a `?` in it, the query of a URL does not count; a pattern that begins with `//` names the host, too.

    The URL is a stranger's. What follows a wildcard is taken where it fits first, and never elsewhere (`(?>…)`): that
    finds a match wherever there is one, and a URL of 2,000 characters costs at most its square.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"the pattern is {text!r}; expected one that begins with a slash, as in /shop/*")
        self.text = text
        self._has_query = "?" in text
        self._has_host = text.startswith("//")
        names: list[str] = []
        pieces: list[tuple[str, str]] = [("", "")]  # a wildcard, and the literal text behind it
        for part in _PART.finditer(text):
            if part[0].startswith("*"):
                pieces.append((r".*?" if part[0] == "**" else r"[^/]*?", ""))
            elif part[1] is not None and part[1].isidentifier():
                names.append(part[1])
                pieces.append((rf"(?P<{part[1]}>[^/?&]+?)", ""))
            elif part[0].startswith("{"):
                raise ValueError(f"the pattern {text} has {part[0]!r}; expected a name in it, as in {{number}}")
            else:
                pieces[-1] = (pieces[-1][0], pieces[-1][1] + re.escape(part[0]))
        self.names = tuple(names)
        if len(set(names)) < len(names):
            raise ValueError(f"the pattern {text} has a name twice; expected each once")
        self._regex = re.compile(_joined(pieces), re.DOTALL)

    def match(self, url: str) -> dict[str, str] | None:
        """What stands for each name, if the normal URL is one of these."""
        parts = urlsplit(url)
        path = f"//{parts.netloc}{parts.path}" if self._has_host else parts.path
        found = self._regex.fullmatch(f"{path}?{parts.query}" if self._has_query else path)
        return None if found is None else found.groupdict()

    def __repr__(self) -> str:
        return f"<UrlPattern {self.text}>"


def _joined(pieces: list[tuple[str, str]]) -> str:
    """The expression: pieces of one chunk (between two `**`) each where they fit first, and the chunk where it does."""
    chunks: list[list[tuple[str, str]]] = []
    for wildcard, literal in pieces:
        if wildcard == ".*?" or not chunks:
            chunks.append([(wildcard, literal)])
        else:
            chunks[-1].append((wildcard, literal))
    last = chunks[-1][-1]
    found = ""
    for chunk in chunks:
        inner = "".join(
            f"{wildcard}{literal}\\Z" if piece is last else f"(?>{wildcard}{literal})"
            for piece in chunk[1:]
            for wildcard, literal in [piece]
        )
        wildcard, literal = chunk[0]
        end = "\\Z" if chunk[0] is last else ""
        found += f"(?>{wildcard}{literal}{inner}{end})"
    return found


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
