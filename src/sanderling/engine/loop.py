"""The one loop: whose turn is it, may we, ask, blame, and say what came of it.

`pump` gives out work. It is called whenever something has changed, and never waits. A host that may not be asked now
has its place in a queue at the time it may, so it idles nobody; a host that was set aside is only probed, which keeps
no crawl alive. No step looks at all hosts.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from math import inf
from typing import Any, Generic, TypeVar

from sanderling.clock import Clock, Timer
from sanderling.engine.blame import Judge
from sanderling.engine.classes import Class, Shares
from sanderling.engine.flights import UNANSWERED, Dispatch, cut_slow
from sanderling.engine.hosts import DOUBT, PROBE_PAUSE, HostState
from sanderling.engine.ports import Handler, Permits, Source, Work
from sanderling.engine.queues import HostQueues
from sanderling.engine.rules import EngineRules
from sanderling.engine.sender import Sender
from sanderling.engine.slots import Slots
from sanderling.engine.workers import Workers
from sanderling.engine.writer import Writer
from sanderling.limit import Permit
from sanderling.stores.control_file import NOTHING, Control

H = TypeVar("H", bound=HostState)
W = TypeVar("W", bound=Work)
R = TypeVar("R")

SOON = 0.01  # seconds; to look again at a host whose turn others stand in line for
LOOK = 1.0  # to look again at a host that has work and no slot, or nothing to be probed with
IDLE = 0.5  # without a turn for so long, what was found is waited for


class Engine(Generic[H, W, R]):
    """Runs one system. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self,
        source: Source[H, W, R],
        handler: Handler[W, R],
        writer: Writer[Any, Any, Any, Any],
        limiter: Permits,
        clock: Clock,
        rules: EngineRules | None = None,
    ) -> None:
        self.rules = rules or EngineRules()
        self.room = Slots(self.rules, limiter)
        self.given = dict.fromkeys(Class, 0)  # requests, by class
        self.wanted = NOTHING
        self.limiter = limiter
        self.clock = clock
        self.writer = writer
        self._source = source
        self._sender: Sender[H, W, R] = Sender(handler, limiter, clock, self.rules, self._let_go)
        self._judge = Judge(source, limiter, self.rules)
        self._queues: HostQueues[H] = HostQueues(limiter, contract=self.rules.contract)
        self._left_alone: dict[str, H] = {}  # whose turn came while somebody wanted them left alone
        self._look_at = 0.0  # when slow requests are looked at again
        self._look_at_strangers = 0.0  # and those of hosts that are unproven
        self._timer: Timer | None = None
        self._timer_at = 0.0  # when it goes off
        self.may_ask: Callable[[], bool] = lambda: True  # a lease, where others may have our hosts once it is over
        self._running = False  # what is woken before waits
        self._over = asyncio.Event()
        self._group = Workers()

    # Running.

    async def run(self, *beside: Coroutine[Any, Any, object]) -> None:
        """Run until nothing is left to ask for, or until it is stopped; `beside` run with it, and end with it."""
        async with asyncio.TaskGroup() as writing:
            writing.create_task(self.writer.run(lambda result: self.wake(self._source.written(result))))
            async with self._group:
                await self._run_until_over(beside)
            self._judge.release_all(self.clock.now())
            self.writer.close()

    async def _run_until_over(self, beside: Iterable[Coroutine[Any, Any, object]]) -> None:
        self._running = True
        tasks = [self._group.create_task(each) for each in beside]
        try:
            self.pump()
            await self._over.wait()
        finally:
            self._running = False  # also of one that is cancelled: nothing may begin while the group ends
            for task in tasks:
                task.cancel()

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it, before all was asked for."""
        return self._sender.stopped is not None

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept. What is slow is left to a next run."""
        self._sender.stop()
        self.pump()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. What is in flight comes to its end."""
        self.wanted = wanted
        for name in [name for name in self._left_alone if name not in wanted.hosts]:
            host = self._left_alone.pop(name)
            self._judge.let_go(host)
            self._line_up(host, self.clock.now())
        if wanted.ending == "drain":
            self._source.drain()
        elif wanted.ending == "stop":
            self._sender.stop()
        self.pump()

    def wake(self, hosts: Iterable[H]) -> None:
        """These hosts have something to ask for, or may have sooner than was to be expected."""
        now = self.clock.now()
        for host in hosts:
            self._line_up(host, now)
            if host.turn is not None and not host.aside:
                due = self._due(host, now, probed=self._queues.is_probed(host, now))
                self._queues.hasten(host, inf if due is None else max(due, now))
        self.pump()

    @property
    def slots(self) -> int:
        """Requests that may be in flight; a scaler may set it."""
        return self.room.most

    @slots.setter
    def slots(self, most: int) -> None:
        self.room.most = most

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return self.room.inflight

    @property
    def asking(self) -> int:
        """How many hosts have a turn to come."""
        return len(self._queues)

    def given_by_name(self) -> dict[str, int]:
        """Requests that each class was given, for people."""
        return {of.name.lower(): number for of, number in self.given.items() if number}

    # Giving out work.

    def pump(self) -> None:
        """Give out all the work that can be given out now, and see to it that somebody comes back for the rest."""
        if not self._running:
            return
        now = self.clock.now()
        room = may_send = self._may_send
        while may_send and (room := self._has_room(now)) and (host := self._next(now)) is not None:
            self._serve(host, now)
        inflight, full = self.room.inflight, self.room.full
        self.writer.hungry = not full and self._is_starving(now)
        self.writer.still = not (inflight or self._queues)
        self._arm(now, room=room, full=full)
        if inflight == 0 and (self.stopped or self._source.enough(0) or (not self._waits and self.writer.idle)):
            self._running = False
            self._over.set()

    def _next(self, now: float) -> H | None:
        strangers = not self.room.is_crowded
        if self._queues.strangers and not strangers and now >= self._look_at_strangers:
            unproven = [each for each in self._sender.flights if each.sent.unproven]
            self._look_at_strangers = cut_slow(unproven, self.room.strangers, self.room.per_host, now)
        return self._queues.next(now, probes=self.room.may_probe, aside=self._may_probe_aside, strangers=strangers)

    def _is_starving(self, now: float) -> bool:
        """Whether nothing can be sent for a while, and not for want of slots: what was found may be needed."""
        following = self._queues.work.first
        if following is not None and (following.turn or 0.0) <= now + IDLE:
            return False
        return following is None or following.is_unproven or self.room.has_room(following)

    @property
    def _may_send(self) -> bool:
        running = self._sender.stopped is None and self._group.open and self.may_ask()
        return running and not (self.writer.crowded or self.wanted.paused)

    def _has_room(self, now: float) -> bool:
        if self.room.full:
            if now >= self._look_at:
                self._look_at = cut_slow(self._sender.flights, self.room.most, self.room.per_host, now)
            return False
        return not self._source.enough(self.room.inflight)

    def _arm(self, now: float, *, room: bool, full: bool) -> None:
        """Look again when something may be given out that may not now."""
        due = self._queues.due(probes=self.room.may_probe, aside=self._may_probe_aside)
        if self._queues.strangers:
            due = min(inf if due is None else due, self._look_at_strangers)
        if self._sender.stopped is not None:
            due = None
        elif due is not None and full:
            # Else something else is in the way, which calls when it is not any more.
            due = self._look_at if self._look_at > now else None
        elif not room:
            due = None
        # One that goes off earlier stays: it costs a look, where a new one would cost more with every answer.
        if self._timer is not None and (due is None or due < self._timer_at):
            self._timer.cancel()
            self._timer = None
        if due is not None and self._timer is None:
            self._timer, self._timer_at = self.clock.call_later(max(0.0, due - now), self._look_again), due

    def _look_again(self) -> None:
        self._timer = None
        self.pump()

    @property
    def _waits(self) -> bool:
        """Whether something may be asked for later."""
        # Where hosts are set aside, those that are left alone are; and who drains ends before somebody lets them go.
        left_alone = self._left_alone and not self.rules.gives_up and self.wanted.ending != "drain"
        return bool(self._queues or left_alone or self._source.loading)

    def _may_probe_aside(self) -> bool:
        """Whether one that was set aside may be: not at the end, since that keeps no crawl alive."""
        return self.room.may_probe() and (self.inflight > self.room.aside or self._waits)

    def _serve(self, host: H, now: float) -> None:
        """It is this host's turn: ask for one item of it, if one may be asked for."""
        if host.name in self.wanted.hosts:
            self._left_alone[host.name] = host
            self._judge.leave_alone(host, now)
            return
        hopeless = host.stuck_since is not None and not host.aside and self._judge.is_hopeless(host, now)
        if hopeless and not self._judge.may_vouch(host, now):
            self._set_aside(host, now)
            return
        # A host that is silent, since all that is left of it fails, may answer what it has answered before.
        probing = hopeless or self._queues.is_probed(host, now)
        if probing and host.probing:
            return  # its answer gives the host its next turn
        if probing and not hopeless and self._rests(host, now):
            return
        classes = () if probing else self._open_classes(host, now)
        if not probing and not classes:
            self._pass_over(host, now)
            return
        permit = self.limiter.try_acquire(host.name)
        if permit is None:
            self._wait_for_leave(host, now, probed=probing)
            return
        if probing:
            self._send_probe(host, permit, now, hopeless=hopeless)
        else:
            self._send_next(host, classes, permit, now)

    def _rests(self, host: H, now: float) -> bool:
        """Whether it is too early for a probe, or there is no slot for it; then the host has its next turn."""
        full = not self.room.has_room(host) and not host.aside and host.accused is None
        if full:
            self._line_up(host, now)
        elif (due := self._judge.probe_due(host)) > now:
            self._queues.add(host, due, probed=True)
        return full or due > now

    def _wait_for_leave(self, host: H, now: float, *, probed: bool) -> None:
        """The host may not be asked now: it may have asked for quiet, for longer than we are prepared to wait."""
        if not host.aside and host.silent_since is None and self._judge.is_hopeless(host, now):
            self._set_aside(host, now)
        else:
            self._queues.add(host, max(self.limiter.turn_at(host.name), now + SOON), probed=probed)

    def _set_aside(self, host: H, now: float) -> None:
        self._judge.set_aside(host, now)
        self._line_up(host, now)

    def _open_classes(self, host: H, now: float) -> Sequence[Class]:
        """The classes with work due at the host that may have one more slot."""
        full = not self.room.has_room(host) or (host.is_unproven and self.room.is_crowded)
        if full and not self.rules.slotless:
            return []
        due = self._source.classes(host, now)
        if full:
            return [each for each in due if each in self.rules.slotless]
        if self.rules.most_slots.keys().isdisjoint(due):
            return due
        return [each for each in due if not self.room.is_spent(each)]

    def _send_next(self, host: H, classes: Sequence[Class], permit: Permit, now: float) -> None:
        of = classes[0]
        if len(classes) > 1:
            host.shares = host.shares or Shares()
            of = host.shares.next(classes)
        work = self._source.take(host, of, now)
        if work is None:
            permit.release()
        else:
            permit.probe |= host.hangs  # which is not waited for as long as the first time
            if host.shares is not None:
                host.shares.charge(of, self.rules.weights)
            down = self.rules.contract and self.limiter.is_down(host.name)
            sent = Dispatch(work, permit, of, unproven=host.is_unproven, slotless=of in self.rules.slotless, down=down)
            self._start(host, sent)
        self._line_up(host, now, 0.0 if permit.also else self.limiter.turn_at(host.name))  # who shares stands in line

    def _send_probe(self, host: H, permit: Permit, now: float, *, hopeless: bool) -> None:
        """Ask for what the host has answered before, else for what has not failed; else for whatever there is."""
        work: W | None = host.good if hopeless or host.doubted is None else None
        dropped = True
        if work is None:
            work, dropped = self._source.take_untried(host, now), False
        if work is None:
            work, dropped = host.good, True
        if work is None and (classes := self._source.classes(host, now)):
            work, dropped = self._source.take(host, classes[0], now), False
        if work is None:
            permit.release()
            if not host.inflight:
                self._judge.release(host, now)  # there is nothing else to probe it with, and nothing under way
            self._queues.add(host, now + (PROBE_PAUSE if host.aside else LOOK), probed=True)
        else:
            host.probing, host.probed_at = True, now
            probe = permit.probe or host.aside or host.is_in_doubt(now)
            permit.probe = True  # also where it is not the limiter that asks: a probe is not waited for as long
            sent = Dispatch(work, permit, Class.PROBE, judges=True, probe=probe, dropped=dropped)
            sent.unproven, sent.aside = host.is_unproven, host.aside
            self._start(host, sent)

    def _start(self, host: H, sent: Dispatch) -> None:
        # Counted before the task begins: many are given out at one instant.
        self.room.count(host, sent, 1)
        self.given[sent.of] += 1
        self._group.create_task(self._ask(host, sent))

    def _line_up(self, host: H, now: float, earliest: float = 0.0) -> None:
        """Give the host its next turn, if it has none, and something to ask for; at the `earliest` then."""
        if host.turn is not None:
            return
        if host.aside or host.accused is not None:
            if not host.probing:  # else its answer says what comes next
                self._queues.add(host, max(now, self._judge.probe_due(host)), probed=True)
        elif self.room.has_room(host):
            probed = self._queues.is_probed(host, now)
            if (due := self._due(host, now, probed=probed)) is not None:
                self._queues.add(host, max(due, now, earliest), probed=probed)
        elif self._source.due(host, now) is not None:
            if now >= host.look_at:
                host.look_at = cut_slow((host.flights or {}).values(), self.room.of_host(host), self.room.per_host, now)
            due = min(host.look_at, max(now, host.slotless_due(now)))
            self._queues.add(host, due, probed=self._queues.is_probed(host, now))

    def _due(self, host: H, now: float, *, probed: bool) -> float | None:
        """When the host has something to ask for: an item that is due, or how it is."""
        if (due := self._source.due(host, now)) is None:
            return None
        if self._judge.is_overdue(host, now):
            return now  # to be set aside, and not when its next probe is due
        if probed:
            return self._judge.probe_due(host)
        if host.silent_since is None:
            return due
        doubt = host.silent_since + DOUBT
        return min(due, doubt) if host.is_in_doubt(doubt) else due

    def _pass_over(self, host: H, now: float) -> None:
        """Its turn came, and nothing may be taken: not before it is due, or before others let go of their slots."""
        due = self._source.due(host, now)
        if due is None or due > now or not self.room.has_room(host):
            self._line_up(host, now)
        elif host.is_unproven and self.room.is_crowded:
            self._queues.strangers.add(host, now)
        else:
            self._queues.add(host, now + LOOK, probed=False)

    def _let_go(self, host: H, sent: Dispatch) -> bool:
        """A request hangs: its item may be asked for again beside it, or others in its slot. Whether it may go on."""
        if sent.slotless:
            self._source.later(host, sent.work, UNANSWERED, self.clock.now())
        elif not self.room.let_go(host, sent):
            return False
        self.wake((host,))
        return True

    async def _ask(self, host: H, sent: Dispatch) -> None:
        settled = await self._sender.send(host, sent)
        self.room.end(host, sent)
        host.probing = host.probing and not sent.judges
        now = self.clock.now()
        self._judge.settle(host, sent.work, settled, now, probe=sent.probe, dropped=sent.dropped)
        self._queues.leave_others(host, now)
        if host.turn is not None and not host.aside:
            self._queues.hasten(host, self._turn_after(host, now))
        self._line_up(host, now)
        self.pump()

    def _turn_after(self, host: H, now: float) -> float:
        """When a host may have its turn after an answer. While a probe was out nobody knew that."""
        if self.rules.contract:
            due = self._source.due(host, now) if self.room.has_room(host) else host.slotless_due(now)
            return inf if due is None else max(due, self.limiter.turn_at(host.name))
        hopeless = host.stuck_since is not None and self._judge.is_hopeless(host, now)
        return now if hopeless else self.limiter.turn_at(host.name)
