"""A run against a world in virtual time."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from sequence_ids import IdWorld

from sanderling.clock import LoopClock, run_virtual
from sanderling.fetch.options import limiter_for
from sanderling.files import Exit, make_folder
from sanderling.forms import read_durations
from sanderling.observe.alerts import Alert, Alerts
from sanderling.records.rows import RowWriter
from sanderling.sequence.crawl import SequenceParts, SequenceRun
from sanderling.sequence.description import Description, HeadAddress, IdApi
from sanderling.sequence.follower import Position
from sanderling.sequence.options import SequenceOptions
from sanderling.sequence.readings import Metrics
from sanderling.sequence.store import ROWS, SavedState, SequenceStore
from sanderling.sequence.storing import Storing
from sanderling.sequence.targets import RecordTarget
from sanderling.stores.sqlite_file import SqliteFile


class InlineFile(SqliteFile):
    """A SQLite file without a thread: virtual time would not wait for one."""

    async def call(self, function: Callable[[], Any]) -> Any:
        return self._guarded(function)

    async def close(self) -> None:
        self.db.close()

    def _connect(self) -> None:
        super()._connect()
        self.db.execute("PRAGMA synchronous = OFF")  # hours pass here in seconds


class HeardAlerts(Alerts):
    """Alerts that nobody gets."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(None, "", clock)
        self.heard: list[Alert] = []

    def post(self, alert: Alert) -> None:
        self.heard.append(alert)


class Played:
    """What a play left behind."""

    def __init__(self, world: IdWorld, run: SequenceRun, exit_: Exit | None, folder: Path, alerts: list[Alert]) -> None:
        self.world, self.run, self.exit, self.alerts = world, run, exit_, alerts
        self.report = run.report()
        lines = (folder / "records.jsonl").read_text().splitlines()
        self.counts = Counter(json.loads(line)["id"] for line in lines)

    def lags(self, after: float = 0.0) -> list[float]:
        """Seconds from when a record was visible to when it was given, of those visible after a second."""
        seen = {number: self.world.seen(number) for number in self.world.stored_at}
        return sorted(at - seen[number] for number, at in self.world.stored_at.items() if seen[number] >= after)


def play(
    folder: Path,
    seconds: float,
    make: Callable[[LoopClock], IdWorld],
    *,
    act: Any = None,
    targets: Sequence[RecordTarget] = (),
    **given: Any,
) -> Played:
    """Follow the world that `make` makes for so many seconds, or to the end."""

    async def main() -> Played:
        clock = LoopClock()
        world = make(clock)
        make_folder(folder)
        options = SequenceOptions(out=folder, **{"begin": world.first, **given})
        base = "https://api.example.org/"
        description = Description(base + "{id}", id="id", time="created")
        if world.head:
            description = Description(base + "{id}", id="id", time="created", head=HeadAddress(base + "newest"))
        store = SequenceStore(folder)
        store.file = InlineFile(store.file.path, store.file._application)
        async with store:
            state = store.state if not store.is_new else SavedState(begin=world.first, position=Position(world.first))
            rows = RowWriter(folder, ROWS, state.files)
            limiter = limiter_for(options, clock=clock, random=Random(world.seed))
            alerts = HeardAlerts(clock)
            storing = Storing(store, rows, targets, clock, Random(world.seed), read_durations(options.revisit))
            parts = SequenceParts(
                options, IdApi(description), "api.example.org", store, storing, Metrics(None, alerts, clock), world,
                limiter, alerts, clock, Random(world.seed),
            )  # fmt: skip
            run = SequenceRun(parts, state)
            task = asyncio.create_task(run.run())
            acting = asyncio.create_task(act(run, world)) if act is not None else None
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.shield(task)
            run.stop()
            exit_ = await task
            if acting is not None:
                acting.cancel()
            rows.close()
        return Played(world, run, exit_, folder, alerts.heard)

    with patch("sanderling.files.sync"):
        return run_virtual(main())
