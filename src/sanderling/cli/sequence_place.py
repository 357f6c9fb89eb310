"""Where a crawl of ids keeps what it has: the flags that the commands of `sanderling sequence` share."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.pages_summary import printable
from sanderling.cli.repos_progress import without_password
from sanderling.clock import Clock, SystemClock
from sanderling.sequence.state import SequenceState
from sanderling.stores.clickhouse import ClickhouseError, open_clickhouse
from sanderling.stores.clickhouse_raw import ClickhouseRaw
from sanderling.stores.durable import FolderError, Lock, plainly
from sanderling.stores.instances import Fault, Instances, InstancesError, open_instances
from sanderling.stores.queue import QueueError, WholeQueue, open_queue

STATE, ROWS = "sequence.db", "rows.db"
QUEUE = "instance_store"  # its name, at a broker too

FILES = ("", "sqlite", "chdb")  # kinds of URLs
SERVERS = ("amqp", "amqps", "postgresql", "postgres", "clickhouse", "clickhouses")
# Seconds that a server may take to come up after us: whoever starts both at once need not put them in order.
PATIENCE, AGAIN = 30.0, 2.0

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder. A command takes one as `*, place: Place = USUAL`."""

    out: Annotated[Path, Parameter(name="--out")] = Path("sequence")
    """The folder for all that is kept on this machine."""

    @property
    def state(self) -> Path:
        """How far the crawl is, and what it missed."""
        return self.out / STATE


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Where records go. A command takes one as `*, keeping: Keeping = EMBEDDED`."""

    queue: str | None = None
    """The queue between crawl and store: sqlite:FOLDER or amqp://…; by default a file in the folder."""

    queue_name: str = QUEUE
    """What it is called there; several crawls at one broker need names of their own."""

    rows: str | None = None
    """The store of rows: sqlite:PATH or postgresql://…; by default rows.db in the folder."""

    raw: str | None = None
    """A store of its own for what the API said: clickhouse://… or chdb:PATH; by default it is with the rows."""

    def open_queue(self, place: Place, clock: Clock) -> WholeQueue:
        """The queue; one at a server is reached with the first call. Raises CommandError."""
        try:
            return open_queue(self.queue or f"sqlite:{place.out}", self.queue_name, clock)
        except QueueError as error:
            raise CommandError(f"--queue: {error}" if self.queue else str(error), code=2) from None

    async def open_rows(self, place: Place) -> Instances:
        """The store of rows, reached. Raises InstancesError."""
        return await open_instances(self.rows or f"sqlite:{place.out / ROWS}")

    async def open_raw(self) -> ClickhouseRaw | None:
        """The store for what the API said, reached; None if that is with the rows. Raises InstancesError."""
        if self.raw is None:
            return None
        try:
            raw = ClickhouseRaw(await asyncio.to_thread(open_clickhouse, self.raw))
        except ClickhouseError as error:
            raise InstancesError(str(error), Fault.DOWN) from None
        await raw.open()
        return raw


USUAL, EMBEDDED = Place(), Keeping()


def flags_of(*given: object) -> str:
    """What to type behind a command to get these flags again; a password is not shown."""
    said: list[str] = []
    for flags in given:
        for field in fields(flags):  # type: ignore[arg-type] # all are dataclasses
            value = getattr(flags, field.name)
            if value != field.default:
                name = f"--{field.name.replace('_', '-')}"
                values = value if isinstance(value, tuple) else (value,)
                shown = [word for each in values for word in (name, without_password(str(each)))]
                said += [name] if value is True else shown
    return "".join(f" {shlex.quote(word)}" for word in said)


async def reached(flag: str, url: str | None, reach: Callable[[], Awaitable[T]], say: Callable[[str], object]) -> T:
    """What `reach` gives; a server is given a while, and `say` is told. Raises CommandError."""
    clock = SystemClock()  # of the world outside, also where ours is scaled
    kind = (url or "").partition(":")[0]
    until, said = clock.now() + (PATIENCE if kind in SERVERS else 0.0), False
    while True:
        try:
            return await reach()
        except (QueueError, InstancesError) as error:
            problem = printable(f"{flag}: {error}" if url else str(error))
            final = isinstance(error, InstancesError) and error.fault is Fault.REFUSED
        if final or clock.now() >= until:
            raise CommandError(problem, code=1 if kind in SERVERS or kind in FILES else 2)
        if not said:
            say(f"{problem} Trying for {PATIENCE:.0f} s.")
            said = True
        await clock.sleep(AGAIN)


def begun(place: Place) -> bool:
    """Whether a crawl has begun there."""
    return place.state.is_file()


@contextmanager
def known_state(place: Place) -> Iterator[SequenceState]:
    """The state of a crawl that has begun; it may be running. Raises CommandError."""
    if not begun(place):
        raise CommandError(f"no crawl of ids has begun in {place.out}; choose another folder with --out", code=2)
    try:
        with closing(SequenceState(place.state)) as state:
            yield state
    except FolderError as error:
        raise CommandError(str(error)) from None


@contextmanager
def alone(place: Place) -> Iterator[None]:
    """While nobody else crawls there; the folder is made where there is none. Raises FolderError."""
    with plainly(place.out):
        place.out.mkdir(parents=True, exist_ok=True)
        lock = Lock(place.out / "lock")
    try:
        yield
    finally:
        lock.release()
