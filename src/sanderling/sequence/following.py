"""A crawl of ever-growing ids as a library, for an API of your own: two functions say what it is.

A record is in the folder from when it was fetched until the next one is asked for. So whoever is killed gets the last
one again, and never misses one.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.clock import SystemClock
from sanderling.engine.handover import HandOver
from sanderling.executor import in_threads
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import HttpRules
from sanderling.fetch.transport import make_transport
from sanderling.formats.instance import Instance, Message, decode, encode
from sanderling.limit import Limiter, PaceRules
from sanderling.outcome import Code, Outcome
from sanderling.sequence.inquiries import limits
from sanderling.sequence.state import SequenceState, begin_at
from sanderling.sequence.system import SequenceRules, SequenceServices, SequenceSystem
from sanderling.stores.durable import Lock, plainly
from sanderling.stores.queue import WholeQueue, open_queue
from sanderling.task import Reply, Task

NAME, STATE, QUEUE = "own", "sequence.db", "instance_store"
MOST_BODY, BODIES = 32 * 2**20, 256 * 2**20  # bytes of a record, and of all that are held at once
AT_ONCE, LOOK = 100, 0.1  # records that are taken from the folder, and seconds to wait for the first
GONE = (404, 410)
# What reading a document raises that is none, or has another shape.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, msgspec.MsgspecError)


class SequenceRecord(NamedTuple):
    """What is under an id."""

    id: int
    value: Any  # what `read` made of it, as it comes back from JSON


@dataclass(frozen=True, slots=True)
class OwnApi:
    """An API that two functions describe."""

    ask: Callable[[int], Task]
    make: Callable[[Reply], object]
    name: str = NAME

    def task(self, number: int, attempt: int) -> Task:  # noqa: ARG002 - it is asked the same way every time
        """The question for an id."""
        return self.ask(number)

    def read(self, number: int, reply: Reply, general: Outcome, wall: float) -> NumberedAnswer:
        """What a reply means. Never raises."""
        if general.code is Code.RATE_LIMITED:
            return NumberedAnswer(Status.RATE_LIMITED, general)
        if general.status in GONE:
            return NumberedAnswer(Status.NOT_FOUND, Outcome(Code.CONTENT_NOT_FOUND, general.status))
        if not general.ok:
            code = Code.HTTP_ERROR if general.final else general.code
            return NumberedAnswer(
                Status.ERROR, Outcome(code, general.status, general.detail, general.retry_after), code.value
            )
        try:
            value = self.make(reply)
            body = msgspec.json.encode(value)
        except UNREADABLE as error:
            why = f"{type(error).__name__}: {error}"[:200]
            return NumberedAnswer(Status.BAD_FORMAT, Outcome(Code.INVALID_RESPONSE, general.status, why))
        if value is None:
            return NumberedAnswer(Status.NOT_FOUND, Outcome(Code.CONTENT_NOT_FOUND, general.status))
        message = encode(Message(str(number), self.name, wall, Instance(str(number)), msgspec.Raw(body)))
        return NumberedAnswer(Status.SUCCESS, general, message=message)

    def availability(self) -> None:
        """It cannot be asked."""

    def available(self, reply: Reply) -> None:
        """It does not say."""


@asynccontextmanager
async def following(  # noqa: PLR0913 - the flags of the command
    task: Callable[[int], Task],
    read: Callable[[Reply], object],
    folder: str | Path,
    *,
    first: int,
    until: int | None = None,
    rps: float = 8.0,
    contact: str | None = None,
    private: bool = False,
    hand_over: HandOver[Message] | None = None,
) -> AsyncIterator[AsyncIterator[SequenceRecord]]:
    """All records from the id `first` on, and from then on every new one; up to `until`, if that is given.

    `task` says how to ask for an id. `read` makes of a reply whatever JSON can hold, None if there is nothing under
    the id yet; what it raises makes the record one to be asked for again. Ids that are not to be had are asked again
    later, gaps are skipped, and a second run with the same folder goes on where the first was.

        async with following(task, read, "orders", first=1) as records:
            async for record in records: ...

    All records also go to `hand_over`, before they come out here, such as those of `hand_to_events`.

    Raises FolderError if the folder is not to be had, or somebody else follows there.
    """
    clock, path, api = SystemClock(), Path(folder), OwnApi(task, read)
    rules = HttpRules(contact=contact, most_raw=MOST_BODY, most_decoded=MOST_BODY, connections_per_host=64)
    transport = make_transport(rules, Limiter(limits(PaceRules.up_to(rps))), BODIES, private=private)
    async with AsyncExitStack() as stack:
        executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        stack.callback(_claim(path).release)
        state = stack.enter_context(closing(SequenceState(path / STATE)))
        queue = open_queue(f"sqlite:{path}", QUEUE, clock)
        stack.push_async_callback(queue.close)
        http, limiter = await stack.enter_async_context(transport.http), transport.limiter
        position = begin_at(api.name, state.load(), None, begin=first)
        fetcher = Fetcher(http, limiter, follow=False)
        services = SequenceServices(api, fetcher, limiter, transport.memory, state, queue, executor)
        system = SequenceSystem(services, position, SequenceRules(), say=lambda _: None, clock=clock, rng=Random())
        system.end_at(until)
        group = asyncio.TaskGroup()
        await group.__aenter__()
        # Without the error: what ended the caller's block is not the group's concern, and comes out as it was.
        stack.push_async_callback(group.__aexit__, None, None, None)
        group.create_task(system.run())
        stack.callback(system.stop)
        if hand_over is not None:
            stack.callback(hand_over.stop)
        yield await stack.enter_async_context(aclosing(_records(system, queue, until, hand_over)))


def _claim(path: Path) -> Lock:
    """The folder, for us alone."""
    with plainly(path):
        path.mkdir(parents=True, exist_ok=True)
        return Lock(path / "lock")


async def _records(
    system: SequenceSystem, queue: WholeQueue, until: int | None, hand_over: HandOver[Message] | None
) -> AsyncGenerator[SequenceRecord, None]:
    while True:
        over = until is not None and system.durable.low > until  # before the look: what it had queued is there
        letters = await queue.take(AT_ONCE, LOOK)
        found = [(letter, decode(letter.body)) for letter in letters]
        # What was fetched ahead is not done, so it is there for a run that goes further.
        wanted = [each for each in found if until is None or int(each[1].id) <= until]
        if hand_over is not None and wanted and not await hand_over.hand([message for _, message in wanted]):
            return
        for letter, message in wanted:
            yield SequenceRecord(int(message.id), msgspec.json.decode(message.raw))
            await queue.done([letter])
        if over and not letters:
            return
