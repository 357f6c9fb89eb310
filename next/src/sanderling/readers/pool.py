"""The pool of reader processes: hands items to readers, hosts in turn, and replaces the readers that die.

    async with Readers("module:open_work", argument, count=3, clock=clock) as readers:
        answer = await readers.run(host, head, body)

Each reader calls `open_work(argument)` once, and what that returns for each item. Whatever an item does to its reader,
be it an endless loop or a crash, costs that item only.
"""

import asyncio
import heapq
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count as counter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from sanderling.clock import Clock, cpu_seconds
from sanderling.readers.reader import (
    ANSWER,
    CLOSING,
    FAILURES,
    REQUEST,
    Opening,
    ReaderLimits,
    Work,
    answer_item,
    close_work,
    open_work,
)

# The rest of the environment may hold passwords.
ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
GRACE = 5.0  # seconds after which an item is ended from here, if its reader's own timer did not end it
KNOWN_HOSTS = 10_000  # whose use of CPU is remembered
STARTS = 10  # failures in a row after which, if no reader is left, the crawl ends: 42 seconds


class ReaderError(Exception):
    """An item failed in its reader.

    `reason` is "slow" (CPU), "stuck" (time), "memory", "crash", "error" (the function raised), "answer too large" or
    "budget" (of its host); or "start": no reader could be started, which is no item's fault. `detail` says where.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """What a pool has done so far."""

    count: int  # readers wanted; 0: the work is done in this process
    alive: int
    waiting: int  # items
    items: int  # ended, well or not
    cpu: float  # seconds that items used
    failed: Mapping[str, int]  # items by reason
    replaced: Mapping[str, int]  # readers by reason
    trouble: str  # why a reader died or did not start, the last time


class _Item(NamedTuple):
    head: bytes
    body: bytes | Path
    answer: asyncio.Future[tuple[str, bytes]]  # failure, answer


@dataclass(slots=True, eq=False)
class _Share:
    """The items of one host, and the CPU they used."""

    waiting: deque[_Item] = field(default_factory=deque)
    running: int = 0
    items: int = 0
    cpu: float = 0.0  # seconds
    cost: float = 0.0  # of its last item
    tag: float = 0.0  # the host with the lowest is next; it grows by the CPU that the host uses


class _Reader:
    """A reader process, seen from here."""

    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self._killed_for = ""
        self.since: float | None = None  # when its item began
        self.cpu = 0.0  # seconds that the process has used
        self._socket, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed in `end`
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", "sanderling.readers", str(theirs.fileno()), str(self._log.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__,
                pass_fds=(theirs.fileno(), self._log.fileno()),
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
                | {"PYTHONPATH": os.pathsep.join(each or str(Path.cwd()) for each in sys.path)},
                start_new_session=True,
            )
        except BaseException:
            self._socket.close()
            self._log.close()
            raise
        finally:
            theirs.close()
        self._socket.settimeout(0)
        self.pid = self._process.pid

    def has_died(self) -> bool:
        """Whether it closed its socket. Without an item it sends nothing."""
        with suppress(BlockingIOError):
            return not self._socket.recv(1, socket.MSG_PEEK)
        return False

    async def ask(self, head: bytes, body: bytes | Path) -> tuple[str, bytes, bool]:
        """Failure and answer of an item, and whether the reader ends. Raises OSError or EOFError if it has died."""
        data = os.fsencode(body) if isinstance(body, Path) else body
        request = REQUEST.pack(len(head), len(data), isinstance(body, Path))
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, b"".join((request, head, data)))
        received, end = bytearray(), ANSWER.size
        while len(received) < end:
            piece = await loop.sock_recv(self._socket, 1 << 16)  # as a rule, all of it
            if not piece:
                raise EOFError
            received += piece
            if end == ANSWER.size <= len(received):
                size, failure, is_last, self.cpu = ANSWER.unpack_from(received)
                if size > max(self._limits.answer, 1 << 16):  # its memory is damaged
                    raise EOFError
                end += size
        return FAILURES[failure], bytes(memoryview(received)[ANSWER.size :]), is_last

    def kill(self, reason: str) -> None:
        """End the process with all that it has started; its item then fails for `reason`."""
        self._killed_for = reason
        with suppress(ProcessLookupError, PermissionError):  # macOS forbids killing what has ended
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(OSError):  # what it has started in a session of its own may hold the other end
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ask the process to close what it has opened, and to end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> tuple[str, str]:
        """End the process if it lives, and free what belongs to it: reason and place of its death."""
        if self._process.returncode is not None:
            return "", ""
        self.kill(reason := self._killed_for)
        _, status, used = os.wait4(self.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = used.ru_utime + used.ru_stime
        words = os.pread(self._log.fileno(), 4000, 0).decode(errors="replace")
        self._socket.close()
        self._log.close()
        # faulthandler writes a line '  File "…", line 7 in name' for each frame, the innermost first.
        frames = [line.strip() for line in words.splitlines() if line.startswith("  File ")][:3]
        place = f" at {', called by '.join(frames)}" if frames else ""
        if reason:
            return reason, f"ended by the crawl{place}"
        if code == -signal.SIGPROF:
            return "slow", f"more than {self._limits.cpu:g} seconds of CPU{place}"
        if code == -signal.SIGALRM:
            return "stuck", f"more than {self._limits.wall:g} seconds{place}"
        if code >= 0:
            return "crash", f"the process ended itself with code {code}{place}"
        hint = ", perhaps for lack of memory" if -code in {signal.SIGABRT, signal.SIGKILL} else ""
        return "crash", f"{signal.Signals(-code).name}{hint}{place}"


class Readers:
    """Reader processes that share the items of many hosts fairly."""

    def __init__(
        self,
        opening: str,
        argument: bytes,
        *,
        count: int,
        clock: Clock,
        limits: ReaderLimits = ReaderLimits(),  # noqa: B008 - frozen
        # Other systems do not bound a process's address space, so its memory is measured from here.
        limit_memory: bool = sys.platform == "linux",
        closes: bool = False,  # whether the work has something to close at its end, which is waited for
    ) -> None:
        self._opening = Opening(opening, argument, limits, limit_memory)
        self._limits = limits
        self._count = count
        self._clock = clock
        self._closes = closes
        self._work: Work | None = None  # of this process, if there are no readers
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._readers: set[_Reader] = set()
        self._shares: dict[str, _Share] = {}  # the host used last comes last
        self._queue: list[tuple[float, int, _Share]] = []  # hosts that wait; an entry with another tag is outdated
        self._order = counter()
        self._waiting = asyncio.Semaphore(0)  # items
        self._turn = 0.0  # the tag of the host served last
        self._items = 0
        self._cpu = 0.0
        self._failed: Counter[str] = Counter()
        self._replaced: Counter[str] = Counter()
        self._trouble = ""

    def __repr__(self) -> str:
        return f"<Readers {len(self._readers)} of {self._count}>"

    async def __aenter__(self) -> Self:
        if not self._count:
            self._work = open_work(self._opening.function, self._opening.argument)
            return self
        first = await self._start()  # raises if the work cannot be opened at all
        await self._group.__aenter__()
        keepers = [self._keep_reader(reader) for reader in [first, *[None] * (self._count - 1)]]
        self._tasks = [self._group.create_task(task) for task in (*keepers, self._watch())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        for share in self._shares.values():
            for item in share.waiting:
                item.answer.cancel()
        # An error of the body goes on as it is; only a cancellation may be the group's own.
        cancelled = isinstance(error, asyncio.CancelledError)
        try:
            if self._tasks:
                await self._group.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if self._closes:
                await self._close()
            for reader in self._readers:
                reader.end()
            self._readers.clear()

    async def _close(self) -> None:
        """Let the work close what it has opened."""
        if self._work is not None:
            close_work(self._work)
        for reader in self._readers:
            reader.close()
        until = self._clock.now() + CLOSING
        while not all(reader.has_ended() for reader in self._readers) and self._clock.now() < until:
            await self._clock.sleep(0.02)

    def report(self) -> ReaderFacts:
        """What the pool has done so far."""
        return ReaderFacts(
            count=self._count,
            alive=len(self._readers),
            waiting=sum(len(share.waiting) for share in self._shares.values()),
            items=self._items,
            cpu=self._cpu,
            failed=dict(self._failed),
            replaced=dict(self._replaced),
            trouble=self._trouble,
        )

    async def run(self, host: str, head: bytes, body: bytes | Path) -> bytes:
        """The work function's answer for `head` and `body`, or the content of the file `body`. Raises ReaderError.

        A body of more than 1 MiB is better left in a file: here it would be copied.
        """
        share = self._shares[host] = self._shares.pop(host, _Share())
        oldest = next(iter(self._shares))
        if len(self._shares) > KNOWN_HOSTS and not self._shares[oldest].waiting and not self._shares[oldest].running:
            del self._shares[oldest]
        share.items += 1
        if share.cpu > self._limits.host_cpu + share.items * self._limits.cpu / 4:
            failure, answer = "budget", f"{host} used {share.cpu:.0f} s of CPU for {share.items:,} items".encode()
        elif self._work:
            before = cpu_seconds()
            failure, answer = answer_item(self._work, head, body, self._limits.answer)
            share.cpu += cpu_seconds() - before
            self._cpu += cpu_seconds() - before
        else:
            if not share.waiting and not share.running:
                # Whoever comes back begins where the others are: turns are not saved up.
                share.tag = max(share.tag, self._turn)
            share.waiting.append(item := _Item(head, body, asyncio.get_running_loop().create_future()))
            if len(share.waiting) == 1:
                self._enqueue(share)
            self._waiting.release()
            failure, answer = await item.answer
        self._items += 1
        if failure:
            self._failed[failure] += 1
            raise ReaderError(failure, answer.decode(errors="replace"))
        return answer

    # Hosts are served in turn by the CPU they used: start-time fair queueing with equal weights.

    def _enqueue(self, share: _Share) -> None:
        heapq.heappush(self._queue, (share.tag, next(self._order), share))

    def _take(self) -> tuple[_Share, _Item]:
        """An item of the host whose turn it is."""
        while True:
            tag, _, share = heapq.heappop(self._queue)
            if tag == share.tag and share.waiting:
                break
        self._turn = max(self._turn, tag)
        share.running += 1
        # An item is thought to cost what the last one did, so that one host's dear items do not take all readers.
        share.tag += share.cost
        item = share.waiting.popleft()
        if share.waiting:
            self._enqueue(share)
        return share, item

    def _settle(self, share: _Share, expected: float, cpu: float) -> None:
        """Correct what `_take` assumed."""
        share.running -= 1
        share.tag += cpu - expected
        share.cpu += cpu
        self._cpu += cpu
        if share.waiting:
            self._enqueue(share)

    # Readers come and go.

    async def _start(self) -> _Reader:
        reader = _Reader(self._limits)
        try:
            failure, answer, _ = await reader.ask(msgspec.msgpack.encode(self._opening), b"")
        except (EOFError, OSError):
            failure, answer = "crash", ": ".join(reader.end()).encode()
        except asyncio.CancelledError:
            reader.end()
            raise
        if failure:
            reader.end()
            raise ReaderError("start", answer.decode(errors="replace"))
        self._readers.add(reader)
        return reader

    async def _keep_reader(self, reader: _Reader | None) -> None:
        """Have one reader at work, this one first."""
        failures = 0
        while True:
            try:
                reader = reader or await self._start()
            except (OSError, ReaderError) as error:
                self._trouble = str(error)
                failures += 1
                if failures >= STARTS and not self._readers:
                    raise ReaderError("start", str(error)) from None
                await self._clock.sleep(min(0.05 * 2**failures, 10.0))
                continue
            failures = 0
            self._replaced[await self._serve(reader)] += 1
            self._readers.discard(reader)
            reader.end()
            reader = None

    async def _serve(self, reader: _Reader) -> str:
        """Hand items to the reader until it has to be replaced; returns why."""
        while True:
            await self._waiting.acquire()
            if reader.has_died():
                self._waiting.release()
                return "crash"
            share, item = self._take()
            expected, before, end = share.cost, reader.cpu, ""
            if item.answer.cancelled():
                self._settle(share, expected, 0)
                continue
            reader.since = self._clock.now()
            try:
                failure, answer, is_last = await reader.ask(item.head, item.body)
                end = failure or "worn out" if is_last else ""
            except (EOFError, OSError):
                failure, detail = reader.end()
                answer, end, self._trouble = detail.encode(), failure, f"{failure}: {detail}"
            except asyncio.CancelledError:
                item.answer.cancel()
                raise
            reader.since = None
            share.cost = reader.cpu - before
            self._settle(share, expected, share.cost)
            if not item.answer.cancelled():
                item.answer.set_result((failure, answer))
            if end:
                return end

    async def _watch(self) -> None:
        """End readers that their own limits did not end."""
        while True:
            await self._clock.sleep(1.0)
            busy = {reader.pid: reader for reader in self._readers if reader.since is not None}
            for reader in busy.values():
                if reader.since is not None and self._clock.now() - reader.since > self._limits.wall + GRACE:
                    reader.kill("stuck")
            if busy and not self._opening.limit_memory:
                command = ("ps", "-o", "pid=,rss=", "-p", ",".join(map(str, busy)))
                ps = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
                for line in (await ps.communicate())[0].splitlines():
                    pid, kilobytes = map(int, line.split())
                    if kilobytes << 10 > self._limits.memory and busy[pid].since is not None:
                        busy[pid].kill("memory")
