"""`sanderling repos get`: one repo, out of archives, or from wherever it lives."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.apis import identity
from sanderling.apis.identity import IdentityError, RepoIdentity
from sanderling.cli.client import make_http
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.flags import ReachFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import WATCHED
from sanderling.cli.report_screen import fitting
from sanderling.cli.repos.archive import Collections, LeftOut, listed_in
from sanderling.cli.repos.crawl import KNOWN, open_stores, run_crawl
from sanderling.cli.repos.flags import ArchiveFlags, RepoNetwork
from sanderling.cli.repos.progress import ArchiveFolder
from sanderling.cli.repos.watch import Complaints, Places, end, explained, segments_at
from sanderling.clock import SystemClock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import HttpRules
from sanderling.formats.rca import Block
from sanderling.limit import LimiterRules, PaceRules
from sanderling.repos.archives import ArchiveProblem, archives_in
from sanderling.repos.inspect import newest
from sanderling.repos.plc import EndpointError, host_at
from sanderling.repos.rows import chooser, split
from sanderling.task import Reply, Task
from sanderling.words import count, printable

MOST_DOCUMENT = 1 << 20  # bytes of an answer about an identity
RPS = 5.0
UNFINISHED = 3
ANYBODY = ReachFlags()


class _Line(msgspec.Struct):
    repo: str
    rev: str
    collection: str
    rkey: str
    record: msgspec.Raw


def get_command(  # noqa: PLR0913 - flags
    who: Annotated[str, Parameter(help="A DID; or, without archives, also a handle.")],
    /,
    *places: Places,
    collections: Collections = (),
    leave_out: LeftOut = None,
    out: Annotated[
        Path | None, Parameter(help="Without archives: the folder for its own; by default called like the DID.")
    ] = None,
    plc: Annotated[str, Parameter(help="Where the directory of did:plc is.")] = identity.PLC,
    resolver: Annotated[
        str | None, Parameter(help="A host that is asked who a handle is, where the handle's own domain does not say.")
    ] = None,
    json: SummaryAsJson = False,
    reach: ReachFlags = ANYBODY,
) -> None:
    """Print one repo out of archives; without archives, find its host and archive it."""
    if places:
        _print_from(who, places, collections, leave_out)
        return
    asking = RepoNetwork(contact=reach.contact, private=reach.private, rps=reach.rps, leave_out=leave_out)
    found = _resolve(who, plc, resolver, asking)
    try:
        host = host_at(found.endpoint, plain=reach.private)
    except EndpointError as error:
        raise CommandError(printable(f"{found.did} lives at no host that we would ask: {error}")) from None
    folder = out or Path(found.did.replace(":", "-"))
    _archive(found.did, host, folder, asking, as_json=json)


def _resolve(who: str, plc: str, resolver: str | None, asking: RepoNetwork) -> RepoIdentity:
    """Where a DID or a handle lives. Raises CommandError."""
    try:
        if not identity.is_did(who):
            identity.read_handle(who, private=asking.private)
    except IdentityError as error:
        raise CommandError(printable(str(error)), code=2) from None
    try:
        return run(_ask_identity(who, plc, resolver, asking))
    except (IdentityError, ValueError) as error:
        raise CommandError(printable(str(error))) from None


async def _ask_identity(who: str, plc: str, resolver: str | None, asking: RepoNetwork) -> RepoIdentity:
    http = make_http(
        HttpRules(most_raw=MOST_DOCUMENT, most_decoded=MOST_DOCUMENT), asking.contact, private=asking.private
    )
    clock = SystemClock()
    fetcher = Fetcher(http, make_limiter(LimiterRules(pace=PaceRules(max_rps=asking.most(RPS))), clock), clock=clock)
    async with http:
        if identity.is_did(who):
            return identity.read_document(
                who, await _ask(fetcher, identity.ask_document(who, plc, private=asking.private))
            )
        handle = identity.read_handle(who, private=asking.private)
        did = await _did_of(fetcher, handle, resolver, asking)
        document = await _ask(fetcher, identity.ask_document(did, plc, private=asking.private))
        found = identity.read_document(did, document)
    if handle not in found.handles:
        named = ", ".join(found.handles) or "none"
        raise IdentityError(f"{handle} says that it is {did}, whose document names {named}; go on with: {did}")
    return found


async def _did_of(fetcher: Fetcher, handle: str, resolver: str | None, asking: RepoNetwork) -> str:
    tasks = [identity.ask_handle(handle, private=asking.private)]
    if resolver is not None:
        tasks.append(identity.ask_resolver(handle, resolver))
    whys: list[str] = []
    for task in tasks:
        try:
            return identity.read_did(await _ask(fetcher, task))
        except IdentityError as error:
            whys.append(str(error))
    hint = "" if resolver else ". It may be told by DNS only: name a host that resolves handles with --resolver"
    raise IdentityError(f"who {handle} is cannot be told: {'; '.join(whys)}{hint}")


async def _ask(fetcher: Fetcher, task: Task) -> Reply:
    fetched = await fetcher.fetch(task)
    if fetched.reply is None or not fetched.outcome.ok:
        outcome = fetched.outcome
        said = f"{outcome.code} {outcome.status or ''} {outcome.detail}".strip()
        raise IdentityError(f"{task.url}: {said}")
    return fetched.reply


def _archive(did: str, host: str, folder: Path, asking: RepoNetwork, *, as_json: bool) -> None:
    """Archive one repo, as a crawl of a directory that lists nothing else."""
    clock, place = SystemClock(), ArchiveFolder(out=folder)
    screen = fitting(json=as_json)
    with TemporaryDirectory() as listing:
        dids = Path(listing) / "dids.txt"
        dids.write_text(f"{did} {host}\n")
        keeping = ArchiveFlags(did_file=dids)
        transport, rules = asking.transport(clock), keeping.rules(asking)
        again = f"sanderling repos get {did} --out {folder}"
        with explain_end(again, KNOWN), open_stores(place, asking, keeping, screen, clock) as stores:
            run(run_crawl(stores, transport, rules, WATCHED.quieter("warning"), clock, screen))
            stores.segments.close()
            view = stores.progress.view()
    complaints = Complaints(shown=not as_json)
    kept = newest(archives_in([folder]), did, complaints) if any(folder.glob("*.rca*")) else None
    if kept is None:
        reasons = ", ".join(f"{name}" for name in view.failed) or "no answer"
        raise CommandError(
            printable(f"{did} at {host} was not archived: {reasons}. See: sanderling show {folder} {did}"),
            code=UNFINISHED,
        )
    screen.end(_words(did, host, folder, kept[1]), _as_json(did, host, folder, kept[1]))
    end(complaints)


def _words(did: str, host: str, folder: Path, block: Block) -> Iterator[str]:
    records = sum(entry.count for entry in block.toc)
    yield f"{did} at {host}: {count(records, 'record')} of {count(len(block.toc), 'collection')}, rev {block.rev}."
    yield f"Archived in {folder}. To read them:"
    yield ""
    yield f"    sanderling repos get {did} {folder}"
    yield f"    sanderling export {folder} --to jsonl"
    yield ""


def _as_json(did: str, host: str, folder: Path, block: Block) -> dict[str, object]:
    collections = {entry.name: entry.count for entry in block.toc}
    return {"did": did, "host": host, "output_dir": str(folder), "rev": block.rev, "collections": collections}


def _print_from(did: str, places: Sequence[Path], collections: Sequence[str], leave_out: Path | None) -> None:
    """Print the records of one repo, as it was crawled last, as JSON lines."""
    listed = listed_in(leave_out)
    paths, complaints = segments_at(places), Complaints(shown=True)
    with explained():
        wanted = chooser(collections)
        if (kept := newest(paths, did, complaints)) is None:
            raise CommandError(f"{did} is in none of {count(len(paths), 'segment')}")
        path, block = kept
        if listed.has(did, block.pds):
            raise CommandError(f"{did} is left out: {leave_out} lists it, or its host {block.pds}")
        if collections and not any(wanted(entry.name) for entry in block.toc):
            there = ", ".join(entry.name for entry in block.toc)
            raise CommandError(printable(f"{did} has none of these collections, but {there or 'no others either'}"))
        for line in _lines(path, block, wanted, complaints):
            print(line)
    end(complaints)


def _lines(path: Path, block: Block, wanted: Callable[[str], bool], complaints: Complaints) -> Iterator[str]:
    for entry, offset, content in block.contents(wanted):
        for rkey, json in zip(*split(content, entry.count, offset), strict=True):
            try:
                # On one line, whoever has written the archive.
                record = msgspec.Raw(msgspec.json.format(json, indent=-1))
                yield msgspec.json.encode(_Line(block.did, block.rev, entry.name, rkey.decode(), record)).decode()
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                complaints(ArchiveProblem(path, offset, f"a record of {entry.name} that is no JSON: {error}"))
