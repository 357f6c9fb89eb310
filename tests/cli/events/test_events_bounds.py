"""What strangers pack into a few bytes is bounded once it is unpacked: one bad item is one error row."""

import json
import sys
from pathlib import Path

from command_line import run
from events_commands import POSTS, Place, consuming, until_done, wanted
from test_events_poison import MOST_MEMORY, memory

from sanderling.stores.objects import open_objects
from sanderling.worlds.social import Social
from sanderling.worlds.social_envelopes import BUCKET
from sanderling.worlds.social_presets import demo

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


def message(name: str) -> bytes:
    """That there is a bomb."""
    told = {"minio_path": f"{BUCKET}/bomb.json", "job_id": "proj-brand-0", "platform": "tiktok"}
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
        why = "comments of item 0: found 498,000, expected at most 10,000 (--max-comments)"
        bad = [row for row in found if row[0].startswith("bomb")]
        assert sorted(bad) == [(f"bomb-{number}", 0, "many", why) for number in range(BOMBS)]
        assert await place.rows("SELECT post_id FROM post_analytics WHERE job_id = 'proj-brand-0'") == [("few",)]
        good = wanted(place, social, range(GOOD))
        assert good.posts.keys() <= {row[:3] for row in await place.rows(POSTS)}
        assert not await place.dead()

    run(main)
