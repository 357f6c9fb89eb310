"""Where a crawl of ids keeps what it has: the flags that the commands of `sanderling sequence` share."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError, not_begun
from sanderling.cli.flags import SETTING
from sanderling.cli.letters import QueueFlags
from sanderling.sequence.state import SequenceState
from sanderling.stores.clickhouse import ClickhouseError, open_clickhouse
from sanderling.stores.clickhouse_raw import ClickhouseRaw
from sanderling.stores.durable import FolderError, Lock, plainly
from sanderling.stores.instances import Instances, InstancesError, InstancesFault, open_instances

STATE, ROWS = "sequence.db", "rows.db"
QUEUE = "instance_store"  # its name, at a broker too


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFolder:
    """The folder. A command takes one as `*, place: Place = USUAL`."""

    out: Annotated[Path, Parameter(name="--out")] = Path("sequence")
    """The folder for all that is kept on this machine."""

    @property
    def state(self) -> Path:
        """How far the crawl is, and what it missed."""
        return self.out / STATE


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceQueue(QueueFlags):
    """The queue between crawl and store. A command takes one as `*, letters: Letters = OWN_LETTERS`."""

    queue_name: Annotated[str, SETTING] = QUEUE
    """What it is called there; several crawls at one broker need names of their own."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStores(SequenceQueue):
    """Where records go. A command takes one as `*, keeping: Keeping = EMBEDDED`."""

    rows: str | None = None
    """The store of rows: sqlite:PATH or postgresql://…; by default rows.db in the folder."""

    raw: str | None = None
    """A store of its own for what the API said: clickhouse://… or chdb:PATH; by default it is with the rows."""

    async def open_rows(self, place: SequenceFolder) -> Instances:
        """The store of rows, reached. Raises InstancesError."""
        return await open_instances(self.rows or f"sqlite:{place.out / ROWS}")

    async def open_raw(self) -> ClickhouseRaw | None:
        """The store for what the API said, reached; None if that is with the rows. Raises InstancesError."""
        if self.raw is None:
            return None
        try:
            raw = ClickhouseRaw(await asyncio.to_thread(open_clickhouse, self.raw))
        except ClickhouseError as error:
            raise InstancesError(str(error), InstancesFault.DOWN) from None
        await raw.open()
        return raw


USUAL, OWN_LETTERS, EMBEDDED = SequenceFolder(), SequenceQueue(), SequenceStores()


@contextmanager
def known_state(place: SequenceFolder) -> Iterator[SequenceState]:
    """The state of a crawl that has begun; it may be running. Raises CommandError."""
    if not place.state.is_file():
        raise not_begun("no crawl of ids has begun", place.out, "--out", "sanderling sequence crawl")
    try:
        with closing(SequenceState(place.state)) as state:
            yield state
    except FolderError as error:
        raise CommandError(str(error)) from None


@contextmanager
def alone(place: SequenceFolder) -> Iterator[None]:
    """While nobody else crawls there; the folder is made where there is none. Raises FolderError."""
    with plainly(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
        lock = Lock(place.out / "lock")
    try:
        yield
    finally:
        lock.release()
