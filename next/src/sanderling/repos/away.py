"""What becomes of a run while a server is away: nothing more is requested, and it is asked again for a while."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError

T = TypeVar("T")

LONGEST = 600.0  # seconds
LONGEST_PAUSE = 30.0


class ServerAway(Exception):  # noqa: N818 - it says what happened
    """Redis or ClickHouse cannot be used now; the same call may work later. The message says why."""


class Servers:
    """The servers of a run, and why one of them cannot be used now."""

    def __init__(self, clock: Clock) -> None:
        self.why = ""  # empty: all can be used
        self.stopped = False
        self._clock = clock

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the server says, once it can be used. Raises FolderError if it is away for too long."""
        since, pause = self._clock.now(), 1.0
        while True:
            try:
                answer = await work()
            except ServerAway as away:
                self.why = str(away)
                if self.stopped or self._clock.now() - since >= LONGEST:
                    advice = "nothing that was stored is lost; start it, and run the same command again"
                    raise FolderError(self.why, advice, Exit.LATER) from None
                await self._clock.sleep(pause)
                pause = min(LONGEST_PAUSE, 2 * pause)
            else:
                self.why = ""
                return answer
