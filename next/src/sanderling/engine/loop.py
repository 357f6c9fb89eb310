"""The one loop: whose turn is it, may we send, send, judge, store.

    engine = Engine(source, handler, sink, limiter, clock, EngineRules(slots=64))
    await engine.run()

`_pump` gives out work. It is called whenever something has changed, and never waits. A host that may not be requested
now has its turn when it may, so it holds up nobody. No step looks at all hosts or at all items.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from sanderling.clock import Clock
from sanderling.engine.blame import Judgement, Verdict, judge, judge_by_retry
from sanderling.engine.ends import Ended, Standing
from sanderling.engine.host import Host
from sanderling.engine.host_locks import HostLocks
from sanderling.engine.ports import (
    Done,
    Handled,
    Handler,
    Pacer,
    Parked,
    SendPermit,
    Sink,
    Source,
)
from sanderling.engine.rules import EngineRules
from sanderling.engine.slots import Flight, Slots
from sanderling.engine.timetable import MUCH_LATER, Timetable
from sanderling.engine.turns import Alarm, Rest, Resting, Turns
from sanderling.engine.writer import Unwritten
from sanderling.outcome import Outcome
from sanderling.stores import HostWork

LOOK = 5.0  # seconds between looks for hosts that are due again, or that another crawl has let go
LOOK_PAUSE = 0.5  # between two looks at least, where more hosts are known than fit in memory
LEASE_LOOK = 0.5  # and for a lease that was renewed
SOON, LATEST = 0.01, 2.0  # to try again for a permit that another host got, the pause doubling
IDLE = 0.5  # without a turn for so long, what was found is waited for
FEW = 16  # items of a host in memory; with fewer, more are read
DEEPEST = 4  # in trouble up to so many times the double of what is read at once
LOADERS = 4  # reads from the source at a time
PARKED_PAUSE = 30.0  # and of one that is parked, or longer while its circuit is open


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Where a run stands, for its report."""

    sent: int
    inflight: int
    hosts: int  # in memory
    parked: Mapping[str, Outcome | None]  # hosts that were parked in this run, and their last response
    blocked: Collection[str]  # hosts with work that somebody blocked
    elsewhere: Collection[str]  # hosts that another crawl of this machine requests


class Engine:
    """Runs one system, once."""

    def __init__(
        self,
        source: Source,
        handler: Handler[Any, Any],
        sink: Sink,
        pacer: Pacer[Any],
        clock: Clock,
        rules: EngineRules | None = None,
        locks: HostLocks | None = None,
    ) -> None:
        self.rules = rules or EngineRules()
        self._source = source
        self._handler = handler
        self._sink = sink
        self._pacer = pacer
        self._clock = clock
        self._locks = locks
        self._hosts: dict[str, Host] = {}
        self._work = Turns()  # hosts with work
        self._down = Turns()  # hosts that are only probed
        self._aside = Turns()  # parked hosts, which keep no run alive
        self._crowd: dict[Host, None] = {}  # strangers whose turn came while strangers had half of the slots
        self._resting = Resting()
        self._blocked_hosts: dict[str, Host] = {}  # whose turn came while they were blocked
        self._elsewhere: dict[str, Host] = {}  # that another crawl requests
        self._slots = Slots(self.rules)
        self._timetable = Timetable(self.rules, pacer, clock)
        self._unwritten = Unwritten(self.rules)
        self._to_load: deque[Host] = deque()
        self._loading = 0
        self._writes = 0
        self._exhausted = -1  # the number of writes after which the source had no host that is not held
        self._released: set[str] = set()  # hosts that were let go while the source was asked for some
        self._looked_at = 0.0
        self._has_overflow = False  # it may have more than there was room for
        self._load_event, self._write_event, self._look_event = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._over = asyncio.Event()
        self._pump_alarm = Alarm(clock, self._pump)
        self._write_alarm = Alarm(clock, self._write_event.set)
        self._group: asyncio.TaskGroup | None = None
        self._running = False
        self._closing = False
        self._hungry = False
        self._paused = False
        self._blocked: frozenset[str] = frozenset()
        self._stopped = False
        self._sent = 0
        self._parked: dict[str, Outcome | None] = {}

    # For the system.

    async def run(self) -> None:
        """Run until nothing is left to request, a budget is spent, or it is stopped.

        What the source or the sink raise ends it. Nothing is lost then: what is not written waits on disk.
        """
        try:
            async with asyncio.TaskGroup() as writing:
                writing.create_task(self._guard(self._write()))
                async with asyncio.TaskGroup() as self._group:
                    tasks = [self._group.create_task(self._guard(self._discover()))]
                    tasks += [self._group.create_task(self._guard(self._load())) for _ in range(LOADERS)]
                    self._running = True
                    try:
                        self._pump()
                        await self._over.wait()
                    finally:
                        self._running = False
                        self._pump_alarm.cancel()
                        self._write_alarm.cancel()
                        self._slots.cut()  # probes of parked hosts
                        for task in tasks:
                            task.cancel()
                self._closing = True
                self._write_event.set()
        finally:  # also after an error: this process may crawl again
            if self._locks is not None:
                for name in self._hosts:
                    self._locks.release(name)

    def stop(self) -> None:
        """Send nothing more. What is in flight has a few seconds to end; the rest waits for the next run."""
        if not self._stopped:
            self._stopped = True
            self._clock.call_later(self.rules.grace, self._slots.cut)
            self._write_event.set()
        self._pump()

    def control(self, *, paused: bool = False, blocked: Collection[str] = frozenset()) -> None:
        """Pause or go on; leave these hosts alone, and no others. What is in flight comes to its end."""
        self._paused, self._blocked = paused, frozenset(blocked)
        for name in self._blocked_hosts.keys() - self._blocked:
            self._place(self._blocked_hosts.pop(name), self._clock.now())
        self._pump()

    def wake(self, hosts: Iterable[str]) -> None:
        """These hosts have new work."""
        self._wake(hosts, self._clock.now())
        self._pump()

    def facts(self) -> EngineFacts:
        """Where the run stands."""
        return EngineFacts(
            sent=self._sent,
            inflight=len(self._slots.flights),
            hosts=len(self._hosts),
            parked=dict(self._parked),
            blocked=tuple(self._blocked_hosts),
            elsewhere=tuple(self._elsewhere),
        )

    # Giving out work.

    def _pump(self) -> None:
        """Give out all the work that can be given out now, and see to it that somebody comes back for the rest."""
        if not self._running:
            return
        now = self._clock.now()
        for host in self._slots.lend(now):
            self._place(host, now)
        while free := self._may_send():
            turn = self._next_host(now)
            if turn is None:
                break
            self._serve(turn, now)
        self._hungry = not self._slots.is_full and self._work.due() > now + IDLE
        self._arm_writer(now)
        self._arm(now, free=free)
        if self._is_alive and not self._has_work and self._room:
            self._look_event.set()  # before the end the source has the last word
        if self._is_over():
            self._running = False
            self._over.set()

    def _may_send(self) -> bool:
        if self._stopped or self._paused or not self._running or self._unwritten.is_crowded:
            return False
        return not self._source.enough(len(self._slots.flights) + len(self._unwritten)) and self._source.may_send()

    def _next_host(self, now: float) -> Host | None:
        """The host whose turn it is. Probes come first: they are few, and show that a host is back."""
        if self._slots.may_probe:
            host = self._down.next(now) or (self._aside.next(now) if self._is_alive else None)
            if host is not None:
                return host
        if self._slots.is_full:
            return None
        if self._crowd and not self._slots.is_crowded:
            host = next(iter(self._crowd))
            del self._crowd[host]
            return host
        return self._work.next(now)

    @property
    def _is_alive(self) -> bool:
        """Whether there is work, other than at parked hosts, or may be."""
        return self._has_work or self._exhausted != self._writes

    @property
    def _has_work(self) -> bool:
        if self._work or self._down or self._crowd or self._loading or self._unwritten:
            return True
        return len(self._slots.flights) > self._slots.of_parked

    def _is_over(self) -> bool:
        flying = len(self._slots.flights) - (0 if self._stopped else self._slots.of_parked)
        if flying:
            return False
        if self._stopped or not self._is_alive:
            return True
        return not self._unwritten and self._source.enough(0)

    def _serve(self, host: Host, now: float) -> None:
        """It is this host's turn: send one of its items, if one may be sent."""
        self._resting.remove(host)
        if host.name in self._blocked:
            self._blocked_hosts[host.name] = host
            return
        ready = self._timetable.ready_at(host, now)
        if ready > now and not host.parked and self._timetable.is_hopeless(host, now):
            self._park(host, now)
            return
        probing = self._timetable.is_probed(host)
        if probing and self._timetable.probe_at(host, now) > now:
            self._place(host, now)
        elif not (probing or host.is_proven or self.rules.blame is None) and self._slots.is_crowded:
            self._crowd[host] = None
        elif not host.ready and not (probing and host.good is not None):
            self._read(host)
        elif (permit := self._pacer.try_acquire(host.name)) is None:
            host.misses += 1
            pause = min(LATEST, SOON * 2.0 ** min(host.misses - 1, 16))
            self._turns_of(host).put(host, max(now + pause, ready))
        else:
            host.misses = 0
            self._send(host, permit, now, probing=probing)
            few = FEW if not host.depth else self.rules.load << (host.depth - 1)
            if host.ready < min(few, self._share) and not (host.loading or host.parked) and host.has_more(now):
                self._read(host)
            self._place(host, now)

    def _send(self, host: Host, permit: SendPermit, now: float, *, probing: bool) -> None:
        dropped = probing and host.good is not None
        item = host.good if dropped else host.next(probe=probing)
        if not probing and self._timetable.needs_witness(host, item):
            host.put_back(item)
            item, dropped, probing = host.good, True, True
        if probing:
            host.probing, host.probed_at = True, now
        flight = Flight(host, item, permit, now, probing, dropped, not host.is_proven, host.from_tail)
        self._slots.take(flight)
        self._sent += 1
        if self._group is None:
            raise RuntimeError("the engine is not running")
        flight.task = self._group.create_task(self._guard(self._request(flight)))

    async def _request(self, flight: Flight) -> None:
        handled: Handled | None = None
        try:
            handled = await self._handler(flight.item, flight.permit)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not flight.cut or task is None or task.uncancel():
                raise  # somebody else cancels us
        finally:
            flight.permit.release()
            self._slots.give_back(flight)
            host = flight.host
            host.probing = host.probing and not flight.probe
        self._ended(flight, handled)
        self._pump()

    def _ended(self, flight: Flight, handled: Handled | None) -> None:
        """Judge how it ended."""
        now, host, item = self._clock.now(), flight.host, flight.item
        if handled is None:  # it was cut, and its item waits on disk
            self._place(host, now)
            return
        ends = host.ends
        failures = ends.failures_of(item.key, item.failures)
        ended = Ended(item.key, failures, handled.outcome, now, probe=flight.probe, of_host=handled.of_host)
        judgement = self._judge(ended, host)
        if self.rules.blame is not None:
            ends.note(ended)
        if judgement.verdict in (Verdict.END, Verdict.FAIL):
            ends.forget(item.key)
        if (
            ended.standing is Standing.FAILED
            and not (ended.blames_host or failures)
            and flight.from_tail == host.from_tail
        ):
            # What fails may lie together: go on with what is far away, and read beyond it.
            host.from_tail, host.depth = not host.from_tail, min(host.depth + 1, DEEPEST)
        if handled.outcome.ok and handled.repeatable:
            host.good = item
        if not flight.dropped:
            host.unwritten += 1
            self._unwritten.add(Done(item, handled, judgement), now)
        self._park_or_welcome(host, ended, now)
        if host.good is not None and not ends.bad_probes and ended.standing is Standing.FAILED:
            self._pacer.probe_now(host.name)  # what looks like an outage may be some bad items
        self._place(host, now)

    def _judge(self, ended: Ended, host: Host) -> Judgement:
        if self.rules.blame is not None and self.rules.retry is None:
            return judge(ended, host.ends, self.rules.blame)
        return judge_by_retry(ended, self.rules.retry, host.name)

    # Hosts.

    def _place(self, host: Host, now: float) -> None:
        """Give the host its next turn, in the queue where it belongs by now."""
        if host.name in self._blocked_hosts or host.name in self._elsewhere or host in self._crowd:
            return
        self._resting.remove(host)
        own = self._turns_of(host)
        for turns in (self._work, self._down, self._aside):
            if turns is not own:
                turns.remove(host)
        due = self._timetable.due(host, now, probing=own is not self._work)
        if due is not None:
            patience = self.rules.blame.patience if self.rules.blame is not None else inf
            if due - now > patience and not host.parked and self._timetable.ready_at(host, now) - now > patience:
                self._park(host, now)
                return
            own.put(host, due)
        else:
            own.remove(host)
        if (rest := self._timetable.rest(host, due, now)) is not None:
            self._resting.put(host, rest)
            is_roomy = 8 * len(self._resting) >= self.rules.hosts
            if self._has_overflow and is_roomy and now >= self._looked_at + LOOK_PAUSE:
                self._look_event.set()

    def _turns_of(self, host: Host) -> Turns:
        if host.parked:
            return self._aside
        return self._down if self._timetable.is_probed(host) else self._work

    def _park_or_welcome(self, host: Host, ended: Ended, now: float) -> None:
        if ended.is_good and host.parked:
            host.parked, host.parked_until = False, 0.0
            self._slots.of_parked -= host.inflight + host.lent
            self._parked.pop(host.name, None)
            self._note(host, Parked(host.name, None), now)
        elif ended.standing in (Standing.FAILED, Standing.REFUSED) and (
            host.parked or self._timetable.is_hopeless(host, now)
        ):
            self._park(host, now)

    def _park(self, host: Host, now: float) -> None:
        """Leave the host alone for now; its items wait on disk."""
        if not host.parked:
            self._slots.of_parked += host.inflight + host.lent
        host.parked = True
        host.parked_until = max(now + PARKED_PAUSE, self._timetable.ready_at(host, now))
        self._parked[host.name] = host.ends.trouble
        self._note(host, Parked(host.name, host.parked_until - now, host.ends.trouble), now)
        self._place(host, now)

    def _note(self, host: Host, parked: Parked, now: float) -> None:
        if not self._unwritten.note(parked, now):
            host.unwritten += 1

    def _wake(self, names: Iterable[str], now: float) -> None:
        """These hosts have new work, and the source holds them for us."""
        new = []
        for name in names:
            host = self._hosts.get(name)
            if host is None:
                new.append(name)
                continue
            host.stale |= host.loading
            host.more_at = now
            self._place(host, now)
        for name in new:  # now no host that has new work can be forgotten for another
            self._hold(HostWork(name), now)

    def _hold(self, work: HostWork, now: float) -> bool:
        """Take up a host, if there is room for it: hosts that can do nothing now have half of the room at most."""
        half = self.rules.hosts // 2
        is_elsewhere = self._locks is not None and not self._locks.acquire(work.name)
        is_full = len(self._hosts) >= self.rules.hosts and not self._make_room(work)
        if is_full or (is_elsewhere and len(self._elsewhere) > half) or (work.parked and len(self._aside) > half):
            self._let_go(work.name)
            self._has_overflow = True
            return False
        host = Host(work.name, now + work.wait, parked=work.parked, good=self._source.probe(work.name))
        self._hosts[work.name] = host
        if is_elsewhere:
            self._elsewhere[work.name] = host
        self._place(host, now)
        return True

    def _make_room(self, work: HostWork) -> bool:
        """Forget a host that rests."""
        rest = Rest.PARKED if work.parked else Rest.LATER if work.wait > MUCH_LATER else None
        host = self._resting.first_above(rest)
        if host is not None:
            self._forget(host)
        return host is not None

    def _forget(self, host: Host) -> None:
        for turns in (self._work, self._down, self._aside):
            turns.remove(host)
        self._resting.remove(host)
        del self._hosts[host.name]
        self._let_go(host.name)

    def _let_go(self, name: str) -> None:
        self._released.add(name)
        if self._locks is not None:
            self._locks.release(name)
        self._source.release(name)

    # Waiting.

    def _arm(self, now: float, *, free: bool) -> None:
        """Look again when something may be given out that may not now. What else is in the way calls when it is not."""
        due = inf
        if free:
            if not self._slots.is_full:
                due = self._work.due()
            if self._slots.may_probe:
                due = min(due, self._down.due(), self._aside.due() if self._is_alive else inf)
        elif not self._source.may_send():
            due = now + LEASE_LOOK
        self._pump_alarm.set(min(due, self._slots.due()), now)

    def _arm_writer(self, now: float) -> None:
        due = self._unwritten.due(hurry=self._hungry or self._stopped)
        if due <= now:
            self._write_event.set()
        else:
            self._write_alarm.set(due, now)

    # What goes on beside the requests.

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin nothing more once something has failed: the group that it would belong to ends."""
        try:
            await work
        except BaseException:
            self._running = False
            raise

    async def _discover(self) -> None:
        """Take up hosts that are due, while there is room for them."""
        first_refused: str | None = None  # since a host was taken up: the source hands out all before it again
        while True:
            self._look_event.clear()
            writes = self._writes
            room = min(1000, self._room)
            self._released.clear()
            found = await self._source.hosts(room) if room else ()
            self._looked_at = self._clock.now()
            now = self._clock.now()
            if room:
                self._has_overflow = len(found) == room
            took_up = has_seen_all = False
            missed = False
            for work in found:
                if work.name in self._hosts:
                    continue
                if work.name in self._released:
                    # Whether it was found before or after that is not known: it is let go once more, and found again.
                    self._let_go(work.name)
                    missed = True
                    continue
                if self._hold(work, now):
                    took_up, first_refused = True, None
                elif first_refused is None:
                    first_refused = work.name
                elif first_refused == work.name:
                    has_seen_all = True
            if room:
                is_last = not (took_up or missed) and (has_seen_all or len(found) < room)
            else:
                is_last = not (self._has_work or self._slots.flights)
            self._exhausted = writes if is_last else -1
            if is_last:
                first_refused = None
            self._retake(now)
            self._pump()
            if not took_up and (is_last or self._has_work or not room):
                timer = self._clock.call_later(LOOK, self._look_event.set)
                await self._look_event.wait()
                timer.cancel()

    @property
    def _room(self) -> int:
        """For how many hosts there is room, where those are forgotten that rest."""
        return max(0, self.rules.hosts - len(self._hosts) + len(self._resting))

    def _retake(self, now: float) -> None:
        """Look whether another crawl has let go of hosts."""
        if self._locks is not None:
            for name in [each for each in self._elsewhere if self._locks.acquire(each)]:
                self._place(self._elsewhere.pop(name), now)

    @property
    def _share(self) -> int:
        """Items in memory that a host may have, where all that may soon be requested have as many."""
        return max(1, self.rules.held // max(1, len(self._work) - self._resting.later))

    def _read(self, host: Host) -> None:
        """Have items of the host read."""
        host.loading = True
        self._loading += 1
        self._to_load.append(host)
        self._load_event.set()

    async def _load(self) -> None:
        """Read items of hosts that have few in memory."""
        while True:
            while not self._to_load:
                self._load_event.clear()
                await self._load_event.wait()
            host = self._to_load.popleft()
            host.stale = False
            limit = min(self.rules.load << host.depth, self._share)
            taken = await self._source.take(host.name, limit)
            now = self._clock.now()
            host.loading = False
            self._loading -= 1
            host.add(taken.items)
            wait = taken.next_wait
            if host.stale:
                host.more_at = now
            elif wait is None:
                host.more_at = None
            else:
                host.more_at = now + (wait if taken.items else max(wait, SOON))
            self._place(host, now)
            self._pump()

    async def _write(self) -> None:
        """Write what ended, batch by batch, to the end."""
        while not (self._closing and not self._unwritten):
            if not self._closing:
                await self._write_event.wait()
                self._write_event.clear()
                now = self._clock.now()
                if self._unwritten.due(hurry=self._hungry or self._stopped) > now:
                    self._arm_writer(now)
                    if not self._closing:
                        continue
            batch, parked = self._unwritten.begin()
            if batch or parked:
                woken = await self._sink.write(batch, parked)
                self._written(batch, parked, woken)
            self._unwritten.end()
            self._pump()

    def _written(self, batch: Iterable[Done], parked: Iterable[Parked], woken: Iterable[str]) -> None:
        now = self._clock.now()
        self._writes += 1
        hosts: dict[Host, float] = {}
        for done in batch:
            host = self._hosts[done.item.host]
            host.unwritten -= 1
            again = done.judgement.verdict in (Verdict.RETRY, Verdict.WAIT)
            hosts[host] = min(hosts.get(host, inf), now + done.judgement.wait if again else inf)
        for host, due in hosts.items():
            if due < inf:
                host.stale |= host.loading
                host.more_at = due if host.more_at is None else min(host.more_at, due)
            self._place(host, now)
        self._wake(woken, now)
        for each in parked:
            aside = self._hosts[each.host]
            aside.unwritten -= 1
            self._place(aside, now)
