"""The loop: whose turn is it, may we, ask, read, keep.

`_pump` gives out work. It is called whenever something has changed, and never waits. A host that may not be asked now
has its place among the turns at the time it may, so it idles nobody. What came of it all is kept by `books`.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from sanderling.clock import Clock, Timer
from sanderling.fetch.attempts import MOST_HOPS, Fetched, Fetcher, Sends, moves
from sanderling.fetch.classify import retry_soon
from sanderling.flow.desk import Desk
from sanderling.flow.turns import Turns
from sanderling.ids import host_of
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.books import Books
from sanderling.pages.ends import End, Queued
from sanderling.pages.folder import CrawlFolder, State
from sanderling.pages.hosts import HostQueue
from sanderling.pages.permissions import Permissions
from sanderling.pages.robots import LONGEST_DELAY, Robots
from sanderling.pages.urls import Scope, UrlError, normalise, trap
from sanderling.task import Reply, Task

NOT_NOW = frozenset({Code.RATE_LIMITED, Code.DEFERRED})  # the host will take it later: neither a try nor a failure
BIG = 2**20  # bytes of a body
SOON = 0.01  # seconds; to look again at a host whose own retries stand in line


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """How a crawl goes about it. Times in seconds."""

    together: int = 256  # requests in flight, over all hosts
    per_host: int = 8  # and to one of them: the limiter sets the pace, this bounds what a slow one can hold
    max_pages: int | None = None
    # Until what failed is tried once more, on top of the fetch's own tries; the last again and again, while the host
    # seems to be at fault.
    again: tuple[float, ...] = (3.0, 15.0, 60.0)
    patience: float = 600.0  # with a host that does not answer any more, or that asks us to stay away
    first_patience: float = 15.0  # with one that never answered: most likely it does not exist


class Crawl:
    """One crawl of one folder. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, folder: CrawlFolder, http: Sends, limiter: Limiter, *, rules: CrawlRules, clock: Clock, desk: Desk
    ) -> None:
        self.folder = folder
        self.rules = rules
        self.limiter = limiter
        self.books = Books(folder, desk, clock)
        self.hosts: dict[str, HostQueue] = {}
        self.inflight = 0
        self.bytes = 0
        self.counts = Counter(folder.ledger.counts())
        self._clock = clock
        self._scope = Scope.of(folder.plan.seeds, (*folder.plan.allow, *folder.moved_hosts), folder.plan.depth)
        self._fetcher = Fetcher(http, limiter, clock=clock, follow=False)
        self._follower = Fetcher(http, limiter, clock=clock)
        self._permissions = Permissions(self._follower, self.books, clock)
        self._turns: Turns[HostQueue] = Turns()
        self._hops: dict[str, int] = {}  # redirects on the way to a URL that waits
        self._timer: Timer | None = None
        self._stopping = False
        self._over = asyncio.Event()
        self._group = asyncio.TaskGroup()

    async def run(self) -> bool:
        """Crawl until nothing waits, the page limit is reached, or it was stopped; whether it is complete."""
        if self.folder.state is not State.RESUMED:
            for url in self.folder.plan.seeds:
                self.books.offer(url, host_of(url), 0)
        self._welcome(self.folder.ledger.waiting())
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self.books.keep(self._welcome, self._refilled))
            async with self._group:
                self._pump()
                await self._over.wait()
            self.books.close()
        await self.books.commit()
        left = self._limit_reached and not self._stopping
        if left:
            self.counts[End.LEFT] += await self.books.ask(self.folder.ledger.leave)
        return left or not self._stopping

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopping = True
        self._pump()

    @property
    def waiting(self) -> int:
        """How many URLs are still to be asked for, as far as they are known."""
        return sum(host.held + host.on_disk for host in self.hosts.values())

    # Giving out work.

    def _welcome(self, new: dict[str, int]) -> None:
        """New URLs are on disk, so many for each host."""
        for name, number in new.items():
            host = self.hosts.get(name)
            if host is None:
                host = self.hosts[name] = HostQueue(name)
            host.on_disk += number
            if host.turn is None and not host.held:
                self.books.want(host)
        self.books.sharing = max(1, len(self._turns))
        self._pump()

    def _refilled(self, hosts: list[HostQueue]) -> None:
        now = self._clock.now()
        for host in hosts:
            self._line_up(host, now)
        self._pump()

    def _pump(self) -> None:
        """Give out all the work that can be given out now, and see to it that somebody comes back for the rest."""
        now = self._clock.now()
        while self._has_room and (host := self._turns.next(now)) is not None:
            self._serve(host, now)
        self.books.hungry = not len(self._turns) and self.inflight < self.rules.together
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._turns.due()
        if due is not None and self._has_room:
            self._timer = self._clock.call_later(max(0.0, due - now), self._pump)
        if self.inflight == 0 and (self._stopping or self._limit_reached or self._exhausted):
            self._over.set()

    @property
    def _has_room(self) -> bool:
        if self._stopping or self._over.is_set() or self.inflight >= self.rules.together or self.books.crowded:
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
        if self._hopeless(host, now):
            if not host.asking and not host.loading:  # whoever comes back last sees to it
                host.closed = True
                self._group.create_task(self._give_up(host))
            return
        queued = self._next_allowed(host, now)
        if queued is None:
            self._line_up(host, now)
            return
        permit = self.limiter.try_acquire(host.name)
        if permit is None:
            host.put_back(queued)
            self._turns.add(host, max(self.limiter.ready_at(host.name), now + SOON))
            return
        self.inflight += 1
        scheme = urlsplit(queued.url).scheme
        if scheme not in host.robots:
            host.put_back(queued)
            host.closed = True
            self._group.create_task(self._learn_robots(host, scheme, permit))
            return
        host.asking.add(queued.id)
        self._group.create_task(self._ask(host, queued, permit))
        self._line_up(host, now)

    def _next_allowed(self, host: HostQueue, now: float) -> Queued | None:
        """The next URL that robots.txt does not refuse, as far as it is known; those it refuses are decided."""
        while (queued := host.take(now)) is not None:
            known = host.robots.get(urlsplit(queued.url).scheme)
            if known is None or known.allows(queued.url):
                return queued
            self._end(host, queued, Outcome(Code.REFUSED, detail=known.why(queued.url)[:200]), End.REFUSED)
        return None

    def _line_up(self, host: HostQueue, now: float) -> None:
        """Give the host its next turn, if it has something to ask for and is not busy enough."""
        if host.on_disk and host.held < 16:
            self.books.want(host)
        due = host.due()
        if due is not None and len(host.asking) < self.rules.per_host and not host.closed:
            self._turns.add(host, max(due, now))

    # Asking.

    async def _ask(self, host: HostQueue, queued: Queued, permit: Permit) -> None:
        # No `finally`: what is raised here ends the crawl, which then must not be given more to do.
        fetched = await self._fetcher.fetch(Task(queued.url, headers=record.conditions(queued)), permit)
        if fetched.reply is not None and (same := record.respelled(queued, fetched.reply)) is not None:
            fetched = await self._follower.fetch(Task(same))
        await self._settle(host, queued, fetched)
        host.asking.discard(queued.id)
        if host.turn is not None:
            # While a probe is out nobody knows when the host may be asked; its answer says so.
            self._turns.hasten(host, self.limiter.ready_at(host.name))
        self._back(host)

    def _back(self, host: HostQueue) -> None:
        """A request has come to its end."""
        self.inflight -= 1
        self._line_up(host, self._clock.now())
        self._pump()

    async def _settle(self, host: HostQueue, queued: Queued, fetched: Fetched) -> None:
        """Decide what became of the URL, or when to ask again."""
        outcome, reply, now = fetched.outcome, fetched.reply, self._clock.now()
        if reply is not None and moves(reply):
            host.spoke(now)
            await self._move(host, queued, reply)
        elif reply is not None and (outcome.code is Code.OK or record.confirmed(queued, outcome)):
            host.spoke(now)
            await self._keep(host, queued, outcome, reply)
        elif outcome.code in NOT_NOW:
            host.failed(outcome, now)
            host.put_back(queued)
        elif retry_soon(outcome):
            host.failed(outcome, now)
            self._try_again(host, queued, outcome, now)
        else:
            if outcome.status:
                host.spoke(now)  # a 404 is an answer
            self._end(host, queued, outcome, End.FAILED)

    def _try_again(self, host: HostQueue, queued: Queued, outcome: Outcome, now: float) -> None:
        """Later, unless it was tried often enough and is itself to blame."""
        tries, delays = host.tried(queued, now), self.rules.again
        if tries > len(delays) and host.blames(queued):
            self._end(host, queued, outcome, End.FAILED)
        else:
            host.put_off(queued, now + delays[min(tries, len(delays)) - 1])

    async def _keep(self, host: HostQueue, queued: Queued, outcome: Outcome, reply: Reply) -> None:
        wall = self._clock.wall()
        self.bytes += len(reply.body)
        if outcome.code is Code.NOT_MODIFIED:
            ended = record.unchanged(queued, outcome, reply, wall)
        else:
            # A page takes a moment to read, what a stranger makes of 30 MB may take seconds: not on the loop.
            big = len(reply.body) > BIG
            read = self.books.ask(record.read, queued, outcome, reply, wall) if big else None
            ended, links = record.read(queued, outcome, reply, wall) if read is None else await read
            follow = self._follow(links, queued) if links and queued.depth < self._scope.depth else ()
            if follow and (ended.etag or ended.modified):
                ended = msgspec.structs.replace(ended, links=tuple(follow))
        self.counts[ended.end] += 1
        self._decided(host, queued)
        self.books.note(ended)

    def _decided(self, host: HostQueue, queued: Queued) -> None:
        host.ended(queued)
        self._hops.pop(queued.url, None)

    def _follow(self, links: tuple[str, ...], queued: Queued) -> list[str]:
        """Offer the links that belong to the crawl; which those are."""
        followed = []
        for link in links:
            try:
                url = normalise(link, queued.url)
            except UrlError:
                continue
            host = host_of(url)
            if self._scope.allows(host) and trap(url) is None:
                followed.append(url)
                self.books.offer(url, host, queued.depth + 1)
        return followed

    async def _move(self, host: HostQueue, queued: Queued, reply: Reply) -> None:
        """A redirect: its target is a URL of its own, unless it leads back here or out of the crawl."""
        try:
            target = normalise(reply.header("Location") or "", queued.url)
        except UrlError as error:
            self._end(host, queued, Outcome(Code.INVALID_URL, reply.status, f"redirect: {error}"[:200]), End.FAILED)
            return
        hops = self._hops.pop(queued.url, 0) + 1
        if hops > MOST_HOPS or await self._leads_to(target, queued.url):
            where = f"{hops} redirects and no end in sight" if hops > MOST_HOPS else f"leads back here by {target}"
            self._end(host, queued, Outcome(Code.REDIRECT_LOOP, reply.status, where[:200]), End.FAILED)
            return
        detail, name = "moved", host_of(target)
        if queued.depth == 0 and not self._scope.allows(name):
            # Who asks for example.org means www.example.org too, if that is where it lives.
            self._scope = self._scope.with_host(name)
            await self.books.ask(self.folder.allow_moved, name)
        if self._scope.allows(name):
            self._hops[target] = hops
            self.books.offer(target, name, queued.depth)
        else:
            detail = "moved out of the crawl"
        self.counts[End.MOVED] += 1
        self._decided(host, queued)
        self.books.note(record.moved(queued, reply, target, detail, self._clock.wall()))

    async def _leads_to(self, start: str, goal: str) -> bool:
        """Whether the redirects that are known lead from `start` to `goal`, or on for too long to be meant."""
        at = start
        for _ in range(MOST_HOPS):
            if at == goal:
                return True
            following = await self.books.moved_to(at)
            if following is None:
                return False
            at = following
        return True

    def _end(self, host: HostQueue, queued: Queued, outcome: Outcome, end: End) -> None:
        """Decide a URL that was not fetched."""
        self.counts[end] += 1
        self._decided(host, queued)
        self.books.note(record.unfetched(queued, outcome, end))

    # robots.txt, and hosts that do not answer.

    async def _learn_robots(self, host: HostQueue, scheme: str, permit: Permit) -> None:
        learned = await self._permissions.learn(f"{scheme}://{host.name}", permit)
        if isinstance(learned, Outcome):
            host.failed(learned, self._clock.now())
            if learned.code is Code.REFUSED:  # by our own guard, which does not change its mind
                await self._give_up(host)
            else:
                self._turns.add(host, self._next_knock(host))
        else:
            host.spoke(self._clock.now())
            self._heed(host, scheme, learned)
        host.closed = False
        self._back(host)

    def _next_knock(self, host: HostQueue) -> float:
        """When to ask for robots.txt again: the longer it was not to be had, the later."""
        now = self._clock.now()
        return now + max(self.rules.again[0], (now - (host.silent_since or now)) / 2)

    def _heed(self, host: HostQueue, scheme: str, known: Robots) -> None:
        host.robots[scheme] = known
        if known.delay:
            asks = f"robots.txt asks for {known.delay:g} s between requests"
            self.limiter.cap(host.name, 1 / known.delay, asks)
        if self._scope.depth > 0:
            self._follow(known.sitemaps, Queued(0, f"{scheme}://{host.name}/", host.name, 0))

    def _hopeless(self, host: HostQueue, now: float) -> bool:
        """Whether it failed for as long as we are prepared to wait, or has asked us to wait for longer than that.

        What counts is when it last failed, so that a host that was left alone for long is asked once more before.
        """
        rules, wait = self.rules, self.limiter.ready_at(host.name) - now
        if host.silent_since is None:
            # It may have said so in an earlier run. A delay that robots.txt asks for is none of this.
            return wait > max(rules.patience, LONGEST_DELAY)
        patience = min(rules.patience, rules.first_patience) if host.answered is None else rules.patience
        return host.failed_at - host.silent_since > patience or wait > rules.patience

    async def _give_up(self, host: HostQueue) -> None:
        """Decide all that waits for a host that does not answer; it can be asked for again with `failed --retry`."""
        asked = Outcome(Code.RATE_LIMITED, detail="asked to be left alone, in an earlier run")
        self.counts[End.FAILED] += await self.books.give_up(host, host.trouble or asked)
        host.drop()  # what was taken from the ledger before it was decided there
        host.closed = False
        self._pump()
