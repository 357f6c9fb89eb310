"""The loop: whose turn is it, may we, ask, read, keep.

`_pump` gives out work. It is called whenever something has changed, and never waits. A host that may not be asked now
has its place among the turns at the time it may, so it idles nobody. What came of it all is kept by `books`.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass

from sanderling.clock import Clock, Timer
from sanderling.fetch.attempts import Fetched, Fetcher, Sends, moves
from sanderling.fetch.classify import retry_soon
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.flow.turns import Turns
from sanderling.flow.workers import Workers
from sanderling.ids import host_of
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.asking import Asking
from sanderling.pages.books import Books
from sanderling.pages.deciding import Deciding
from sanderling.pages.discovery import Discovery
from sanderling.pages.folder import CrawlFolder, State
from sanderling.pages.hosts import HostQueue
from sanderling.pages.permissions import Permissions
from sanderling.pages.robots import Robots
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import origin_of
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.frontier_rows import End, Queued

NOT_NOW = frozenset({Code.RATE_LIMITED, Code.DEFERRED})  # the host will take it later: neither a try nor a failure
MOST_HELD = 512  # URLs of one host in memory, those that were put off among them
SOON = 0.01  # seconds; to look again at a host whose own retries stand in line


@dataclass(frozen=True, slots=True)
class Hands:
    """Who does the slow work, in order and one at a time, and what bodies may hold until they are read."""

    desk: Desk
    memory: Memory


class Crawl:
    """One crawl of one folder. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, folder: CrawlFolder, http: Sends, limiter: Limiter, *, rules: CrawlRules, clock: Clock, hands: Hands
    ) -> None:
        http = http if rules.leave_out is None else rules.leave_out.before(http)
        self.folder = folder
        self.rules = rules
        self.limiter = limiter
        self.books = Books(folder, hands.desk, clock)
        self.hosts: dict[str, HostQueue] = {}
        self.inflight = 0
        self.counts = Counter(folder.ledger.counts())
        self.clock = clock
        self._memory = hands.memory
        follower = Fetcher(http, limiter, clock=clock)
        self.permissions = Permissions(follower, self.books, hands.memory, clock, rules.robots_held)
        self._asking = Asking(http, limiter, self.permissions, hands.memory, clock)
        self._discovery = Discovery(folder, self.books)
        self._deciding = Deciding(self.books, self._discovery, clock, self.counts)
        self._turns: Turns[HostQueue] = Turns()
        self._timer: Timer | None = None
        self._stopping = False
        self.wanted = NOTHING
        self._over = asyncio.Event()
        self._group = Workers()

    async def run(self) -> bool:
        """Crawl until nothing waits, the page limit is reached, or it was stopped; whether it is complete."""
        if self.folder.state is not State.RESUMED:
            for url in self.folder.plan.seeds:
                self.books.offer(url, host_of(url), 0)
        if self.rules.leave_out is not None:
            self.counts[End.LEFT_OUT] -= sum(self.folder.ledger.reopen(End.LEFT_OUT).values())
        self.folder.ledger.clear_aside()
        self._welcome(self.folder.ledger.waiting())
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self.books.keep(self._welcome, self._refilled))
            async with self._group:
                self._pump()
                await self._over.wait()
            self.books.close()
        await self.books.commit()
        self.counts.subtract(self.books.unhanded)
        left = self._limit_reached and not self._stopping
        if left:
            self.counts[End.LEFT] += await self.books.ask(self.folder.ledger.leave)
        return (left or not self._stopping) and not self.books.unhanded and not self.set_aside

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopping = True
        self._pump()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those. What is in flight comes to its end."""
        freed, self.wanted = self.wanted.hosts - wanted.hosts, wanted
        for name in freed & self.hosts.keys():
            self._line_up(self.hosts[name], self.clock.now())
        self._pump()

    @property
    def bytes(self) -> int:
        """How many bytes of documents this run has read."""
        return self._deciding.bytes

    @property
    def waiting(self) -> int:
        """How many URLs are still to be asked for, as far as they are known."""
        return sum(host.held + host.on_disk for host in self.hosts.values()) + self.set_aside

    @property
    def set_aside(self) -> int:
        """How many URLs wait for hosts that did not answer; the next run asks for them."""
        return sum(host.aside for host in self.hosts.values())

    # Giving out work.

    def _welcome(self, new: dict[str, int]) -> None:
        """New URLs are on disk, so many for each host."""
        for name, number in new.items():
            host = self.hosts.get(name)
            if host is None:
                host = self.hosts[name] = HostQueue(name)
            if host.given_up:
                host.aside += number
                continue
            host.on_disk += number
            if not host.fresh:
                self.books.want(host)
        self.books.sharing = max(1, len(self._turns))
        self._pump()

    def _refilled(self, hosts: list[HostQueue]) -> None:
        now = self.clock.now()
        for host in hosts:
            if host.fresh:
                self._turns.hasten(host, now)  # it may have had nothing but what was put off
            self._line_up(host, now)
        self._pump()

    def _pump(self) -> None:
        """Give out all the work that can be given out now, and see to it that somebody comes back for the rest."""
        now = self.clock.now()
        while self._has_room and (host := self._turns.next(now)) is not None:
            self._serve(host, now)
        self.books.hungry = not len(self._turns) and self.inflight < self.rules.together
        self.books.still = not (len(self._turns) or self.inflight)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._turns.due()
        if due is not None and self._has_room:
            self._timer = self.clock.call_later(max(0.0, due - now), self._pump)
        if self.inflight == 0 and (self._stopping or self._limit_reached or self._exhausted):
            self._over.set()

    @property
    def _has_room(self) -> bool:
        if self._stopping or self._over.is_set() or self.inflight >= self.rules.together or self.books.crowded:
            return False
        if self.wanted.paused or not self._group.open:
            return False
        limit = self.rules.max_pages
        return limit is None or self._pages + self.inflight < limit

    @property
    def _pages(self) -> int:
        return self.counts[End.FETCHED] + self.counts[End.UNCHANGED]

    @property
    def _limit_reached(self) -> bool:
        return self.rules.max_pages is not None and self._pages >= self.rules.max_pages

    @property
    def _exhausted(self) -> bool:
        return len(self._turns) == 0 and self.books.idle and all(host.done for host in self.hosts.values())

    def _serve(self, host: HostQueue, now: float) -> None:
        """It is this host's turn: ask for one URL of it, if one may be asked for."""
        if host.name in self.wanted.hosts or self._is_hopeless(host, now):
            return  # it is given a turn again when it is let go, or when what is in flight comes back
        closed = self.limiter.is_down(host.name)
        if host.good is not None and (closed or host.doubtful):
            self._probe(host, host.good, now)
            return
        full = host.asking >= self.rules.per_host
        queued = None if full else self._next_allowed(host, now, probe=closed)
        if queued is None:
            self._line_up(host, now)
            return
        permit = self.limiter.try_acquire(host.name)
        if permit is None:
            host.put_back(queued)
            self._turns.add(host, max(self.limiter.ready_at(host.name), now + SOON))
            return
        self.inflight += 1
        if self.permissions.known(origin_of(queued.url)) is None:
            host.closed = True
            self._group.create_task(self._learn_robots(host, queued, permit))
            return
        host.asking += 1
        self._group.create_task(self._ask(host, queued, permit))
        self._line_up(host, now)

    def _is_hopeless(self, host: HostQueue, now: float) -> bool:
        """Whether nothing more is asked of the host in this run; then what waits for it is seen to."""
        wait = self.limiter.ready_at(host.name) - now
        if not host.hopeless(wait, self.rules):
            return False
        if host.asking or host.loading:
            # What is in flight may take minutes, in which the host may recover, unless it has told us to stay away.
            return wait > self.rules.patience
        host.closed = True
        self._group.create_task(self._give_up(host))
        return True

    def _probe(self, host: HostQueue, url: str, now: float) -> None:
        """Ask a closed host for what it has answered before: what closed it may be broken for good."""
        permit = self.limiter.try_acquire(host.name)
        if permit is None:
            self._turns.add(host, max(self.limiter.ready_at(host.name), now + SOON))
            return
        self.inflight += 1
        host.asking += 1
        host.strikes = 0
        self._group.create_task(self._ask_probe(host, url, permit))
        self._line_up(host, now)

    def _next_allowed(self, host: HostQueue, now: float, *, probe: bool) -> Queued | None:
        """The next URL that nothing known forbids: neither our own list nor robots.txt. Those it does are decided."""
        while (queued := host.take(now, probe=probe)) is not None:
            if self.rules.leave_out is not None and (why := self.rules.leave_out.why(queued.url, host.name)):
                self._deciding.end(host, queued, Outcome(Code.REFUSED, detail=f"left out: {why}"[:200]), End.LEFT_OUT)
                continue
            origin = origin_of(queued.url)
            if host.withholds(queued, origin, now):
                continue
            known = self.permissions.known(origin)
            if known is None or known.allows(queued.url):
                return queued
            self._deciding.refuse(host, queued, known)
        return None

    def _line_up(self, host: HostQueue, now: float) -> None:
        """Give the host its next turn, if it has something to ask for and is not busy enough."""
        if host.on_disk and host.fresh < 16 and host.held < MOST_HELD:
            self.books.want(host)
        due = host.due()
        if due is None or host.closed:
            return
        if host.asking < self.rules.per_host:
            self._turns.add(host, max(due, now))
        elif host.fresh and host.turn is None:
            self._turns.add(host, self._asking.make_room(host, self.rules.per_host))

    # Asking.

    async def _ask(self, host: HostQueue, queued: Queued, permit: Permit) -> None:
        fetched = await self._asking.ask(host, queued, permit)
        await self._settle(host, queued, fetched)
        self._returned(host, fetched)

    async def _ask_probe(self, host: HostQueue, url: str, permit: Permit) -> None:
        fetched = await self._asking.probe(url, permit)
        host.probed(fetched.outcome, self.clock.now())
        self._returned(host, fetched)

    def _returned(self, host: HostQueue, fetched: Fetched) -> None:
        """Let go of the reply; the host may be asked for something else."""
        if fetched.reply is not None:
            self._memory.release(fetched.reply.url)
        host.asking -= 1
        if host.turn is not None:
            # While a probe is out nobody knows when the host may be asked; its answer says so.
            ready = self.limiter.ready_at(host.name)
            hopeless = not host.asking and host.hopeless(ready - self.clock.now(), self.rules)
            self._turns.hasten(host, self.clock.now() if hopeless else ready)
        self._back(host)

    def _back(self, host: HostQueue) -> None:
        """A request has come to its end."""
        self.inflight -= 1
        self._line_up(host, self.clock.now())
        self._pump()

    async def _settle(self, host: HostQueue, queued: Queued, fetched: Fetched) -> None:
        """Decide what became of the URL, or when to ask again."""
        outcome, reply, now = fetched.outcome, fetched.reply, self.clock.now()
        if reply is not None and moves(reply):
            host.spoke(now)
            await self._deciding.move(host, queued, reply)
        elif reply is not None and (outcome.code is Code.OK or record.confirmed(queued, outcome)):
            host.spoke(now)
            await self._deciding.keep(host, queued, outcome, reply)
        elif outcome.code in NOT_NOW:
            if outcome.code is Code.RATE_LIMITED:
                host.failed(outcome, now)
            host.put_off(queued, now)
        elif retry_soon(outcome):
            if not host.has_failed(queued):
                host.failed(outcome, now)
                host.strikes += 1
            self._try_again(host, queued, outcome, now)
        else:
            if outcome.status:
                host.spoke(now)  # a 404 is an answer
            self._deciding.end(host, queued, outcome, End.FAILED)

    def _try_again(self, host: HostQueue, queued: Queued, outcome: Outcome, now: float) -> None:
        """Later, unless it was tried often enough and is itself to blame."""
        tries, delays = host.tried(queued, now, slow=outcome.code is Code.TIMEOUT), self.rules.again
        if tries > len(delays) and host.blames(queued):
            self._deciding.end(host, queued, outcome, End.FAILED)
        else:
            host.put_off(queued, now + delays[min(tries, len(delays)) - 1])

    # robots.txt, and hosts that do not answer.

    async def _learn_robots(self, host: HostQueue, queued: Queued, permit: Permit) -> None:
        """Find out what the host allows. If that was in the ledger, the permit is good for the URL itself."""
        origin = origin_of(queued.url)
        learned, now = await self.permissions.learn(origin, permit), self.clock.now()
        if isinstance(learned, Outcome):
            host.put_back(queued)
            host.failed(learned, now)
            if learned.code is Code.REFUSED:  # by our own guard, which does not change its mind
                await self._give_up(host)
            elif host.shut_out(origin, now, self.rules):
                await self.books.set_aside(host, learned)
            host.closed = False
            self._back(host)
            return
        host.closed = False
        host.let_in(origin)
        self._heed(host, queued, learned, asked=not permit.live)
        if permit.live and learned.allows(queued.url):
            host.asking += 1
            self._line_up(host, now)
            await self._ask(host, queued, permit)
            return
        if permit.live:
            permit.release()
            self._deciding.refuse(host, queued, learned)  # at once: these rules may soon have to make room for others
        else:
            host.put_back(queued)
        self._back(host)

    def _heed(self, host: HostQueue, queued: Queued, known: Robots, *, asked: bool) -> None:
        """Take notice of what robots.txt says beside its rules, when it was asked for, or met for the first time."""
        scheme, now = queued.url.partition("://")[0], self.clock.now()
        if asked:
            host.spoke(now)
        elif scheme in host.heeded:
            return
        else:
            host.answered = now if host.answered is None else host.answered  # in an earlier run
        host.heeded = tuple({*host.heeded, scheme})
        if known.delay:
            asks = f"robots.txt asks for {known.delay:g} s between requests"
            self.limiter.cap(host.name, 1 / known.delay, asks)
        self._discovery.announce(known.sitemaps, f"{scheme}://{host.name}/", 0)

    async def _give_up(self, host: HostQueue) -> None:
        """Leave what waits for a host that does not answer to the next run; if it never will answer, decide it."""
        asked = Outcome(Code.RATE_LIMITED, detail="asked to be left alone, in an earlier run")
        reason = host.trouble or asked
        if reason.final:
            self.counts[End.FAILED] += await self.books.give_up(host, reason)
            host.drop()  # what was taken from the ledger before it was decided there
        else:
            await self.books.set_aside(host, reason)
            host.set_aside()
        host.closed = False
        self._pump()
