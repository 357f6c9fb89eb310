"""Everything that can be wrong with messages and objects, through the real command: what can be read is read, once."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run
from events_commands import (
    HeldObjects,
    Place,
    consuming,
    drain,
    ended,
    own_place,
    proven,
    said,
    status_with,
    until_done,
)
from forked import Forked as Process
from services.s3 import S3

from sanderling.events.report import EventsFacts
from sanderling.worlds.social import Social
from sanderling.worlds.social_envelopes import BUCKET
from sanderling.worlds.social_hostile import Spoil
from sanderling.worlds.social_plan import demo, hostile
from sanderling.worlds.social_truth import BatchFate

# More than half of the batches are spoiled. With this seed the first fifty have every way in which one can be, and
# every odd item there is.
DENSE, SEED, BATCHES = replace(hostile(), spoils=dict.fromkeys(Spoil, 0.035)), 9, 50
HUGE = 1 << 30
MOST_MEMORY = 400_000  # kB; a process that does nothing has a fourth of it
# So a bomb of 64 MB is one, and what is not there is given up after one more try, five seconds later.
STRICT = ("@max-batch", "32", "@tries", "1")
# Of which some cannot be written into every database. There is nothing at the path.
ODD_IDS = (r'"\ud83d"', r'"a\u0000b"', '"' + "x" * 300 + '"', "1e400", "{}", '""', "[" * 10_000 + "]" * 10_000, "NaN")


def odd_messages() -> list[bytes]:
    """Messages that are none, or say odd things about nothing."""
    told = [f'{{"event_id": {each}, "payload": {{"minio_path": "{BUCKET}/none.json"}}}}'.encode() for each in ODD_IDS]
    jobs = [f'{{"payload": {{"minio_path": "{BUCKET}/none", "job_id": {each}}}}}'.encode() for each in ODD_IDS]
    return [*told, *jobs, b"", b"{", b"\xff" * 100, b"[" * 10_000, b"0" * 2_000_000]


def memory(process: Process) -> int:
    """The most that a process had so far, in kB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def is_through(received: int) -> Callable[[EventsFacts], bool]:
    """Whether so many messages were taken, and none is left."""

    def holds(status: EventsFacts) -> bool:
        queue = status.queue
        left = queue is None or queue["ready"] or queue["taken"] or queue["delayed"]
        return status.messages.received >= received and not left and not status.messages.active

    return holds


async def play(place: Place, more: list[bytes]) -> None:
    """Consume a hostile day and `more` that is nothing, and one batch that comes late."""
    social = Social(SEED, DENSE)
    late = next(each for each in range(BATCHES, 2 * BATCHES) if social.batch(each).body and readable(social, each))
    deliveries = list(social.deliveries(BATCHES))
    await place.put(social, range(BATCHES))
    await place.publish([*(delivery.envelope for delivery in deliveries), *more])
    async with consuming(place, *STRICT) as process:
        all_of_it = len(deliveries) + len(more)
        before = await status_with(place, is_through(all_of_it), process)
        await place.publish([social.envelope(late)])
        await status_with(place, lambda status: status.messages.postponed > before.messages.postponed, process)
        await place.put(social, [late])
        await until_done(place, before.batches + 1, process)
        used = memory(process)
        process.terminate()
        assert await ended(process) == 0
    assert used < MOST_MEMORY
    assert "Traceback" not in said(place)
    await proven(place, social, [*range(BATCHES), late])
    # All that are dead should be, and have a reason.
    dead = await place.dead()
    bad = [each.envelope for each in deliveries if not readable(social, each.number)]
    assert Counter(each.body for each in dead) == Counter(place.told([*bad, *more]))
    assert len(bad) > BATCHES // 4
    assert all(each.why for each in dead)


def readable(social: Social, number: int) -> bool:
    return social.truth(number).fate is BatchFate.READ


@pytest.mark.timeout(240)
def test_a_hostile_day_loses_nothing_that_can_be_read_and_buries_nothing_else(tmp_path: Path) -> None:
    """Also an object of a gigabyte, of which nothing is read."""
    place = Place(tmp_path / "out")
    huge = tmp_path / "out" / "objects" / BUCKET / "huge.json"
    huge.parent.mkdir(parents=True)
    with huge.open("wb") as file:
        file.truncate(HUGE)  # sparse: it takes no room
    message = json.dumps({"event_id": "evt_huge", "payload": {"minio_path": f"{BUCKET}/huge.json"}}).encode()

    async def main() -> None:
        await play(place, [*odd_messages(), message])
        (dead,) = [each for each in await place.dead() if each.body == message]
        assert "has 1,073,741,824 bytes, expected at most 33,554,432" in dead.why

    run(main)


@pytest.mark.timeout(240)
def test_the_same_holds_between_servers(tmp_path: Path, postgres: str, rabbitmq: str, s3: S3) -> None:
    async def main() -> None:
        async with own_place(tmp_path / "out", postgres, rabbitmq, s3) as place:
            await play(place, odd_messages())

    run(main)


def test_of_an_object_that_is_said_to_have_a_gigabyte_next_to_nothing_is_read(tmp_path: Path) -> None:
    async def main() -> None:
        held, social = HeldObjects(), Social(1, demo())
        held.sizes[f"{BUCKET}/huge.json"] = HUGE
        held.put(social, range(3))
        async with held.serving() as url:
            place = Place(tmp_path / "out", objects=url)
            huge = json.dumps({"event_id": "evt_huge", "payload": {"minio_path": f"{BUCKET}/huge.json"}}).encode()
            await place.publish([huge, *map(social.envelope, range(3))])
            await drain(place)
        assert held.given < 64 << 20, "what the network had on its way"
        (dead,) = await place.dead()
        assert "has 1,073,741,824 bytes, expected at most" in dead.why
        await proven(place, social, range(3))

    run(main)
