import asyncio
from pathlib import Path

import msgspec
import pytest
from producer_items import item
from producer_play import Play

from sanderling.events.producer import SinkRules
from sanderling.events.publish import LONGEST_LINE, PublishedFile, publish_file
from sanderling.stores.durable import FolderError

MOVED = {"id": 7, "url": "https://example.org/a", "outcome": "SKIPPED", "status": 301}


def test_a_file_is_published_and_its_bad_lines_are_told(tmp_path: Path) -> None:
    lines = [msgspec.json.encode(item(number)) for number in range(5)]
    lines[2:2] = [b"no json", b"", b'{"a": 1}', msgspec.json.encode(MOVED)]
    lines.append(msgspec.json.encode({**MOVED, "outcome": "OK"}))
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(lines))
    play = Play(rules=SinkRules(items=4))

    async def act() -> PublishedFile:
        done = await publish_file(tmp_path / "items.jsonl", play.sink)
        assert len(await play.consumed()) == 6
        return done

    done = asyncio.run(act())
    assert (done.items, done.left_out, done.bad) == (6, 1, 2)
    assert [problem.partition(":")[0] for problem in done.problems] == ["line 3", "line 5"]


def test_a_file_that_is_published_twice_is_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(msgspec.json.encode(item(number)) for number in range(10)))
    play = Play(rules=SinkRules(items=4))
    for _ in range(2):
        play.restart()
        asyncio.run(publish_file(tmp_path / "items.jsonl", play.sink))

    ids = [event["event_id"] for event in play.events()]
    assert len(ids) == 6
    assert ids[:3] == ids[3:]


def test_a_line_without_end_fills_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "items.jsonl").open("wb") as file:
        file.write(msgspec.json.encode(item(1)) + b"\n")
        file.truncate(60 << 20)
        file.seek(0, 2)
        file.write(b"\n" + msgspec.json.encode(item(2)) + b"\n")
    play = Play()

    done = asyncio.run(publish_file(tmp_path / "items.jsonl", play.sink))

    assert (done.items, done.bad) == (2, 1)
    assert done.problems == [f"line 2: more than {LONGEST_LINE:,} bytes, expected at most that many"]


def test_only_the_first_problems_are_told(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(b"x\n" * 1000)

    done = asyncio.run(publish_file(tmp_path / "items.jsonl", Play().sink))

    assert (done.bad, len(done.problems)) == (1000, 20)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"nowhere\.jsonl"):
        asyncio.run(publish_file(tmp_path / "nowhere.jsonl", Play().sink))
