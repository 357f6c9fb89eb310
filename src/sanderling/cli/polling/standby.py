"""`sanderling polling run --standby`: wait while another process polls, and take over when it ends."""

import asyncio
import signal
from collections.abc import Callable, Sequence

from sanderling.cli.loop import stop_on_signals
from sanderling.polling.change_sinks import ChangeSink, SinkError
from sanderling.polling.system import PollingSystem
from sanderling.stores.leases import BEATS
from sanderling.stores.polling import PollingStoreError, RowChange
from sanderling.stores.polling_lease import SECONDS, PolledElsewhereError


class StoppedInStandbyError(Exception):
    """Somebody has stopped a process that never polled, or not any more."""

    def __init__(self, signals: Sequence[int]) -> None:
        super().__init__("stopped in standby")
        self.interrupted = signal.SIGINT in signals


class LeasedSink:
    """A sink that is told nothing while another process may be the one that polls, and tells."""

    def __init__(self, sink: ChangeSink, may_send: Callable[[], bool]) -> None:
        self._sink = sink
        self._may_send = may_send

    async def send(self, changes: Sequence[RowChange]) -> None:
        """Send them. Raises SinkError."""
        if not self._may_send():
            raise SinkError("not sent: the lease is over, or about to be")
        await self._sink.send(changes)

    async def close(self) -> None:
        """Let go."""
        await self._sink.close()


async def stand_by(system: PollingSystem, note: Callable[[str], object]) -> None:
    """Return when this process is the one that polls. Raises StoppedInStandbyError, or a group of what went wrong."""
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_wait_for_turn(system, note))
        with stop_on_signals(waiting.cancel, note, lambda: "stopping") as signals:
            await asyncio.wait([waiting])
    if waiting.cancelled():
        raise StoppedInStandbyError(signals)


async def _wait_for_turn(system: PollingSystem, note: Callable[[str], object]) -> None:
    said = ""
    while True:
        try:
            await system.open()
        except PolledElsewhereError as error:
            why = f"{error}; this one waits"
        except PollingStoreError as error:
            if not error.transient:
                raise
            why = f"{error}; this one waits"
            await system.clock.sleep(SECONDS / BEATS)
        else:
            break
        if why != said:
            note(why)
        said = why
    if said:
        note("this process polls now")
