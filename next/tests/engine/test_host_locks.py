"""One crawl of a machine at a time requests a host."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from engine.worlds import Item, Machine, World, items, run

from sanderling.clock import run_virtual
from sanderling.engine.host_locks import FILES, FOLDER, HostLocks
from sanderling.files import FolderError

A, B = "a.example", "b.example:8080"


def test_a_host_is_of_who_locked_it_first_until_it_is_released(tmp_path: Path) -> None:
    one, other = HostLocks(tmp_path), HostLocks(tmp_path)

    assert one.acquire(A)
    assert one.acquire(A)
    assert not other.acquire(A)
    assert other.acquire(B)
    other.release(A)
    assert not other.acquire(A)
    one.release(A)
    assert other.acquire(A)
    assert not one.acquire(A)


def test_other_homes_are_others(tmp_path: Path) -> None:
    assert HostLocks(tmp_path / "one").acquire(A)
    assert HostLocks(tmp_path / "other").acquire(A)
    assert not HostLocks(tmp_path / "x" / ".." / "one").acquire(A)


@pytest.mark.real
def test_another_process_is_seen_until_it_is_killed(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from sanderling.engine.host_locks import HostLocks
print([HostLocks(Path({str(tmp_path)!r})).acquire(host) for host in ({A!r}, {B!r})], flush=True)
input()
"""
    ours = HostLocks(tmp_path)
    assert ours.acquire(A)

    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"[False, True]\n"
        assert not ours.acquire(B)
        process.kill()
    assert ours.acquire(B)
    assert len(list((tmp_path / FOLDER).iterdir())) == FILES


def test_a_home_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("")

    with pytest.raises(FolderError, match="a file of that name exists"):
        HostLocks(tmp_path)


def test_the_second_crawl_leaves_a_host_alone_while_the_first_runs_also_where_it_meets_it_by_a_link(
    tmp_path: Path,
) -> None:
    """The second ends without it; a third outlasts the first, and requests the host then."""
    first = World(items(A, 80))
    second = World([Item(B, "home", finds=tuple(items(A, 5, "linked"))), *items(B, 20)])
    later = World(items(B, 200) + items(A, 5))

    async def main() -> tuple[Machine, Machine]:
        async with asyncio.TaskGroup() as group:
            group.create_task(run(first, locks=HostLocks(tmp_path)))
            await asyncio.sleep(0.5)
            during = group.create_task(run(second, locks=HostLocks(tmp_path)))
            await asyncio.sleep(4)
            outlasts = group.create_task(run(later, locks=HostLocks(tmp_path)))
        return during.result(), outlasts.result()

    during, outlasts = run_virtual(main())

    assert not first.waiting
    assert not second.at(A)
    assert {each.host for each in second.waiting} == {A}
    assert list(during.engine.facts().elsewhere) == [A]
    assert not later.waiting
    assert min(each.at for each in later.at(A)) > max(each.ended for each in first.at(A))
    assert not outlasts.engine.facts().elsewhere
