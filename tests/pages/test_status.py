"""What a crawl tells other processes."""

from pathlib import Path

from small_web import crawl, page, web

from sanderling.pages.status import Status, keep_limiter, kept_limiter, publish, published, status
from sanderling.testing import run_virtual

A = "http://a.example"


def taken(folder: Path) -> Status:
    done = crawl(folder, web(**{f"{A}/": page("/x", "/gone"), f"{A}/x": page()}), f"{A}/")

    async def look() -> Status:  # the limiter's clock is the loop's
        return status(done.crawl, started=100.0, wall=107.5)

    return run_virtual(look())


def test_it_says_how_things_stand(tmp_path: Path) -> None:
    now = taken(tmp_path / "out")

    assert (now.pages, now.counts["failed"], now.known, now.waiting, now.inflight) == (2, 1, 3, 0, 0)
    assert now.seconds == 7.5
    assert [host.view.host for host in now.hosts] == ["a.example"]


def test_what_is_published_can_be_read(tmp_path: Path) -> None:
    now = taken(tmp_path / "out")

    publish(tmp_path, now)

    assert published(tmp_path) == now


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert published(tmp_path) is None

    (tmp_path / "status.json").write_bytes(b'{"pid": "x"}')
    assert published(tmp_path) is None


def test_what_the_limiter_must_not_forget_is_kept(tmp_path: Path) -> None:
    assert kept_limiter(tmp_path) is None

    keep_limiter(tmp_path, b"saved")
    assert kept_limiter(tmp_path) == b"saved"
