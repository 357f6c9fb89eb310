"""What limiters of several processes share of a quota: as in one process, whoever is killed, and however full it is."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.part_quotas import PartSlices
from sanderling.limit.slices import Slices
from sanderling.stores.time_table import IDLE, TimeTable
from sanderling.testing import FakeClock

names = st.sampled_from([f"domain/{each}.example" for each in "abcdef"])
plays = st.lists(
    st.tuples(st.sampled_from(["take", "draw", "hush", "quiet"]), names, st.floats(0, 2), st.integers(1, 9)),
    max_size=40,
)


@given(plays, st.sampled_from([1, 2, 4096]))
def test_a_table_says_what_memory_says_and_one_that_is_full_is_only_slower(
    play: list[tuple[str, str, float, int]], rows: int
) -> None:
    clock, memory = FakeClock(), Slices()
    with tempfile.TemporaryDirectory() as place:
        table = TimeTable(Path(place) / "quotas", rows, make=True)
        shared = PartSlices(table, clock)
        for what, name, later, number in play:
            clock.advance(later)
            now = clock.now()
            if what == "take":
                found, expected = shared.take(name, now, 0.1, number), memory.take(name, now, 0.1, number)
                assert found.start >= expected.start - 1e-9
                assert rows < 4096 or found == expected
            elif what == "quiet":
                assert shared.quiet(name) >= memory.quiet(name)
            else:
                amount = number if what == "draw" else now + number
                for each in (shared, memory):
                    each.draw(name, now, amount) if what == "draw" else each.hush(name, amount)
        table.close()


def test_quotas_that_nobody_uses_make_room_for_others(tmp_path: Path) -> None:
    clock = FakeClock()
    shared = PartSlices(TimeTable(tmp_path / "quotas", 1, make=True), clock)
    shared.take("a", clock.now(), 1.0, 1)
    assert shared.take("b", clock.now(), 1.0, 1).start == clock.now() + 1.0  # there is one row
    clock.advance(IDLE + 3)

    assert shared.take("c", clock.now(), 1.0, 1).start == clock.now()
    assert shared.quiet("a") < clock.now()


SCRIPT = """
import json, os, sys
sys.path[:0] = {path!r}
from sanderling.clock import SystemClock
from sanderling.crawls.part_quotas import PartSlices
from sanderling.stores.time_table import TimeTable
shared = PartSlices(TimeTable(__import__("pathlib").Path({place!r})), SystemClock())
print("begun", flush=True)
sys.stdin.readline()
taken = [shared.take("credential/k", 0.0, 0.001, 1) for _ in range({number})]
print(json.dumps([(each.start, each.end) for each in taken]), flush=True)
{after}
"""


def start(place: Path, number: int, after: str = "") -> "subprocess.Popen[str]":
    text = SCRIPT.format(path=sys.path, place=str(place), number=number, after=after)
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_processes_that_take_slices_at_the_same_time_never_take_the_same(tmp_path: Path) -> None:
    place = tmp_path / "quotas"
    TimeTable(place, make=True).close()
    processes = [start(place, 3000) for _ in range(3)]
    assert [said(each) for each in processes] == ["begun"] * 3
    for each in processes:
        tell(each)
    taken = sorted((start, end) for each in processes for start, end in json.loads(said(each)))
    for each in processes:
        each.communicate()

    assert len(taken) == 9000
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(taken))


@pytest.mark.parametrize(
    "wait", ["import time; time.sleep(600)", "import fcntl; fcntl.flock(shared._table._handle, 2)"]
)
def test_one_that_is_killed_with_the_lock_in_its_hand_holds_up_nobody(tmp_path: Path, wait: str) -> None:
    place = tmp_path / "quotas"
    TimeTable(place, make=True).close()
    after = f"{wait}; print('held', flush=True); import time; time.sleep(600)" if "flock" in wait else wait
    first = start(place, 1, after)
    said(first)
    tell(first)
    said(first)
    if "flock" in wait:
        assert said(first) == "held"
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    second = start(place, 5)
    said(second)
    tell(second)

    assert len(json.loads(said(second))) == 5
    second.communicate()
