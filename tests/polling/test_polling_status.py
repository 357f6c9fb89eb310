"""How polling says that it stands, to the screen and to other processes."""

import asyncio
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fake_polling import COUNTS, READINGS, STATUS, status
from hypothesis import example, given
from hypothesis import strategies as st

from sanderling.limit import HostView, Limiter
from sanderling.polling.status import (
    LONGEST_KEY,
    MOST_RECENT,
    ChangeStatus,
    PollingStatus,
    TargetCounts,
    by_two,
    published,
    recently,
)
from sanderling.polling.watch import PollingWatch
from sanderling.stores.polling import Op, RowChange, StoredTargetCounts
from sanderling.stores.status_file import write_status
from sanderling.testing import FakeClock, LoopClock, run_virtual


def change(seq: int = 1, **others: Any) -> RowChange:  # noqa: ANN401 - fields of a change
    return RowChange(**{"seq": seq, "at": 5.0, "op": Op.INSERT, "table": "laps", "key": "lap-1", **others})


def test_others_read_what_was_published(tmp_path: Path) -> None:
    assert published(tmp_path) is None

    write_status(tmp_path, STATUS)

    assert published(tmp_path) == STATUS
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_the_last_one_counts(tmp_path: Path) -> None:
    write_status(tmp_path, STATUS)
    write_status(tmp_path, status(running=False, limiter=None, late={}, discovered=None))

    found = published(tmp_path)
    assert found is not None
    assert (found.running, found.limiter, found.late, found.discovered) == (False, None, {}, None)


@given(st.binary(max_size=200))
@example(b'{"event": "\xff"}')
def test_a_file_that_is_none_of_ours_is_no_status(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "status.json").write_bytes(data)

    assert published(folder) is None


REQUIRED = [field.name for field in msgspec.structs.fields(PollingStatus) if field.required]


@pytest.mark.parametrize("field", REQUIRED)
def test_a_status_without_one_of_its_fields_is_none(tmp_path: Path, field: str) -> None:
    told = msgspec.json.decode(msgspec.json.encode(STATUS))
    del told[field]
    (tmp_path / "status.json").write_bytes(msgspec.json.encode(told))

    assert published(tmp_path) is None


def test_what_a_limiter_says_of_a_host_is_told_as_it_is(tmp_path: Path) -> None:
    limiter = Limiter(clock=FakeClock())
    limiter.try_acquire("race.example")
    (view,) = limiter.snapshot(1).top

    write_status(tmp_path, status(limiter=view))

    found = published(tmp_path)
    assert found is not None
    assert isinstance(found.limiter, HostView)
    assert [getattr(found.limiter, field.name) for field in fields(HostView)] == [
        getattr(view, field.name) for field in fields(HostView)
    ]


def test_runs_errors_and_changes_are_summed() -> None:
    assert (STATUS.ran, STATUS.failed, STATUS.changed) == (492, 2, 68)
    assert STATUS.seconds == 100.0


def test_counts_by_two_labels_are_nested() -> None:
    assert by_two(COUNTS.runs) == {"race": {"OK": 90, "NOT_MODIFIED": 400}, "results": {"TIMEOUT": 2}}


@given(st.dictionaries(st.tuples(st.text(max_size=2), st.text(max_size=2)), st.integers(0, 9)))
def test_no_count_is_lost_in_a_status(counts: dict[tuple[str, str], int]) -> None:
    nested = by_two(counts)

    assert {(first, second): number for first, inner in nested.items() for second, number in inner.items()} == counts
    assert status(runs=nested).ran == sum(counts.values())


def test_targets_are_counted_as_the_database_and_the_metrics_count_them() -> None:
    counted = TargetCounts.of(StoredTargetCounts(targets=50, paused=4, due=9, accelerated=1, failing=2, gone=6))

    assert counted == STATUS.targets
    assert msgspec.structs.asdict(counted) == READINGS.targets


def test_a_change_is_told_without_its_values() -> None:
    told = change(7, op=Op.UPDATE, values={"lap": 3, "pilot": "a"}, fields=("lap",), kind="race", source_id="r1")

    assert ChangeStatus.of(told) == ChangeStatus(seq=7, at=5.0, op="update", table="laps", key="lap-1", fields=("lap",))


@pytest.mark.parametrize("length", [0, LONGEST_KEY - 1, LONGEST_KEY])
def test_a_key_is_told_as_it_is(length: int) -> None:
    assert ChangeStatus.of(change(key="k" * length)).key == "k" * length


@pytest.mark.parametrize("length", [LONGEST_KEY + 1, 10_000])
def test_a_long_key_is_cut(length: int) -> None:
    assert ChangeStatus.of(change(key="k" * length)).key == "k" * (LONGEST_KEY - 1) + "…"


def test_the_last_changes_are_told_oldest_first() -> None:
    told = recently([change(seq) for seq in range(1, 101)])

    assert [each.seq for each in told] == list(range(101 - MOST_RECENT, 101))
    assert recently([]) == ()


LIVE = TargetCounts(all=50, accelerated=2)


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({"targets": TargetCounts(all=50)}, "polling"),
        ({"targets": LIVE}, "polling, 2 of them live"),
        ({"targets": TargetCounts(all=3, paused=3)}, "all targets are paused"),
        ({"targets": TargetCounts(gone=9)}, "looking for what to poll"),
        ({"enabled": False, "targets": LIVE}, "paused: nothing is polled until somebody resumes it"),
        ({"enabled": False, "store_trouble": "no database"}, "waiting for the database"),
    ],
)
def test_it_is_at_one_thing(changes: dict[str, Any], doing: str) -> None:
    assert status(**changes).doing == doing


def test_targets_that_take_long_to_count_are_counted_once_a_minute() -> None:
    clock, seconds, counted = LoopClock(), iter([0.0, 0.0, 0.3, 0.3, 0.0, 0.0]), list[float]()

    async def count(_: float) -> StoredTargetCounts:
        counted.append(clock.now())
        await clock.sleep(next(seconds))
        return StoredTargetCounts(0, 0, 0, 0, 0, 0)

    async def play() -> None:
        system: Any = SimpleNamespace(clock=clock, tools=SimpleNamespace(store=SimpleNamespace(count=count)))
        with suppress(TimeoutError):
            async with asyncio.timeout(127):
                await PollingWatch(system).run()

    run_virtual(play())

    assert [moment - counted[0] for moment in counted] == pytest.approx([0, 2, 4, 64.3, 124.6, 126.6])
