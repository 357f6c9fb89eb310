"""`sanderling repos directory`: which DIDs exist and where, from a file or over the network."""

import asyncio
import gzip
import json as jsonlib
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

from cyclopts import Parameter

from sanderling.cli.client import make_http
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.flags import ReachFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.progress_line import Saying
from sanderling.clock import Clock, SystemClock
from sanderling.executor import in_threads
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import LimiterRules, PaceRules
from sanderling.redact import redact_url
from sanderling.repos.directory import Directory, DirectoryError, SqliteDirectory, read_did_file
from sanderling.repos.directory_clickhouse import ClickhouseDirectory
from sanderling.repos.plc import EndpointError, ImportTally, host_at
from sanderling.repos.update import AT_ONCE, HostListing, RelayListing, UpdateError, UpdateResources, follow_log
from sanderling.stores.clickhouse import ClickhouseError, open_clickhouse
from sanderling.stores.durable import FolderError, plainly
from sanderling.words import count, printable

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

FILE = "directory.db"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how such files begin
MOST_PAGE = 64 * 2**20  # bytes of an answer: a thousand operations of the longest allowed are eight
RPS = 5.0  # to each host at most; what the directory of did:plc bears well
PLC = "https://plc.directory"
ANYBODY = ReachFlags()

OutDir = Annotated[Path, Parameter(env_var="OUTPUT_DIR", help="The folder of the archive.")]
Where = Annotated[
    str | None, Parameter(help=f"The directory, as sqlite:PATH; by default {FILE} in the folder of the archive.")
]


@contextmanager
def open_to_read(
    url: str | None, did_file: Path | None, folder: Path, *, private: bool, at: Path | None = None
) -> Iterator[Directory]:
    """The directory that a crawl reads; what a file lists may be kept `at` a path, for other processes.

    Raises CommandError if there is none, or nothing in it.
    """
    tally = ImportTally()
    try:
        directory = _opened(url, did_file, folder, tally, private=private, at=at)
    except (DirectoryError, ClickhouseError) as error:
        raise CommandError(str(error), code=2) from None
    with closing(directory):
        try:
            known = directory.count()
        except DirectoryError as error:
            raise CommandError(str(error), code=2) from None
        if not known:
            refused = f"; {count(tally.refused.total(), 'endpoint')} in it not taken" if tally.refused else ""
            raise CommandError(f"the directory is empty{refused}\n{_how_to_fill(url, folder)}", code=2)
        yield directory


def _opened(
    url: str | None, did_file: Path | None, folder: Path, tally: ImportTally, *, private: bool, at: Path | None
) -> SqliteDirectory | ClickhouseDirectory:
    if did_file is not None:
        if url is not None:
            raise CommandError("--directory and --did-file: expected one of them", code=2)
        return read_did_file(did_file, tally, plain=private, at=at)
    if url is not None and url.partition(":")[0] in ("chdb", "clickhouse", "clickhouses"):
        return ClickhouseDirectory(open_clickhouse(url), tally, plain=private)
    path = _path(url, folder)
    if not path.is_file():
        raise CommandError(f"there is no directory of DIDs at {path}\n{_how_to_fill(url, folder)}", code=2)
    return SqliteDirectory(path)


def _path(url: str | None, folder: Path) -> Path:
    """Where the SQLite file of the directory is."""
    if url is None:
        return folder / FILE
    kind, _, path = url.partition(":")
    if kind != "sqlite" or not path:
        raise CommandError(
            f"--directory: {printable(redact_url(url)[:80])}, expected sqlite:PATH (or, to crawl from, chdb:PATH or "
            "clickhouse://HOST:PORT/DATABASE)",
            code=2,
        )
    return Path(path)


def _how_to_fill(url: str | None, folder: Path) -> str:
    flags = (
        ""
        if url is None and folder == Path("data/rca")
        else f" --directory {shlex.quote(redact_url(url or f'sqlite:{folder / FILE}'))}"
    )
    return (
        "Fill it from the log of did:plc, from a relay, or from a file that has the log:\n\n"
        f"    sanderling repos directory --plc {PLC}{flags}\n"
        f"    sanderling repos directory --relay https://relay.example{flags}\n"
        f"    sanderling repos directory export.jsonl.gz{flags}\n"
    )


def fill(  # noqa: PLR0913 - a flag each
    file: Annotated[
        Path | None, Parameter(help="An export of the log: JSON lines, as they are or packed as .gz or .zst.")
    ] = None,
    /,
    *,
    plc: Annotated[str | None, Parameter(help=f"The directory of did:plc to follow the log of, as {PLC}.")] = None,
    relay: Annotated[str | None, Parameter(help="A relay, whose hosts are asked to list their repos.")] = None,
    directory: Where = None,
    out: OutDir = Path("data/rca"),
    json: AsJson = False,
    reach: ReachFlags = ANYBODY,
) -> None:
    """Fill the directory from one of three: a file, the log of did:plc, a relay."""
    if [file, plc, relay].count(None) != 2:
        raise CommandError("expected one of these: a FILE, --plc URL or --relay URL", code=2)
    path = _path(directory, out)
    if file is not None:
        _import(file, path, private=reach.private, as_json=json)
    else:
        _update(plc, relay or "", path, reach, as_json=json)


def _import(file: Path, path: Path, *, private: bool, as_json: bool) -> None:
    """Fold an export of the log of did:plc into the directory."""
    say = Saying(SystemClock())
    with _writing(path) as store, _damage(file, store), _unpacked(file) as lines:
        tally = store.import_export(lines, plain=private, watch=lambda tally: say(_read(tally)))
        _tell_log(tally, store, path, as_json=as_json)


def _update(plc: str | None, relay: str, path: Path, reach: ReachFlags, *, as_json: bool) -> None:
    """Fill the directory over the network, from where the last update ended."""
    try:
        url = host_at(plc or relay, plain=reach.private)
    except EndpointError as error:
        raise CommandError(f"{'--plc' if plc else '--relay'}: {error}", code=2) from None
    rules = HttpRules(most_raw=MOST_PAGE, most_decoded=MOST_PAGE, connections=AT_ONCE)
    http = make_http(rules, reach.contact, private=reach.private)
    with _writing(path) as store, _stopped(store):
        if plc is not None:
            tally = asyncio.run(_follow(http, store, url, reach))
            _tell_log(tally, store, path, as_json=as_json)
        else:
            listed = asyncio.run(_list(http, store, url, path.with_name(f"{path.name}.relay.json"), reach))
            _tell_listed(listed, store, path, as_json=as_json)


@contextmanager
def _writing(path: Path) -> Iterator[SqliteDirectory]:
    try:
        with closing(SqliteDirectory(path)) as store:
            yield store
    except DirectoryError as error:
        raise CommandError(str(error)) from None


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked if it is packed: by how it begins, whatever it is called."""
    try:
        with plainly(path), path.open("rb") as file:
            begins = file.read(4)
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    packed = gzip.open if begins.startswith(GZIP) else ZstdFile if begins == ZSTD else open
    with packed(path, "rb") as file:
        yield cast("BinaryIO", file)


@contextmanager
def _damage(path: Path, store: SqliteDirectory) -> Iterator[None]:
    """Say so if the file ends early or cannot be unpacked; what came before is kept."""
    try:
        yield
    except (OSError, EOFError, zlib.error, ZstdError) as error:
        found = f"{path} is cut off or damaged: {error or 'it ends early'}"
        raise CommandError(f"{found}. What came before is kept, {count(store.count(), 'DID')} in all.") from None


@contextmanager
def _stopped(store: SqliteDirectory) -> Iterator[None]:
    try:
        yield
    except UpdateError as error:
        kept = f"What came before is kept, {count(store.count(), 'DID')} in all; run the same again to go on."
        raise CommandError(f"{error}. {kept}") from None
    except KeyboardInterrupt:
        kept = f"{count(store.count(), 'DID')} in the directory; run the same again to go on."
        raise CommandError(f"stopped. {kept}", code=130) from None


async def _follow(http: Http, store: SqliteDirectory, url: str, reach: ReachFlags) -> ImportTally:
    clock = SystemClock()
    say = Saying(clock)
    with ThreadPoolExecutor(1, "directory") as thread:
        async with http:
            tools = _tools(http, thread, clock, reach)
            return await follow_log(tools, store, url, lambda tally: say(_read(tally)))


async def _list(http: Http, store: SqliteDirectory, url: str, kept: Path, reach: ReachFlags) -> HostListing:
    clock = SystemClock()
    say = Saying(clock)
    with ThreadPoolExecutor(1, "directory") as thread:
        async with http:
            listing = RelayListing(_tools(http, thread, clock, reach), store, url, kept)
            return await listing.run(lambda listed: say(_heard(listed)))


def _tools(http: Http, thread: ThreadPoolExecutor, clock: Clock, reach: ReachFlags) -> UpdateResources:
    made = make_limiter(LimiterRules(pace=PaceRules(max_rps=reach.most(RPS))), clock)
    return UpdateResources(Fetcher(http, made, clock=clock), made, clock, in_threads(thread), reach.private)


def _read(tally: ImportTally) -> str:
    return f"{tally.operations:,} operations read, up to {tally.cursor}"


def _heard(listed: HostListing) -> str:
    return f"{listed.done:,} of {count(listed.hosts, 'host')} listed, {listed.repos:,} repos, {listed.failed:,} failed"


def _tell_log(tally: ImportTally, store: SqliteDirectory, path: Path, *, as_json: bool) -> None:
    document = {
        "operations": tally.operations,
        "bad": dict(tally.bad),
        "refused": dict(tally.refused),
        "cursor": store.cursor(),
        "dids": store.count(),
        "directory": f"sqlite:{path}",
    }
    _tell(document, lambda: _log_words(tally, store, path), as_json=as_json)


def _log_words(tally: ImportTally, store: SqliteDirectory, path: Path) -> Iterator[str]:
    yield f"{count(tally.operations, 'operation')} read."
    for what, counts in (("lines that are no operation", tally.bad), ("endpoints that are no host", tally.refused)):
        if counts:
            reasons = ", ".join(f"{number:,} {why}" for why, number in counts.most_common())
            yield f"Left out: {counts.total():,} {what} ({reasons})."
    yield from (f"    line {line:,}: {printable(found)}" for line, found in tally.shown)
    yield f"The directory has {count(store.count(), 'DID')} with a host: {path}"


def _tell_listed(listed: HostListing, store: SqliteDirectory, path: Path, *, as_json: bool) -> None:
    document = {
        "hosts": listed.hosts,
        "done": listed.done,
        "failed": listed.failed,
        "left_out": dict(listed.left_out),
        "repos": listed.repos,
        "added": listed.added,
        "bad": listed.bad,
        "dids": store.count(),
        "directory": f"sqlite:{path}",
    }
    _tell(document, lambda: _listed_words(listed, store, path), as_json=as_json)
    if listed.failed:
        sys.exit(1)


def _listed_words(listed: HostListing, store: SqliteDirectory, path: Path) -> Iterator[str]:
    hosts, repos = count(listed.hosts, "host"), count(listed.repos, "repo")
    yield f"{listed.done:,} of {hosts} listed {repos}, {listed.added:,} new."
    if listed.left_out:
        reasons = ", ".join(f"{number:,}: {why}" for why, number in listed.left_out.most_common())
        yield f"Hosts that were not asked: {printable(reasons)}."
    if listed.bad:
        yield f"{count(listed.bad, 'row')} without a DID."
    if listed.failed:
        yield f"{count(listed.failed, 'host')} failed; run the same again to ask them again:"
        yield from (f"    {printable(each)}" for each in listed.shown)
    yield f"The directory has {count(store.count(), 'DID')} with a host: {path}"


def _tell(document: dict[str, Any], words: Callable[[], Iterator[str]], *, as_json: bool) -> None:
    for line in [jsonlib.dumps(document)] if as_json else words():
        print(line)
