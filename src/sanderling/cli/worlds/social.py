"""`sanderling world social`: publish what a simulated crawler found, to be consumed from there."""

import asyncio
import json as jsonlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import again
from sanderling.cli.events.place import OWN_LETTERS, USUAL, EventsFolder, EventsObjects, EventsQueue
from sanderling.cli.home import configured, home_of, set_for
from sanderling.cli.reach import explained
from sanderling.clock import Clock, SystemClock
from sanderling.events.batches import read_path
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.objects import Buckets, ObjectError, ObjectFault, Objects
from sanderling.stores.topic import Topic
from sanderling.words import count, duration, printable
from sanderling.worlds.social import Social, SocialDelivery
from sanderling.worlds.social_plan import MOST_DAYS, PRESETS
from sanderling.worlds.social_truth import BatchFate, Totals

OBJECTS, QUEUE = ("objects", "bucket"), ("queue", "queue_name", "exchange", "routing_key")
AT_ONCE = 32  # messages that are sent together, where nobody asked for a pace
TOLD_EVERY = 2.0  # seconds
# What becomes of messages that are not read.
FATES = {
    BatchFate.REFUSED: "not for us: given up at once",
    BatchFate.UNREADABLE: "of batches that nobody can read: given up, some only after several tries",
    BatchFate.MISSING: "of batches that are not there: given up after many tries, which takes hours",
}


@dataclass(slots=True)
class SimulatedCrawler:
    """Puts the objects of a simulated crawler where they belong, and tells of them."""

    social: Social
    objects: Objects
    topic: Topic
    letters: EventsQueue = OWN_LETTERS
    sent: int = 0  # messages
    fates: Counter[BatchFate] = field(default_factory=Counter)  # of these
    again: int = 0  # of these that were sent before

    async def deliver(self, deliveries: Sequence[SocialDelivery]) -> None:
        """Return when all is durable. Raises ObjectError, QueueError, and CommandError if nobody waits for messages."""
        # An object is there before the first message that tells of it.
        fresh = [each.number for each in deliveries if not each.again]
        try:
            async with asyncio.TaskGroup() as putting:
                for number in fresh:
                    putting.create_task(self._put(number))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        lost = await self.topic.send([self._message(place, each) for place, each in enumerate(deliveries, self.sent)])
        if lost:
            key = self.letters.routing_key
            raise CommandError(f"{count(len(lost), 'message')} under {key!r} reached no queue; expected one to wait")
        self.sent += len(deliveries)
        self.again += sum(each.again for each in deliveries)
        self.fates.update(self.social.truth(each.number).fate for each in deliveries)

    async def _put(self, number: int) -> None:
        batch = self.social.batch(number)
        if batch.body is not None:
            place = read_path(batch.path)
            await self.objects.put(place.bucket, place.key, batch.body, batch.metadata)

    def _message(self, place: int, delivery: SocialDelivery) -> OutboxMessage:
        """Each is another one, also if it says the same as an earlier one."""
        return OutboxMessage(
            exchange=self.letters.exchange,
            routing_key=self.letters.routing_key,
            body=delivery.envelope,
            number=place,
            created_at=self.social.sent_at(delivery.number),
        )


def social(
    *,
    seed: int,
    json: bool,
    preset: str = "demo",
    batches: int | None = None,
    rate: float | None = None,
    out: Path | None = None,
    **places: str,
) -> None:
    """Publish the batches of a simulated crawler: objects, and a message for each, where `events consume` takes them.

    At the end it says what must be in the rows once all is consumed.
    """
    folder, bodies, letters = _places(out, places)
    world = Social(seed, PRESETS[preset](), bucket=bodies.bucket)
    number = world.rules.batches if batches is None else batches
    if number > (most := MOST_DAYS * world.rules.batches):
        raise CommandError(f"--batches: {number:,} of {preset}, expected at most {most:,}: a century", code=2)
    note: Callable[[str], object] = (lambda _: None) if json else (lambda text: print(text, file=sys.stderr))
    clock = SystemClock()
    began = clock.now()
    crawler = explained(_publish(world, number, _Pace(clock, rate, note), (folder, bodies, letters)))
    totals = world.totals(0, number)
    if json:
        print(jsonlib.dumps(as_document(crawler, totals)))
        return
    for line in describe(
        crawler, totals, again("events consume --drain", folder, bodies, letters), clock.now() - began
    ):
        print(line)


def _places(out: Path | None, given: dict[str, str]) -> tuple[EventsFolder, EventsObjects, EventsQueue]:
    """Where `events consume` takes messages and batches from, unless a flag says otherwise."""
    said = set_for(("events", "consume"), (*OBJECTS, *QUEUE, "out")) | given
    folder = out or Path(said.get("out") or home_of(configured()) / USUAL.out)
    bodies = EventsObjects(**{name: said[name] for name in OBJECTS if name in said})
    return EventsFolder(out=folder), bodies, EventsQueue(**{name: said[name] for name in QUEUE if name in said})


@dataclass(slots=True)
class _Pace:
    """Not faster than it should be, and people hear how it goes."""

    clock: Clock
    rate: float | None
    note: Callable[[str], object]
    began: float = 0.0
    told: float = 0.0

    def begin(self) -> None:
        self.began = self.told = self.clock.now()

    @property
    def at_once(self) -> int:
        return AT_ONCE if self.rate is None else max(1, min(AT_ONCE, int(self.rate / 4)))

    async def keep(self, batches: int, of: int) -> None:
        """Return when so many are due; say how far it is, now and then."""
        now = self.clock.now()
        if now - self.told >= TOLD_EVERY:
            self.told = now
            self.note(f"{batches:,} of {of:,} batches, {batches / (now - self.began):,.0f} a second")
        if self.rate is not None:
            await self.clock.sleep(max(0.0, self.began + batches / self.rate - now))


async def _publish(
    social: Social, number: int, pace: _Pace, places: tuple[EventsFolder, EventsObjects, EventsQueue]
) -> SimulatedCrawler:
    folder, bodies, letters = places
    folder.made()
    # The queue is reached first, and so made: a message that nobody waits for is nowhere.
    async with (
        letters.opened(folder, pace.clock, pace.note) as queue,
        bodies.opened(folder, pace.note) as objects,
        letters.topic(folder, pace.clock, queue) as topic,
    ):
        await _make_bucket(objects, social.bucket)
        crawler = SimulatedCrawler(social, objects, topic, letters)
        deliveries = social.deliveries(number)
        pace.begin()
        try:
            while some := list(islice(deliveries, pace.at_once)):
                await crawler.deliver(some)
                await pace.keep(crawler.sent - crawler.again, number)
        except asyncio.CancelledError:
            pace.note(
                f"stopped after {count(crawler.sent, 'message')}; the same flags publish these again, and the rest"
            )
            raise
    return crawler


async def _make_bucket(objects: Buckets, bucket: str) -> None:
    """Return when there is such a bucket. Raises CommandError."""
    try:
        await objects.make(bucket)
    except ObjectError as error:
        raise CommandError(
            printable(f"bucket: {error}"), code=2 if error.fault is ObjectFault.UNUSABLE else 1
        ) from None


def as_document(crawler: SimulatedCrawler, totals: Totals) -> dict[str, Any]:
    """What `--json` prints: what was published, and what must come of it."""
    return {
        "batches": totals.batches,
        "messages": crawler.sent,
        "again": crawler.again,
        "items": totals.items,
        "posts": totals.posts,
        "errors": totals.errors,
        "codes": dict(totals.codes.most_common()),
        "platforms": dict(totals.platforms),
        "projects": {name or "": number for name, number in totals.projects.items()},
        "dead": {fate.value: crawler.fates[fate] for fate in FATES},
    }


def describe(crawler: SimulatedCrawler, totals: Totals, onward: str, seconds: float) -> Iterator[str]:
    """The same as lines."""
    yield (
        f"Published {totals.batches:,} batches of {count(totals.items, 'item')} in {duration(seconds)}: "
        f"{count(crawler.sent, 'message')}, {crawler.again:,} of them for the second time."
    )
    yield ""
    yield f"Once all is consumed, {count(totals.items, 'item')} were counted, and there must be:"
    yield ""
    yield f"  {totals.posts:>10,}  posts: each once for a project, however often it was found"
    yield f"  {totals.errors:>10,}  errors"
    for fate, what in FATES.items():
        if crawler.fates[fate]:
            yield f"  {crawler.fates[fate]:>10,}  messages {what}"
    yield ""
    yield f"    {onward}"
