"""Hosts and URLs, each in exactly one spelling.

Pace, circuit and budget are kept per host, and the ledger is keyed by URL. Two spellings of one host would be
requested twice as fast as it allows; two spellings of one URL would be fetched twice. URLs are read as browsers read
them (WHATWG, by ada-url); then fragments, tracking parameters and session ids are dropped and escapes get one form.
"""

import hashlib
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NewType

import ada_url

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

Host = NewType("Host", str)
"""A host name or address with its port, unless that is the scheme's own: `example.org`, `[::1]:8080`."""

SCHEMES = ("https", "http")
# Hosts are divided into this many partitions wherever their rows are stored; never to be changed.
PARTITIONS = 1024
# Longer URLs are made by loops and not by people; caches, servers and the sitemap protocol draw the line near here.
MAX_URL = 2000
# A URL may shrink when it is normalised (escapes, dot segments, session ids), but the work must be bounded.
MAX_INPUT = 10 * MAX_URL
# A domain name by RFC 1035, with brackets and a port to spare.
MAX_HOST = 261

_ESCAPE = re.compile(r"%(?:([0-9A-Fa-f]{2}))?")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SPELLED = [chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in range(256)]
_SESSION = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
# Parameters that follow the visitor and not the page. The first letter is tested first because that is cheap.
_TRACKING = re.compile(r"(?=[UFGMPJufgmpj])(?i:utm_|(?:fbclid|gclid|msclkid|phpsessid|jsessionid)(?:=|\Z))")
# Not part of a host in any software; what browsers would silently drop or map is refused where a person typed it.
_NOT_IN_HOST = re.compile(r"[\x00-\x20\x7f-\x9f/\\?#%@*\uff20\ufe6b]")
_AT = re.compile(r"[@\uff20\ufe6b]")


class HostError(ValueError):
    """A text is not a host."""


class UrlError(ValueError):
    """A text is not a URL that could be fetched. The message contains no user info."""


def normalise_host(text: str, scheme: str = "https") -> Host:
    """The one spelling of a host: lower case, punycode, no trailing dot, no port that `scheme` implies."""
    name = text.strip(" ")
    if len(name) > 2 * MAX_HOST:
        raise HostError(f"host {_shown(name)} has {len(name)} characters; expected at most {MAX_HOST}")
    if not name or _NOT_IN_HOST.search(name):
        raise HostError(
            f"{_shown(name)} is not a host; expected a name like example.org or an address, perhaps with :PORT"
        )
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"
    try:
        return _host_in(ada_url.normalize_url(f"{scheme}://{name}/"))
    except ValueError:
        raise HostError(
            f"{_shown(name)} is not a host; expected a name like example.org or an address, perhaps with :PORT"
        ) from None


def normalise_host_pattern(text: str) -> str:
    """The one spelling of a host, or of `*.` and the host below which all are meant."""
    below = "*." if text.startswith("*.") else ""
    return below + normalise_host(text.removeprefix("*."))


# A crawl names the same hosts again and again.
@lru_cache(maxsize=4096)
def _host_of_origin(origin: str) -> Host:
    return _host_in(normalise_url(origin + "/"))


def host_of(url: str) -> Host:
    """The host that a request for `url` would go to. Raises UrlError, also for user info in the URL."""
    origin = url[: _end_of_origin(url)]
    if len(origin) > 2 * MAX_HOST:
        raise UrlError(f"URL {_shown(url)} has a host of {len(origin)} characters; expected at most {MAX_HOST}")
    return _host_of_origin(origin)


def _end_of_origin(url: str) -> int:
    start = url.find("//") + 2
    ends = [end for end in (url.find(sign, start) for sign in "/?#\\") if end >= 0]
    return min(ends, default=len(url))


def _host_in(url: str) -> Host:
    """The host of a URL that is normal but for its trailing dot."""
    host = url.split("/", 3)[2]
    name, colon, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    name = name.removesuffix(".")
    if not name or name.endswith(".") or ".." in name or len(name) > MAX_HOST:
        raise HostError(f"host {_shown(host)} has an empty or overlong label")
    return Host(f"{name}{colon}{port}")


def normalise_url(url: str, base: str | None = None, longest: int = MAX_URL) -> str:
    """The one spelling of `url`: absolute, http or https, without fragment. `base` is the page it was found on.

    A link may carry user info, which is dropped; in a URL that a person typed it is refused. Raises UrlError.
    """
    if len(url) > MAX_INPUT:
        raise UrlError(f"URL {_shown(url)} has {len(url):,} characters; expected at most {longest:,}")
    try:
        found = ada_url.URL(url, base)
    except (ValueError, UnicodeError):
        raise UrlError(_fault(url, base)) from None
    scheme = found.protocol.removesuffix(":")
    if scheme not in SCHEMES:
        raise UrlError(f"URL {_shown(url)} has another scheme; expected https:// or http://")
    if (found.username or found.password) and base is None:
        raise UrlError(
            f"URL {_shown(url)} has a user name or password in it; put log-ins under [hosts] in sanderling.toml"
        )
    try:
        host = _host_in(f"//{found.host}")
    except HostError as error:
        raise UrlError(f"URL with {error}") from None
    path, query = found.pathname, found.search
    if "%" in path:
        path = _ESCAPE.sub(_spell, path)
        if "/." in path:  # %2e was spelled out by now
            path = ada_url.URL(path, "http://h/").pathname
    if ";" in path:
        path = _SESSION.sub("", path)
    query = _normalise_query(query[1:]) if query else ""
    normal = f"{scheme}://{host}{path}?{query}" if query else f"{scheme}://{host}{path}"
    if len(normal) > longest:
        raise UrlError(f"URL {_shown(url)} has {len(normal):,} characters; expected at most {longest:,}")
    return normal


def _normalise_query(query: str) -> str:
    if "%" in query:
        query = _ESCAPE.sub(_spell, query)
    return "&".join([parameter for parameter in query.split("&") if not _TRACKING.match(parameter)])


def _spell(escape: re.Match[str]) -> str:
    return _SPELLED[int(escape[1], 16)] if escape[1] else "%25"


def _fault(url: str, base: str | None) -> str:
    if base is None and "//" not in url:
        try:
            meant = f"; did you mean {normalise_url('https://' + url)}?"
        except UrlError:
            meant = ""
        return f"URL {_shown(url)} has no scheme; expected https:// or http://{meant}"
    return f"{_shown(url)} is not a URL; expected something like https://example.org/page"


def origin_of(url: str) -> str:
    """Scheme and host of a normal URL: what one robots.txt is valid for, and where secrets may go."""
    return "/".join(url.split("/", 3)[:3])


def partition_of(host: str) -> int:
    """The partition of `host`, from 0 to 1,023: the last ten bits of BLAKE2b of its name."""
    return int.from_bytes(hashlib.blake2b(host.encode(), digest_size=64).digest()[-2:], "big") % PARTITIONS


def url_key(url: str) -> bytes:
    """The 16 bytes that stand for a normal URL in the ledger: 5 of its host, whose keys lie together, 11 of the URL."""
    host = url.split("/", 3)[2]
    return _host_key(host) + hashlib.blake2b(url.encode(), digest_size=11).digest()


@lru_cache(maxsize=4096)
def _host_key(host: str) -> bytes:
    return hashlib.blake2b(host.encode(), digest_size=5).digest()


def domain_of(host: str) -> str:
    """The registered domain of `host`; the host's name itself for an address or a public suffix."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    name = host.partition(":")[0]
    return _suffixes().privatesuffix(name) or name


def is_public_suffix(name: str) -> bool:
    """Whether anybody may register names below `name`, as below co.uk, so that it shares nothing."""
    return "." not in name or _suffixes().publicsuffix(name) == name


@cache
def _suffixes() -> "PublicSuffixList":
    # Imported here because reading the list takes 40 ms, and most commands do not need it.
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415

    # With the private section: alice.github.io and bob.github.io have two owners, who must not share a penalty.
    # Without unknown suffixes: `db.internal` and `web.internal` have nothing in common that is known.
    return PublicSuffixList(accept_unknown=False, only_icann=False)


def _shown(url: str) -> str:
    """`url` for a message: short, and without what stands before an at sign, which may be a password."""
    ats = list(_AT.finditer(url[:MAX_INPUT]))
    text = repr(url[ats[-1].end() if ats else 0 :][:120])
    return ("…@" if ats else "") + (text if len(text) <= 100 else text[:99] + "…")
