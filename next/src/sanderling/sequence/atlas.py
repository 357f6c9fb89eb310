"""`--scaling atlas`: periods, workers and the gap checker as seed 000 has them.

A period hands out so many ids to so many workers and waits for all of them; then its readings decide on the next.
Each worker keeps its id through pauses and retries. The gap checker looks every five minutes, on its own.
"""

import asyncio
from typing import TYPE_CHECKING

from sanderling.limit import CircuitOpen
from sanderling.observe.alerts import Alert, Level
from sanderling.sequence.description import IdAnswer, Meaning
from sanderling.sequence.law import FIRST_PERIOD, PeriodPlan, decide
from sanderling.sequence.readings import show_elapsed
from sanderling.sequence.retries import DISABLED, RETRIES, Reason, pause

if TYPE_CHECKING:
    from sanderling.sequence.crawl import SequenceRun

GAP_SECONDS = 300.0
GAP_SHARE, GAP_COUNT, CERTAIN = 0.8, 50, 0.99
SUPERCHARGE, SUPERCHARGE_IDS = 500, 10_000
FOUR_MINUTES = 240.0


class AtlasLaw:
    """Runs the periods of one run."""

    def __init__(self, run: "SequenceRun") -> None:
        self.run = run
        self.plan = PeriodPlan(run.parts.options.first_workers, FIRST_PERIOD, "start")
        self._extra = 0  # workers of a supercharge

    async def follow(self) -> None:
        """Run period after period."""
        run, options, clock = self.run, self.run.parts.options, self.run.parts.clock
        async with asyncio.TaskGroup() as group:
            checker = group.create_task(self._check_gaps())
            while not run.is_over():
                workers = max(options.min_workers, self.plan.workers)
                run.workers = workers + self._extra
                begun = clock.now()
                fields = (
                    ("Count", str(workers)), ("Period", f"{self.plan.period:,}"),
                    ("Current Instance Id", f"`{run.follower.next}`"),
                )  # fmt: skip
                run.parts.alerts.post(Alert("Workers Starting", "", Level.INFO, fields))
                await self._spawn(workers, self.plan.period)
                if run.is_over():
                    break
                readings = await self.run.parts.metrics.read(clock.now() - begun)
                run.parts.metrics.tell(readings, workers)
                if readings is not None:
                    self.plan = decide(readings, workers, options.min_workers, options.max_workers)
                if clock.now() == begun:  # nothing was to be done
                    await clock.sleep(1.0)
            checker.cancel()

    async def _spawn(self, workers: int, period: int) -> None:
        left = period

        async def work() -> None:
            nonlocal left
            while left > 0 and not self.run.stopped and (number := self.run.follower.take_in_order()) is not None:
                left -= 1
                await self._settle(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())

    async def _settle(self, number: int) -> None:
        """Ask for an id until it is decided, as a worker of the original does."""
        run = self.run
        missing = errors = attempt = 0
        while not run.stopped:
            answer = await self._ask(number)
            if answer is None:
                break
            run.parts.metrics.meter.count(answer.meaning)
            match answer.meaning:
                case Meaning.FOUND | Meaning.UNWANTED | Meaning.HIDDEN:
                    run.settle(answer)
                    return
                case Meaning.REFUSED:
                    run.give_up(number, Reason.REFUSED, 1)
                    return
                case Meaning.DISABLED:
                    run.parts.metrics.meter.observe(0.0)
                    await run.parts.clock.sleep(DISABLED)
                    continue
                case Meaning.MISSING:
                    missing += 1
                    reason = Reason.NOT_FOUND
                case _:
                    errors += 1
                    reason = Reason.BAD_FORMAT if answer.meaning is Meaning.BAD_FORMAT else Reason.ERROR
            if missing > RETRIES["not_found"] or errors > RETRIES["error"]:
                run.give_up(number, reason, missing + errors)
                return
            await run.parts.clock.sleep(pause(attempt, run.parts.random))
            attempt += 1
        run.follower.undecided(number)

    async def _ask(self, number: int) -> IdAnswer | None:
        run = self.run
        while not run.stopped:
            if run.is_held:
                await run.parts.clock.sleep(0.2)
                continue
            try:
                permit = await run.parts.limiter.acquire(run.parts.host)
            except CircuitOpen as closed:
                await run.parts.clock.sleep(max(0.1, closed.until - run.parts.clock.now()))
                continue
            return (await run.request((number,), permit))[0]
        return None

    async def _check_gaps(self) -> None:
        run, clock, alerts, metrics = self.run, self.run.parts.clock, self.run.parts.alerts, self.run.parts.metrics
        while True:
            await clock.sleep(GAP_SECONDS)
            readings = await metrics.read(FOUR_MINUTES)
            if readings is None or readings.missing <= GAP_SHARE or readings.count_missing <= GAP_COUNT:
                continue
            fields = (("Rate", f"{100 * readings.missing:.3f}%"), ("Count", f"{readings.count_missing:.0f}"))
            alerts.post(Alert("High 404 Rate Detected", "", Level.WARNING, fields))
            begun, self._extra = clock.now(), SUPERCHARGE
            run.workers += SUPERCHARGE
            await self._spawn(SUPERCHARGE, SUPERCHARGE_IDS)
            run.workers, self._extra = max(1, run.workers - SUPERCHARGE), 0
            readings = await metrics.read(clock.now() - begun)
            if readings is None:
                continue
            fields = (("404 Rate", f"{100 * readings.missing:.3f}%"), ("Lag", show_elapsed(readings.lag)))
            alerts.post(Alert("Gap Supercharge Exiting", "", Level.INFO, fields))
            if readings.missing > CERTAIN and not await run.search_gap():
                run.follower.go_back(run.follower.newest)
                back = (("Returning to Instance Id", str(run.follower.next)),)
                alerts.post(Alert("Runaway Error", "Resetting Channel", Level.ERROR, back, ping=True))
