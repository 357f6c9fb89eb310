"""A server of a fleet that lives in one process: a twin of that in PostgreSQL, for tests and simulations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from sanderling.stores.fleet import (
    LATELY,
    QUOTA_OVER,
    Beat,
    BookedTime,
    CrawlView,
    FleetCrawl,
    InboxMessage,
    LoggedCommit,
    PartCommit,
    PartFigures,
    PartState,
    Segment,
    Worker,
    WorkerIdentity,
    WorkerPace,
)
from sanderling.stores.leases import Lease, LeaseLostError, LeasesError, LeaseTable, MemoryLeases


@dataclass(slots=True)
class _Part:
    log: list[LoggedCommit] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    inbox: dict[int, InboxMessage] = field(default_factory=dict)
    idle: int = -1  # the head at which it was
    fetched: int = 0
    waiting: int = 0
    asked: int = 0
    failed: int = 0
    snapshot: int = 0
    token: str = ""
    key: str = ""
    cookies: dict[bytes, bytes] = field(default_factory=dict)
    limiter: bytes = b""
    news: bytes = b""

    def tell(self, said: PartFigures) -> None:
        _, self.fetched, self.waiting, self.asked, self.failed = said


@dataclass(slots=True)
class _Crawl:
    crawl: FleetCrawl
    leases: LeaseTable
    parts: dict[int, _Part]
    workers: dict[str, tuple[float, Worker]] = field(default_factory=dict)  # with when they were seen
    agreed: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, BookedTime] = field(default_factory=dict)  # from when they are free, and quiet


class FleetMemory:
    """What the server knows, by the clock `now`: seconds since 1970."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.sent = 0  # messages, ever
        self.crawls: dict[str, _Crawl] = {}

    def make(self, crawl: FleetCrawl, parts: Iterable[int]) -> None:
        """Have a crawl, unless there is one of its name."""
        if crawl.name not in self.crawls:
            own = list(parts)
            table = LeaseTable(own, crawl.seconds, self.now)
            self.crawls[crawl.name] = _Crawl(crawl, table, {each: _Part() for each in own})


class MemoryFleet(MemoryLeases):
    """The crawl of a name, as one worker sees it. See `FleetStore`. No method ever waits."""

    def __init__(self, memory: FleetMemory, name: str, worker: WorkerIdentity) -> None:
        self.name = name
        self.holder = worker.name
        self._memory = memory
        self._worker = worker
        self._id = ""

    @property
    def _table(self) -> LeaseTable:  # type: ignore[override]  # which a crawl has, once there is one
        found = self._found()
        return found.leases if found else LeaseTable((), 1.0, self._memory.now)

    def _found(self) -> _Crawl | None:
        """The crawl that was found, unless it was forgotten."""
        found = self._memory.crawls.get(self.name)
        return found if found is not None and found.crawl.id == self._id else None

    def _part(self, part: int) -> _Part:
        found = self._found()
        if found is None or part not in found.parts:
            raise LeasesError(f"memory: the crawl {self.name} has no part {part} any more")
        return found.parts[part]

    def _parts(self) -> dict[int, _Part]:
        found = self._found()
        return found.parts if found else {}

    # The crawl.

    async def begin(self, crawl: FleetCrawl, parts: Sequence[int]) -> FleetCrawl:
        self._memory.make(crawl, parts)
        found = await self.find(crawl.name)
        assert found is not None  # noqa: S101 - it was made
        return found

    async def find(self, name: str) -> FleetCrawl | None:
        found = self._memory.crawls.get(name)
        if found is None:
            return None
        self.name, self._id = name, found.crawl.id
        return found.crawl

    async def end(self, *, done: bool) -> None:
        if found := self._found():
            found.crawl = msgspec.structs.replace(found.crawl, done=done)
            for part in found.parts.values():
                part.idle = part.idle if done else -1

    async def retry(self, number: int) -> None:
        found = self._found()
        if found is not None and found.crawl.retries < number:
            found.crawl = msgspec.structs.replace(found.crawl, retries=number)
            await self.end(done=False)

    async def forget(self) -> None:
        if self._found():
            del self._memory.crawls[self.name]

    # Who works on it.

    async def beat(
        self,
        leases: Sequence[Lease],
        figures: Sequence[PartFigures],
        report: str,
        parts: int,
        pace: WorkerPace = WorkerPace(),  # noqa: B008 - which never changes
    ) -> Beat:
        found, now, who = self._found(), self._memory.now(), self._worker
        if found is None:
            raise LeasesError(f"memory: the crawl {self.name} was forgotten; nothing more is asked for it")
        kept = found.leases.renew(self.holder, leases)
        draining = self.holder in found.workers and found.workers[self.holder][1].draining
        worker = Worker(self.holder, who.machine, who.release, parts, 0.0, draining, report, *pace)
        found.workers[self.holder] = now, worker
        for each in figures:
            if each.part in kept:
                found.parts[each.part].tell(each)
        seconds = found.crawl.seconds
        others = [each for seen, each in found.workers.values() if seen > now - seconds and not each.draining]
        for name, (seen, _) in list(found.workers.items()):
            if seen < now - seconds * LATELY * 4:
                del found.workers[name]
        found.quotas = {key: each for key, each in found.quotas.items() if max(each) >= now - QUOTA_OVER}
        weights = sum(each.weight for each in others)
        lacking = any(each.parts < found.crawl.parts * each.weight // weights for each in others)
        late = [each.late for each in others if each.name != self.holder]
        fetched = sum(each.fetched for each in found.parts.values())
        asked = sum(each.asked for each in found.parts.values())
        crawl = found.crawl
        sums = fetched, now, asked, weights or 100, sum(late) / max(1, len(late)), crawl.retries
        return Beat(kept, max(1, len(others)), lacking, draining, crawl.done, *sums)

    async def agreed(self, name: str) -> str:
        found = self._found()
        return found.agreed.get(name, "") if found else ""

    async def agree(self, name: str, value: str) -> str:
        found = self._found()
        return found.agreed.setdefault(name, value) if found else value

    async def book(self, quota: str, seconds: float) -> BookedTime:
        free, quiet = self._quotas().get(quota, BookedTime(0.0, 0.0))
        start = max(free, quiet, self._memory.now())
        self._quotas()[quota] = BookedTime(start + seconds, quiet)
        return BookedTime(start, quiet)

    async def hush(self, quota: str, until: float) -> None:
        free, quiet = self._quotas().get(quota, BookedTime(0.0, 0.0))
        self._quotas()[quota] = BookedTime(free, max(quiet, until))

    def _quotas(self) -> dict[str, BookedTime]:
        found = self._found()
        return found.quotas if found else {}

    async def leave(self) -> None:
        if found := self._found():
            found.workers.pop(self.holder, None)

    async def workers(self) -> list[Worker]:
        found, now = self._found(), self._memory.now()
        if found is None:
            return []
        lately = now - found.crawl.seconds * LATELY
        heard = [each._replace(seen=now - seen) for seen, each in found.workers.values() if seen > lately]
        return sorted(heard, key=lambda each: (each.machine, each.name))

    async def drain(self, worker: str | None) -> int:
        found = self._found()
        meant = [name for name in found.workers if worker in (None, name)] if found else []
        for name in meant:
            seen, each = found.workers[name]  # type: ignore[union-attr]  # there is one, if it has workers
            found.workers[name] = seen, each._replace(draining=True)  # type: ignore[union-attr]
        return len(meant)

    # What parts write.

    async def commit(self, commit: PartCommit) -> None:
        lease = commit.lease
        if not self._table.advance(self.holder, lease):
            raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")
        part, number = self._part(lease.part), lease.head + 1
        part.log.append(LoggedCommit(number, commit.token, commit.body))
        if commit.segment:
            part.segments.append(Segment(number, commit.segment, commit.size))
        for each in commit.read:
            part.inbox.pop(each, None)
        part.cookies |= dict(commit.cookies)
        part.cookies = {key: body for key, body in part.cookies.items() if body}

    async def is_committed(self, commit: PartCommit) -> bool:
        part = self._parts().get(commit.lease.part, _Part())
        return any((each.number, each.token) == (commit.lease.head + 1, commit.token) for each in part.log)

    async def send(self, to: Sequence[tuple[int, bytes]]) -> None:
        own = self._parts()
        for part, body in to:
            if part in own:
                self._memory.sent += 1
                own[part].inbox[self._memory.sent] = InboxMessage(part, self._memory.sent, body)

    async def receive(self, parts: Sequence[int], taken: Sequence[int], most: int) -> list[InboxMessage]:
        own, not_again = self._parts(), set(taken)
        found = [each for part in parts if part in own for each in own[part].inbox.values()]
        return sorted((each for each in found if each.id not in not_again), key=lambda each: each.id)[:most]

    async def state(self, part: int) -> PartState:
        kept, head = self._part(part), self._table.head(part)
        return PartState(head, kept.snapshot, kept.key, kept.limiter, kept.news, kept.token)

    async def log(self, part: int, after: int, most: int) -> list[LoggedCommit]:
        return [each for each in self._parts().get(part, _Part()).log if each.number > after][:most]

    async def cookies(self, part: int) -> list[bytes]:
        return list(self._parts().get(part, _Part()).cookies.values())

    async def keep_snapshot(self, lease: Lease, number: int, token: str, key: str) -> None:
        part = self._parts().get(lease.part, _Part())
        if not self._table.is_held(self.holder, lease.part, lease.epoch) or part.snapshot >= number:
            raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")
        part.snapshot, part.token, part.key = number, token, key
        part.log = [each for each in part.log if each.number > number]

    async def keep_limiter(self, lease: Lease, saved: bytes | None, news: bytes) -> None:
        if self._table.is_held(self.holder, lease.part, lease.epoch):
            part = self._part(lease.part)
            part.news = part.news + news if saved is None else news
            part.limiter = part.limiter if saved is None else saved

    async def say_idle(self, lease: Lease, figures: PartFigures, *, idle: bool) -> bool:
        held = self._table.is_held(self.holder, lease.part, lease.epoch) and self._table.head(lease.part) == lease.head
        if not held or (idle and self._part(lease.part).inbox):
            return False
        part = self._part(lease.part)
        part.idle = lease.head if idle else -1
        part.tell(figures)
        return True

    async def view(self) -> CrawlView:
        own = self._parts()
        return CrawlView(
            busy=sum(each.idle != self._table.head(number) for number, each in own.items()),
            unread=int(any(each.inbox for each in own.values())),
            heads=sum(self._table.head(part) for part in own),
            waiting=sum(each.waiting for each in own.values()),
            fetched=sum(each.fetched for each in own.values()),
            asked=sum(each.asked for each in own.values()),
            failed=sum(each.failed for each in own.values()),
        )

    async def segments(self, part: int, after: int) -> list[Segment]:
        return [each for each in self._parts().get(part, _Part()).segments if each.number > after]

    async def unnamed(self, lease: Lease, objects: Sequence[tuple[int, str]]) -> list[str]:
        if not self._table.is_held(self.holder, lease.part, lease.epoch):
            return []
        part = self._part(lease.part)
        named = {part.key, *(each.key for each in part.segments)}
        return [key for _, key in objects if key not in named]

    async def close(self) -> None:
        """Nothing is open."""
