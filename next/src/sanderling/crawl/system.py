"""Crawls as a system: what other commands ask about a folder."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.crawl.forget import Forgetting, begin_to_forget, check_journal, read_journal
from sanderling.crawl.forget import forget as forget_in
from sanderling.crawl.keep import kept_damage
from sanderling.crawl.opening import LEDGER, ROWS, ledger_of, notes_path, open_run, read_notes
from sanderling.crawl.request import keys_of
from sanderling.files import FolderError, FolderLock, lock_holder
from sanderling.ids import UrlError, normalise_url
from sanderling.observe.control import leave_request, wait_for_answer
from sanderling.options import OptionError
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader
from sanderling.stores import Ledger, RowFile

TASK_STATES = ("waiting", "failed", "refused", "left_out")


def _system_of(folder: Path) -> str:
    return "pages" if notes_path(folder, "pages").exists() else "jobs"


def _open_to_read(folder: Path) -> Ledger:
    check_journal(folder)
    notes = read_notes(notes_path(folder, _system_of(folder)))
    if not (notes.options.get("store") or (folder / LEDGER).exists()):
        raise FolderError(f"nothing was collected in {folder} yet", "run its crawl again")
    return ledger_of(folder, notes, SystemClock(), read_only=True)


def records(folder: Path) -> RowReader:
    """The rows of a crawl, as far as they count."""

    async def files() -> list[RowFile]:
        async with _open_to_read(folder) as ledger:
            return _here(folder, await ledger.row_files())

    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop
        return RowReader(folder, ROWS[_system_of(folder)], thread.submit(asyncio.run, files()).result())


def _here(folder: Path, files: list[RowFile]) -> list[RowFile]:
    """Those of the processes that write into this folder."""
    return [each for each in files if (folder / each.file).exists() or not each.process]


async def show(folder: Path, key: str) -> Shown:
    """The rows of a URL, or what became of it."""
    try:
        url = normalise_url(key)
    except UrlError as error:
        raise OptionError(f"KEY: {error}") from None
    state, lines = None, list[bytes]()
    async with _open_to_read(folder) as ledger:
        with RowReader(folder, ROWS[_system_of(folder)], _here(folder, await ledger.row_files())) as rows:
            for each in keys_of(url):
                state = state or await ledger.show(url.split("/", 3)[2], each)
                lines += [line for entry in rows.find(each) for line in entry.lines]
    if state is None or state.state == "stored":
        return Shown(lines, "it was fetched, and no record came of it" if state is not None and not lines else "")
    said = " ".join(filter(None, (state.state, state.code, state.detail)))
    return Shown(lines, said)


async def verify(folder: Path) -> Verified:
    """Compare the rows with the ledger."""
    async with _open_to_read(folder) as ledger:
        files = await ledger.row_files()
        here = _here(folder, files)
        if away := [each.file for each in files if each not in here]:
            raise FolderError(
                f"{folder} lacks {', '.join(away[:6])}", "copy the rows of the other processes here first"
            )
        with RowReader(folder, ROWS[_system_of(folder)], here) as rows:
            faults = list(rows.damage())
            found = await ledger.verify(rows.keys(ledger.run))
            counts = await ledger.counts()
            compared = {"addresses known": counts.known, "addresses that wait": counts.waiting, "rows": rows.count()}
    faults += kept_damage(folder, here)
    faults += [f"{fault.what}: {fault.count:,}, such as {fault.example}" for fault in found]
    return Verified(faults, compared)


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    """What is in a state."""
    async with _open_to_read(folder) as ledger:
        async for each in ledger.tasks(state, host=host, code=code):
            due = each.due or None
            yield Task(each.url, each.state, each.host, each.code, each.detail, due, each.requests)


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many there are in each state, by code."""
    async with _open_to_read(folder) as ledger:
        counts = await ledger.counts()
    found = {(end, code): number for (end, code), number in counts.ends.items() if end in TASK_STATES}
    if counts.waiting:
        found["waiting", ""] = counts.waiting
    return found


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:
    """Let what is in a state be tried again."""
    with FolderLock(folder):
        notes = read_notes(notes_path(folder, _system_of(folder)))
        async with ledger_of(folder, notes, SystemClock()) as ledger:
            return await ledger.retry(state, host=host, code=code)


async def forget(folder: Path, words: tuple[str, ...]) -> str:
    """Remove addresses and hosts, and never request them again; what was done, in a sentence."""
    wanted = Forgetting.of(words)
    if lock_holder(folder) is not None:
        return await wait_for_answer(folder, leave_request(folder, "forget", words))
    with FolderLock(folder):
        if not words and read_journal(folder) is None:
            raise OptionError("THING is missing; expected an address or a host that is to be forgotten")
        path = notes_path(folder, _system_of(folder))
        wanted = begin_to_forget(folder, wanted)
        async with ledger_of(folder, read_notes(path), SystemClock()) as ledger:
            count, busy = await forget_in(folder, ROWS[_system_of(folder)], path, ledger, wanted)
    more = f"; {busy:,} that another process requests are forgotten by the next run" if busy else ""
    return f"addresses forgotten: {count:,}{more}"


__all__ = ["TASK_STATES", "count_tasks", "forget", "open_run", "records", "retry", "show", "tasks", "verify"]
