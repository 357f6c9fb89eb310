"""Cookies by RFC 6265 and its successor draft 6265bis: which are taken from a reply, and which go with a request. Pure.

Terms. *Host-only*: sent to the host that set it, and to none below it. *Session cookie*: one without an end; it lasts
as long as the crawl. *Group*: the cookies of one domain.

Neither `http.cookiejar` nor aiohttp's jar would do: one or both send host-only cookies to hosts below, take cookies for
`co.uk`, take Secure ones over http, ignore the prefixes `__Host-` and `__Secure-`, and rewrite values.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from sanderling.ids import HostError, is_public_suffix, normalise
from sanderling.task import Headers, Task

LARGEST = 4096  # bytes of name and value; 6265bis, 5.6
LONGEST_ATTRIBUTE = 1024  # bytes
LONGEST_LIFE = 400 * 86_400.0  # seconds; 6265bis, 5.5
PER_DOMAIN = 50  # 6265bis, 6.1: at least as many
IN_ALL = 3000
SPARED = 0.9  # of IN_ALL is left when it is full: what is sorted once makes room for hundreds
# Bytes of a Cookie header. nginx and Apache refuse lines above 8 KB: a site, or whoever can set cookies for it, could
# lock us out with two of 4 KB. The largest are left out first: what lets somebody in is short.
LARGEST_HEADER = 8000
SLIDING = 3600.0  # seconds that an end may move without being written anew

# What can neither be sent nor kept: the client has surrogates for bytes that are no UTF-8.
_UNUSABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_NO_DOMAIN = re.compile(r"\s|\.$|:(?!.*\]$)")  # also with a dot at its end, or a port
_MAX_AGE = re.compile(r"-?[0-9]+")
_DELIMITER = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY, _YEAR = re.compile(r"([0-9]{1,2})(?![0-9])"), re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Cookie(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One cookie. Its repr is without the value, which may let somebody in."""

    name: str
    value: str
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: float | None  # by the wall clock; None for a session cookie
    created: float

    def __repr__(self) -> str:
        return f"<Cookie {self.name[:40]!r} of {self.domain}{self.path}>"

    @property
    def pair(self) -> str:
        """As it is sent."""
        return f"{self.name}={self.value}" if self.name else self.value

    def ended(self, wall: float) -> bool:
        """Whether it is over."""
        return self.expires is not None and self.expires <= wall


class _Origin(NamedTuple):
    """Where a request goes, as cookies see it: ports do not count."""

    host: str
    path: str
    secure: bool

    @classmethod
    def of(cls, task: Task) -> "_Origin":
        parts = urlsplit(task.url)
        return cls(_name(task.host), parts.path or "/", parts.scheme.lower() == "https")


_Key = tuple[str, str, bool]  # name, path, host-only


class CookieJar:
    """The cookies of one crawl. `most_of` says how many a host may set; 0 for none."""

    def __init__(self, most_of: Callable[[str], int] = lambda _: PER_DOMAIN, most: int = IN_ALL) -> None:
        self._most_of = most_of
        self._most = most
        self._groups: dict[str, dict[_Key, Cookie]] = {}
        self._used: dict[tuple[str, _Key], int] = {}  # when each was last set or sent, by count
        self._secure: Counter[str] = Counter()  # names of Secure cookies
        self._latest = 0.0  # when the last of them was made
        self._clock = 0
        self._unsaved = False

    def __len__(self) -> int:
        return len(self._used)

    def __repr__(self) -> str:
        return f"<CookieJar {len(self)} cookies of {len(self._groups)} domains>"

    def header(self, task: Task, wall: float) -> str:
        """What goes into the Cookie header of a task; nothing if no cookie is for it."""
        if not self._groups or self._groups.keys().isdisjoint(_above(_name(task.host))):  # as for most hosts
            return ""
        origin = _Origin.of(task)
        found = [each for each in self._for(origin, wall) if each.secure <= origin.secure]
        if not found:
            return ""
        room, fitting = LARGEST_HEADER, set[int]()
        for each in sorted(found, key=lambda cookie: len(cookie.pair)):
            if (room := room - len(each.pair.encode()) - 2) < 0:
                break
            fitting.add(id(each))
            self._use(each)
        found.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        return "; ".join(each.pair for each in found if id(each) in fitting)

    def put(self, task: Task, wall: float) -> Task:
        """The task with its cookies; those that it names itself stay as they are."""
        header = self.header(task, wall)
        if not header:
            return task
        own = next((value for name, value in task.headers if name.lower() == "cookie"), "")
        if own:
            names = {each.partition("=")[0].strip() for each in own.split(";")}
            more = [each for each in header.split("; ") if each.partition("=")[0] not in names]
            header = "; ".join([own, *more])
        rest = tuple(pair for pair in task.headers if pair[0].lower() != "cookie")
        return replace(task, headers=(*rest, ("Cookie", header)))

    def learn(self, task: Task, headers: Headers, wall: float) -> None:
        """Take what the reply to a task sets."""
        # By length first: every header of every reply comes by here.
        lines = [value for name, value in headers if len(name) == 10 and name.lower() == "set-cookie"]
        if not lines:
            return
        origin = _Origin.of(task)
        most, domains = self._most_of(task.host), set[str]()
        for line in lines if most else ():
            cookie = _read(line, origin, wall)
            if cookie is not None and not self._covers_secure(cookie, origin):
                self._store(cookie, wall)
                domains.add(cookie.domain)
        for domain in domains:
            self._bound(domain, most, wall)
        if len(self) > self._most:
            self._make_room(wall)

    def changes(self, wall: float) -> tuple[Cookie, ...] | None:
        """All cookies, if one of them has changed since they were last asked for; else None."""
        if not self._unsaved:
            return None
        self._unsaved = False
        return tuple(each for group in self._groups.values() for each in group.values() if not each.ended(wall))

    def load(self, cookies: Iterable[Cookie], wall: float, *, session: bool = True) -> None:
        """Take up what an earlier run had; without `session`, only those with an end."""
        for each in cookies:
            if not each.ended(wall) and (session or each.expires is not None):
                self._put(each)
        if len(self) > self._most:
            self._make_room(wall)

    # One cookie.

    def _store(self, cookie: Cookie, wall: float) -> None:
        old = self._groups.get(cookie.domain, {}).get(_key(cookie))
        if cookie.ended(wall):
            if old is not None:
                self._drop(old)
                self._unsaved = True
            return
        # Of those that one reply sets, the first is the oldest.
        self._latest = max(cookie.created, self._latest + 1e-6)
        self._put(msgspec.structs.replace(cookie, created=self._latest if old is None else old.created))
        self._unsaved = self._unsaved or old is None or not _is_same(old, cookie)

    def _put(self, cookie: Cookie) -> None:
        group, key = self._groups.setdefault(cookie.domain, {}), _key(cookie)
        self._secure[cookie.name] += cookie.secure - (key in group and group[key].secure)
        group[key] = cookie
        self._use(cookie)

    def _use(self, cookie: Cookie) -> None:
        self._clock += 1
        self._used[cookie.domain, _key(cookie)] = self._clock

    def _drop(self, cookie: Cookie) -> None:
        group, key = self._groups[cookie.domain], _key(cookie)
        self._secure[cookie.name] -= group[key].secure
        if not self._secure[cookie.name]:
            del self._secure[cookie.name]
        del group[key], self._used[cookie.domain, key]
        if not group:
            del self._groups[cookie.domain]

    def _for(self, origin: _Origin, wall: float) -> Iterator[Cookie]:
        """Those that the host and the path of a request let through."""
        for domain in _above(origin.host):
            for each in self._groups.get(domain, {}).values():
                alien = each.host_only and domain != origin.host
                if not alien and not each.ended(wall) and _is_below(origin.path, each.path):
                    yield each

    def _covers_secure(self, cookie: Cookie, origin: _Origin) -> bool:
        """Whether it comes by http and would stand in for a Secure one: 6265bis, 5.7, step 16."""
        if origin.secure or cookie.secure or not self._secure[cookie.name]:
            return False
        near = (
            each
            for domain, group in self._groups.items()
            if _matches(domain, cookie.domain) or _matches(cookie.domain, domain)
            for each in group.values()
        )
        return any(each.secure and each.name == cookie.name and _is_below(cookie.path, each.path) for each in near)

    # Too many.

    def _bound(self, domain: str, most: int, wall: float) -> None:
        """Drop what a domain has too many of: what is over, then what is not Secure, then what was used longest ago."""
        group = self._groups.get(domain, {})
        if (excess := len(group) - most) <= 0:
            return
        order = sorted(group.values(), key=lambda each: (not each.ended(wall), each.secure, self._when(each)))
        for each in order[:excess]:
            self._drop(each)

    def _make_room(self, wall: float) -> None:
        """Drop what is over, then of the largest groups what was used longest ago.

        So a stranger with many hosts cannot push out the few cookies of a host where we are logged in.
        """
        ranked: list[tuple[bool, int, int, Cookie]] = []
        for group in self._groups.values():
            latest = sorted(group.values(), key=self._when, reverse=True)
            ranked += [(not each.ended(wall), -rank, self._when(each), each) for rank, each in enumerate(latest)]
        ranked.sort(key=lambda row: row[:3])
        for *_, each in ranked[: len(ranked) - int(SPARED * self._most)]:
            self._drop(each)
        self._unsaved = True

    def _when(self, cookie: Cookie) -> int:
        return self._used[cookie.domain, _key(cookie)]


def _key(cookie: Cookie) -> _Key:
    return cookie.name, cookie.path, cookie.host_only


def _is_same(old: Cookie, new: Cookie) -> bool:
    """Whether nothing worth writing has changed."""
    if (old.value, old.secure, old.expires is None) != (new.value, new.secure, new.expires is None):
        return False
    return old.expires is None or new.expires is None or abs(old.expires - new.expires) < SLIDING


def _name(host: str) -> str:
    """A host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _above(host: str) -> Iterator[str]:
    """A host and the domains above it; of an address, that alone."""
    yield host
    if not _is_address(host):
        while "." in host:
            host = host.partition(".")[2]
            yield host


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


def _read(line: str, origin: _Origin, wall: float) -> Cookie | None:
    """The cookie that a Set-Cookie line sets; None for one that is ignored. 6265bis, 5.6 and 5.7."""
    if _UNUSABLE.search(line):
        return None
    pair, _, rest = line.partition(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(" \t"), value.strip(" \t")) if equals else ("", name.strip(" \t"))
    if not (name or value) or len(name.encode()) + len(value.encode()) > LARGEST:
        return None
    said = dict(_attributes(rest))  # the last of a name counts
    domain = _domain(said.get("domain", ""), origin.host)
    if domain is None:
        return None
    path = said.get("path", "")
    cookie = Cookie(
        name,
        value,
        domain=domain or origin.host,
        path=path if path.startswith("/") else _default_path(origin.path),
        host_only=not domain,
        secure="secure" in said,
        expires=_end(said, wall),
        created=wall,
    )
    return cookie if _is_allowed(cookie, origin, path) else None


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


def _is_allowed(cookie: Cookie, origin: _Origin, path: str) -> bool:
    """Secure ones come by https only, and a name with a prefix keeps what the prefix says."""
    if cookie.secure and not origin.secure:
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
    if _NO_DOMAIN.search(text):
        return None
    try:
        domain = normalise(text)
    except HostError:
        return None
    if is_public_suffix(domain) or _is_address(domain):
        return "" if domain == host else None
    return domain if _matches(host, domain) else None


def _default_path(path: str) -> str:
    """RFC 6265, 5.1.4."""
    return path[: path.rfind("/")] or "/" if path.startswith("/") else "/"


def _end(said: dict[str, str], wall: float) -> float | None:
    """When a cookie is over. Max-Age counts before Expires, and neither for more than 400 days."""
    if (age := said.get("max-age")) is not None:
        seconds = -1.0 if age.startswith("-") else float(min(int(age[:12]), LONGEST_LIFE))
        return wall + seconds if seconds > 0 else 0.0
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
