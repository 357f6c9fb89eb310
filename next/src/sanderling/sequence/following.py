"""Growing ids from Python: `async for order in following("https://api.example.org/orders/{id}", "orders", begin=1)`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.records.rows import RowReader
from sanderling.sequence.opening import open_run
from sanderling.sequence.options import SequenceOptions
from sanderling.sequence.store import ROWS

LOOK = 1.0  # seconds without a commit, after which it is seen whether the run has ended


async def following(api: str, folder: str | Path, **options: Any) -> AsyncGenerator[Any, None]:  # noqa: ANN401
    """Each record once it is in the folder, also what is stored there and was not given yet; then what comes to be.

    Options are those of `sanderling sequence crawl`: `begin=1, id="id"`. With `until` it ends when each id has its end.
    A record counts as given when the next one is asked for: after a kill the last ones may come again, and none is
    left out. Raises FolderError.
    """
    given = SequenceOptions(api=api, out=Path(folder), **options)
    async with open_run(given, SystemClock()) as run:
        work = asyncio.create_task(run.run())
        try:
            ended = False
            while not ended:
                ended = work.done()
                run.committed.clear()
                with RowReader(given.out, ROWS, run.state.files) as rows:
                    for entry in rows.entries({f"{ROWS}.jsonl": run.state.given}):
                        for line in entry.lines:
                            yield msgspec.json.decode(line)
                        run.state.given += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(0 if ended else LOOK):
                        await run.committed.wait()
        finally:
            run.stop()
            code = await work
        if code is not Exit.DONE:
            raise FolderError(f"{given.out}: some ids have no end yet", "the same call goes on", code)
