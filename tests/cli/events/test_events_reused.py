"""Strangers make event ids, and some make one twice: what comes under the id of another batch is kept, and told."""

import json
from collections import Counter
from pathlib import Path

from command_line import here, run
from events_commands import ERRORS, POSTS, Place, drain, own_place
from services.s3 import S3

from sanderling.stores.objects import open_objects

ITEMS = 50
PROJECTS = ("fc5d5ffb-36cc-4c8d-a288-f5215af7fb80", "0c5d5ffb-36cc-4c8d-a288-f5215af7fb81")


def item(name: str) -> dict[str, object]:
    """A post, or an error if its number is odd."""
    failed = int(name.rpartition("-")[2]) % 2
    meta = {"id": name, "fetch_status": "error", "error_code": "CONTENT_REMOVED"} if failed else {"id": name}
    return {"meta": {"fetch_status": "success", **meta}, "content": {"text": f"the car of {name} is very good"}}


def message(path: str, project: str = PROJECTS[0], **more: object) -> bytes:
    """A message that tells of a batch, with the id that they all have."""
    payload = {"minio_path": path, "project_id": project, "platform": "tiktok", "job_id": f"{project}-brand-0"}
    return json.dumps({"event_id": "evt_1", "event_type": "data.collected", "payload": payload, **more}).encode()


def inline(name: str, **more: object) -> bytes:
    """A message that carries its item."""
    return json.dumps({"event_id": "evt_1", **item(name), **more}).encode()


async def play(place: Place) -> None:
    objects = open_objects(place.objects or f"file:{place.out / 'objects'}")
    for name in ("a", "b"):
        batch = [item(f"{name}-{number}") for number in range(ITEMS)]
        await objects.put(place.bucket, f"{name}.json", json.dumps(batch).encode(), {})
    await objects.close()
    first, other = message(f"{place.bucket}/a.json"), message(f"{place.bucket}/b.json")
    again = message(f"minio://{place.bucket}/a.json", timestamp="2025-12-06T10:15:30Z")
    elsewhere, alone = message(f"{place.bucket}/a.json", PROJECTS[1]), inline("c-0")
    alike = inline("c-0", timestamp="2025-12-06T10:15:30Z")
    await place.publish([first, other, again, other, elsewhere, alone, alike])
    await drain(place, "--batches", "1")  # in this order

    wanted = Counter((PROJECTS[0], "tiktok", f"{name}-{number}") for name in "ab" for number in range(0, ITEMS, 2))
    wanted += Counter((PROJECTS[1], "tiktok", f"a-{number}") for number in range(0, ITEMS, 2))
    assert Counter(row[:3] for row in await place.rows(POSTS)) == wanted + Counter([("", "", "c-0")])
    errors = Counter(event.partition("~")[0] for event, *_ in await place.rows(ERRORS))
    assert errors == {"evt_1": 3 * ITEMS // 2}, "each once"
    events = sorted(event for (event,) in await place.rows("SELECT event_id FROM processed_events"))
    assert events[0] == "evt_1"
    assert [each[:6] for each in events[1:]] == ["evt_1~"] * 3
    # All of them at once, replayed, end in the same rows.
    before = Counter(await place.rows(POSTS)), Counter(await place.rows(ERRORS))
    flags = zip(place.flags()[::2], place.flags()[1::2], strict=True)
    replay = [each for flag in flags if flag[0] not in ("--metrics-port", "--objects") for each in flag]
    assert (await here("events", "replay", "--from", "1h", *replay)).code == 0
    await drain(place)
    assert (Counter(await place.rows(POSTS)), Counter(await place.rows(ERRORS))) == before


def test_another_batch_under_the_same_event_id_is_kept_under_one_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path / "out")

    async def main() -> None:
        await play(place)
        assert (await place.depth()).dead == 0

    run(main)


def test_the_same_holds_between_servers(tmp_path: Path, postgres: str, rabbitmq: str, s3: S3) -> None:
    async def main() -> None:
        async with own_place(tmp_path / "out", postgres, rabbitmq, s3) as place:
            await play(place)

    run(main)
