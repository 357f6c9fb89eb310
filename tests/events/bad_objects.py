"""Many good messages, and a few whose object is garbage, never arrives, or always gets a 500: consumed in virtual time.

The world decides: objects are asked for by name, each takes its time, and what is in the rows and among the dead
letters is all that is judged.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

from event_house import House, house
from fake_objects import MemoryObjects

from sanderling.events.rules import ConsumeRules
from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject
from sanderling.stores.queue import Letter
from sanderling.testing import run_virtual
from sanderling.worlds.social import Social
from sanderling.worlds.social_bodies import Packing, Shape
from sanderling.worlds.social_envelopes import Version
from sanderling.worlds.social_plan import FormRules, SocialRules

BUCKET = "crawl-results"
ITEMS = 2  # of a message
EPOCH = 1_800_000_000.0  # of the virtual clock
LONGEST = 900.0  # virtual seconds by which everything must have ended
# Those of the command, but that a batch which is not there is given up after a minute instead of hours.
RULES = ConsumeRules(first_delay=0.5, longest_delay=10.0)


class Bad(StrEnum):
    """What is wrong with an object."""

    POISON = "poison"  # bytes that are no batch
    MISSING = "missing"  # the store says 404, whenever it is asked
    ERROR = "error"  # the store says 500, whenever it is asked


REASONS = {Bad.POISON: "no JSON", Bad.MISSING: "not there", Bad.ERROR: "500"}  # what the reason of each has in it


class Store(MemoryObjects):
    """Each object takes some milliseconds, by the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.bad: dict[str, Bad] = {}
        self._rng = Random(f"objects {seed}")

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        """The object, or why not."""
        path = f"{bucket}/{key}"
        await asyncio.sleep(self._rng.uniform(0.01, 0.05))
        if self.bad.get(path) is Bad.ERROR:
            raise ObjectError(f"{path} is not to be had now (500 Internal Server Error)", fault=ObjectFault.FAILED)
        return await super().get(bucket, key, most)


@dataclass(slots=True)
class Consumed:
    """What came of it."""

    good: int
    rows: int  # good messages that are in the rows
    seconds: float  # until the last good one was
    ended: float  # seconds until nothing was left
    dead: dict[Bad, str]  # why a message was given up, by what was wrong with its object
    others: list[str]  # good messages that were given up

    @property
    def speed(self) -> float:
        """Good messages a second; 0 if some never came."""
        return self.good / self.seconds if self.rows == self.good and self.seconds else 0.0

    def fits(self, bad: Bad) -> bool:
        """Whether such a message ended with its own reason, and not with one of the others."""
        return [each for each in Bad if REASONS[each] in self.dead.get(bad, "")] == [bad]


def messages(seed: int, count: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Event id, envelope and object of so many messages, of two items each."""
    forms = FormRules({Version.EVENT_2_0: 1.0}, shapes={Shape.LIST: 1.0}, packings={Packing.PLAIN: 1.0})
    social, batches, number = Social(seed, SocialRules(forms=forms, shared=0.0)), 0, 0
    while number < count:
        batch = social.batch(batches)
        batches += 1
        items = json.loads(batch.body or b"[]")
        for first in range(0, len(items) - ITEMS + 1 if isinstance(items, list) else 0, ITEMS):
            if number < count:
                envelope, event = json.loads(batch.envelope), f"evt_{number:06}"
                envelope["event_id"] = event
                envelope["payload"] |= {"minio_path": f"{BUCKET}/{event}.json", "content_count": ITEMS}
                yield event, json.dumps(envelope).encode(), json.dumps(items[first : first + ITEMS]).encode()
                number += 1


async def consume_within(here: House, seconds: float) -> None:
    """Consume until nothing is left, or for so long."""
    with suppress(TimeoutError):
        await here.consume(seconds, every=2.0)


def consume(folder: Path, seed: int, good: int, bad: Mapping[int, Bad]) -> Consumed:
    """Consume so many good messages with the rules of the command, and bad ones at those places of the queue."""
    store, letters, wrong = Store(seed), [], dict[str, Bad]()
    for number, (event, envelope, body) in enumerate(messages(seed, good + len(bad))):
        letters.append(Letter(event, envelope))
        fault = bad.get(number)
        path = f"{BUCKET}/{event}.json"
        if fault is not None:
            store.bad[path] = wrong[event] = fault
        if fault is not Bad.MISSING:
            store.there[path] = StoredObject(b"\x00\xff poison" * 20 if fault is Bad.POISON else body, {}, "etag")

    async def main() -> Consumed:
        async with house(folder, Social(seed), RULES, virtual=store) as here:
            await here.queue.publish(letters)
            began = asyncio.get_running_loop().time()
            await consume_within(here, LONGEST)
            ended = asyncio.get_running_loop().time() - began
            rows: dict[str, float] = dict(here.rows("SELECT event_id, processed_at FROM processed_events"))
            dead = await here.queue.dead(1000)
        done = [at for event, at in rows.items() if event not in wrong]
        return Consumed(
            good,
            len(done),
            max(done, default=EPOCH) - EPOCH - began,
            ended,
            {wrong[each.key]: each.why for each in dead if each.key in wrong},
            [each.key for each in dead if each.key not in wrong],
        )

    return run_virtual(main())
