"""Reaching a service that may be a file on this machine or a server: with patience, and in words when it fails."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.clock import SystemClock
from sanderling.engine.handover import HandOverError
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.durable import FolderError
from sanderling.stores.instances import InstancesError
from sanderling.stores.objects import ObjectError
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.queue import QueueError
from sanderling.words import printable

# Seconds that a server may take to come up after us: whoever starts both at once need not put them in order.
PATIENCE, AGAIN = 30.0, 2.0
FILES = ("sqlite", "file", "chdb")  # kinds of URLs
SERVERS = ("amqp", "amqps", "postgresql", "postgres", "clickhouse", "clickhouses", "s3", "s3+http", "s3+https")
KNOWN = (FolderError, QueueError, AnalyticsError, ObjectError, InstancesError, PollingStoreError, HandOverError)

T = TypeVar("T")
Say = Callable[[str], object]


async def reached(flag: str, url: str | None, reach: Callable[[], Awaitable[T]], say: Say | None = None) -> T:
    """What `reach` gives. With `say`, a server is given a while, and `say` is told. Raises CommandError.

    `url` is what the flag was set to; None if it was not, which is a file of ours.
    """
    clock = SystemClock()  # of the world outside, also where ours is scaled
    kind = url.partition(":")[0] if url else "file"
    until = clock.now() + (PATIENCE if say is not None and kind in SERVERS else 0.0)
    said = False
    while True:
        try:
            return await reach()
        except KNOWN as error:
            problem = printable(f"{flag}: {error}" if url else str(error))
            wrong = _is_final(error) or kind not in (*FILES, *SERVERS)
        if wrong or clock.now() >= until:
            raise CommandError(problem, code=2 if wrong else 1)
        if say is not None and not said:
            say(f"{problem.rstrip('.')}; trying for {PATIENCE:.0f} s")
            said = True
        await clock.sleep(AGAIN)


def _is_final(error: Exception) -> bool:
    """Whether no later attempt will go otherwise."""
    match error:
        case AnalyticsError() | InstancesError() | PollingStoreError():
            return not error.transient
        case ObjectError():
            return not error.unavailable
    return False


def explained(work: Coroutine[Any, Any, T]) -> T:
    """What comes of a command that ends by itself. Raises CommandError where something is not to be had."""
    try:
        return run(work)
    except KNOWN as error:
        raise CommandError(printable(str(error))) from None
