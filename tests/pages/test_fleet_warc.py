"""The WARC of a crawl that machines share, under virtual time: each capture once, whatever happens to whom."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import pytest
from fleet_faults import Faults
from fleet_world import HOSTS, PAGES, PARTS, START, FleetWorld
from frontier_urls import fresh
from plays import seeds
from small_web import lines
from warc_files import captured

from sanderling.crawls import fleet_archive
from sanderling.crawls.archive import ArchivedRow, segments
from sanderling.crawls.fleet_archive import SharedArchive
from sanderling.crawls.fleet_frontier import create_ledger
from sanderling.crawls.fleet_log import PendingRows
from sanderling.crawls.fleet_pull import bring_rows
from sanderling.crawls.kept import keep_reply
from sanderling.pages.earlier import LEDGER
from sanderling.pages.fleet import finish_pulled
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.output import PAGES as ROWS
from sanderling.pages.verify import verify
from sanderling.task import Reply
from sanderling.testing import run_virtual


class WarcWorld(FleetWorld):
    """Machines that keep what they fetch."""

    def make_plan(self) -> CrawlPlan:
        return CrawlPlan((START,), ("*.example",), 16, "warc")

    async def pull(self, folder: Path, *, complete: bool) -> None:
        """Bring all parts here, as far as they are."""
        for part in await self.brought(folder, LEDGER, create_ledger):
            await bring_rows(part, LEDGER, ROWS)
            finish_pulled(part.folder, self.clock.wall(), complete)


@pytest.mark.parametrize("seed", seeds(6))
def test_whatever_happens_each_capture_is_there_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are small here, so that there are several of one owner, too. It is pulled meanwhile, and at the end."""
    monkeypatch.setattr(fleet_archive, "SEGMENT", 3_000)

    async def main(folder: Path) -> None:
        async with WarcWorld(folder / "machines", Random(seed), 1 + seed % 2).running() as world:
            async with asyncio.TaskGroup() as group:
                group.create_task(Faults(world).play(12))
                await asyncio.sleep(20)
                world.objects_down = False
                await world.pull(folder / "pulled", complete=False)
            await world.until_done(3600)
            await world.pull(folder / "pulled", complete=True)
        check(folder / "pulled")

    with fresh() as folder:
        run_virtual(main(folder))


def check(folder: Path) -> None:
    parts = [folder / f"{part:04}" for part in range(PARTS)]
    for part in parts:
        proof = verify(part)
        assert proof.ok, proof.problems
    rows = [row["url"] for part in parts for row in lines(part / ROWS)]
    assert len(rows) == HOSTS * PAGES + 1
    assert Counter(url for part in parts for url in captured(part)) == Counter(rows)
    assert any(len(segments(part, "pages-0001")) > 1 for part in parts)


def test_what_was_not_committed_is_in_no_file_and_nothing_refers_to_it() -> None:
    head = [1]
    pending = PendingRows(0, SharedArchive(lambda: head[0] + 1))
    kept = keep_reply(Reply(200, (), b"the same", "http://a.example/", 0.1), "warc", 0.0)

    places = []
    for committed in (True, True, False, True, True):
        pending.archive_and_append([kept])
        if committed:
            taken = pending.take()
            places.append(msgspec.json.decode(taken.rows, type=ArchivedRow))
            head[0] += 1
            assert places[-1].warc_offset + places[-1].warc_length >= len(taken.captures)
        else:
            pending.cut(pending.length)

    names = [each.warc_file.rpartition("-")[2] for each in places if each.warc_file]
    assert names == ["00002.warc.gz", "00002.warc.gz", "00004.warc.gz", "00004.warc.gz"]
    assert [each.warc_type for each in places] == ["response", "revisit", "response", "revisit"]


def test_files_are_in_the_order_of_their_commits(tmp_path: Path) -> None:
    names = [f"pages-0001-2026{number}-{number:05}.warc.gz" for number in (7, 99_999, 100_000)]
    (tmp_path / "warc").mkdir()
    for name in reversed(names):
        (tmp_path / "warc" / name).touch()

    assert [path.name for path in segments(tmp_path, "pages-0001")] == names


@pytest.mark.parametrize(("held", "kind"), [(2, "revisit"), (1, "response")])
def test_as_many_payloads_are_known_as_may_be_held(held: int, kind: str) -> None:
    pending = PendingRows(0, archive := SharedArchive(lambda: 1))
    archive.hold(held)

    pending.archive_and_append(
        [keep_reply(Reply(200, (), each, START, 0.1), "warc", 0.0) for each in (b"a", b"b", b"a")]
    )

    rows = [msgspec.json.decode(line, type=ArchivedRow) for line in pending.take().rows.splitlines()]
    assert [each.warc_type for each in rows] == ["response", "response", kind]
