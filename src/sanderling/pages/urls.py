"""The one spelling of a URL, and which URLs belong to a crawl.

The frontier keys on the spelling: two for one page fetch it twice, one for two pages loses one of them. So only what
RFC 3986 (section 6) calls equivalent is made equal, and links are read the way browsers read them (WHATWG):

- control characters and spaces at the ends go, tabs and line breaks anywhere; a backslash before the query is a slash
- relative links are resolved: `//host/x`, `/x`, `x`, `../x`, `?x`, and nothing at all, which is the page itself
- scheme and host are in lower case and the host as `sanderling.ids` spells it, without a default port
- no dot segments, no fragment (`#!` included), no `?` with nothing behind it; an empty path is `/`
- escapes are in upper case; those of unreserved characters are undone; whatever is not allowed to stand for itself is
  escaped, as UTF-8; a `%` that begins no escape is one itself; an apostrophe is `'` in a path and `%27` in a query
- escapes in a host are undone, and an address may be in any of the spellings of IPv4: `0x7f.1` is 127.0.0.1
- user info of a link is dropped, so nobody's password is sent or kept; in an address that a user gives it is refused
- parameters that follow the visitor and not the page are dropped: campaign tags, click ids, session ids

The order of the query stays: some servers read it by position, and the first of two equal names is not the second.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple, Self
from urllib.parse import unquote

import idna

from sanderling import ids
from sanderling.formats.list_file import listed

# Longer URLs are made by loops and not by people; caches, servers and the sitemap protocol draw the line near here.
LONGEST = 2000
# What comes in may shrink (escapes undone, dot segments, session ids), but work on it must be bounded.
LONGEST_INPUT = 10 * LONGEST
# Real sites stay below ten; a relative link that is resolved against its own page adds one at each turn.
MOST_SEGMENTS = 20
MOST_REPEATS = 2  # /2024/2024/ and /a/b/a/b/ exist; three in a row are a loop


class UrlError(ValueError):
    """A text is no URL that we would fetch. The message has no user info."""


# What may stand for itself in a query, RFC 3986, 3.4; a path may have the same, where no "?" can occur. Of the
# apostrophe browsers escape only that of a query: one spelling each, or `it's` and `it%27s` are two pages.
_ALLOWED = r"A-Za-z0-9._~!$&()*+,;=:@/?-"
_ODD = re.compile(rf"%([0-9A-Fa-f]{{2}})|[^{_ALLOWED}]")
_ODD_PATH = re.compile(rf"%([0-9A-Fa-f]{{2}})|[^'{_ALLOWED}]")
_UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]")
_SPELLED = [chr(octet) if _UNRESERVED.match(bytes([octet])) else f"%{octet:02X}" for octet in range(256)]

# Of the host only names are unescaped; `%` of a zone id, and what is no UTF-8, are refused as they stand.
_ESCAPED_HOST = re.compile(r"(?:[^%\[]|%(?!5[Bb])[0-9A-Fa-f]{2})*")
_MAYBE_IPV4 = re.compile(r"(?:\A|[.\uff0e\u3002\uff61])[0\uff10-\uff19\d][\w]*[.\uff0e\u3002\uff61]?\Z")
_IPV4_PART = re.compile(r"0[xX]([0-9a-fA-F]{0,16})|0([0-7]{1,16})|([1-9][0-9]{0,16}|0)", re.ASCII)

_ENDS = "".join(map(chr, range(0x21)))
_BREAKS = re.compile(r"[\t\r\n]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SESSION = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
# The first letter is asked for first because a choice that minds no case is tried in full, six times a parameter.
_FOLLOWS_VISITOR = r"(?=[UFGMPJufgmpj])(?i:utm_|(?:fbclid|gclid|msclkid|phpsessid|jsessionid)(?:[=&]|\Z))"
_FOLLOWER = re.compile(_FOLLOWS_VISITOR)

# URLs that are spelled as they should be, which most links are; what these do not match may still be. Possessive
# throughout, so that a long URL is read once and never again. An escape here is in upper case and of an octet that
# needs one. Segments that begin with a dot, session ids in the path, IPv6 and punycode take the long way.
_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_SEGMENT = rf"(?!\.)[A-Za-z0-9._~!$&'()*+,=:@-]*+(?:(?!%27){_ESCAPE}[A-Za-z0-9._~!$&'()*+,=:@-]*+)*+"
_NAME = r"(?!\.)[A-Za-z0-9._~!$&'()*+,=@-]++"  # without a colon, which would make it a scheme
_PARAMETER = rf"(?!{_FOLLOWS_VISITOR})[A-Za-z0-9._~!$()*+,;=:@/?-]*+(?:{_ESCAPE}[A-Za-z0-9._~!$()*+,;=:@/?-]*+)*+"
_QUERY = rf"(?:\?(?!\Z){_PARAMETER}(?:&{_PARAMETER})*+)?+"
_DOMAIN = r"(?=[^/]{1,253}/)(?:(?!xn--)[a-z0-9_-]{1,63}+\.)*+(?!xn--)[a-z][a-z0-9_-]{0,62}+"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PORT = "(?::(?!(?:80|443)/)(?:[1-5][0-9]{4}|[1-9][0-9]{0,3}))?+"
_HOST = rf"(?:{_DOMAIN}|{_OCTET}(?:\.{_OCTET}){{3}}+){_PORT}"
_SPELLED_URL = re.compile(rf"https?://{_HOST}(?:/{_SEGMENT})++{_QUERY}").fullmatch
_SPELLED_LINK = re.compile(rf"(?:(/)(?!/){_SEGMENT}|{_NAME}(?=[/?]|\Z))(?:/{_SEGMENT})*+{_QUERY}").fullmatch


def normalise(url: str, base: str | None = None, most: int = LONGEST) -> str:
    """The one spelling of `url`, absolute, http or https; `base` is the page it was found on. Raises UrlError.

    It may have `most` characters.
    """
    # The length first: a link of megabytes is not even looked at.
    if len(url) <= LONGEST:
        if _SPELLED_URL(url):
            return url
        if base is not None and (found := _SPELLED_LINK(url)):
            page = _page(base)
            return _bounded(page.origin + url if found[1] else page.origin + page.folder + url, most)
    return _respelled(url, base, most)


def origin_of(url: str) -> str:
    """Scheme and host of `url`, which is normal: what has a robots.txt to itself."""
    return "/".join(url.split("/", 3)[:3])


def host_in(url: str) -> str:
    """The host of `url`, which is normal, as `sanderling.ids` spells it."""
    return url.split("/", 3)[2]


def escape(text: str) -> str:
    """`text` with every escape spelled in one way, and everything escaped that may not stand in a path or query."""
    front, mark, query = text.partition("?")
    return _escape_path(front) + mark + (_ODD.sub(_spell, query) if query else "")


def path_of(url: str) -> str:
    """Path and query of `url` in their one spelling: what a server would read, however it is written."""
    front, mark, query = url.partition("#")[0].partition("?")
    path = front.partition("://")[2].replace("\\", "/").partition("/")[2]
    return _without_dots(_escape_path(f"/{path}")) + mark + _ODD.sub(_spell, query)


def _escape_path(text: str) -> str:
    escaped = _ODD_PATH.sub(_spell, text)
    return escaped.replace("%27", "'") if "%27" in escaped else escaped


def trap(url: str) -> str | None:
    """Why the path of `url`, which is normal, looks like a hole without a bottom; None if it does not."""
    path = url.partition("?")[0]
    segments = [segment for segment in path.split("/")[3:] if segment]
    if len(segments) > MOST_SEGMENTS:
        return f"{len(segments)} path segments, more than {MOST_SEGMENTS}"
    if len(set(segments)) == len(segments):
        return None
    for size in range(1, len(segments) // (MOST_REPEATS + 1) + 1):
        for start in range(len(segments) - size * (MOST_REPEATS + 1) + 1):
            group = segments[start : start + size]
            if segments[start : start + size * (MOST_REPEATS + 1)] == group * (MOST_REPEATS + 1):
                return f"{_short('/'.join(group))!r} more than {MOST_REPEATS} times in a row in its path"
    return None


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """Which hosts a crawl may ask, and how many links from its beginning it may go.

    Hosts are spelled as in `sanderling.ids`, with the port if that is not the scheme's own. `*.example.org` stands for
    example.org and everything below it, on that port.
    """

    hosts: frozenset[str]
    depth: int

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError(f"depth is {self.depth}, expected 0 or more")

    @classmethod
    def of(cls, seeds: Sequence[str], allow: Sequence[str], depth: int) -> Self:
        """The hosts of `seeds`, which are URLs, and those that `allow` names. Raises UrlError."""
        begins = {host_in(normalise(seed)) for seed in seeds}
        return cls(frozenset(begins.union(*map(_allowed, allow))), depth)

    def allows(self, host: str) -> bool:
        """Whether `host` may be asked."""
        if host in self.hosts:
            return True
        above = host
        while above:
            if f"*.{above}" in self.hosts:
                return True
            above = above.partition(".")[2]
        return False

    def with_host(self, host: str) -> Self:
        """The same with one host more, which is spelled as in `sanderling.ids`."""
        return replace(self, hosts=self.hosts | {host})


def read_seeds(text: str, where: str) -> list[str]:
    """The URLs in `text`, one a line, among blank lines and `# comments`. UrlError says `where`, and the line."""
    seeds = []
    for number, url in listed(text):  # a fragment goes like a comment
        try:
            seeds.append(normalise(url))
        except UrlError as error:
            raise UrlError(f"{where}, line {number}: {error}{_suggestion(url)}") from None
    return seeds


class _Page(NamedTuple):
    """A base, taken apart."""

    scheme: str
    origin: str  # up to the path
    path: str
    folder: str  # the path up to its last slash
    query: str


# All links of a page come one after the other, so a few are enough.
@lru_cache(maxsize=64)
def _page(base: str) -> _Page:
    front, _, query = normalise(base).partition("?")
    scheme, _, rest = front.partition("://")
    host, _, path = rest.partition("/")
    return _Page(scheme, f"{scheme}://{host}", f"/{path}", f"/{path}"[: path.rfind("/") + 2], query)


def _respelled(url: str, base: str | None, most: int = LONGEST) -> str:
    """The long way, right for every URL."""
    if len(url) > LONGEST_INPUT:
        raise UrlError(f"URL {_shown(url)} has {len(url):,} characters; expected at most {LONGEST:,}")
    text = _BREAKS.sub("", url.strip(_ENDS)).partition("#")[0]
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text)
    front, mark, query = text.partition("?")
    front = front.replace("\\", "/")
    scheme, rest = _scheme(front, base)
    if scheme:
        host, slash, path = rest.lstrip("/").partition("/")
        user, at, name = host.rpartition("@")
        # A link may name a user, whom we are not; an address that was given with a password is a mistake to tell of.
        name = name if at and (base is not None or user in ("", ":")) else host
        origin, path = f"{scheme}://{_host(name, scheme, path + query)}", slash + path
    else:
        page = _page(base or "")
        origin = page.origin
        path = rest if rest.startswith("/") else page.folder + rest if rest else page.path
        query = query if rest or mark else page.query
    path, query = _path(_escape_path(path)), _query(_ODD.sub(_spell, query))
    return _bounded(f"{origin}{path}?{query}" if query else origin + path, most)


def _scheme(front: str, base: str | None) -> tuple[str, str]:
    """Scheme and what follows it, host first; an empty scheme if what follows is a path, to be seen from `base`."""
    found = _SCHEME.match(front)
    if not found and base is None:
        raise UrlError(f"URL {_shown(front)} has no scheme; expected it to begin with https:// or http://")
    scheme, rest = (found[1].lower(), front[found.end() :]) if found else ("", front)
    if found and scheme not in ("http", "https"):
        # The scheme is not named: of `user:secret@host` it would be the user.
        raise UrlError(f"URL {_shown(front)} has another scheme; expected https or http")
    if rest.startswith("//"):
        return scheme or _page(base or "").scheme, rest
    # Browsers take `https:x` for a path on a page that is https itself, and for a host anywhere else.
    if base is not None and (not scheme or scheme == _page(base).scheme):
        return "", rest
    return scheme, rest


def _host(host: str, scheme: str, behind: str) -> str:
    try:
        return ids.normalise(_readable_host(host), scheme=scheme)
    except (ids.HostError, UnicodeDecodeError) as error:
        # Its message has no user info, unless a slash in the password made a host of the half before it.
        fault = "no host that could be read" if "@" in behind else str(error)
        raise UrlError(f"URL with {fault}") from None


def _readable_host(host: str) -> str:
    """`host` without what only the parser of URLs reads: escapes, and the odd spellings of IPv4."""
    if "%" in host and _ESCAPED_HOST.fullmatch(host):
        host = unquote(host, errors="strict")
    name, colon, port = host.partition(":") if not host.startswith("[") else (host, "", "")
    if "@" not in host and (":" in port or host != host.strip(" ")):
        raise ids.HostError("host with a space or several colons; expected a name, or IPv6 in brackets")
    if _MAYBE_IPV4.search(name) and (address := _ipv4(unicodedata.normalize("NFKC", name))):
        return address + colon + port
    return host if host.isascii() else _punycode(name) + colon + port


def _punycode(name: str) -> str:
    """`name` in ASCII by UTS 46, as browsers look it up: with symbols, which IDNA 2008 forbids and registries sell."""
    try:
        labels = idna.uts46_remap(name[: ids.LONGEST_NAME], std3_rules=False).split(".")
        return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels)
    except UnicodeError:
        return name  # which is refused, with the reason


def _ipv4(name: str) -> str | None:
    """The address that a name of numbers means by the WHATWG; None if it means none."""
    parts = name.removesuffix(".").split(".")
    numbers = []
    for part in parts:
        found = _IPV4_PART.fullmatch(part)
        if not found or len(parts) > 4:
            return None
        hexadecimal, octal, decimal = found.groups()
        numbers.append(int(decimal) if decimal else int(octal, 8) if octal else int(hexadecimal or "0", 16))
    *front, last = numbers
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(numbers)):
        return None
    return str(IPv4Address(sum(number << (24 - 8 * at) for at, number in enumerate(front)) + last))


def _path(path: str) -> str:
    if ";" in path:
        path = _SESSION.sub("", path)
    return _without_dots(path or "/")


def _without_dots(path: str) -> str:
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return f"/{'/'.join(kept)}{'/' if kept and segments[-1] in ('.', '..') else ''}"


def _query(query: str) -> str:
    return "&".join([parameter for parameter in query.split("&") if not _FOLLOWER.match(parameter)]) if query else ""


def _spell(found: re.Match[str]) -> str:
    if found[1]:
        return _SPELLED[int(found[1], 16)]
    return "".join(_SPELLED[octet] for octet in found[0].encode(errors="replace"))


def _bounded(url: str, most: int) -> str:
    if len(url) > most:
        raise UrlError(f"URL {_shown(url)} has {len(url):,} characters; expected at most {most:,}")
    return url


def _allowed(entry: str) -> set[str]:
    """The hosts that an entry of a user's list stands for."""
    name = entry.strip()
    if "://" in name or "/" in name:
        raise UrlError(f"allowed host {_shown(name)} is a URL; expected a bare host like example.org or *.example.org")
    stars = "*." if name.startswith("*.") else ""
    if "*" in name.removeprefix(stars) or not name:
        raise UrlError(f"allowed host {_shown(name)}; expected a host like example.org or *.example.org")
    try:
        # Under both schemes: of `example.org:80`, which is example.org to the one, the other keeps the port.
        return {stars + ids.normalise(name.removeprefix(stars), scheme=scheme) for scheme in ("http", "https")}
    except ids.HostError as error:
        raise UrlError(f"allowed {error}") from None


def _suggestion(url: str) -> str:
    if "//" in url:
        return ""
    try:
        return f". Did you mean {_short(normalise(f'https://{url}'))}?"
    except UrlError:
        return ""


def _shown(url: str) -> str:
    """`url` for a message: short, and nothing that stands before an at sign, which may be a password."""
    at = max(url.rfind(sign) for sign in "@\uff20\ufe6b")
    return ("…@" if at >= 0 else "") + _short(repr(url[at + 1 : at + 2 + 120]))


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"
