"""Threads under virtual time: one runs at a time, and the event loop does not meanwhile, so a run is always the same.

A thread that has to wait for something gives the turn back, and gets it again some virtual seconds later.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from sanderling.crawls.fleet import DirectStoreCaller

MOST_RESTS = 200  # in a row, while nobody else may do anything: then somebody waits for ever

_here = threading.local()


class Turn:
    """One call in a thread of its own."""

    def __init__(self, work: Callable[[], Any], future: "Future[Any]", ended: Callable[[], object]) -> None:
        self._work, self._future, self._ended = work, future, ended
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._timer: asyncio.TimerHandle | None = None
        self._seconds = 0.0
        self.done = False

    def start(self) -> None:
        if not self._future.set_running_or_notify_cancel():  # nobody waits for it any more
            self._ended()
            return
        self._thread.start()
        self.proceed()

    def proceed(self) -> None:
        """In the event loop: until the thread has ended, or rests."""
        if self._timer is not None:
            self._timer.cancel()
        self._go.release()
        self._back.acquire()
        if self.done:
            self._thread.join()
            self._ended()
        else:
            self._timer = self._loop.call_later(self._seconds, self.proceed)

    def rest(self, seconds: float) -> None:
        """In the thread."""
        self._seconds = seconds
        self._back.release()
        self._go.acquire()

    def _run(self) -> None:
        _here.turn = self
        self._go.acquire()
        try:
            self._future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
            self._future.set_exception(error)
        finally:
            self.done = True
            self._back.release()


class TurnPool(ThreadPoolExecutor):
    """Does what it is given in order, by turns."""

    def __init__(self) -> None:
        super().__init__(1)
        self._todo: deque[Turn] = deque()
        self._now: Turn | None = None

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> "Future[Any]":  # noqa: ANN401 - as it is
        future: Future[Any] = Future()
        self._todo.append(Turn(partial(work, *args, **more), future, self._go_on))
        if self._now is None:
            self._go_on()
        return future

    def _go_on(self) -> None:
        self._now = self._todo.popleft() if self._todo else None
        if self._now is not None:
            self._now.start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is
        del cancel_futures
        rests = 0
        while wait and self._now is not None:
            rests += 1
            assert rests < MOST_RESTS, "a thread waits for a server that is away, and whoever closes it waits for that"
            if (turn := getattr(_here, "turn", None)) is not None:
                turn.rest(0.25)
            else:
                self._now.proceed()


class ManyTurns(ThreadPoolExecutor):
    """Begins whatever it is given at once."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> "Future[Any]":  # noqa: ANN401 - as it is
        future: Future[Any] = Future()
        Turn(partial(work, *args, **more), future, bool).start()
        return future


def rest(seconds: float) -> None:
    """In a thread: give the turn back for so long."""
    _here.turn.rest(seconds)


class TurnCaller(DirectStoreCaller):
    """Asks servers in memory; who has to wait for them gives its turn back."""

    def rest(self, until: threading.Event, seconds: float) -> None:
        turn = getattr(_here, "turn", None)
        assert turn is not None, "the event loop itself waits for a server"
        if not until.is_set():
            turn.rest(seconds)
