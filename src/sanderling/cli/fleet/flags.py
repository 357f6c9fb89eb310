"""The flags by which a crawl is shared with other machines, and what they open."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.clock import SystemClock
from sanderling.crawls.fleet import FleetStores, ThreadStoreCaller
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.extras import MissingExtraError, load
from sanderling.ids import PARTITIONS
from sanderling.redact import redact_url
from sanderling.stores.fleet import Beat, FleetCrawl, FleetStore, WorkerIdentity
from sanderling.stores.leases import LeasesAwayError, LeasesError, machine_name, name_holder
from sanderling.stores.objects import ObjectError, open_objects, read_place

FEWEST_SECONDS = 2.0  # of a lease: with less, a busy machine would lose parts


class SystemWords(NamedTuple):
    """How one speaks of the crawls of a system."""

    kept: str  # what is kept, one of it
    waiting: str  # and what waits
    key: str  # how many are kept, for machines
    rows: str  # what is kept in the object store


WORDS = {
    "pages": SystemWords("page", "URL", "pages", "rows"),
    "repos": SystemWords("repo", "repo", "repos", "segments"),
    "jobs": SystemWords("record", "request", "records", "rows"),
}

Servers = Annotated[
    tuple[str, ...],
    Parameter(
        help="Share the crawl with other machines by this PostgreSQL, postgresql://user@host/database; repeatable.",
        negative=(),
        show_default=False,
    ),
]
ObjectStore = Annotated[
    str | None,
    Parameter(help="Where the machines of a fleet keep rows: s3://bucket, s3+http://host:9000/bucket or file:/folder."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFlags:
    """A crawl that several machines share. Each runs the same command."""

    fleet: Servers = ()
    objects: ObjectStore = None
    lease: Annotated[
        float, Parameter(validator=Number(gte=FEWEST_SECONDS, lte=3600), help="Seconds of a lease of a fleet.")
    ] = 30.0
    fleet_parts: Annotated[
        int,
        Parameter(validator=Number(gte=1, lte=PARTITIONS), help="Parts of a fleet's crawl: some for each process."),
    ] = 64

    def check(self) -> None:
        """Raise CommandError for what does not belong together."""
        if bool(self.fleet) is not (self.objects is not None):
            lacks, has = ("--objects", "--fleet") if self.fleet else ("--fleet", "--objects")
            raise CommandError(f"{has} without {lacks}: machines need both, to decide and to keep rows", code=2)


ALONE = FleetFlags()


class FleetClock(SystemClock):
    """The time of the fleet's server: what is due then must be so on every machine, whatever its own clock says.

    Between two beats it goes on by a clock that nobody sets.
    """

    def __init__(self) -> None:
        self._ahead = SystemClock.wall() - self.boot()

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.boot() + self._ahead

    def heard(self, beat: Beat) -> None:
        """The server has said what time it is."""
        self._ahead = beat.wall - self.boot()


def who_we_are() -> WorkerIdentity:
    """Name the process: as no other is named."""
    return WorkerIdentity(name_holder(), machine_name(), version("sanderling"))


@asynccontextmanager
async def open_fleet(
    urls: Sequence[str], name: str, worker: WorkerIdentity | None = None
) -> AsyncIterator[FleetStores]:
    """The servers of a fleet. Raises CommandError."""
    if not urls:
        raise CommandError("no --fleet is given; expected --fleet postgresql://user@host/database", code=2)
    call = ThreadStoreCaller()
    servers: list[FleetStore] = []
    try:
        kind = load("sanderling.stores.postgres_fleet", "--fleet").PostgresFleet
        for url in urls:
            server = kind(url, name, worker or who_we_are())
            servers.append(server)
            await call(server.open())
        yield FleetStores(servers, call)
    except (LeasesError, LeasesAwayError, MissingExtraError) as error:
        raise CommandError(f"--fleet: {error}", code=2 if isinstance(error, LeasesError) else 1) from None
    finally:
        for server in servers:
            await call(server.close())
        call.close()


@asynccontextmanager
async def open_place(url: str, prefix: str = "") -> AsyncIterator[ObjectPlace]:
    """Where the objects of a crawl are, below a prefix. Raises CommandError."""
    try:
        opened, bucket, above = read_place(url)
        objects = open_objects(opened)
    except (ObjectError, MissingExtraError) as error:
        raise CommandError(f"--objects: {error}", code=2) from None
    try:
        await objects.make(bucket)
        yield ObjectPlace(objects, bucket, f"{above}/{prefix}" if above else prefix)
    except ObjectError as error:
        raise CommandError(f"--objects: {error}") from None
    finally:
        await objects.close()


def fleet_flags(urls: Sequence[str]) -> list[str]:
    """The flags that name these servers, without secrets, for a command to be copied."""
    return [each for url in urls for each in ("--fleet", redact_url(url))]


def prefix_of(crawl: FleetCrawl) -> str:
    """What all keys of a crawl begin with."""
    return f"{crawl.name}-{crawl.id}/"


def check_place(crawl: FleetCrawl, objects: str) -> None:
    """Raise CommandError if the rows of a crawl are not there."""
    if (given := place_of(objects)) != place_of(crawl.objects):
        raise CommandError(f"--objects: the rows of {crawl.name} are in {crawl.objects}, not in {given}: name that", 2)


def place_of(url: str) -> str:
    """The URL of an object store without what lets somebody in: who comes with other keys means the same place."""
    scheme, found, rest = url.partition("://")
    # A secret may have a slash in it, where none belongs: all before the last @ goes.
    return f"{scheme}{found}{rest.rpartition('@')[2]}".partition("?")[0]


def check_name(out: Path) -> str:
    """The name of the crawl that a folder is worked in for. Raises CommandError."""
    name = out.resolve().name
    if not name or len(name) > 100 or not name.isprintable() or name.startswith("."):
        raise CommandError(f"--out is {out}: its last step names the crawl; expected a plain name", code=2)
    return name
