"""Fill the directory over the network: from the log of did:plc, or from a relay and the hosts that it knows.

The log is the word of the accounts themselves. What hosts list is only their own: where the log was ever applied, a
listing adds DIDs and moves none. Both ways go on where they were stopped.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from sanderling.apis.atproto import ListedHost, ListedHosts, ListedRepo, ListedRepos, export, list_hosts, list_repos
from sanderling.clock import Clock
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.redact import redact_url
from sanderling.repos import plc
from sanderling.repos.directory import DirectoryEntry, SqliteDirectory
from sanderling.repos.plc import EndpointError, ImportTally
from sanderling.stores.durable import sync_folder, write_new
from sanderling.task import Reply, Task

PATIENCE = 600.0  # seconds for the log or the relay to become well again
HOST_PATIENCE = 60.0  # and for one host among thousands
PAUSE = 5.0  # seconds, where nobody said how long to wait
AT_ONCE = 50  # hosts
SAVE_EVERY = 2.0  # seconds
MOST_PAGES = 20_000  # of one listing: twenty million rows, and no host has a tenth of that
ASKED = frozenset({"active", "idle", "throttled"})  # what a relay calls hosts that may have something for us
SHOWN = 20  # hosts that failed, described one by one

T = TypeVar("T")


class UpdateError(Exception):
    """The directory could not be filled to the end. The message says who said what."""


@dataclass(frozen=True, slots=True)
class UpdateResources:
    """What an update is made with. `plain` takes hosts without TLS too."""

    fetcher: Fetcher
    limiter: Limiter
    clock: Clock
    disk: Executor
    plain: bool = False

    async def answer(self, task: Task, patience: float) -> Reply:
        """The reply, after as much patience as may be. Raises UpdateError."""
        until = self.clock.now() + patience
        while True:
            fetched = await self.fetcher.fetch(task)
            if fetched.reply is not None and fetched.outcome.code is Code.OK:
                return fetched.reply
            wait = max(PAUSE, self.limiter.ready_at(task.host) - self.clock.now())
            if not _may_change(fetched.outcome) or self.clock.now() + wait > until:
                raise UpdateError(f"{task.host}: {_said(fetched.outcome)}")
            await self.clock.sleep(wait)


def _may_change(outcome: Outcome) -> bool:
    return outcome.code is Code.DEFERRED or outcome.worth_retrying


def _said(outcome: Outcome) -> str:
    return " ".join(str(part) for part in (outcome.code, outcome.status, outcome.detail) if part)


# The log.


async def follow_log(
    tools: UpdateResources, directory: SqliteDirectory, url: str, watch: Callable[[ImportTally], None] = lambda _: None
) -> ImportTally:
    """Apply the log from where the directory stands to its end; `watch` is called on the way. Raises UpdateError."""
    tally, cursor = ImportTally(), await tools.disk(directory.cursor)
    while True:
        reply = await tools.answer(export(url, _behind(cursor)), PATIENCE)
        operations = list(plc.read(reply.body.splitlines(keepends=True), tally, plain=tools.plain))
        if not operations:
            if reply.body.strip():
                found = tally.shown[-1][1] if tally.shown else "nothing that was one"
                raise UpdateError(f"{redact_url(url)}: expected operations, found {found}")
            return tally
        after = tally.cursor
        await tools.disk(directory.apply, operations, after)
        watch(tally)
        if after == cursor:
            return tally
        cursor = after


def _behind(cursor: str) -> str:
    """What to ask for. By time, a millisecond earlier: others of that very one may have been on the next page."""
    if not cursor or cursor.isdecimal():
        return cursor or "0"
    try:
        at = datetime.fromisoformat(cursor) - timedelta(milliseconds=1)
    except ValueError:
        raise UpdateError(f"the directory's cursor is {cursor[:40]!r}, expected a number or a time") from None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Listings.


@dataclass(slots=True)
class HostListing:
    """What hosts have listed."""

    hosts: int = 0
    done: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # hosts that were not asked, by reason
    repos: int = 0
    added: int = 0  # DIDs that are at another host than was known, or at one for the first time
    bad: int = 0  # rows without a DID
    failed: int = 0  # hosts
    shown: list[str] = field(default_factory=list)  # the first of these, and what they said


class _Kept(msgspec.Struct):
    """How far a listing came: what the next run needs to go on."""

    relay: str
    hosts: dict[str, str | None]  # by URL, where to go on; None for one that was listed to its end


class RelayListing:
    """Lists the repos of all hosts that a relay knows. `kept` is a file that says how far, while it is not done."""

    def __init__(self, tools: UpdateResources, directory: SqliteDirectory, relay: str, kept: Path) -> None:
        self.listed = HostListing()
        self._tools = tools
        self._directory = directory
        self._relay = relay.rstrip("/")
        self._path = kept
        self._kept = _Kept(self._relay, {})
        self._saved = tools.clock.now()
        self._logged = False  # whether the log was ever applied

    async def run(self, watch: Callable[[HostListing], None] = lambda _: None) -> HostListing:
        """List all of it; `watch` is called on the way. Raises UpdateError if the relay cannot be had."""
        disk = self._tools.disk
        self._logged = await disk(self._directory.cursor) != ""
        self._kept = await disk(_load, self._path, self._relay)
        if not self._kept.hosts:
            await self._hosts()
        self.listed.hosts = len(self._kept.hosts)
        todo = iter([url for url, cursor in self._kept.hosts.items() if cursor is not None])
        self.listed.done = sum(1 for cursor in self._kept.hosts.values() if cursor is None)
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work(todo, watch))
        await disk(_finish if self.listed.done == self.listed.hosts else _save, self._path, self._kept)
        return self.listed

    async def _hosts(self) -> None:
        scheme, cursor = self._relay.partition("://")[0], ""
        for _ in range(MOST_PAGES):
            reply = await self._tools.answer(list_hosts(self._relay, cursor), PATIENCE)
            page = _decoded(reply, ListedHosts)
            for host in page.hosts:
                self._meet(host, scheme)
            if not page.cursor or page.cursor == cursor:
                break
            cursor = page.cursor

    def _meet(self, host: ListedHost, scheme: str) -> None:
        if host.status not in ASKED:
            self.listed.left_out[f"the relay says {host.status[:20]}"] += 1
            return
        try:
            self._kept.hosts[plc.host_at(f"{scheme}://{host.hostname}", plain=self._tools.plain)] = ""
        except EndpointError as error:
            self.listed.left_out[error.reason] += 1

    async def _work(self, todo: Iterator[str], watch: Callable[[HostListing], None]) -> None:
        for url in todo:
            try:
                await self._list(url, watch)
            except UpdateError as error:
                self.listed.failed += 1
                self.listed.shown += [str(error)] if len(self.listed.shown) < SHOWN else []
            watch(self.listed)

    async def _list(self, url: str, watch: Callable[[HostListing], None]) -> None:
        for _ in range(MOST_PAGES):
            cursor = self._kept.hosts[url] or ""
            page = _decoded(await self._tools.answer(list_repos(url, cursor), HOST_PATIENCE), ListedRepos)
            self.listed.added += await self._tools.disk(self._put, url, page.repos)
            self.listed.repos += len(page.repos)
            self._kept.hosts[url] = page.cursor or None
            await self._save_now_and_then()
            watch(self.listed)
            if not page.cursor:
                self.listed.done += 1
                return
            if page.cursor == cursor:
                raise UpdateError(f"{redact_url(url)}: its listing goes in a circle")
        raise UpdateError(f"{redact_url(url)}: its listing does not end")

    def _put(self, url: str, repos: list[ListedRepo]) -> int:
        """At the desk: what is news in a page; how much that was."""
        good = [repo for repo in repos if plc.is_did(repo.did)]
        self.listed.bad += len(repos) - len(good)
        known = self._directory.hosts_of([repo.did for repo in good])
        # An account that has moved away is often still listed where it was, and is not active there.
        moves = {repo.did for repo in good if repo.active and not self._logged and known.get(repo.did) != url}
        news = [DirectoryEntry(repo.did, url) for repo in good if repo.did not in known or repo.did in moves]
        self._directory.put(news)
        return len(news)

    async def _save_now_and_then(self) -> None:
        now = self._tools.clock.now()
        if now - self._saved >= SAVE_EVERY:
            self._saved = now
            await self._tools.disk(_save, self._path, self._kept)


def _decoded(reply: Reply, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UpdateError(f"{redact_url(reply.url)[:200]}: {str(error)[:200]}") from None


def _load(path: Path, relay: str) -> _Kept:
    """What an earlier run has kept of this relay, if it can be read; else nothing, and it begins again."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return _Kept(relay, {})
    return kept if kept.relay == relay else _Kept(relay, {})


def _save(path: Path, kept: _Kept) -> None:
    write_new(path, [msgspec.json.encode(kept)])
    sync_folder(path.parent)


def _finish(path: Path, _kept: _Kept) -> None:
    path.unlink(missing_ok=True)
