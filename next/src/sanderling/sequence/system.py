"""Sequences as a system: what other commands ask about a folder."""

import asyncio
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.files import FolderError, FolderLock, disk_errors, lock_holder
from sanderling.observe.control import leave_request, wait_for_answer
from sanderling.options import OptionError
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader
from sanderling.sequence.follower import ranges_of
from sanderling.sequence.opening import open_run
from sanderling.sequence.options import LARGEST_ID
from sanderling.sequence.retries import is_retried
from sanderling.sequence.store import FILE, ROWS, SequenceStore, key_of

TASK_STATES = ("missed", "retried", "skipped", "open")


def _open_to_read(folder: Path) -> SequenceStore:
    if not (folder / FILE).exists():
        raise FolderError(f"nothing was collected in {folder} yet", "run its crawl again")
    return SequenceStore(folder, read_only=True)


def records(folder: Path) -> RowReader:
    """The rows of a sequence, as far as they count."""

    async def reader() -> RowReader:
        async with _open_to_read(folder) as store:
            return RowReader(folder, ROWS, store.state.files)

    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop
        return thread.submit(asyncio.run, reader()).result()


async def show(folder: Path, key: str) -> Shown:
    """The rows of an id, or what became of it."""
    if not (key.isascii() and key.isdigit() and int(key) <= LARGEST_ID):
        raise OptionError(f"KEY: found {key[:60]!r}, expected an id")
    number = int(key)
    async with _open_to_read(folder) as store:
        with RowReader(folder, ROWS, store.state.files) as rows:
            entries = rows.find(key_of(number))
            lines = [line for entry in entries for line in entry.lines]
        missed = [each for each in await store.missed() if each.low <= number <= each.high]
        skipped = [reason for low, high, reason in await store.skipped() if low <= number <= high]
        position = store.state.position
    if entries and not entries[-1].lines:
        return Shown(lines, "it was deleted")
    if missed:
        return Shown(lines, f"missed: {missed[0].reason}, {missed[0].tries} requests")
    if skipped:
        return Shown(lines, skipped[0])
    if not lines and number in position.open:
        return Shown(lines, "it is requested next")
    return Shown(lines, "" if lines or number < position.next else "its turn has not come")


async def verify(folder: Path) -> Verified:
    """Add up what became of each id."""
    async with _open_to_read(folder) as store:
        state = store.state
        with RowReader(folder, ROWS, state.files) as rows:
            faults = list(rows.damage())
            keys = [int.from_bytes(key) for key in rows.keys(1)]
            later = {key: (file, number) for key, run, file, number in rows.places() if run > 1}
            deleted = sum(not rows.entry(*place).lines for place in later.values())
        stored = set(keys)
        if len(stored) < len(keys):
            faults.append(f"{len(keys) - len(stored):,} records are there twice")
        decided = [(number, number, "stored") for number in stored]
        decided += await store.skipped()
        last = -1
        missed = 0
        while ranges := await store.missed(last):
            last = ranges[-1].low
            decided += [(each.low, each.high, "missed") for each in ranges]
            missed += sum(map(len, ranges))
        decided += [(number, number, "open") for number in state.position.open]
    decided.sort()
    counts = {"stored": len(stored) - deleted, "deleted": deleted, "missed": missed, "open": len(state.position.open)}
    counts["skipped"] = sum(high - low + 1 for low, high, what in decided if what not in counts)
    stride = int(state.plan.get("dev_skip", 4)) + 1 if state.plan.get("dev") else 1
    expected = state.begin
    for low, high, what in decided:
        if low < expected - stride + 1 and low >= state.begin:
            faults.append(f"{low} is {what}, and something else as well")
        if low > expected and high < state.position.next:
            faults.append(f"nobody has requested {expected} to {low - 1}")
        expected = max(expected, high + stride)
    if expected < state.position.next:
        faults.append(f"nobody has requested {expected} to {state.position.next - 1}")
    counts["ids"] = sum(counts.values())
    return Verified(faults, counts)


async def tasks(
    folder: Path,
    state: str,
    host: str | None,  # noqa: ARG001 - there is one
    code: str | None,
) -> AsyncIterator[Task]:
    """What is in a state; a range is one task."""
    async with _open_to_read(folder) as store:
        if state == "open":
            for number in store.state.position.open:
                yield Task(str(number), state)
            return
        if state == "skipped":
            for low, high, reason in await store.skipped():
                yield Task(str(low) if low == high else f"{low}-{high}", state, "", reason)
            return
        last = -1
        while ranges := await store.missed(last, reason=code):
            last = ranges[-1].low
            for each in ranges:
                if state == "missed" or is_retried(each.reason, each.tries):
                    key = str(each.low) if each.low == each.high else f"{each.low}-{each.high}"
                    yield Task(key, state, "", each.reason.value, "", each.due, each.tries)


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many there are in each state, by reason."""
    async with _open_to_read(folder) as store:
        found: dict[tuple[str, str], int] = {}
        for (reason, retried), number in (await store.count_missed()).items():
            name = ("retried" if retried else "missed", reason)
            found[name] = found.get(name, 0) + number
        for low, high, reason in await store.skipped():
            found["skipped", reason] = found.get(("skipped", reason), 0) + high - low + 1
        if store.state.position.open:
            found["open", ""] = len(store.state.position.open)
    return found


async def retry(
    folder: Path,
    state: str,  # noqa: ARG001 - only what is missed is asked again
    host: str | None,  # noqa: ARG001 - there is one
    code: str | None,
) -> int:
    """Let what is missed be asked again at once."""
    with FolderLock(folder):
        async with SequenceStore(folder) as store:
            return await store.retry(0, LARGEST_ID, code)


async def move_tasks(folder: Path, ids: str | None, taken: Path | None, given: Path | None, code: str | None) -> str:
    """Write missed ids to a file, add those of a file, or have a range of them asked again; what was done."""
    if given is not None:
        return await _export(folder, given, code)
    if taken is not None:
        return await _import(folder, taken)
    low, _, high = str(ids).partition("-")
    if not (low.isdecimal() and (high or low).isdecimal() and int(low) <= int(high or low) <= LARGEST_ID):
        raise OptionError(f"--ids: found {str(ids)[:60]!r}, expected a range like 1000-1999")
    high = high or low
    if lock_holder(folder) is not None:
        words = ("missed", "", code or "", low, high)
        return await wait_for_answer(folder, leave_request(folder, "retry", words))
    with FolderLock(folder):
        async with SequenceStore(folder) as store:
            number = await store.retry(int(low), int(high), code)
    return f"{number:,} are asked again by the next run"


async def _export(folder: Path, file: Path, code: str | None) -> str:
    number, last = 0, -1
    with ExitStack() as stack, disk_errors(file):
        sink = sys.stdout if file == Path("-") else stack.enter_context(file.open("w"))
        async with _open_to_read(folder) as store:
            while ranges := await store.missed(last, reason=code):
                last = ranges[-1].low
                for each in ranges:
                    number += len(each)
                    sink.writelines(f"{each_id}\n" for each_id in range(each.low, each.high + 1))
    return f"{number:,} ids"


async def _import(folder: Path, file: Path) -> str:
    """Add the ids of a file to those that are missed. As in the original's log, ids may be there several times."""
    with ExitStack() as stack, disk_errors(file):
        source = sys.stdin if file == Path("-") else stack.enter_context(file.open(errors="replace"))
        lines = [line.strip()[:30] for line in source]
    named = {int(line) for line in lines if line.isascii() and line.isdecimal() and int(line) <= LARGEST_ID}
    bad = sum(not (line.isascii() and line.isdecimal()) for line in lines if line)
    with FolderLock(folder):
        async with SequenceStore(folder) as store:
            position = store.state.position
            ahead = {number for number in named if number >= position.next}
            with RowReader(folder, ROWS, store.state.files) as rows:
                stored = named & {int.from_bytes(key) for key in rows.keys(1)}
            added = await store.add_missed(ranges_of(named - ahead - stored), SystemClock().wall())
    return (
        f"{added:,} ids added; {len(stored):,} are stored, {len(ahead):,} have not had their turn, "
        f"{bad:,} lines are no ids"
    )


__all__ = ["TASK_STATES", "count_tasks", "move_tasks", "open_run", "records", "retry", "show", "tasks", "verify"]
