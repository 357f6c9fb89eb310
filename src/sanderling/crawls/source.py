"""What a crawl of a frontier asks next, and what becomes of each item. A system says which items may be asked for."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Generic, TypeVar

from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.folder import Checkpoint
from sanderling.crawls.sink import Note
from sanderling.engine.backlog import H, Loader, Q
from sanderling.engine.classes import Class
from sanderling.engine.writer import Writer
from sanderling.outcome import Outcome
from sanderling.stores.board import BoardField
from sanderling.stores.frontier_rows import End, Ended, HostBacklog, HostNote, RetryUrl

W = TypeVar("W")  # what is asked for: an item, or something that must be known before

MOST_HOSTS = 100_000  # in memory; a kilobyte each

LedgerWriter = Writer[Note, Any, Checkpoint, Mapping[Any, int]]


class FrontierSource(Generic[H, Q, W]):
    """Hosts with what waits for them, and how many items came to which end."""

    def __init__(
        self,
        writer: LedgerWriter,
        loader: Loader[H],
        new_host: Callable[[str], H],
        patience: float,
    ) -> None:
        self.hosts: dict[str, H] = {}
        self.counts: Counter[End] = Counter()
        self.bytes = 0  # of replies that were read, in this run
        self.waiting = 0  # items without an end
        self.set_aside = 0  # of those, the ones that are left to the next run
        self.found_late = 0  # and those that were found while it drained
        self.most_hosts = MOST_HOSTS
        self.enough_room = max(1, MOST_HOSTS // 64)  # each look at the disk passes all hosts in memory
        self.unread = False  # whether items wait on disk for hosts that are not in memory
        self.passed_over = False  # whether more of those were found since hosts were last read from the first on
        self.others: PartExchange | None = None  # the other parts of the crawl, which may find more
        self.room = asyncio.Event()  # set when such hosts should be read
        # Hosts without items, which make room for others, the longest first; and what must be on disk before they do.
        self._idle: dict[str, int] = {}
        self._draining = False
        self._loader = loader
        self._clock = loader.clock
        self._writer = writer
        self._new_host = new_host
        self._patience = patience  # seconds with a host that asks us to stay away

    # What the system says.

    def check(self, host: H, queued: Q, now: float) -> W | None:
        """What to ask for this item; None if it is decided, or must wait."""
        raise NotImplementedError

    def unfetched(self, queued: Q, outcome: Outcome, end: End, requests: int) -> Ended:
        """The end of an item that brought nothing, after so many requests in a row."""
        raise NotImplementedError

    def enough(self, inflight: int) -> bool:
        """Whether as much was asked for as is wanted, with so many requests in flight."""
        raise NotImplementedError

    def with_others(self, field: BoardField, own: int) -> int:
        """What all parts of the crawl have together, of which `own` is ours."""
        return own if self.others is None else own + self.others.elsewhere(field, own)

    # What is next.

    @property
    def loading(self) -> bool:
        """Whether something is on its way: from another part, or from disk."""
        return self.reading or (self.others is not None and not self.others.over)

    @property
    def reading(self) -> bool:
        """Whether something is on its way from disk, or will be: hosts, if there is room by now."""
        if self.unread and self.free_hosts() >= self.enough_room:
            self.room.set()
        return self.room.is_set() or not self._loader.idle

    def drain(self) -> None:
        """Ask for what is known, and leave what is found from now on to the next run."""
        self._draining = True

    def classes(self, host: H, now: float) -> Sequence[Class]:
        """What is due: items that were not asked for yet, and such as were put off."""
        if not host.has_again(now):
            return (Class.NEW,) if host.has_new else ()
        return (Class.NEW, Class.AGAIN) if host.has_new else (Class.AGAIN,)

    def due(self, host: H, now: float) -> float | None:
        """When there is next something to take."""
        del now
        return host.due()

    def take(self, host: H, of: Class, now: float) -> W | None:
        """The next item that may be asked for, or what must be known before."""
        return self._next(host, host.pop_new if of is Class.NEW else lambda: host.pop_again(now), now)

    def take_untried(self, host: H, now: float) -> W | None:
        """An item that was not asked for yet, from the far end of what is known."""
        return self._next(host, host.pop_last, now)

    def _next(self, host: H, pop: Callable[[], Q | None], now: float) -> W | None:
        work = None
        while work is None and (queued := pop()) is not None:
            work = self.check(host, queued, now)
        self._loader.want(host)
        return work

    # What became of it.

    def later(self, host: H, work: Q, outcome: Outcome, due: float) -> None:
        """It has not failed; at infinity, it is left to another run."""
        if due == inf:
            self.withhold(host)
            self._note_again(work, outcome, 0, self._patience)
        else:
            host.put_off(work, due)
            self._loader.count(host)

    def failed(self, host: H, work: Q, outcome: Outcome, failures: int, due: float | None) -> None:
        """It failed so many times in a row; without a due time, for good."""
        if due is None:
            self.end(host, work, outcome, End.FAILED, requests=failures)
        else:
            host.put_off(work, due)
            self._loader.count(host)
            self._note_again(work, outcome, failures, due - self._clock.now())

    def end(self, host: H, queued: Q, outcome: Outcome, end: End, *, requests: int) -> None:
        """It brought nothing, and is not asked for again."""
        self.add(host, self.unfetched(queued, outcome, end, requests))

    def add(self, host: H, ended: Ended, size: int = 0) -> None:
        """An item has its end; what is to be written of it takes up so many bytes until then."""
        self.counts[ended.end] += 1
        self._wait(host, -1)
        self._writer.add(ended, size)

    def withhold(self, host: H) -> None:
        """One that was taken is left to the next run."""
        host.withheld += 1
        self.set_aside += not host.aside

    def _note_again(self, queued: Q, outcome: Outcome, failures: int, wait: float) -> None:
        self._writer.add(RetryUrl(queued.id, queued.url, failures, self._clock.wall() + wait, outcome))

    # What becomes of hosts.

    def leave(self, host: H, outcome: Outcome, due: float) -> None:
        """The host does not answer: its items go on waiting, with its reason."""
        self.set_aside += 0 if host.aside else host.waiting - host.withheld
        self._loader.spare(host)
        self._writer.add(HostNote(host.name, outcome, self._clock.wall() + due - self._clock.now()))

    def welcome(self, host: H) -> None:
        """It answers again."""
        self.set_aside += host.withheld - host.waiting
        self._writer.add(HostNote(host.name, None))

    def written(self, result: Mapping[Any, int]) -> Iterable[H]:
        """New items are on disk, so many for each host."""
        if not self._draining:
            return [self.add_waiting(name, number) for name, number in result.items() if self._holds(name, number)]
        found = sum(result.values())
        self.found_late += found
        self.waiting += found
        return ()

    def _holds(self, name: Any, number: int) -> bool:  # noqa: ANN401 - as below
        """Whether the host is in memory, or may be: not if items found earlier may wait for it on disk."""
        if name in self.hosts or (not self.unread and self.free_hosts()):
            return True
        self.unread = self.passed_over = True
        self.waiting += number
        return False

    def free_hosts(self) -> int:
        """How many more hosts fit into memory, once those without items have made room if need be."""
        for name in list(islice(self._idle, max(0, len(self.hosts) - self.most_hosts + self.enough_room))):
            added, host = self._idle.pop(name), self.hosts[name]
            if host.waiting:
                continue
            if host.inflight or host.aside or host.turn is not None or added > self._writer.durable:
                self._idle[name] = added  # not yet
            else:
                del self.hosts[name]
        return max(0, self.most_hosts - len(self.hosts))

    def read_hosts(self, found: Iterable[HostBacklog]) -> list[H]:
        """Hosts were read from disk with all that waits for them; those that were not in memory."""
        new = [each for each in found if each.name not in self.hosts]
        for each in new:
            host = self.host(each.name)
            host.on_disk = host.waiting = each.waiting
            self._loader.want(host)
        return [self.hosts[each.name] for each in new]

    def add_waiting(self, name: Any, number: int) -> H:  # noqa: ANN401 - a host, or what the ledger tells hosts by
        """So many more items wait on disk for a host."""
        host = self.host(name)
        host.on_disk += number
        self._wait(host, number)
        self._loader.want(host)
        return host

    def host(self, name: str) -> H:
        """The host of this name, which is made if it was not met before."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = self._new_host(name)
        return host

    def _wait(self, host: H, number: int) -> None:
        before = host.set_aside
        host.waiting += number
        self.waiting += number
        self.set_aside += host.set_aside - before
        if not host.waiting:
            self._idle[host.name] = self._writer.added + 1
            if self.unread and len(self._idle) >= self.enough_room:
                self.room.set()
