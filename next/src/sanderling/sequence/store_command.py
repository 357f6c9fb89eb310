"""`sequence store`: the records of a folder, or of the queue, into a database and ClickHouse."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError, ServiceAway
from sanderling.observe.log import configure
from sanderling.options import OptionError
from sanderling.records.rows import RowReader
from sanderling.sequence.options import StoreOptions
from sanderling.sequence.store import FILE, ROWS, KeptRecord, SequenceStore
from sanderling.sequence.targets import RecordTarget, open_targets

BATCH = 500  # records written at once


class HasPrint(Protocol):
    """What a command prints by."""

    def print(self, text: str) -> None:
        """Print a line."""


def store_records(options: StoreOptions, context: HasPrint) -> Exit:
    """Write records to the places that are named. What is there already stays as it is."""
    if options.folder is None and not options.queue:
        raise OptionError("FOLDER is missing; expected the folder of a sequence, or --queue")
    if not (options.database or options.raw or options.events_job or (options.folder and options.queue)):
        raise OptionError("--database is missing; expected where the records go, by --database or --raw")
    configure(options.log, verbose=options.verbose)
    if options.folder is not None:
        number = asyncio.run(_store_folder(options.folder, options))
    else:
        from sanderling.sequence.queue_store import QueueStorer  # noqa: PLC0415 - an extra

        number = asyncio.run(QueueStorer(options, SystemClock()).run())
    context.print(f"{number:,} records were written")
    return Exit.DONE


async def _store_folder(folder: Path, options: StoreOptions) -> int:
    if not (folder / FILE).exists():
        raise FolderError(f"nothing was collected in {folder} yet", "run its crawl first")
    number = 0
    async with SequenceStore(folder, read_only=True) as store, AsyncExitStack() as stack:
        targets, _ = await open_targets(stack, options, SystemClock(), game=store.state.game)
        with RowReader(folder, ROWS, store.state.files) as rows:
            waiting: list[KeptRecord] = []
            for entry in rows.entries():
                number += 1
                waiting.append(KeptRecord(int.from_bytes(entry.key), entry.content.rstrip(b"\n"), entry.run - 1))
                if len(waiting) >= BATCH:
                    await _write(targets, waiting)
                    waiting = []
            await _write(targets, waiting)
    return number


async def _write(targets: list[RecordTarget], records: list[KeptRecord]) -> None:
    try:
        for each in targets if records else ():
            await each.write(records)
    except ServiceAway as away:
        raise FolderError(str(away), "run the same command again", Exit.LATER) from None
