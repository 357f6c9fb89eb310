"""What a crawl tells other processes."""

from pathlib import Path

import msgspec
import pytest
from small_web import crawl, page, web

from sanderling.pages.status import Status, published, status
from sanderling.stores.process_identity import own_process
from sanderling.stores.status_file import is_running, write_status
from sanderling.testing import LoopClock, run_virtual

A = "http://a.example"


def taken(folder: Path) -> Status:
    done = crawl(folder, web(**{f"{A}/": page("/x", "/gone"), f"{A}/x": page()}), f"{A}/")

    async def look() -> Status:  # the limiter's clock is the loop's
        return status(done.crawl, 7.5)

    return run_virtual(look())


def test_it_says_how_things_stand(tmp_path: Path) -> None:
    now = taken(tmp_path / "out")

    assert (now.pages, now.counts["failed"], now.known, now.waiting, now.inflight) == (2, 1, 3, 0, 0)
    assert now.seconds == 7.5
    assert [host.view.host for host in now.hosts] == ["a.example"]
    assert now.classes == {"new": 4}, "robots.txt and three URLs"


@pytest.mark.parametrize("by", [-3600.0, 86_400.0])
def test_a_clock_that_is_set_meanwhile_neither_ages_it_nor_makes_it_look_dead(tmp_path: Path, by: float) -> None:
    done = crawl(tmp_path / "out", web(**{f"{A}/": page()}), f"{A}/")
    clock = LoopClock(1_800_000_000.0 + by)
    done.crawl.clock = clock

    async def look() -> tuple[float, bool]:
        now = status(done.crawl, 7.5)
        return now.seconds, is_running(now, clock.wall())

    assert run_virtual(look()) == (7.5, True)


def test_what_is_published_can_be_read(tmp_path: Path) -> None:
    now = taken(tmp_path / "out")

    write_status(tmp_path, now)

    assert published(tmp_path) == msgspec.structs.replace(now, process=own_process())


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert published(tmp_path) is None

    (tmp_path / "status.json").write_bytes(b'{"pid": "x"}')
    assert published(tmp_path) is None
