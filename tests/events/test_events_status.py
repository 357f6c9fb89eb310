"""How `events` says that it stands, to the screen and to other processes."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_events import STATUS, digested, error, mixed, process_a_little, status
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.events.lately import Lately
from sanderling.events.measures import MINUTES, MOST_RECENT, Measures
from sanderling.events.modes import Modes
from sanderling.events.status import (
    EventsStatus,
    PlatformStatus,
    QueueStatus,
    Standing,
    published,
    readings_of,
    status_of,
)
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import Depth
from sanderling.stores.status_file import StatusFile, write_status
from sanderling.testing import FakeClock

STANDING = Standing(
    pid=7, wall=50.0, started=20.0, modes=Modes(legacy=False, canary=0.5), queue=Depth(9, 1, 2, 3), outbox=4, pool=20
)


def taken(standing: Standing = STANDING) -> EventsStatus:
    """That of a process that has seen a few messages."""
    clock = FakeClock(now=600.0)
    seen = Measures(clock)
    process_a_little(seen, clock)
    return status_of(seen, standing)


# Through the file.


def test_others_read_what_was_published(tmp_path: Path) -> None:
    assert published(tmp_path) is None

    write_status(tmp_path, STATUS)

    assert published(tmp_path) == STATUS
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_the_last_one_counts(tmp_path: Path) -> None:
    write_status(tmp_path, STATUS)
    write_status(tmp_path, status(running=False, queue=None, outbox=None, minutes=()))

    found = published(tmp_path)
    assert found is not None
    assert (found.running, found.queue, found.outbox, found.minutes) == (False, None, None, ())


def test_what_was_taken_from_real_batches_is_read_as_it_was(tmp_path: Path) -> None:
    write_status(tmp_path, taken())

    assert published(tmp_path) == taken()


def test_a_status_of_hostile_errors_can_be_written(tmp_path: Path) -> None:
    seen = Measures(FakeClock())
    seen.kept(digested([error("\ud800\0", error_message="\ud83d\x1b" * 9999, platform="\udfff"), "\ud800"]))

    write_status(tmp_path, status_of(seen, STANDING))

    found = published(tmp_path)
    assert found is not None
    assert len(found.recent) == 2


@given(st.binary(max_size=200))
@example(b'{"trouble": "\xff"}')
def test_a_file_that_is_none_of_ours_is_no_status(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "status.json").write_bytes(data)

    assert published(folder) is None


REQUIRED = [field.name for field in msgspec.structs.fields(EventsStatus) if field.required]


@pytest.mark.parametrize("field", REQUIRED)
def test_a_status_without_one_of_its_fields_is_none(tmp_path: Path, field: str) -> None:
    told = msgspec.json.decode(msgspec.json.encode(STATUS))
    del told[field]
    (tmp_path / "status.json").write_bytes(msgspec.json.encode(told))

    assert published(tmp_path) is None


def test_a_status_that_cannot_be_written_is_an_error_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "status.json").mkdir()

    with pytest.raises(FolderError, match="cannot use"):
        write_status(tmp_path, STATUS)

    assert [path.name for path in tmp_path.iterdir()] == ["status.json"], "and nothing is left behind"


# Several of one folder.


def test_what_several_consumers_say_is_added_up(tmp_path: Path) -> None:
    other = {"tiktok": PlatformStatus(posts=0, errors=1000, success_rate=0.0)}
    with StatusFile.of(tmp_path, 0.0) as first, StatusFile.of(tmp_path, 0.0) as second:
        first.write(STATUS)
        second.write(status(pid=4712, queue=None, platforms=other, trouble="no database", wall=STATUS.wall - 1))
        found = published(tmp_path)

    assert (first.alone, second.alone) == (True, False)
    assert found is not None
    assert (found.pid, found.wall, found.running, found.queue) == (4711, STATUS.wall, True, STATUS.queue)
    assert (found.received, found.posts, found.errors, found.odd) == (240, 8580, 620, 0)
    assert found.lately == Lately(batches=2.2, items=92.0, errors=6.2)
    assert found.platforms["tiktok"] == PlatformStatus(posts=3700, errors=1300, success_rate=74.0)
    assert found.platforms["youtube"] == STATUS.platforms["youtube"]
    assert found.codes == {"RATE_LIMITED": 500, "PARSE_ERROR": 100, "other": 20}
    assert [(each.positive, each.errors) for each in found.minutes] == [(1000, 400), (800, 220)]
    assert (found.trouble, len(found.recent)) == ("no database", 2)
    assert [(each.pid, each.running, each.posts) for each in found.consumers] == [
        (4711, True, 4290),
        (4712, True, 4290),
    ]


@pytest.mark.parametrize("ended", [{"running": False}, {"wall": STATUS.wall - 11}], ids=["said so", "silent"])
def test_one_that_has_ended_is_listed_and_not_added_and_the_next_start_removes_it(
    tmp_path: Path, ended: dict[str, Any]
) -> None:
    with StatusFile.of(tmp_path, 0.0) as first:
        with StatusFile.of(tmp_path, 0.0) as second:
            second.write(status(pid=4712, **ended))
        first.write(STATUS)
        found = published(tmp_path)
        assert found is not None
        assert (found.posts, found.running) == (STATUS.posts, True)
        assert [(each.pid, each.running) for each in found.consumers] == [(4711, True), (4712, False)]

    with StatusFile.of(tmp_path, 0.0) as again:
        assert (again.name, published(tmp_path)) == ("status.json", STATUS)


def test_who_takes_the_first_file_while_others_still_run_is_not_alone(tmp_path: Path) -> None:
    with ExitStack() as others:
        with StatusFile.of(tmp_path, 0.0):
            second = others.enter_context(StatusFile.of(tmp_path, 0.0))
            second.write(STATUS)
        with StatusFile.of(tmp_path, 0.0) as beside:
            assert (beside.name, beside.alone) == ("status.json", False)
    with StatusFile.of(tmp_path, 0.0) as last:
        assert last.alone


# What it says.


def test_messages_batches_and_items_are_counted() -> None:
    found = taken()

    assert (found.received, found.processed, found.failed, found.duplicates, found.postponed) == (6, 3, 1, 1, 1)
    assert (found.active, found.batches, found.posts, found.errors, found.items) == (1, 2, 5, 3, 8)
    assert found.error_rate == 3 / 8
    assert found.sent == {"crawl.retry": 1}


def test_platforms_that_nothing_came_from_are_left_out() -> None:
    assert taken().platforms == {
        "tiktok": PlatformStatus(posts=4, errors=3, success_rate=100 * 4 / 7),
        "youtube": PlatformStatus(posts=1, errors=0, success_rate=100.0),
    }


def test_errors_and_posts_are_summed_over_platforms() -> None:
    seen = Measures(FakeClock())
    seen.kept(mixed())
    seen.kept(digested([error("RATE_LIMITED")], platform="youtube"))
    found = status_of(seen, STANDING)

    assert found.categories == {"rate_limiting": 2, "generic": 1, "parsing": 1}
    assert found.codes == {"RATE_LIMITED": 2, "other": 1, "INVALID_RESPONSE": 1}
    assert found.sentiments == {"NEGATIVE": 1, "NEUTRAL": 1, "POSITIVE": 2}
    assert found.skipped == {"too short": 1}


def test_it_says_how_it_went_lately() -> None:
    clock = FakeClock(now=600.0)
    seen = Measures(clock)
    seen.kept(mixed())
    clock.advance(10.0)
    found = status_of(seen, STANDING)

    assert found.lately == Lately(batches=0.1, items=0.8, errors=0.3)
    assert [(each.positive, each.errors) for each in found.minutes] == [(2, 3)]
    assert [each.code for each in found.recent] == ["RATE_LIMITED", "?", "INVALID_RESPONSE"]


def test_what_is_known_to_the_system_alone_is_told_as_it_is() -> None:
    standing = msgspec.structs.replace(STANDING, running=False, trouble="no database", modes_trouble="no JSON")
    found = taken(standing)

    assert found.queue == QueueStatus(ready=9, taken=1, delayed=2, dead=3)
    for name in ("running", "pid", "wall", "started", "modes", "modes_trouble", "trouble", "outbox"):
        assert getattr(found, name) == getattr(standing, name)
    assert found.seconds == 30.0


def test_prometheus_is_told_the_same() -> None:
    seen = Measures(FakeClock())
    seen.kept(mixed())
    found = readings_of(seen, STANDING)

    assert found.modes == {"new": True, "legacy": False, "inline": True}
    assert (found.canary, found.outbox, found.pool, found.trouble) == (0.5, 4, 20, False)
    assert found.queue == {"ready": 9, "taken": 1, "delayed": 2, "dead": 3}
    assert sum(found.counts.items.values()) == status_of(seen, STANDING).items


def test_what_cannot_be_asked_is_none() -> None:
    unknown = msgspec.structs.replace(STANDING, queue=None, outbox=None, trouble="no database")

    found, readings = taken(unknown), readings_of(Measures(FakeClock()), unknown)

    assert (found.queue, found.outbox) == (None, None)
    assert (readings.queue, readings.outbox, readings.trouble) == (None, None, True)


def test_a_status_stays_small_whatever_comes() -> None:
    clock = FakeClock()
    seen = Measures(clock)
    long = "x" * 10_000
    hostile = digested([error(f"{number}{long}", error_message=long, platform=f"p{number}") for number in range(100)])
    for _ in range(2 * MINUTES):
        seen.kept(hostile)
        clock.advance(60.0)
    found = status_of(seen, STANDING)

    assert (len(found.minutes), len(found.recent)) == (MINUTES, MOST_RECENT)
    assert len(msgspec.json.encode(found)) < 20_000


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({}, "at 3 batches"),
        ({"active": 1}, "at 1 batch"),
        ({"active": 0}, "waiting for messages"),
        ({"modes": Modes(new=False, legacy=False, inline=False)}, "all formats are switched off"),
        ({"modes": Modes(new=False)}, "at 3 batches"),
        ({"queue": None, "modes": Modes(new=False, legacy=False, inline=False)}, "waiting for the queue"),
        ({"queue": None, "trouble": "no database"}, "waiting for what is not to be had"),
    ],
)
def test_it_is_at_one_thing(changes: dict[str, Any], doing: str) -> None:
    assert status(**changes).doing == doing


def test_there_is_no_error_rate_without_items() -> None:
    assert status(posts=0, errors=0).error_rate == 0.0
