"""Cookies by RFC 6265 and its successor draft 6265bis: which are taken from a response, and which go with a request.

*Host-only*: sent to the host that set it, and to none below it. *Group*: the cookies of one domain.

Neither `http.cookiejar` nor aiohttp's jar would do: one or both send host-only cookies to hosts below, take cookies for
`co.uk`, take Secure ones over http, ignore the prefixes `__Host-` and `__Secure-`, rewrite values, and know no bounds.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.fetch.messages import Headers
from sanderling.files import FolderError, read_small
from sanderling.ids import HostError, host_of, is_public_suffix, normalise_host

LARGEST = 4096  # bytes of name and value; 6265bis, 5.6
LONGEST_ATTRIBUTE = 1024  # bytes
LONGEST_LINE = 8192  # bytes of a Set-Cookie header
LONGEST_LIFE = 400 * 86_400.0  # seconds; 6265bis, 5.5
PER_DOMAIN = 50  # 6265bis, 6.1: at least as many
IN_ALL = 20_000
# Bytes of a Cookie header. nginx and Apache refuse lines above 8 KB: a site, or whoever can set cookies for it, could
# lock us out with two of 4 KB. The largest are left out first: what lets somebody in is short.
LARGEST_HEADER = 8000
SLIDING = 3600.0  # seconds that an end may move without being written anew

_UNUSABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_DOMAIN = re.compile(r"\s|\.$")
_MAX_AGE = re.compile(r"-?[0-9]{1,18}")
_DELIMITER = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY, _YEAR = re.compile(r"([0-9]{1,2})(?![0-9])"), re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Cookie(msgspec.Struct, array_like=True, omit_defaults=True):
    """One cookie. Its repr is without the value, which may let somebody in."""

    name: str
    value: str
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: float | None  # by the wall clock; None: as long as the crawl
    created: float
    setter: str = ""  # the host that set it, with whose row it is stored
    used: int = 0  # when it was last set or sent, by count

    def __repr__(self) -> str:
        return f"<Cookie {self.name[:40]!r} of {self.domain}{self.path}>"

    @property
    def pair(self) -> str:
        """As it is sent."""
        return f"{self.name}={self.value}" if self.name else self.value

    def ended(self, wall: float) -> bool:
        """Whether it is over."""
        return self.expires is not None and self.expires <= wall


def read_cookie_file(path: Path, pattern: str) -> Iterator[tuple[str, Headers]]:
    """Of a browser's cookies.txt those of the hosts that a pattern names: a URL that could have set each, and how.

    Raises FolderError for a file of another kind.
    """
    try:
        lines = read_small(path, 16 << 20).decode().splitlines()
    except UnicodeDecodeError:
        lines = ["?"]
    host = pattern.removeprefix("*.")
    for number, line in enumerate(lines, 1):
        text = line.removeprefix("#HttpOnly_")
        if not text.strip() or text.startswith("#"):
            continue
        parts = text.split("\t")
        if len(parts) != 7 or not parts[4].lstrip("-").isdecimal():
            raise FolderError(
                f"{path}, line {number}: no cookie of a cookies.txt", "export it from the browser in Netscape's form"
            )
        domain, below, place, secure, expires, name, value = parts
        bare = domain.lstrip(".").lower()
        if bare == host or bare.endswith(f".{host}"):
            said = f"{name}={value}; Path={place}" + ("; Secure" if secure == "TRUE" else "")
            said += f"; Domain={bare}" if below == "TRUE" else ""
            if expires != "0":
                said += f"; Expires={format_datetime(datetime.fromtimestamp(int(expires), UTC), usegmt=True)}"
            yield f"https://{bare}{place}", (("Set-Cookie", said),)


class _Place(NamedTuple):
    """Where a request goes, as cookies see it: ports do not count."""

    host: str
    path: str
    secure: bool


def _place(url: str) -> _Place:
    path = url.split("/", 3)[3].partition("?")[0]
    return _Place(_name(host_of(url)), f"/{path}", url.startswith("https:"))


_Key = tuple[str, str, bool]  # name, path, host-only


class CookieJar:
    """The cookies of a crawl."""

    def __init__(self, per_domain: int = PER_DOMAIN, most: int = IN_ALL) -> None:
        self._per_domain = per_domain
        self._most = most
        self._groups: dict[str, dict[_Key, Cookie]] = {}
        self._secure: Counter[str] = Counter()  # names of Secure cookies
        self._count = 0
        self._uses = 0
        self._latest = 0.0  # when the last of them was made
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<CookieJar {len(self)} cookies of {len(self._groups)} domains>"

    def header(self, url: str, wall: float) -> str:
        """The Cookie header for a normal URL; "" if no cookie is for it."""
        if not self._groups:
            return ""
        place = _place(url)
        found = [each for each in self._for(place, wall) if place.secure or not each.secure]
        room, fitting = LARGEST_HEADER, list[Cookie]()
        for each in sorted(found, key=lambda cookie: len(cookie.pair)):
            room -= len(each.pair.encode()) + 2
            if room < 0:
                break
            fitting.append(each)
            self._use(each)
        fitting.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        return "; ".join([each.pair for each in fitting])

    def learn(self, url: str, headers: Headers, wall: float) -> None:
        """Take what the response for a URL sets."""
        # By length first: every header of every response comes by here.
        lines = [value for name, value in headers if len(name) == 10 and name.lower() == "set-cookie"]
        if not lines:
            return
        place, domains = _place(url), set[str]()
        for line in lines:
            cookie = _read(line, place, wall)
            if cookie is not None and not self._covers_secure(cookie, place):
                cookie.setter = host_of(url)
                self._store(cookie, wall)
                domains.add(cookie.domain)
        for domain in domains:
            self._bound(domain, wall)
        if self._count > self._most:
            self._make_room(wall)

    def changed(self) -> set[str]:
        """Hosts that set or ended a cookie since this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    def saved(self, host: str, wall: float) -> bytes | None:
        """The cookies that a host has set, for `restore`; None if there is none."""
        groups = [self._groups.get(domain, {}) for domain in _above(_name(host))]
        found = [each for group in groups for each in group.values() if each.setter == host and not each.ended(wall)]
        return msgspec.msgpack.encode(found) if found else None

    def restore(self, saved: bytes, wall: float) -> None:
        """Take up what `saved` returned. Raises ValueError for anything else."""
        for each in msgspec.msgpack.decode(saved, type=list[Cookie]):
            if not each.ended(wall):
                self._put(each)
        if self._count > self._most:
            self._make_room(wall)

    # One cookie.

    def _store(self, cookie: Cookie, wall: float) -> None:
        old = self._groups.get(cookie.domain, {}).get(_key(cookie))
        if cookie.ended(wall):
            if old is not None:
                self._drop(old)
            return
        # Of those that one response sets, the first is the oldest.
        self._latest = max(cookie.created, self._latest + 1e-6)
        cookie.created = self._latest if old is None else old.created
        self._put(cookie)
        if old is None or not _is_same(old, cookie):
            self._changed.add(cookie.setter)

    def _put(self, cookie: Cookie) -> None:
        group, key = self._groups.setdefault(cookie.domain, {}), _key(cookie)
        old = group.get(key)
        self._count += old is None
        self._secure[cookie.name] += cookie.secure - (old is not None and old.secure)
        group[key] = cookie
        self._use(cookie)

    def _use(self, cookie: Cookie) -> None:
        self._uses += 1
        cookie.used = self._uses

    def _drop(self, cookie: Cookie) -> None:
        group = self._groups[cookie.domain]
        self._secure[cookie.name] -= cookie.secure
        if not self._secure[cookie.name]:
            del self._secure[cookie.name]
        del group[_key(cookie)]
        self._count -= 1
        self._changed.add(cookie.setter)
        if not group:
            del self._groups[cookie.domain]

    def _for(self, place: _Place, wall: float) -> Iterator[Cookie]:
        """Those that the host and the path of a request let through."""
        for domain in _above(place.host):
            for each in self._groups.get(domain, {}).values():
                foreign = each.host_only and domain != place.host
                if not foreign and not each.ended(wall) and _is_below(place.path, each.path):
                    yield each

    def _covers_secure(self, cookie: Cookie, place: _Place) -> bool:
        """Whether it comes by http and would stand in for a Secure one: 6265bis, 5.7, step 16."""
        if place.secure or not self._secure[cookie.name]:
            return False
        return any(
            each.secure and each.name == cookie.name and _is_below(cookie.path, each.path)
            for domain, group in self._groups.items()
            if _matches(domain, cookie.domain) or _matches(cookie.domain, domain)
            for each in group.values()
        )

    # Too many.

    def _bound(self, domain: str, wall: float) -> None:
        """Drop what a domain has too many of: what is over, then what is not Secure, then what was used longest ago."""
        group = self._groups.get(domain, {})
        if len(group) > self._per_domain:
            order = sorted(group.values(), key=lambda each: (not each.ended(wall), each.secure, each.used))
            for each in order[: len(group) - self._per_domain]:
                self._drop(each)

    def _make_room(self, wall: float) -> None:
        """Drop what is over, then of the largest groups what was used longest ago, until a tenth is free.

        So a stranger with many hosts cannot push out the few cookies of a host where we are logged in.
        """
        ranked: list[tuple[bool, int, int, Cookie]] = []
        for group in self._groups.values():
            latest = sorted(group.values(), key=lambda each: -each.used)
            ranked += [(not each.ended(wall), -rank, each.used, each) for rank, each in enumerate(latest)]
        ranked.sort(key=lambda row: row[:3])
        for *_, each in ranked[: self._count - self._most * 9 // 10]:
            self._drop(each)


def _key(cookie: Cookie) -> _Key:
    return cookie.name, cookie.path, cookie.host_only


def _is_same(old: Cookie, new: Cookie) -> bool:
    """Whether nothing worth writing has changed."""
    if (old.value, old.secure) != (new.value, new.secure) or old.expires is None or new.expires is None:
        return (old.value, old.secure, old.expires) == (new.value, new.secure, new.expires)
    return abs(old.expires - new.expires) < SLIDING


def _name(host: str) -> str:
    """A host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


@lru_cache(4096)
def _above(host: str) -> tuple[str, ...]:
    """A host and the domains above it; of an address, that alone."""
    labels = [] if _is_address(host) else host.split(".")[:128]
    return (host, *(".".join(labels[start:]) for start in range(1, len(labels))))


def _matches(host: str, domain: str) -> bool:
    """RFC 6265, 5.1.3."""
    return host == domain or (host.endswith(f".{domain}") and not _is_address(host))


def _is_address(host: str) -> bool:
    if not host.endswith("]") and not host[-1:].isdigit():
        return False
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _is_below(path: str, of: str) -> bool:
    """RFC 6265, 5.1.4."""
    return path == of or (path.startswith(of) and (of.endswith("/") or path[len(of)] == "/"))


def _read(line: str, place: _Place, wall: float) -> Cookie | None:
    """The cookie that a Set-Cookie line sets; None for one that is ignored. 6265bis, 5.6 and 5.7."""
    if len(line) > LONGEST_LINE or _UNUSABLE.search(line):
        return None
    pair, _, rest = line.partition(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(" \t"), value.strip(" \t")) if equals else ("", name.strip(" \t"))
    if not (name or value) or len(name.encode()) + len(value.encode()) > LARGEST:
        return None
    said = dict(_attributes(rest))  # the last of a name counts
    domain = _domain(said.get("domain", ""), place.host)
    if domain is None:
        return None
    path = said.get("path", "")
    cookie = Cookie(
        name,
        value,
        domain=domain or place.host,
        path=path if path.startswith("/") else place.path[: place.path.rfind("/")] or "/",
        host_only=not domain,
        secure="secure" in said,
        expires=_end(said, wall),
        created=wall,
    )
    return cookie if _is_allowed(cookie, place, path) else None


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(";"):
        name, _, value = part.partition("=")
        name, value = name.strip(" \t").lower(), value.strip(" \t")
        usable = len(value.encode()) <= LONGEST_ATTRIBUTE
        if name == "max-age":
            usable = _MAX_AGE.fullmatch(value) is not None
        if name == "expires":
            usable = _date(value) is not None
        if usable:
            yield name, value


def _is_allowed(cookie: Cookie, place: _Place, path: str) -> bool:
    """Secure ones come by https only, and a name with a prefix keeps what the prefix says."""
    if cookie.secure and not place.secure:
        return False
    lower = cookie.name.lower()
    if not lower:
        # Whoever reads the header would take one with an equals sign for a name.
        return "=" not in cookie.value and not cookie.value.lower().startswith(("__secure-", "__host-"))
    if lower.startswith("__host-"):
        return cookie.secure and cookie.host_only and path == "/"
    return cookie.secure or not lower.startswith("__secure-")


def _domain(text: str, host: str) -> str | None:
    """The domain that a cookie is for; "" for the host alone, None if it may not be for that."""
    text = text.removeprefix(".")
    if not text:
        return ""
    if _NO_DOMAIN.search(text) or (":" in text and not text.endswith("]")):  # with a port
        return None
    try:
        domain = normalise_host(text)
    except HostError:
        return None
    if is_public_suffix(domain) or _is_address(domain):
        return "" if domain == host else None
    return domain if _matches(host, domain) else None


def _end(said: dict[str, str], wall: float) -> float | None:
    """When a cookie is over. Max-Age counts before Expires, and neither for more than 400 days."""
    if (age := said.get("max-age")) is not None:
        return wall + min(float(age), LONGEST_LIFE)
    if (date := said.get("expires")) is not None:
        return min(_date(date) or 0.0, wall + LONGEST_LIFE)
    return None


def _date(text: str) -> float | None:
    """When a date is, in whichever of many spellings: 6265bis, 5.1.1; None if it is none."""
    time = day = month = year = None
    for token in _DELIMITER.split(text[:LONGEST_ATTRIBUTE]):
        if time is None and (found := _TIME.match(token)):
            time = int(found[1]), int(found[2]), int(found[3])
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    if year < 1601:
        return None
    try:
        return datetime(year, month, day, *time, tzinfo=UTC).timestamp()
    except ValueError:
        return None
