"""The loop: page the directory, take turns among hosts, ask, read, keep; then come back to what failed.

`_pump` gives out work whenever something has changed, and never waits. A host that may not be asked now has its place
among the turns at the time it may, so neither a slow nor a blocked one holds up the others. Repos are read and packed
in threads; what bodies hold in memory is bounded.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from sanderling.apis.atproto import Category, get_latest_commit, get_repo, latest_rev, why_not
from sanderling.clock import Clock, Timer
from sanderling.engine.workers import Workers
from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.ids import HostError, host_of
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.repos.books import Archived, Books
from sanderling.repos.directory import Directory
from sanderling.repos.dispatcher import HostRepos, HostTurns
from sanderling.repos.feeding import Feeder
from sanderling.repos.measures import Measures
from sanderling.repos.packing import pack
from sanderling.repos.rules import RepoRules
from sanderling.repos.since import EarlierRevs
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.ports import Progress

SOON = 0.01  # seconds; to look again at a host whose own retries stand in line
SHUT = 5.0  # seconds; who may not be asked for longer is closed, and not only at its pace
NOT_NOW = frozenset({Code.RATE_LIMITED, Code.DEFERRED})
MOST_DEFERRALS = 20  # of one DID; a host that does nothing but put us off is asked again in the next pass
FEW_HOSTS = 50  # while fewer have work, more pages are read ahead than usual, up to FAR of them
AHEAD, FAR = 10, 50  # pages
MOST_SKIPPED = 1_000_000  # DIDs of hosts that are away, which wait in memory; more wait for the next pass
PROBES = 4  # the part of all workers that may wait for blocked hosts: one in so many


@dataclass(frozen=True, slots=True)
class Stores:
    """Where a crawl reads and writes."""

    directory: Directory
    progress: Progress
    books: Books
    earlier: EarlierRevs | None = None  # what it has already need not be archived again


@dataclass(frozen=True, slots=True)
class Hands:
    """Who does the slow work: `disk` in order and one at a time, `cores` as many at once as there are."""

    disk: Desk
    cores: Desk
    memory: Memory


class RepoCrawl:
    """One crawl. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, stores: Stores, fetcher: Fetcher, limiter: Limiter, hands: Hands, *, rules: RepoRules, clock: Clock
    ) -> None:
        self.rules = rules
        self.limiter = limiter
        self.hosts: dict[str, HostRepos] = {}
        self.ended: Counter[str] = Counter()  # by category, or "archived"
        self.records = 0
        self.dropped: Counter[str] = Counter()  # records of repos that were archived without them, by why
        self.measures = Measures()
        self.inflight = 0
        self.waiting = 0
        self._stores = stores
        self._fetcher = fetcher
        self._hands = hands
        self.clock = clock
        self._turns = HostTurns(rules.workers // PROBES)
        self._deferred: Counter[str] = Counter()  # how often a DID was put off
        self._skipped = 0  # DIDs that wait until a blocked host answers
        self._timer: Timer | None = None
        self._fed = False  # whether the directory, or what failed before, was read to its end
        self._stopping = False
        self._feeds = True  # whether anything more is wanted of the directory, or of what failed
        self.wanted = NOTHING
        self._moved = asyncio.Event()  # something has changed for who waits to feed
        self._over = asyncio.Event()
        self._group = Workers()
        directory, progress, water = stores.directory, stores.progress, stores.books.water
        self._feeder = Feeder(directory, progress, water, hands.disk, self.measures, rules.page_size)

    async def run(self) -> bool:
        """Crawl until every DID was seen to or it was stopped; whether it is complete."""
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self._stores.books.write(self._written))
            async with self._group:
                await self._pass(self._feeder.feed_directory(self._room_for_a_page, self._feed))
                again = self.rules.passes > 1
                while self._feeds and (again or self.waiting):
                    await self._pass(self._feed_failed())
                    again = self._another_pass
            self._stores.books.close()
        return self._feeds

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopping, self._feeds = True, False
        self._written()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. What is in flight comes to its end."""
        before, self.wanted = self.wanted, wanted
        rested = before.paused and not wanted.paused
        for host in self.hosts.values():
            if rested or str(host.name) in before.hosts - wanted.hosts:
                host.refused_since = None  # nobody has asked it meanwhile
                self._line_up(host, self.clock.now())
        self._stopping, self._feeds = self._stopping or wanted.ending == "stop", self._feeds and not wanted.ending
        self._written()

    def _written(self) -> None:
        """Something has changed: there may be room again, and work to give out."""
        self._moved.set()
        self._pump()

    # Feeding.

    async def _pass(self, feed: Awaitable[None]) -> None:
        """Feed all there is, and return when nothing of it is in flight, or waits for a host that answers."""
        self._fed = False
        self._over.clear()
        await feed
        self._fed = True
        self._pump()
        await self._over.wait()
        # What is kept and not written yet would be found among what failed before, and archived a second time.
        await self._stores.books.settled()

    async def _feed_failed(self) -> None:
        """What failed and may go otherwise, once more; of hosts that have come to the end of their pass."""
        busy = {url for url, host in self.hosts.items() if not host.may_begin(self.rules.passes)}
        for url in self.hosts.keys() - busy:
            self._skipped -= len(self.hosts[url].skipped)
            self.hosts[url].begin_pass()
        await self._feeder.feed_failed(self._room_for_a_page, self._feed, busy)

    async def _room_for_a_page(self) -> bool:
        """Return when more may be read; False if nothing more is wanted."""
        while self._feeds and self._far_ahead:
            self._moved.clear()
            await self._moved.wait()
        return self._feeds

    @property
    def _far_ahead(self) -> bool:
        """Whether enough waits. Where few hosts have work, others may be further on in the directory."""
        if not AHEAD < self.waiting / self.rules.page_size <= FAR:
            return self.waiting > AHEAD * self.rules.page_size
        # Nobody is looked for: there may be a hundred thousand hosts, and this is asked with every answer.
        return len(self._turns) >= FEW_HOSTS

    def _feed(self, entries: Sequence[tuple[str, str]]) -> None:
        by_host: dict[str, list[str]] = {}
        for did, url in entries:
            if did in self.rules.leave_out.dids:
                self._note(did, Category.LEFT_OUT)
            else:
                by_host.setdefault(url, []).append(did)
        now = self.clock.now()
        for url, dids in by_host.items():
            if self.rules.leave_out.has_host(url):
                for did in dids:
                    # For now: it may move to another host, and that one may be asked.
                    self._note(did, Category.LEFT_OUT, for_good=False)
                continue
            host = self._host(url)
            if host is None:
                for did in dids:
                    self._note(did, Category.REFUSED)
                continue
            host.feed(dids)
            self.waiting += len(dids)
            self._retime(host)
            self._skip_if_blocked(host)
            self._line_up(host, now)
        self._pump()

    def _host(self, url: str) -> HostRepos | None:
        """The host of that address; None if it is none."""
        if url not in self.hosts:
            try:
                self.hosts[url] = HostRepos(url, host_of(url))
            except HostError:
                return None
        return self.hosts[url]

    # Giving out work.

    def _pump(self) -> None:
        now = self.clock.now()
        while self._has_room and (host := self._turns.next(now)) is not None:
            self._serve(host, now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._turns.due()
        if due is not None and self._has_room:
            self._timer = self.clock.call_later(max(0.0, due - now), self._pump)
        if self.inflight == 0 and (self._stopping or (self._fed and self._pass_is_over())):
            self._over.set()

    @property
    def _has_room(self) -> bool:
        free = self._group.open and not self._stopping and not self.wanted.paused
        return free and self.inflight < self.rules.workers and not self._stores.books.crowded

    def _serve(self, host: HostRepos, now: float) -> None:
        if not host.dids or str(host.name) in self.wanted.hosts:
            return  # one that is left alone is given a turn again when it is let go
        permit = self.limiter.try_acquire(host.name)
        if permit is None:
            if host.asking or not self._left_refusing(host):  # the answer that is on its way says when
                self._turns.add(host, max(self.limiter.turn_at(host.name), now + SOON))
            return
        did = host.dids.popleft()
        self.waiting -= 1
        self.inflight += 1
        host.asking += 1
        self.measures.dispatched += 1
        self._group.create_task(self._ask(host, did, permit))
        self._line_up(host, now)

    def _line_up(self, host: HostRepos, now: float) -> None:
        # A blocked host is asked one thing at a time.
        most = 1 if host.blocked else self.rules.per_host
        if host.dids and host.asking < most:
            self._turns.add(host, now)

    # Asking.

    async def _ask(self, host: HostRepos, did: str, permit: Permit) -> None:
        started, probe = self.clock.now(), host.blocked
        self._turns.probing += probe
        if await self._has_changed(host, did, permit):
            fetched = await self._fetcher.fetch(get_repo(host.url, did), permit if permit.live else None)
            await self._settle(host, did, fetched, started)
            self._let_go(fetched)
        self.inflight -= 1
        self._turns.probing -= probe
        host.asking -= 1
        now = self.clock.now()
        self.measures.durations.add(now - started)
        if host.turn is not None:
            self._turns.hasten(host, self.limiter.turn_at(host.name))
        self._line_up(host, now)
        self._written()

    async def _has_changed(self, host: HostRepos, did: str, permit: Permit) -> bool:
        """Whether the repo must be asked for; if not, what became of it is noted. Asks only if there is an archive."""
        rev = "" if self._stores.earlier is None else await self._hands.cores(self._stores.earlier.rev, did)
        if not rev:
            return True
        asked_at = self.clock.now()
        fetched = await self._fetcher.fetch(get_latest_commit(host.url, did), permit)
        self._let_go(fetched)
        if fetched.reply is None or fetched.outcome.code in NOT_NOW:
            # Who does not answer that will not give us a repo either.
            await self._settle(host, did, fetched, asked_at)
            return False
        if fetched.outcome.code is not Code.OK or latest_rev(fetched.reply.body) != rev:
            if not self._is_shut(host):
                return True
            # It has refused others meanwhile. To wait here for the second leave would hold a worker for as long.
            await self._settle(host, did, Fetched(Outcome(Code.DEFERRED), None, 0), asked_at)
            return False
        self._welcome(host)
        self._note(did, Category.UNCHANGED)
        return False

    def _let_go(self, fetched: Fetched) -> None:
        if fetched.reply is not None:
            self._hands.memory.release(fetched.reply.url)

    async def _settle(self, host: HostRepos, did: str, fetched: Fetched, asked_at: float) -> None:
        outcome, reply = fetched.outcome, fetched.reply
        if reply is not None and outcome.code is Code.OK:
            self._welcome(host)
            await self._archive(host, did, reply.body)
        elif outcome.code in NOT_NOW and self._deferred[did] < MOST_DEFERRALS:
            self._deferred[did] += 1
            self.waiting += 1
            host.put_back(did, refused_at=asked_at if outcome.code is Code.RATE_LIMITED else None)
            self._left_refusing(host)
        else:
            category = why_not(outcome, reply)
            if category.blames_host:
                self._blame(host, category, asked_at)
            elif category is not Category.RATE_LIMITED:
                self._welcome(host)
            if host.blocked and host.answered:
                host.dids.append(did)  # it has not failed, and is the next probe
                self.waiting += 1
            else:
                self._note(did, category)
            self._skip_if_blocked(host)
        self._retime(host)

    def _welcome(self, host: HostRepos) -> None:
        """It answers: what was skipped while it was away is asked for at once."""
        host.succeeded()
        host.dids.extend(host.skipped)
        self.waiting += len(host.skipped)
        self._skipped -= len(host.skipped)
        host.skipped.clear()

    def _blame(self, host: HostRepos, category: Category, asked_at: float) -> None:
        now, shut = self.clock.now(), self._is_shut(host)
        self.measures.blocked += host.failed(category, now, asked_at=asked_at, shut_at=now if shut else None)
        if host.answered and self.limiter.is_down(host.name):
            self.limiter.probe_now(host.name)  # ten that failed in a row may have been ten bad repos

    async def _archive(self, host: HostRepos, did: str, car: bytes) -> None:
        at = int(self.clock.wall() * 1e6)
        packed = await self._hands.cores(pack, car, did, host.url, at, self.rules)
        if isinstance(packed, Category):
            self._note(did, packed)
            return
        stats = packed.stats
        if stats.missing and host.passes < self.rules.passes:
            # It may have been written to while it was sent. Who sends no more of it the last time does not have it.
            self._note(did, Category.INCOMPLETE)
            return
        self._deferred.pop(did, None)
        self.ended["archived"] += 1
        self.records += stats.records
        self.dropped.update(missing=stats.missing, bad_record=stats.bad_records, bad_key=stats.bad_keys)
        self.measures.archived(packed)
        self._stores.books.keep(Archived(did, packed.block))

    def _note(self, did: str, category: Category, *, for_good: bool = True) -> None:
        self._deferred.pop(did, None)
        self.ended[category.value] += 1
        self._stores.books.note(did, category, for_good=for_good)

    def _skip_if_blocked(self, host: HostRepos) -> None:
        """What waits for a blocked host is noted as failing like it, and comes back when it answers, or in a pass."""
        if host.blocked:
            probe = host.dids.pop() if host.dids else None
            if host.answered and self._skipped < MOST_SKIPPED:
                self._skipped += len(host.dids)
                host.skipped.extend(host.dids)
            self._leave(host)
            host.dids.extend([] if probe is None else [probe])

    def _pass_is_over(self) -> bool:
        """With nothing in flight: whether nothing waits, or only for hosts that no other with a pass left may wait for.

        Those that are blocked are left then; those that refuse us, or that somebody wants left alone, go on waiting.
        """
        if self.waiting == 0 or self.wanted.paused:
            return self.waiting == 0
        rest = [host for host in self.hosts.values() if host.dids]
        blocked = [host for host in rest if host.blocked]
        held = [host for host in rest if host.refused_since is not None or str(host.name) in self.wanted.hosts]
        if len({*blocked, *held}) < len(rest) or any(host.is_awaited(self.rules.patience) for host in blocked):
            return False
        for host in blocked:
            self._leave(host)
        return self.waiting == 0 or self._another_pass

    def _is_shut(self, host: HostRepos) -> bool:
        return self.limiter.ready_at(host.name) - self.clock.now() > SHUT

    @property
    def _another_pass(self) -> bool:
        """Whether a host that has come to the end of its pass has one left."""
        return any(host.may_begin(self.rules.passes) for host in self.hosts.values())

    def _left_refusing(self, host: HostRepos) -> bool:
        """Leave a host that will have refused us, or failed, for longer than our patience when it may be asked next."""
        since = self.clock.now() if host.refused_since is None else host.refused_since
        if self.limiter.ready_at(host.name) - since <= self.rules.patience:
            return False
        self._leave(host, None if host.refused_since is None else Category.RATE_LIMITED)
        return True

    def _leave(self, host: HostRepos, category: Category | None = None) -> None:
        """Note all that waits for the host, for a later pass; by default as failing like it."""
        self.waiting -= len(host.dids)
        while host.dids:
            self._note(host.dids.popleft(), category or host.trouble or Category.UNAVAILABLE)

    def _retime(self, host: HostRepos) -> None:
        rps = host.rate(self.rules.usual_rps)
        if host.cap != rps:
            host.cap = rps
            self.limiter.cap(host.name, rps, f"hosts of {host.size:,} repos get {rps:g} a second")
