"""What strangers pack into a few bytes is bounded once it is unpacked, and what is cut off is read too."""

import json
import random
import sys
from collections import Counter
from pathlib import Path

from command_line import run
from events_commands import POSTS, Place, consuming, drain, until_done, wanted
from test_events_poison import MOST_MEMORY, memory

from sanderling.stores.objects import open_objects
from sanderling.worlds.social import Social
from sanderling.worlds.social_envelopes import BUCKET
from sanderling.worlds.social_plan import demo

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BOMBS, GOOD = 5, 6  # as many bombs as batches are in hand at once


def item(name: str, comments: int) -> bytes:
    """A post with so many comments, of nine bytes each."""
    said = b",".join([b'{"id":1}'] * comments)
    head = json.dumps({"meta": {"id": name, "fetch_status": "success"}, "content": {"text": "a very good car"}})
    return head.encode()[:-1] + b',"comments":[' + said + b"]}"


def message(name: str, key: str = "bomb.json", project: str = "proj") -> bytes:
    """That there is a bomb, or another object."""
    told = {"minio_path": f"{BUCKET}/{key}", "job_id": f"{project}-brand-0", "platform": "tiktok"}
    return json.dumps({"event_id": name, "payload": told}).encode()


def test_half_a_million_comments_in_500_bytes_are_an_error_row_and_their_neighbours_are_posts(tmp_path: Path) -> None:
    place, social = Place(tmp_path / "out"), Social(1, demo())

    async def main() -> None:
        packed = zstd.compress(b"[" + item("many", 498_000) + b"," + item("few", 3) + b"]")
        assert len(packed) < 1_000
        objects = open_objects(f"file:{place.out / 'objects'}")
        await objects.put(BUCKET, "bomb.json", packed, {})
        await objects.close()
        await place.put(social, range(GOOD))
        bombs = [message(f"bomb-{number}") for number in range(BOMBS)]
        await place.publish([*bombs, *map(social.envelope, range(GOOD))])
        async with consuming(place) as process:
            await until_done(place, BOMBS + GOOD, process)
            used = memory(process)
        assert used < MOST_MEMORY
        found = await place.rows("SELECT event_id, item_index, content_id, error_message FROM crawl_errors")
        why = "comments of item 0: found 498,000, expected at most 10,000 (max-comments)"
        bad = [row for row in found if row[0].startswith("bomb")]
        assert sorted(bad) == [(f"bomb-{number}", 0, "many", why) for number in range(BOMBS)]
        assert await place.rows("SELECT post_id FROM post_analytics WHERE job_id = 'proj-brand-0'") == [("few",)]
        good = wanted(place, social, range(GOOD))
        assert good.posts.keys() <= {row[:3] for row in await place.rows(POSTS)}
        assert not await place.dead()

    run(main)


def damaged() -> dict[str, tuple[bytes, int]]:
    """Objects of ten items that are cut off or damaged, and how many of their items are whole."""
    items = [item(f"{number}", 30) for number in range(10)]
    plain, size = b"[" + b",".join(items) + b"]", len(items[0])
    noise = random.Random(1)  # which fills more than one block of zstd
    large = [each[:-1] + f',"noise":"{noise.randbytes(50_000).hex()}"}}'.encode() for each in items]
    packed = zstd.compress(b"[" + b",".join(large) + b"]")
    return {
        "cut": (plain[: -2 * size], 8),
        "cut_behind_an_item": (plain[:-1], 10),
        "cut_object": (b'{"count":10,"items":' + plain[: -2 * size], 8),
        "cut_early": (plain[: size // 2], 0),
        "no_brace": (b"[" + b",".join([*items[:4], items[4][:-1], *items[5:]]) + b"]", 4),
        "a_brace_more": (b"[" + b",".join([*items[:4], items[4] + b"}", *items[5:]]) + b"]", 5),
        "half_packed": (zstd.compress(plain[: -2 * size]), 8),
        "cut_frame": (packed[: len(packed) * 2 // 3], 6),
        "cut_small_frame": (zstd.compress(plain)[:-20], 0),
        "damaged_frame": (packed[:10] + bytes(20) + packed[30:], 0),
    }


def test_of_an_object_that_stays_cut_off_or_damaged_the_items_that_are_whole_are_posts(tmp_path: Path) -> None:
    place, bodies = Place(tmp_path / "out"), damaged()

    async def main() -> None:
        objects = open_objects(f"file:{place.out / 'objects'}")
        for name, (body, _) in bodies.items():
            await objects.put(BUCKET, f"{name}.json", body, {})
        await objects.close()
        await place.publish([message(name, f"{name}.json", name) for name in bodies])
        await drain(place, "@tries", "0")
        posts = Counter(event for (event,) in await place.rows("SELECT event_id FROM post_analytics"))
        errors = await place.rows("SELECT event_id, item_index, error_code FROM crawl_errors")
        whole = {name: count for name, (_, count) in bodies.items() if count}
        assert posts == whole
        assert sorted(errors) == sorted((name, count, "PARSE_ERROR") for name, count in whole.items())
        assert {json.loads(each.body)["event_id"] for each in await place.dead()} == bodies.keys() - whole

    run(main)
