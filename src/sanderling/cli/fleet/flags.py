"""The flags by which a crawl is shared with other machines, and what they open."""

import secrets
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
    failed: str  # what is said of those that failed; nothing if how it went does not turn on them


WORDS = {
    "pages": SystemWords("page", "URL", "pages", "rows", "failed"),
    "repos": SystemWords("repo", "repo", "repos", "segments", ""),
    "jobs": SystemWords("record", "request", "records", "rows", "failed or left out"),
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

        if not self.fleet:
            given = {"--lease": self.lease != ALONE.lease, "--fleet-parts": self.fleet_parts != ALONE.fleet_parts}
            for flag in (name for name, is_given in given.items() if is_given):
                raise CommandError(f"{flag} is for machines that share a crawl: it needs --fleet and --objects", code=2)


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


def who_we_are(digest: str = "") -> WorkerIdentity:
    """Name the process as no other is named, with the release, and the digest of what it works by if there is one."""
    return WorkerIdentity(name_holder(), machine_name(), f"{version('sanderling')} {digest}".rstrip())


@asynccontextmanager
async def open_fleet(
    urls: Sequence[str], name: str, worker: WorkerIdentity | None = None, *, away: int = 1
) -> AsyncIterator[FleetStores]:
    """The servers of a fleet. Raises CommandError, with the code `away` if one is."""
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
        yield FleetStores(servers, call, urls)
    except (LeasesError, LeasesAwayError, MissingExtraError) as error:
        code = away if isinstance(error, LeasesAwayError) else 2 if isinstance(error, LeasesError) else 1
        raise CommandError(f"--fleet: {error}", code) from None
    finally:
        for server in servers:
            await call(server.close())
        call.close()


@asynccontextmanager
async def open_place(url: str, prefix: str = "", *, away: int = 1) -> AsyncIterator[ObjectPlace]:
    """Where the objects of a crawl are, below a prefix. Raises CommandError, with the code `away` if it is."""
    try:
        opened, bucket, above = read_place(url)
        objects = open_objects(opened)
    except (ObjectError, MissingExtraError) as error:
        raise CommandError(f"--objects: {error}", code=2) from None
    try:
        await objects.make(bucket)
        yield ObjectPlace(objects, bucket, f"{above}/{prefix}" if above else prefix)
    except ObjectError as error:
        raise CommandError(f"--objects: {error}", away if error.unavailable else 1) from None
    finally:
        await objects.close()


async def try_place(place: ObjectPlace, away: int) -> None:
    """Put an object and delete it: who may not would only find out with the first rows. Raises CommandError."""
    name = f"sanderling-check-{secrets.token_hex(8)}"
    try:
        await place.put(name, b"sanderling\n")
        await place.delete(name)
    except ObjectError as error:
        raise CommandError(f"--objects: {error}", away if error.unavailable else 1) from None


async def check_order(fleet: FleetStores, name: str) -> None:
    """Raise CommandError if the servers are in another order than when the crawl was begun: each has its parts."""
    number = len(fleet.servers)
    if number == 1:
        return
    held = [await fleet.call(server.holders()) for server in fleet.servers]
    places = [parts[0].part % number if parts else which for which, parts in enumerate(held)]
    if places != list(range(number)) and len(set(places)) == number:
        order = " ".join(fleet_flags([fleet.urls[places.index(which)] for which in range(number)]))
        raise CommandError(f"--fleet: the crawl {name} was begun with its servers in another order: {order}", code=2)


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
