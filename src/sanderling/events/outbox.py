"""What has to go out is sent: from the outbox of the database to exchanges, at least once, in order.

A message is forgotten after the other side has it, and not before. Whoever is killed in between sends it once more,
under the same id.

What nobody waits for yet (a routing key to which no queue is bound) is a matter of its key. News of how a batch ended
are for those who listen, and are dropped. Everything else stays in the outbox, is offered again now and then, and holds
up nothing that goes elsewhere.

Tricky bits:

- Numbers are given when a message is written and seen when that is committed, so a lower one may show up later. Hence
  each look begins with the first message there is. Only while something is left lying, some of them begin behind it.
- Any number of processes may send from one outbox, one at a time: each claims it for a few messages, sends and forgets
  these, and lets go. Whoever finds it claimed looks again a second later, so that nothing waits for one that died.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from sanderling.clock import Clock
from sanderling.events.rows import RESULT_KEY, RETRY_KEY
from sanderling.limit.backoff import BackoffRules, delay
from sanderling.observe import logs
from sanderling.stores.analytics import AnalyticsError, MessageOutbox, OutboxMessage
from sanderling.stores.queue import QueueError, WholeQueue
from sanderling.stores.topic import Topic, open_topic, unfit

log = logs.get(__name__)

# Where everything is in a folder, where no server is named.
DATABASE, OBJECTS, QUEUE = "events.db", "objects", "analytics.data.collected"
OUTGOING = (RESULT_KEY, RETRY_KEY)  # queues of ours for what goes out, where no server has any
MOST_NAMED = 3  # of keys that nobody waits for


class ClaimedError(AnalyticsError):
    """Another process sends from the outbox just now."""


@dataclass(frozen=True, slots=True)
class OutboxRules:
    """How much at once, and how patiently. Times in seconds."""

    batch: int = 200  # messages that are read, sent and forgotten together
    every: float = 1.0  # between looks, if nobody wakes us: other processes write there, too
    again: float = 30.0  # after which what nobody waited for is offered once more
    flush: float = 5.0  # for what is left when we end
    turn: float = 0.1  # between asking whether another who sends is done, while all of it shall go out
    patience: float = 30.0  # for that other one
    backoff: BackoffRules = field(default_factory=lambda: BackoffRules(base=0.5, longest=60.0))
    droppable: Collection[str] = frozenset({RESULT_KEY})  # keys of what is dropped if nobody waits for it

    def __post_init__(self) -> None:
        if self.batch < 1 or not (min(self.every, self.again, self.turn) > 0 and min(self.flush, self.patience) >= 0):
            raise ValueError(f"{self}, expected a batch from 1 up, times above 0, flush and patience from 0 up")


@dataclass(slots=True)
class OutboxTally:
    """What was done, for the metrics and for people."""

    sent: Counter[str] = field(default_factory=Counter)  # by routing key
    dropped: int = 0  # that nobody waits for
    left: int = 0  # that are left lying in the outbox
    failures: int = 0  # attempts after which it is not certain what arrived
    trouble: str = ""  # why something does not go out, while it does not


class OutboxSender:
    """`run` until `stop`."""

    def __init__(
        self,
        outbox: MessageOutbox,
        topic: Topic,
        clock: Clock,
        rng: random.Random,
        rules: OutboxRules | None = None,
        *,
        arrived: Callable[[str, int], object] = lambda _key, _count: None,
    ) -> None:
        """Call `arrived` with the key and number of what has gone out."""
        self.tally = OutboxTally()
        self._outbox = outbox
        self._topic = topic
        self._clock = clock
        self._rng = rng
        self._rules = rules or OutboxRules()
        self._arrived = arrived
        self._stopping = False
        self._news, self._end = asyncio.Event(), asyncio.Event()
        self._failed = 0  # times in a row
        self._after = 0  # behind all that is left lying
        self._absent: set[tuple[str, str]] = set()  # exchanges and keys for which nobody waits
        self._again = float("-inf")  # when to offer what is left lying

    def __repr__(self) -> str:
        return f"<OutboxSender, {self.tally}>"

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put messages into the outbox, and send them soon. Raises AnalyticsError."""
        await self._outbox.add(messages)
        self.wake()

    def wake(self) -> None:
        """There is something in the outbox: look now. While the other side is away this changes nothing."""
        self._news.set()

    def stop(self) -> None:
        """Send what is there, for a few seconds, and end."""
        self._stopping = True
        self._news.set()
        self._end.set()

    async def run(self) -> None:
        """Send what comes, until told to stop. Whatever happens is tried again, for ever."""
        while not self._stopping:
            self._news.clear()
            if await self._tried():
                await self._rest(self._rules.every, self._news)
            else:
                self._end.clear()
                await self._rest(delay(self._rules.backoff, self._failed, self._rng), self._end)
        if not self._failed:
            await self._flush()

    async def send_waiting(self) -> int:
        """Send all that waits now, once; how many we have sent: others may send some of it meanwhile.

        Raises QueueError and AnalyticsError, also if another who sends does not let us for long.
        """
        self._again = float("-inf")
        return await self._look(whole=True)

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(self._rules.flush):
                await self._tried(whole=True)
        except TimeoutError:
            log.warning("outbox_not_empty", why=f"not all of it went out within {self._rules.flush:g} s")

    async def _tried(self, *, whole: bool = False) -> bool:
        """Look, and say whether that went well."""
        sent = self.tally.sent.total()
        try:
            await self._look(whole=whole)
        except ClaimedError:  # it goes out, and says nothing new about what does not
            return True
        except (QueueError, AnalyticsError) as error:
            if not self._failed:
                log.warning("outbox_fails", why=str(error))
            self._failed = 1 if self.tally.sent.total() > sent else self._failed + 1
            self.tally.failures += 1
            self.tally.trouble = str(error)
            return False
        if self._failed:
            log.info("outbox_goes_on")
        self._failed = 0
        self.tally.trouble = self._left_lying()
        return True

    async def _look(self, *, whole: bool) -> int:
        """Go through the outbox once; unless all of it is wanted, no further than until we are to stop."""
        now, gone = self._clock.now(), 0
        after, again = self._after, self._again
        if not self.tally.left or now >= again:
            after, again = 0, now + self._rules.again
            self._absent.clear()
            self.tally.left = 0
        self._again = float("-inf")  # if this one does not come to its end, the next begins anew
        while True:
            async with self._claimed(self._rules.patience if whole else 0.0):
                messages = await self._outbox.waiting(after, self._rules.batch)
                gone += await self._send(messages)
            after = messages[-1].number if messages else after
            if not messages or (self._stopping and not whole):
                break
        self._after, self._again = after, again
        return gone

    @asynccontextmanager
    async def _claimed(self, patience: float) -> AsyncIterator[None]:
        """Only we send, from when it is our turn: within so many seconds. Raises ClaimedError."""
        until = self._clock.now() + patience
        while True:
            async with self._outbox.claim() as ours:
                if ours:
                    yield
                    return
            if self._clock.now() >= until:
                raise ClaimedError(f"another process sends from the outbox, and was not done within {patience:g} s")
            await self._clock.sleep(self._rules.turn)

    async def _send(self, messages: Sequence[OutboxMessage]) -> int:
        """Send these and forget those that have arrived, or that need not; how many that were."""
        offered = [
            each for each in messages if not unfit(each) and (each.exchange, each.routing_key) not in self._absent
        ]
        returned = await self._topic.send(offered) if offered else []
        lying = {each.number for each in returned if each.routing_key not in self._rules.droppable}
        self._absent |= {(each.exchange, each.routing_key) for each in returned if each.number in lying}
        gone = [each for each in offered if each.number not in lying]
        if gone:
            await self._outbox.sent([each.number for each in gone])
        self._count(gone, {each.number for each in returned})
        self.tally.left += len(messages) - len(gone)
        return len(gone)

    def _count(self, gone: Sequence[OutboxMessage], returned: Collection[int]) -> None:
        arrived = Counter(each.routing_key for each in gone if each.number not in returned)
        self.tally.sent += arrived
        self.tally.dropped += len(gone) - arrived.total()
        for key, count in arrived.items():
            self._arrived(key, count)

    def _left_lying(self) -> str:
        if not self.tally.left:
            return ""
        keys = sorted({key for _, key in self._absent})
        named = ", ".join(keys[:MOST_NAMED]) + (" and others" if len(keys) > MOST_NAMED else "")
        why = f"nobody waits for {named}" if named else "they are larger than anybody takes, or badly addressed"
        return f"{self.tally.left:,} messages are left in the outbox: {why}"

    async def _rest(self, seconds: float, sooner: asyncio.Event) -> None:
        """Return after so long, or sooner."""
        if self._stopping:
            return
        timer = self._clock.call_later(seconds, sooner.set)
        try:
            await sooner.wait()
        finally:
            timer.cancel()


class TopicOfQueue:
    """A topic behind which our queue stands: made before anything is sent, or nobody would wait for it."""

    def __init__(self, topic: Topic, queue: WholeQueue) -> None:
        self._topic = topic
        self._queue = queue
        self._there = False

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        """Return when all are durable; gives those for which nobody waits."""
        if not self._there:
            await self._queue.depth()
            self._there = True
        return await self._topic.send(messages)

    async def close(self) -> None:
        """Nothing is ours."""


@asynccontextmanager
async def open_outgoing(
    url: str, routing_key: str, incoming: WholeQueue, open_one: Callable[[str], WholeQueue]
) -> AsyncIterator[Topic]:
    """Where messages go out: exchanges of the server at `url`, or queues of ours. Raises QueueError."""
    async with AsyncExitStack() as stack:
        queues: dict[str, WholeQueue] = {routing_key: incoming}
        for key in OUTGOING if url.startswith("sqlite:") else ():
            queues[key] = open_one(key)
            stack.push_async_callback(queues[key].close)
        topic = open_topic(url, queues)
        stack.push_async_callback(topic.close)
        yield topic
