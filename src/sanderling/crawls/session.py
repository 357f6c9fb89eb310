"""The session of a crawl with its hosts: what is set for them, the cookies that they set, and where it is logged in."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sanderling.apis.auth import Basic, Bearer, Digest, FormLogin, reveal
from sanderling.apis.credentials import Answered, Credentials
from sanderling.clock import Clock
from sanderling.fetch.attempts import CookieSender, Fetched, Fetcher, Read, Sends
from sanderling.fetch.cookies import Cookie, CookieJar
from sanderling.fetch.digest import DigestUser
from sanderling.fetch.hosts import HostTable, HostTraffic, split_secrets
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.limit.sharing import EACH, host_pattern, patterns_of
from sanderling.stores.cookie_file import load_cookies, save_cookies
from sanderling.task import Task


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What is set for a host, or for all that a pattern names. A secret is written as `env:NAME` or `file:PATH`."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: Basic | Bearer | Digest | None = None
    login: FormLogin | None = None
    rps: float | None = None  # requests a second to each of them at most
    proxy: str | None = field(default=None, repr=False)  # http://host:port, or env:NAME for one with a password
    cookies: int | None = None  # that each of them may set at most; 0 for none
    plain_http: bool | None = None  # secrets are sent without encryption, too

    def __post_init__(self) -> None:
        if self.rps is not None and not self.rps > 0:
            raise ValueError(f"rps is {self.rps}, expected a number above 0")
        kept = {name: value for name, value in self.headers.items() if not value.startswith(("env:", "file:"))}
        proxy = None if self.proxy is None or self.proxy.startswith(("env:", "file:")) else self.proxy
        HostTraffic(tuple(kept.items()), proxy=proxy, cookies=self.cookies)  # raises for what cannot be sent

    def traffic(self, environment: Mapping[str, str]) -> HostTraffic:
        """The same with its secrets in place. Raises ValueError for one that is not there."""
        headers = {name: reveal(f"header {name}", value, environment) for name, value in self.headers.items() if value}
        hidden = {name for name, value in self.headers.items() if value.startswith(("env:", "file:"))}
        plain, secret = split_secrets(headers)
        plain, secret = (
            tuple(pair for pair in plain if pair[0] not in hidden),
            (*secret, *(pair for pair in plain if pair[0] in hidden)),
        )
        digest = None
        if isinstance(self.auth, Digest):
            digest = DigestUser(*self.auth.secrets(environment))
        elif self.auth is not None:
            placement = self.auth.placement
            secret = (*secret, (placement.name, placement.prefix + self.auth.secret(environment)))
        proxy = None if self.proxy is None else reveal("proxy", self.proxy, environment)
        return HostTraffic(plain, secret, proxy, self.cookies, self.plain_http, digest)


HostPatterns = Mapping[str, HostSettings]


def host_table(hosts: HostPatterns, environment: Mapping[str, str] = os.environ) -> HostTable:
    """What the client needs of the settings. Raises ValueError, with the pattern, for a secret that is not there."""
    rows = {}
    for pattern, settings in hosts.items():
        try:
            rows[pattern] = settings.traffic(environment)
        except ValueError as error:
            raise ValueError(f'hosts."{pattern}": {error}') from None
    return HostTable(rows)


def caps_of(hosts: HostPatterns) -> dict[str, float]:
    """What the limiter needs of them: requests a second at most."""
    return {_spelled(pattern): each.rps for pattern, each in hosts.items() if each.rps is not None}


class CookieStore(Protocol):
    """Where the cookies of a crawl are kept."""

    def load(self) -> Iterable[Cookie]:
        """Those of earlier runs. Raises FolderError."""

    def save(self, cookies: Iterable[Cookie]) -> None:
        """Keep these instead of the ones before. Raises FolderError."""


class FolderCookies:
    """Cookies in a file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> list[Cookie]:
        """Those of earlier runs. Raises FolderError."""
        return load_cookies(self._folder, Cookie)

    def save(self, cookies: Iterable[Cookie]) -> None:
        """Keep these instead of the ones before; on disk when this returns. Raises FolderError."""
        save_cookies(self._folder, cookies)


class CrawlSession:
    """The cookies of one crawl."""

    def __init__(self, kept: CookieStore, table: HostTable, clock: Clock, *, new: bool = False) -> None:
        """In a `new` crawl of a folder, cookies without an end are gone. Raises FolderError."""
        self._jar = CookieJar(table.cookies)
        self._clock = clock
        self._jar.load(kept.load(), clock.wall(), session=not new)

    def sender(self, http: Sends) -> CookieSender:
        """The client with these cookies."""
        return CookieSender(http, self._jar, self._clock)

    def changes(self) -> tuple[Cookie, ...] | None:
        """All cookies, if there is anything to save."""
        return self._jar.changes(self._clock.wall())


class LoginError(Exception):
    """A host does not let us in. The message says which, and why."""


class Logins:
    """A fetcher that logs in where that is set, by the pattern that names fewest hosts.

    `follower` sends what logs in, and follows redirects. `stop` is called when a host does not let us in.
    """

    def __init__(
        self,
        hosts: HostPatterns,
        fetcher: Fetcher,
        follower: Fetcher,
        memory: Memory,
        clock: Clock,
        stop: Callable[[], None],
    ) -> None:
        """Raises LoginError for a secret that is not there."""
        self._fetcher = fetcher
        self._follower = follower
        self._stop = stop
        _check_encrypted(hosts)
        try:
            self._logins = {
                _spelled(pattern): Credentials(each.login, _Any(), clock, memory=memory)
                for pattern, each in hosts.items()
                if each.login is not None
            }
        except ValueError as error:
            raise LoginError(str(error)) from None
        self.cookies_for = fetcher.cookies_for

    async def fetch(self, task: Task, permit: Permit | None = None, read: Read | None = None) -> Fetched | Answered:
        """What came of a task, within the session of its host if there is one."""
        login = None
        if self._logins and permit is not None:
            login = next((self._logins[each] for each in patterns_of(task.host) if each in self._logins), None)
        if login is None or permit is None:
            return await self._fetcher.fetch(task, permit, read)
        answered = await login.fetch(self._fetcher, task, permit, read, tokens=self._follower)
        if login.denied:
            self._stop()
        return answered

    async def close(self) -> None:
        """Wait for log-ins that are on their way. Raises LoginError if one was denied."""
        for each in self._logins.values():
            await each.close()
        if why := next((each.denied for each in self._logins.values() if each.denied), ""):
            raise LoginError(f"{why}. Nothing is lost: put the log-in right and run again.")


def _check_encrypted(hosts: HostPatterns) -> None:
    for pattern, each in hosts.items():
        said = each.plain_http if each.plain_http is not None or EACH not in hosts else hosts[EACH].plain_http
        if each.login is not None and each.login.page[:5].lower() == "http:" and not said:
            raise LoginError(
                f'hosts."{pattern}": the page of its log-in is http://, and passwords go to https:// alone. Name it by'
                " https://, or set plain-http = true there"
            )


class _Any:
    """All hosts: which of them a log-in is for was decided before."""

    def __contains__(self, host: object) -> bool:
        return True


def _spelled(pattern: str) -> str:
    return pattern if pattern == EACH else host_pattern(pattern)
