"""The shell of every run: open it, run it, and around it screen, logs, metrics, status, control and signals.

At the end: the report, at most three hints that can be pasted, and the exit code.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from sanderling.cli.context import Context, expected_error
from sanderling.cli.screen import is_terminal, live, print_lines
from sanderling.clock import Clock, SystemClock
from sanderling.files import Exit, FolderError, check_descriptors, write_file
from sanderling.observe.control import (
    CONTROL,
    ENDING,
    LASTING,
    Control,
    ControlRequest,
    Run,
    change_control,
    read_control,
)
from sanderling.observe.log import configure, log
from sanderling.observe.options import ObserveOptions
from sanderling.observe.render import Line, hint_words, render
from sanderling.observe.report import STATUS, Fact, Hint, Kind, Report, RunState, clean_report
from sanderling.systems import System

TICK = 1.0  # seconds between two reports
RATE_TICKS = 10  # the seconds over which the growth of counts is shown
LINE_SECONDS = 30.0  # between two lines of progress where no screen is drawn
# Signals that come together count as one: some supervisors signal the process, and then its group.
TOGETHER = 0.5


def run_command(system: System, options: ObserveOptions, context: Context) -> Exit:
    """Run a system to its end; the exit code."""
    import uvloop  # noqa: PLC0415 - 20 ms, and only for runs

    check_descriptors()
    configure(options.log, verbose=options.verbose)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_in_shell(system, options, context, SystemClock()))


async def run_in_shell(
    system: System, options: ObserveOptions, context: Context, clock: Clock, *, signals: bool = True
) -> Exit:
    """Run a system on the present event loop, whose time is that of `clock`; with `signals` they stop it."""
    return await _Shell(system, options, context, clock, signals=signals).run()


class _Shell:
    """One run, and what is known of it outside."""

    def __init__(
        self, system: System, options: ObserveOptions, context: Context, clock: Clock, *, signals: bool
    ) -> None:
        self._system = system
        self._signals_stop = signals
        self._options = options
        self._context = context
        self._clock = clock
        self._folder: Path = options.out  # type: ignore[attr-defined] # the options of each system have it
        self._started = clock.wall()
        self._state = RunState.RUNNING
        self._troubles: dict[str, str] = {}  # of the shell itself, by what they concern
        self._wanted = Control()
        self._control_seen: tuple[int, int] | None = None  # time and inode of the file that was read last
        self._stopped_by_signal_at: float | None = None
        self._counts: deque[tuple[float, dict[str, float]]] = deque(maxlen=RATE_TICKS + 1)
        self._last = Report(system=system.name, doing="starting", folder=str(self._folder))
        self._draw: Callable[[Iterable[Line]], None] | None = None
        self._line_at = clock.now() + LINE_SECONDS

    async def run(self) -> Exit:
        """Open the system, run it to its end, and say how it went."""
        with ExitStack() as around:
            if self._options.metrics_port:  # 0: nowhere
                from sanderling.observe.metrics import serve_metrics  # noqa: PLC0415 - 50 ms

                port = self._options.metrics_port
                around.enter_context(serve_metrics(lambda: self._last, self._options.metrics_bind, port))
            async with self._system.load().open_run(self._options, self._clock) as run:
                self._take_control_at_start(run)
                if not self._options.quiet and is_terminal(self._context.err, self._context):
                    self._draw = around.enter_context(live(self._context, color=self._options.color))
                try:
                    code = await self._work(run)
                except BaseException as error:
                    expected = expected_error(error)
                    self._troubles["run"] = str(expected or type(error).__name__)
                    self._publish(run, expected.code if isinstance(expected, FolderError) else Exit.FAILED)
                    raise
                self._publish(run, code)
        self._print_end(code)
        return code

    async def _work(self, run: Run) -> Exit:
        """Run to the end, publishing each second; a second signal ends it at once."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(run.run())
            with self._signals(run, work):
                ticks = group.create_task(self._tick(run))
                try:
                    await asyncio.wait([work])
                finally:
                    ticks.cancel()
        if work.cancelled():
            return Exit.INTERRUPTED
        code = work.result()
        return Exit.INTERRUPTED if self._stopped_by_signal_at is not None and code is not Exit.DONE else code

    @contextmanager
    def _signals(self, run: Run, work: asyncio.Task[Exit]) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        both = (signal.SIGINT, signal.SIGTERM) if self._signals_stop else ()
        for each in both:
            loop.add_signal_handler(each, self._on_signal, run, work)
        try:
            yield
        finally:
            for each in both:
                loop.remove_signal_handler(each)

    def _on_signal(self, run: Run, work: asyncio.Task[Exit]) -> None:
        if self._stopped_by_signal_at is None:
            self._stopped_by_signal_at = self._clock.now()
            self._state = RunState.STOPPING
            log.warning("stopping", say="Stopping: requests in flight end first. Press Ctrl-C again to stop at once.")
            run.stop()
        elif self._clock.now() - self._stopped_by_signal_at >= TOGETHER:
            work.cancel()

    async def _tick(self, run: Run) -> None:
        await self._clock.sleep(TICK / 10)  # the work comes first
        while True:
            await self._obey(run)
            self._publish(run)
            await self._clock.sleep(TICK)

    def _publish(self, run: Run, code: Exit | None = None) -> None:
        """Make the report, and put it where others see it."""
        report = run.report(running=code is None)
        wall = self._clock.wall()
        self._last = clean_report(
            msgspec.structs.replace(
                report,
                facts=self._with_rates(report.facts),
                troubles=(*report.troubles, *self._troubles.values()),
                folder=str(self._folder),
                state=self._state_with(code),
                exit=code,
                pid=os.getpid(),
                started=self._started,
                wall=wall,
            )
        )
        try:
            write_file(self._folder / STATUS, self._last.to_json(), durable=False)
            self._troubles.pop(STATUS, None)
        except FolderError as error:  # a full disk, say: the run itself decides what that means
            self._troubles[STATUS] = str(error)
        if self._draw is not None:
            self._draw(render(self._last, self._context.width))
        elif not self._options.quiet and code is None and self._clock.now() >= self._line_at:
            self._line_at = self._clock.now() + LINE_SECONDS
            facts = [each for each in self._last.facts if each.value and not each.more and each.kind is not Kind.TEXT]
            log.info("progress", doing=self._last.doing, **{each.name: each.value for each in facts})

    def _state_with(self, code: Exit | None) -> RunState:
        if code is not None:
            return RunState.ENDED
        return RunState.PAUSED if self._wanted.paused and self._state is RunState.RUNNING else self._state

    def _with_rates(self, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        now = self._clock.now()
        counts = {
            each.name: float(each.value)
            for each in facts
            if each.kind is Kind.COUNT and isinstance(each.value, int | float)
        }
        self._counts.append((now, counts))
        then, before = self._counts[0]
        if now <= then:
            return facts
        return tuple(
            msgspec.structs.replace(each, rate=max(0.0, counts[each.name] - before.get(each.name, 0.0)) / (now - then))
            if each.name in counts
            else each
            for each in facts
        )

    def _take_control_at_start(self, run: Run) -> None:
        """Pausing and blocked hosts hold; what was meant for the process before this one is dropped."""
        if (self._folder / CONTROL).exists():
            self._wanted = change_control(self._folder, _without_ending)
            run.control(self._wanted)
        if self._wanted.paused:
            command = self._context.command_line(["control", str(self._folder), "resume"])
            log.warning("paused", say=f"Paused by an earlier request. To resume, type: {command}")

    async def _obey(self, run: Run) -> None:
        """Read control.json if it has changed, and carry out what is requested there."""
        path = self._folder / CONTROL
        found = path.stat() if path.exists() else None
        seen = (found.st_mtime_ns, found.st_ino) if found else None
        if seen == self._control_seen:
            return
        self._control_seen = seen
        try:
            wanted = read_control(self._folder)
            self._troubles.pop(CONTROL, None)
        except FolderError as error:
            self._troubles[CONTROL] = str(error)  # what was wanted before still holds
            return
        for request in wanted.requests:
            answer = await self._carry_out(run, request)
            # Another request may have been left meanwhile.
            wanted = change_control(self._folder, partial(_settled, request=request, answer=answer))
            log.info("control", action=request.action, words=" ".join(request.words), answer=answer)
        if wanted != self._wanted:
            self._wanted = wanted
            run.control(wanted)

    async def _carry_out(self, run: Run, request: ControlRequest) -> str:
        if request.action in LASTING:
            return "done"
        if request.action in ENDING:
            self._state = RunState.STOPPING
            if request.action == "stop":
                run.stop()
            return f"ending ({request.action})"
        return await run.carry_out(request)

    def _print_end(self, code: Exit) -> None:
        context = self._context
        if self._options.json:
            context.out.write(self._last.to_json().decode())
            return
        hints = self._last.hints
        if code in (Exit.WAITING, Exit.INTERRUPTED, Exit.LATER):
            hints = (Hint("go on with", context.arguments), *hints)
        shown = msgspec.structs.replace(self._last, hints=hints)
        commands = [context.command_line(words) for words in hint_words(hints)]
        print_lines(render(shown, context.width, commands), context.out, context, color=self._options.color)


def _settled(wanted: Control, request: ControlRequest, answer: str) -> Control:
    return wanted.after(request).answered(request, answer)


def _without_ending(wanted: Control) -> Control:
    for request in wanted.requests:
        if request.action in ENDING:
            wanted = wanted.answered(request, "its run had ended")
    return msgspec.structs.replace(wanted, draining=False)
