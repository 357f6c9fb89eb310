"""What a robots.txt, a robots meta tag or an X-Robots-Tag header allows us: RFC 9309, read as Google reads it.

Terms: a *group* is some User-agent lines with the rules below them. All groups that name us count together; without
one, those for `*` do. Of the rules that match a URL the longest counts, and Allow where two are equally long.

These files are written by strangers, who may list ten thousand rules. No rule becomes a regular expression. Rules
without `*` are looked up by length in a dictionary; each URL is compared with the rules that have a `*`, so their
number is bounded, and those beyond the bound are read more strictly than they were meant.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from sanderling.ids import UrlError, normalise_url

AGENT = "sanderling"  # our product token
MAX_ROBOTS = 500 * 1024  # bytes that are read: RFC 9309, 2.5, demands as many, and Google reads no more
MAX_SITEMAPS = 1000  # which may list 50 million pages
MAX_DELAY = 300.0  # seconds; a larger Crawl-delay was meant in milliseconds, or means that no crawl would ever end
AGAIN = 86_400.0  # seconds after which it is requested again (RFC 9309, 2.4)
# A rule with `*` costs 0.2 µs a URL, and up to 0.3 µs a character where both are built to be slow: 10 ms at most.
MAX_WILDCARDS = 1000
MAX_WILDCARD_CHARACTERS = 32 * 1024
# 4xx means that there is no robots.txt (2.3.1.3), but these mean "not now".
NOT_NOW = frozenset({408, 425, 429})
MAX_DIRECTIVES = 2000  # characters of one header or tag

# With the misspellings that Google reads.
_DISALLOW = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
_USER_AGENT = frozenset({"user-agent", "useragent", "user agent"})
_SITEMAP = frozenset({"sitemap", "site-map"})
_TOKEN = re.compile(r"\*(?!\S)|[A-Za-z0-9_-]+")
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
_ESCAPE = re.compile(r"%(?:([0-9A-Fa-f]{2}))?")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What browsers leave as it is in a path and in a query; all else they escape.
_SAFE_IN_PATH = "!$%&'()*+,/:;=@[\\]|"
_SAFE_IN_QUERY = "!$%&()*+,/:;=?@[\\]^`{|}"
# In a query these delimit nothing, so that `?u=http://` and `?u=http%3A%2F%2F` are one query (2.2.2).
_DELIMITERS = frozenset(b"/:?@")
# Directives whose value stands behind a colon: what stands before it is not the name of a robot.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


class Decision(NamedTuple):
    """Whether a URL may be requested, and the line of robots.txt that says so; line 0 if none does."""

    allowed: bool
    line: int = 0
    pattern: str = ""
    known: bool = True

    @property
    def why(self) -> str:
        """The reason for people; empty if no line is about the URL."""
        if not self.known:
            return "robots.txt cannot be read, so nothing is allowed for now"
        verb = "allows" if self.allowed else "disallows"
        return f"robots.txt line {self.line} {verb} {self.pattern}" if self.line else ""


class Rule(NamedTuple):
    """A rule as it was written. Of several that match, the greatest counts; of equal ones the first."""

    length: int
    allow: bool
    from_end: int  # minus the number of the line
    pattern: str


class Wildcard(msgspec.Struct, frozen=True, array_like=True):
    """A rule with a `*`, cut into what stands around its stars."""

    rule: Rule
    head: str
    parts: tuple[str, ...]  # each somewhere after the one before
    tail: str | None  # at the very end; None if anything may follow

    def matches(self, path: str) -> bool:
        """Whether the rule is about `path`."""
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for part in self.parts:
            # The first place that fits leaves the most room for the rest, so no other is tried.
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


class Robots(msgspec.Struct):
    """What a host's robots.txt says to us. Plain data: it can be stored and sent between processes."""

    prefixes: dict[str, Rule] = {}
    lengths: tuple[int, ...] = ()  # of the prefixes, each once
    wholes: dict[str, Rule] = {}  # rules that end in `$`
    wildcards: tuple[Wildcard, ...] = ()  # the greatest first
    delay: float | None = None  # seconds between two requests
    sitemaps: tuple[str, ...] = ()
    known: bool = True  # False: it could not be read; nothing is allowed, and it must be requested again
    cut: str = ""  # what was not read, or more strictly, and by which bound

    def decide(self, url: str) -> Decision:
        """Whether the normal URL `url` may be requested. The robots.txt itself always may."""
        path = "/" + url.split("/", 3)[3]
        if path == "/robots.txt":
            return Decision(allowed=True)
        if not self.known:
            return Decision(allowed=False, known=False)
        path = _spell(path.replace("*", "%2A").replace("$", "%24"))
        matching = [self.prefixes[head] for length in self.lengths if (head := path[:length]) in self.prefixes]
        if path in self.wholes:
            matching.append(self.wholes[path])
        best = max(matching, default=None)
        for wildcard in self.wildcards:
            if best is not None and wildcard.rule < best:
                break
            if wildcard.matches(path):
                best = wildcard.rule
                break
        return Decision(allowed=True) if best is None else Decision(best.allow, -best.from_end, best.pattern)


def read_robots(status: int, body: bytes, agent: str = AGENT) -> Robots:
    """What a response to /robots.txt means, redirects followed, to the crawler with the product token `agent`.

    Status 0 stands for no response. A redirect that was not followed was one too many: there is no robots.txt.
    """
    if 200 <= status < 300:
        return _parse(body, agent.lower())
    return Robots(known=300 <= status < 500 and status not in NOT_NOW)


class _Group:
    """What is said to one agent, wherever in the file."""

    def __init__(self) -> None:
        self.named = False
        self.rules: list[tuple[bool, int, str]] = []  # Allow, line, pattern
        self.delays: list[float] = []


def _parse(body: bytes, agent: str) -> Robots:
    groups = {agent: _Group(), "*": _Group()}
    addressed: set[str] = set()  # those of `groups` that the present lines are for
    naming = False  # whether the line above named an agent too
    sitemaps: dict[str, None] = {}
    for line, name, value in _fields(body):
        if name in _USER_AGENT:
            if not naming:
                addressed = set()
            naming = True
            token = _TOKEN.match(value)
            if token is not None and token[0].lower() in groups:
                groups[token[0].lower()].named = True
                addressed.add(token[0].lower())
        elif name == "allow" or name in _DISALLOW:
            naming = False
            for each in addressed:
                groups[each].rules.append((name == "allow", line, value))
        elif name == "crawl-delay" and _SECONDS.fullmatch(value):
            naming = False  # RFC 9309 does not know the line; who writes it means it as a rule
            for each in addressed:
                groups[each].delays.append(min(float(value), MAX_DELAY))
        elif name in _SITEMAP and len(sitemaps) < MAX_SITEMAPS:
            try:
                sitemaps[normalise_url(value)] = None
            except UrlError:
                continue
    ours = groups[agent] if groups[agent].named else groups["*"]
    robots = _lay_out(ours.rules)
    robots.delay = max(ours.delays, default=None)
    robots.sitemaps = tuple(sitemaps)
    if len(body) > MAX_ROBOTS:
        robots.cut = f"{len(body) - MAX_ROBOTS:,} bytes after the first {MAX_ROBOTS:,}; {robots.cut}".rstrip("; ")
    return robots


def _fields(body: bytes) -> Iterator[tuple[int, str, str]]:
    """Number, name in lower case, and value of each line that has both."""
    text = body[:MAX_ROBOTS]
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"):  # a byte order mark, perhaps in part
        if text.startswith(mark):
            text = text[len(mark) :]
            break
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if len(body) > MAX_ROBOTS:
        lines.pop()  # cut in two, it says something else: `Allow: /` for `Allow: /open`
    for number, line in enumerate(lines, 1):
        said = line.partition(b"#")[0].decode("utf-8", "replace")
        name, colon, value = said.partition(":")
        if colon:
            yield number, name.strip().lower(), value.strip()
        elif len(words := said.split()) == 2:  # `Disallow /`: Google supplies the colon too
            yield number, words[0].lower(), words[1]


def _lay_out(rules: list[tuple[bool, int, str]]) -> Robots:
    prefixes: dict[str, Rule] = {}
    wholes: dict[str, Rule] = {}
    wildcards: dict[str, Rule] = {}
    for allow, line, written in rules:
        pattern = _spell(quote(written.partition("?")[0], safe=_SAFE_IN_PATH) + _quoted_query(written))
        if not pattern:  # `Disallow:` alone forbids nothing
            continue
        rule = Rule(len(pattern), allow, -line, written[:200])
        if "*" in pattern.rstrip("*"):
            _keep_greater(wildcards, pattern, rule)
        elif pattern.endswith("$"):
            _keep_greater(wholes, pattern[:-1].replace("$", "%24"), rule)
        else:
            _keep_greater(prefixes, pattern.rstrip("*").replace("$", "%24"), rule)
        # As Google reads it, who allows a folder's index.html allows the folder.
        folder, slash, file = pattern.rpartition("/")
        if allow and slash and file.startswith("index.htm") and "*" not in folder:
            _keep_greater(wholes, folder + "/", rule._replace(length=len(folder) + 2))
    kept: list[Wildcard] = []
    characters = stricter = 0
    # Rules that forbid are kept first: those that allow may be left out without breaking anybody's rule.
    for pattern, rule in sorted(wildcards.items(), key=lambda item: item[1].allow):
        characters += len(pattern)
        if len(kept) < MAX_WILDCARDS and characters <= MAX_WILDCARD_CHARACTERS:
            kept.append(_wildcard(pattern, rule))
            continue
        stricter += 1
        if not rule.allow:
            _keep_greater(prefixes, pattern.partition("*")[0].replace("$", "%24"), rule)
    return Robots(
        prefixes=prefixes,
        lengths=tuple({len(prefix) for prefix in prefixes}),
        wholes=wholes,
        wildcards=tuple(sorted(kept, key=lambda wildcard: wildcard.rule, reverse=True)),
        cut=f"{stricter:,} rules with * after the first {len(kept):,} are read more strictly" if stricter else "",
    )


def _keep_greater(rules: dict[str, Rule], pattern: str, rule: Rule) -> None:
    rules[pattern] = max(rule, rules.get(pattern, rule))


def _wildcard(pattern: str, rule: Rule) -> Wildcard:
    ends = pattern.endswith("$")
    head, *parts = pattern.removesuffix("$").replace("$", "%24").split("*")
    tail = parts.pop() if ends else None
    return Wildcard(rule, head, tuple(filter(None, parts)), tail)


def _quoted_query(written: str) -> str:
    _, mark, query = written.partition("?")
    return mark + quote(query, safe=_SAFE_IN_QUERY)


def _spell(path: str) -> str:
    """`path` with its escapes in one spelling, as RFC 9309 compares them."""
    if "%" not in path:
        return path
    front, mark, query = path.partition("?")
    front = _ESCAPE.sub(lambda escape: _spelled(escape, _UNRESERVED), front)
    return front + mark + _ESCAPE.sub(lambda escape: _spelled(escape, _UNRESERVED | _DELIMITERS), query)


def _spelled(escape: re.Match[str], plain: frozenset[int]) -> str:
    if not escape[1]:
        return "%25"
    byte = int(escape[1], 16)
    return chr(byte) if byte in plain else f"%{byte:02X}"


def directives(values: Iterable[str], agent: str = AGENT) -> frozenset[str]:
    """What robots meta tags or X-Robots-Tag headers ask of all robots and of `agent`, in lower case.

    `otherbot: noindex, nofollow` is for that robot alone, up to the end of the value or the next name.
    """
    asked: set[str] = set()
    for value in values:
        for_us = True
        for part in value[:MAX_DIRECTIVES].lower().replace(";", ",").split(","):
            name, colon, rest = part.partition(":")
            directive = part.strip()
            if colon and name.strip() not in _VALUED:
                for_us, directive = is_for_us(name.strip(), agent), rest.strip()
            if for_us and directive:
                asked.add(directive)
    # A value that holds a comma, as dates do, leaves crumbs that mean nothing and do no harm.
    return frozenset(asked | {"noindex", "nofollow"} if "none" in asked else asked)


def is_for_us(name: str, agent: str = AGENT) -> bool:
    """Whether a meta tag or the head of a directive with this name speaks to us."""
    return name.strip().lower() in ("robots", "*", agent)
