"""What is set for some hosts: headers that go with each request to them, a proxy, and how many cookies they may set."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from yarl import URL

from sanderling.fetch.cookies import PER_DOMAIN
from sanderling.fetch.digest import DigestUser
from sanderling.limit.sharing import EACH, host_pattern, patterns_of
from sanderling.redact import is_secret
from sanderling.task import Headers, Task

REMEMBERED = 65_536  # hosts of which it is remembered what is set for them


@dataclass(frozen=True, slots=True)
class HostTraffic:
    """How one host is asked; None stands for what is not set.

    `secrets` are headers that nobody else may see: they go by https alone, unless `plain_http`.
    """

    headers: Headers = ()
    secrets: Headers = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)  # http://host:port; may hold a password
    cookies: int | None = None  # that it may set at most; 0 for none
    plain_http: bool | None = None
    digest: DigestUser | None = None  # whom it is told by a proof, as its 401 wants it

    def __post_init__(self) -> None:
        try:
            Task("http://host.example/", headers=(*self.headers, *self.secrets))
        except ValueError as error:
            raise ValueError(f"headers: {error}") from None
        if self.proxy is not None and (URL(self.proxy).scheme != "http" or not URL(self.proxy).host):
            raise ValueError("proxy is none, expected http://host:port")  # never shown: it may hold a password
        if self.cookies is not None and self.cookies < 0:
            raise ValueError(f"cookies is {self.cookies}, expected 0 or more")

    def under(self, other: "HostTraffic") -> "HostTraffic":
        """The same, where `other`, which is set for fewer hosts, says nothing else."""
        return HostTraffic(
            _merge(self.headers, other.headers),
            _merge(self.secrets, other.secrets),
            self.proxy if other.proxy is None else other.proxy,
            self.cookies if other.cookies is None else other.cookies,
            self.plain_http if other.plain_http is None else other.plain_http,
            self.digest if other.digest is None else other.digest,
        )

    def headers_for(self, task: Task) -> Headers:
        """The headers that a task is sent with; its own count before those that are set."""
        secrets = self.secrets if self.may_tell(task) else ()
        return _merge((*self.headers, *secrets), task.headers)

    def may_tell(self, task: Task) -> bool:
        """Whether a task may carry a secret."""
        return bool(self.plain_http) or task.url[:6].lower() == "https:"

    def without_secrets(self, headers: Iterable[tuple[str, str]], task: Task) -> Headers:
        """The headers of a request as they may be kept: without those that hold a secret of ours."""
        if not self.secrets and not task.secrets and self.digest is None:
            return tuple(headers)
        hidden = task.secrets | {name.lower() for name, _ in self.secrets} | {"authorization"}
        return tuple(pair for pair in headers if pair[0].lower() not in hidden)


NOTHING = HostTraffic()


class HostTable:
    """What is set, by pattern: `api.example.org`, `*.example.org` for that and all below it, or `*` for each host.

    Of several patterns that name a host, the longest counts most. Raises ValueError for what is no pattern.
    """

    def __init__(self, rows: Mapping[str, HostTraffic] | None = None) -> None:
        named = (rows or {}).items()
        self._rows = {pattern if pattern == EACH else host_pattern(pattern): row for pattern, row in named}
        self.of = lru_cache(REMEMBERED)(self._find) if self._rows else _find_nothing
        self.proxies = frozenset(URL(row.proxy).host or "" for row in self._rows.values() if row.proxy)

    def _find(self, host: str) -> HostTraffic:
        """What is set for a host."""
        found = NOTHING
        for pattern in reversed(patterns_of(host)):
            if pattern in self._rows:
                found = found.under(self._rows[pattern])
        return found

    def is_proxy(self, host: str) -> bool:
        """Whether a host is one of the proxies, on whichever port."""
        return host in self.proxies or host.rpartition(":")[0] in self.proxies

    def cookies(self, host: str) -> int:
        """How many cookies a host may set."""
        most = self.of(host).cookies
        return PER_DOMAIN if most is None else most


def _find_nothing(_host: str) -> HostTraffic:
    return NOTHING


NO_HOSTS = HostTable()


def split_secrets(headers: Mapping[str, str]) -> tuple[Headers, Headers]:
    """Headers that anybody may see, and those whose name says that they hold a secret."""
    secret = tuple((name, value) for name, value in headers.items() if is_secret(name))
    return tuple((name, value) for name, value in headers.items() if not is_secret(name)), secret


def _merge(first: Headers, then: Headers) -> Headers:
    """Both, without what of the first the second has anew."""
    names = {name.lower() for name, _ in then}
    return (*(pair for pair in first if pair[0].lower() not in names), *then)
