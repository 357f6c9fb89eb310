"""What a robots.txt allows us: RFC 9309, and the two customs about pace that hosts have added to it.

Terms. A *group* is some User-agent lines and the rules below them; ours are those that name us, all of them together,
or those for `*` if none does. Of the rules that match, the longest counts, and Allow where two are equally long.

Tricky bits. Rules and URLs are compared as `urls.escape` leaves them: `/%7Ea` is `/~a`, but `/a%2Fb` is not `/a/b`. In
a query it is (section 2.2.2 says so of `http%3A%2F%2F`), so a URL whose query has such escapes is compared in both
spellings. A `*` or `$` in a URL is an ordinary character, which a rule writes as `%2A` or `%24`. A pace is
said to a group as rules are; lines of other kinds, known or not, end none. No rule becomes a regular expression, and
none is kept but for us: these files are written by strangers, who may list thousands of agents above as many rules.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from sanderling.pages.urls import UrlError, escape, normalise, path_of

AGENT = "sanderling"  # our product token
MOST = 500 * 1024  # bytes that are read: section 2.5 wants no less, and Google reads no more
MOST_SITEMAPS = 1000  # which may hold 50 million pages; a file with more lists them to be tiresome
# Seconds. Whoever asks for an hour between two pages wants no crawler, or has meant milliseconds: at one page in five
# minutes the host comes to no harm, and the crawl to an end.
LONGEST_DELAY = 300.0
# Most of 4xx means "there is no robots.txt" (section 2.3.1.3). These mean "not now", so nothing is known yet.
NOT_NOW = frozenset({408, 425, 429})

# With the misspellings that Google reads: whoever wrote them meant us to stay out.
DISALLOW = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
AGENT_FIELDS = frozenset({"user-agent", "useragent", "user agent"})
SITEMAP = frozenset({"sitemap", "site-map"})

# Directives of pages that have a value behind a colon: what stands before is no agent.
VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
NOINDEX = frozenset({"noindex", "none"})
MOST_DIRECTIVES = 2_000  # characters of one header or tag

_LINE = re.compile(r"[^\r\n]+")
_TOKEN = re.compile(r"\*\Z|[A-Za-z0-9_-]+")
_SECONDS = re.compile(r"[0-9]{1,300}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}")
_RATE = re.compile(r"([0-9]{1,9})/([0-9]{1,9})([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DELIMITERS = re.compile("%(?:2F|3A|3F|40)")
_DELIMITER = {"%2F": "/", "%3A": ":", "%3F": "?", "%40": "@"}


class Wildcard(NamedTuple):
    """A rule with a `*` in it, taken apart there. Rules compare by what counts: length, then Allow."""

    length: int
    allow: bool
    pattern: str
    head: str
    parts: tuple[str, ...]  # each somewhere behind the one before
    tail: str | None  # at the very end; None if anything may follow

    def matches(self, path: str) -> bool:
        """Whether the rule is about `path`, in time that grows with the path alone."""
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for part in self.parts:
            # The first place that fits leaves the most room for the rest, so none is tried twice.
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a group, so laid out that a path is compared with few of them. Those with a `*` are gone through."""

    prefixes: Mapping[str, bool]  # pattern to Allow
    wholes: Mapping[str, bool]  # pattern, without the `$` behind it, to Allow
    wildcards: tuple[Wildcard, ...]  # the most important first
    lengths: tuple[int, ...]  # of the prefixes, each once, the longest first

    @classmethod
    def of(cls, written: Iterable[tuple[bool, str]]) -> Self:
        """Allow and pattern of each rule, in any order."""
        prefixes: dict[str, bool] = {}
        wholes: dict[str, bool] = {}
        wildcards = []
        for allow, text in written:
            pattern = _open_query(escape(text))
            body = pattern.removesuffix("$").replace("$", "%24")
            if "*" in body:
                wildcards.append(_wildcard(body, ends=pattern.endswith("$"), allow=allow))
            elif pattern:  # `Disallow:` with nothing behind it forbids nothing
                alike = wholes if pattern.endswith("$") else prefixes
                alike[body] = allow or alike.get(body, False)
        lengths = sorted({len(prefix) for prefix in prefixes}, reverse=True)
        return cls(prefixes, wholes, tuple(sorted(wildcards, reverse=True)), tuple(lengths))

    @property
    def size(self) -> int:
        """Bytes that they take in memory, more or less."""
        plain = sum(map(len, self.prefixes)) + sum(map(len, self.wholes))
        wild = sum(2 * rule.length for rule in self.wildcards)
        return plain + wild + 200 * (len(self.prefixes) + len(self.wholes)) + 600 * len(self.wildcards)

    def deciding(self, path: str) -> tuple[int, bool, str]:
        """Length, Allow and pattern of the rule that counts for `path`; length 0 and Allow if none is about it."""
        best = (0, True, "")
        if path in self.wholes:
            best = (len(path) + 1, self.wholes[path], f"{path}$")
        elif prefix := next((path[:length] for length in self.lengths if path[:length] in self.prefixes), ""):
            best = (len(prefix), self.prefixes[prefix], prefix)
        for rule in self.wildcards:
            if rule.length < best[0]:
                break
            if rule.matches(path):
                return max(best, rule[:3])
        return best


def _wildcard(body: str, *, ends: bool, allow: bool) -> Wildcard:
    head, *parts = body.split("*")
    tail = parts.pop() if ends else None
    return Wildcard(len(body) + ends, allow, body + "$" * ends, head, tuple(filter(None, parts)), tail)


@dataclass(frozen=True, slots=True)
class Robots:
    """What one host's robots.txt says to us."""

    rules: Rules
    delay: float | None = None  # seconds between two requests, if it says so
    sitemaps: tuple[str, ...] = ()
    known: bool = True  # False: it could not be read, all is forbidden for now, and it should be asked for again

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, more or less."""
        return 500 + self.rules.size + sum(100 + len(url) for url in self.sitemaps)

    def allows(self, url: str) -> bool:
        """Whether `url`, however it is spelled, may be fetched. The robots.txt itself always may."""
        path = _path(url)
        return path == "/robots.txt" or self._deciding(path)[1]

    def why(self, url: str) -> str:
        """The rule that `allows` went by, for people to read; empty if there was none."""
        if not self.known:
            return "robots.txt could not be read"
        length, allow, pattern = self._deciding(_path(url))
        return f"{'Allow' if allow else 'Disallow'}: {pattern}" if length else ""

    def _deciding(self, path: str) -> tuple[int, bool, str]:
        best = self.rules.deciding(path)
        other = _open_query(path)
        return best if other == path else max(best, self.rules.deciding(other))


def read(status: int, body: bytes, agent: str = AGENT) -> Robots:
    """What an answer to /robots.txt means, redirects followed, for the crawler whose product token is `agent`.

    A status of 0, for no answer at all, is UNREACHABLE like any 5xx. A redirect that was not followed is one too many,
    and means that there is no robots.txt (section 2.3.1.2).
    """
    if 200 <= status < 300:
        return _parsed(body, agent)
    return ALLOW_ALL if 300 <= status < 500 and status not in NOT_NOW else UNREACHABLE


@dataclass(slots=True)
class _Group:
    """What is said to one agent, wherever in the file."""

    named: bool = False
    rules: list[tuple[bool, str]] = field(default_factory=list)  # Allow and pattern
    delays: list[float] = field(default_factory=list)


def _parsed(body: bytes, agent: str) -> Robots:
    ours = _token(agent)
    if not ours:
        raise ValueError(f"agent is {agent!r}, expected it to begin with a product token like sanderling")
    groups = {ours: _Group(), "*": _Group()}
    spoken_to: dict[str, _Group] = {}
    listing = False  # whether the line above named an agent as well
    sitemaps: dict[str, None] = {}
    for name, value in _fields(body):
        if name in AGENT_FIELDS:
            spoken_to = spoken_to if listing else {}
            listing = True
            token = _token(value)
            if token in groups:
                groups[token].named = True
                spoken_to[token] = groups[token]
        elif name == "allow" or name in DISALLOW:
            listing = False
            for group in spoken_to.values():
                group.rules.append((name == "allow", value))
        elif name in SITEMAP and len(sitemaps) < MOST_SITEMAPS:
            sitemaps |= dict.fromkeys(_absolute(value))
        elif (delay := _delay(name, value)) is not None:
            listing = False  # as Protego reads it; RFC 9309 does not know the line
            for group in spoken_to.values():
                group.delays.append(delay)
    said = groups[ours] if groups[ours].named else groups["*"]
    # Of several delays, the one that keeps us slowest.
    return Robots(Rules.of(said.rules), max(said.delays, default=None), tuple(sitemaps))


def _fields(body: bytes) -> Iterator[tuple[str, str]]:
    """Name, in lower case, and value of each line that has both."""
    text = body[:MOST].decode("utf-8", "replace").removeprefix("\ufeff")
    # A line that we have cut says something else than it did: `Allow: /` for `Allow: /open`.
    end = len(text) if len(body) < MOST else max(text.rfind("\n"), text.rfind("\r"), 0)
    for line in _LINE.finditer(text, 0, end):
        said = line[0].partition("#")[0]
        name, colon, value = said.partition(":")
        if colon:
            yield name.strip().lower(), value.strip()
        elif len(words := said.split()) == 2:  # `Disallow /`: the colon was forgotten, as Google reads it too
            yield words[0].lower(), words[1]


def directives(values: Iterable[str], agent: str = AGENT) -> frozenset[str]:
    """What robots meta tags or X-Robots-Tag headers ask of `agent`, in lower case.

    `otherbot: noindex, nofollow` is for that agent alone, up to the end of the value or the next agent.
    """
    asked: set[str] = set()
    for value in values:
        for_us = True
        for part in re.split("[,;]", value[:MOST_DIRECTIVES].lower()):
            name, colon, behind = part.partition(":")
            if colon and name.strip() not in VALUED:
                for_us, part = name.strip() in (agent, "*", "robots"), behind  # noqa: PLW2901
            if for_us:
                asked.update(part.split())
    return frozenset(asked)


def _token(agent: str) -> str:
    """The product token, without the version that may follow; empty if there is none."""
    found = _TOKEN.match(agent)
    return found[0].lower() if found else ""


def _delay(name: str, value: str) -> float | None:
    """Seconds between two requests; None if the line is about something else, or makes no sense."""
    if name == "crawl-delay" and _SECONDS.fullmatch(value):
        return min(float(value), LONGEST_DELAY)
    # The hours of the day that may follow a rate are left out, and the rate is kept to always.
    if name == "request-rate" and (rate := _RATE.fullmatch(value.lower().partition(" ")[0])) and int(rate[1]):
        return min(int(rate[2]) * _UNITS[rate[3]] / int(rate[1]), LONGEST_DELAY)
    return None


def _absolute(value: str) -> tuple[str, ...]:
    if not value[:8].lower().startswith(("https://", "http://")):
        return ()
    try:
        return (normalise(value),)
    except UrlError:
        return ()


def _path(url: str) -> str:
    """Path and query of a URL, as rules see them."""
    return path_of(url).replace("*", "%2A").replace("$", "%24")


def _open_query(text: str) -> str:
    """`text` with the delimiters in its query, where they delimit nothing, unescaped."""
    front, mark, query = text.partition("?")
    return front + mark + _DELIMITERS.sub(lambda found: _DELIMITER[found[0]], query) if "%" in query else text


ALLOW_ALL = Robots(Rules.of(()))
UNREACHABLE = Robots(Rules.of([(False, "/")]), known=False)
