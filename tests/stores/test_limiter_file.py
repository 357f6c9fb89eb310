"""What a limiter must not forget, from one process to the next."""

import asyncio
import resource
from pathlib import Path

import pytest

from sanderling.ids import host_of
from sanderling.limit import Feedback, Limiter
from sanderling.stores.durable import FolderError
from sanderling.stores.limiter_file import FILE, add_news, keep, recall
from sanderling.testing import FakeClock

HOST = host_of("https://shut.example/")


def learned() -> Limiter:
    """A limiter that was asked to leave a host alone for an hour."""
    limiter = Limiter(clock=FakeClock())

    async def ask() -> None:
        permit = await limiter.acquire(HOST)
        limiter.feedback(permit, Feedback(status=429, latency=0.1, retry_after=3600.0))

    asyncio.run(ask())
    return limiter


SAVED = learned().save()


def waits(limiter: Limiter) -> float:
    """Seconds until the host may be asked, as far as that limiter knows."""
    limiter.try_acquire(HOST)
    (view,) = limiter.snapshot().top
    return view.not_before


def test_a_host_that_asked_us_to_stay_away_is_left_alone_by_the_next_process(tmp_path: Path) -> None:
    keep(tmp_path, [SAVED])
    later = Limiter(clock=FakeClock())

    recall(later, tmp_path)

    assert waits(later) == pytest.approx(3600, abs=1)


@pytest.mark.parametrize(
    "found",
    [None, b"", b"\xff", SAVED[:-9], SAVED.replace(b'"version":1', b'"version":2'), b"[]"],
    ids=["not there", "empty", "no text", "torn", "another version", "something else"],
)
def test_what_cannot_be_read_is_learned_again(tmp_path: Path, found: bytes | None) -> None:
    if found is not None:
        (tmp_path / FILE).write_bytes(found)
    limiter = Limiter(clock=FakeClock())

    recall(limiter, tmp_path)

    assert limiter.try_acquire(HOST) is not None


@pytest.mark.parametrize("before", [b"", b"torn\n"])
@pytest.mark.parametrize("after", [b"", SAVED[:-9]])
def test_news_are_taken_up_as_far_as_they_can_be_read_until_all_is_kept_again(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    nothing, clock = Limiter(clock=FakeClock()).save(), FakeClock()
    keep(tmp_path, [nothing], [before] if before else [])
    add_news(tmp_path, SAVED)
    add_news(tmp_path, after)
    limiter = Limiter(clock=clock)

    recall(limiter, tmp_path)
    assert waits(limiter) == pytest.approx(3600, abs=1)
    keep(tmp_path, [nothing])

    recall(forgetful := Limiter(clock=clock), tmp_path)
    assert forgetful.ready_at(HOST) <= clock.now()


def test_a_folder_in_its_place_is_no_reason_not_to_begin(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()

    recall(Limiter(clock=FakeClock()), tmp_path)


def test_a_full_disk_is_said_plainly_and_what_was_kept_stays(tmp_path: Path) -> None:
    keep(tmp_path, [b"before"])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, before[1]))

    try:
        with pytest.raises(FolderError, match="the disk is full"):
            keep(tmp_path, [b"after"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert (tmp_path / FILE).read_bytes() == b"before"
