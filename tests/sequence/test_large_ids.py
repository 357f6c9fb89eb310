"""Ids may be as large as 64 bits with a sign hold; nothing assumes that they are smaller."""

import asyncio
import json
from pathlib import Path

import pytest
from command_line import called
from described_crawl import URL, follow
from raids import raid, rows

from sanderling.apis.numbered import LARGEST_ID
from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.stores.instances import open_instances

GIVEN = SequenceUpstream(url=URL, id_path="id")


@pytest.mark.parametrize("latest", [10**11 - 1, 10**11, 999_000_000_001, 2**53 + 1, LARGEST_ID])
def test_a_crawl_goes_on_from_the_latest_that_is_stored_however_large(tmp_path: Path, latest: int) -> None:
    async def store() -> None:
        instances = await open_instances(f"sqlite:{tmp_path / 'rows.db'}")
        await instances.keep(rows(raid(latest)))
        await instances.close()

    asyncio.run(store())

    # Nobody is asked: every id up to 20 has its fate.
    where = ("--out", str(tmp_path), "--base", "http://127.0.0.1:1024", "--private")
    done = called("sequence", "crawl", *where, "@buffer", "1000", "--until", "20", "--json")

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["cursor"] == latest - 1000


def test_the_last_of_all_ids_is_stored_like_any_other_and_the_crawl_stays_there(tmp_path: Path) -> None:
    def says(number: int, _: float) -> tuple[int, bytes]:
        assert number <= LARGEST_ID
        return 200, json.dumps({"id": number}).encode()

    for _ in range(2):
        followed = follow(tmp_path, says, 200.0, GIVEN, begin=LARGEST_ID - 5)

        assert sorted(followed.records) == list(range(LARGEST_ID - 5, LARGEST_ID + 1))
        assert (followed.report.facts.cursor, followed.missed) == (LARGEST_ID + 1, {})
    assert called("status", str(tmp_path)).code == 0


def test_near_the_last_of_all_ids_nothing_beyond_it_is_asked(tmp_path: Path) -> None:
    def says(number: int, _: float) -> tuple[int, bytes]:
        assert number <= LARGEST_ID
        return (200, json.dumps({"id": number}).encode()) if number < LARGEST_ID - 300 else (404, b"")

    followed = follow(tmp_path, says, 200.0, GIVEN, begin=LARGEST_ID - 310)

    assert len(followed.records) == 10
    assert followed.report.facts.at_head
