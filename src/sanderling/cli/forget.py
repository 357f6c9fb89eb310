"""`sanderling forget`: remove hosts, pages or people from a folder and its exports, and never ask for them again."""

import json as jsonlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.config.settings import known
from sanderling.cli.events.forget import Age, forget_old
from sanderling.cli.events.place import OWN_ROWS, EventsDatabase, EventsFolder
from sanderling.cli.flags import SETTING
from sanderling.cli.home import configured
from sanderling.cli.progress_line import ProgressLine
from sanderling.cli.repos.progress import ArchiveFolder, is_begun, open_joined
from sanderling.cli.system_folder import find_folder, system_of
from sanderling.crawls.parts import is_of_worker
from sanderling.jobs import forget as jobs_forget
from sanderling.pages import forget as pages_forget
from sanderling.records.known_exports import KnownExport, known_exports, remake
from sanderling.repos import forget as repos_forget
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.ports import ProgressError
from sanderling.stores.record_source import RecordsError
from sanderling.words import count, printable

# What to do where this command cannot.
OTHERS = {
    "polling": "a target is removed with: sanderling polling targets; its documents stay",
    "sequence": "an id is not somebody's: remove its rows in the store",
}
FORGETS: dict[str, Any] = {"pages": pages_forget, "repos": repos_forget, "jobs": jobs_forget}
KINDS = {
    "host": "host",
    "below": "host with all below it",
    "url": "URL",
    "beginning": "beginning of URLs",
    "did": "DID",
}

Say = Callable[[str], object]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetFlags:
    """What else must be known."""

    export: tuple[str, ...] = ()
    """The URL, with its password, of a database that an export went to; may be given again."""

    redis_address: Annotated[str | None, Parameter(env_var="REDIS_ADDRESS"), SETTING] = None
    """HOST:PORT, or the URL, of a Redis for the progress; by default it is a file in the folder."""

    older_than: Age = None


FLAGS = ForgetFlags()


def forget(
    folder: Annotated[
        Path, Parameter(help="The folder of a crawl of pages or repos, or of a job, which is not running; of events.")
    ],
    /,
    *what: Annotated[
        str,
        Parameter(
            help="Of pages and jobs a URL, the beginning of URLs as https://example.org/ann/*, or a host as "
            "example.org or *.example.org; of repos a DID or a host; of events errors (what could not be read) or "
            "processed (which were processed, and their messages). None, to go on with what was cut short."
        ),
    ],
    dry_run: Annotated[bool, Parameter(negative=(), help="Say how much would go, and change nothing.")] = False,
    flags: ForgetFlags = FLAGS,
    rows: EventsDatabase = OWN_ROWS,
    json: AsJson = False,
) -> None:
    """Forget what is named."""
    folder = find_folder(folder)
    _check_not_of_worker(folder)
    rows = rows if rows.database else EventsDatabase(database=_configured_database())
    system = system_of(folder) or ("events" if rows.database else "")
    if system == "events":
        if dry_run:
            raise CommandError(
                "--dry-run is for pages, jobs and repos: of events, nothing is counted before it goes", code=2
            )
        old = list(forget_old(what, flags.older_than, rows, EventsFolder(out=folder)))
        said = {
            "system": system,
            "removed": sum(each.removed for each in old),
            "before": max(each.before for each in old),
        }
        print(jsonlib.dumps(said) if json else "\n".join(each.words for each in old))
        return
    if system not in FORGETS:
        why = OTHERS.get(system, "it holds no crawl of pages or repos, no job and no events")
        raise CommandError(printable(f"nothing can be forgotten in {folder}: {why}"), code=2)
    try:
        if dry_run:
            removed = FORGETS[system].survey(folder, what)._asdict()
            unreached = [f"{each.to}: would be made anew" for each in known_exports(folder)]
        else:
            removed, unreached = _forget(system, folder, what, flags)
        counts = Forgotten.of(folder).counts()
    except ValueError as error:  # of what is no URL, host or DID
        raise CommandError(printable(str(error)), code=2) from None
    except (FolderError, ProgressError, RecordsError) as error:
        raise CommandError(printable(f"{error}. To go on: sanderling forget {folder}")) from None
    if json:
        said = {"system": system, "dry_run": dry_run, **removed, "forgotten": counts, "unreached": unreached}
        print(jsonlib.dumps(said))
        return
    for line in _words(removed, unreached, counts, dry_run=dry_run):
        print(printable(line))


def _check_not_of_worker(folder: Path) -> None:
    """Raise CommandError for the folder of a worker of a fleet: what is to be forgotten is not there."""
    if is_of_worker(folder):
        name = folder.resolve().name
        pull = f"sanderling fleet pull {name} --fleet … --objects … --out {name}-pulled"
        why = "it is the folder of a worker of a fleet, and has copies only"
        do = f"Drain the workers, bring the crawl here ({pull}), forget there, and delete that of the fleet"
        raise CommandError(printable(f"nothing can be forgotten in {folder}: {why}. {do}: sanderling fleet forget"), 2)


def _configured_database() -> str | None:
    command = ("events", "consume")
    found = configured().effective(command, known().commands[command]["database"]).value
    return None if found is None else str(found)


def _forget(system: str, folder: Path, what: Sequence[str], flags: ForgetFlags) -> tuple[dict[str, int], list[str]]:
    """How much was removed, and what could not be reached."""
    place = ArchiveFolder(out=folder, redis_address=flags.redis_address)
    with ProgressLine() as line, ExitStack() as held:
        if what:
            exports = [msgspec.json.encode(each).decode() for each in known_exports(folder)]
            FORGETS[system].begin(folder, what, exports)
        unreached = []
        if system == "repos":
            if not is_begun(place):
                unreached.append("the progress of the crawl: it is not in the folder; name it with --redis-address")
                place = ArchiveFolder(out=Path(held.enter_context(TemporaryDirectory())))
            removed = repos_forget.finish(folder, held.enter_context(open_joined(place)), line.show)
        else:
            removed = FORGETS[system].finish(folder, line.show)
        return removed._asdict(), unreached + _remake_exports(folder, flags.export, line.show)


def _remake_exports(folder: Path, given: Sequence[str], say: Say) -> list[str]:
    """Make all exports anew that hold what was forgotten; why some cannot be."""
    forgotten, unreached = Forgotten.of(folder), []
    for each in forgotten.says.exports:
        made = msgspec.json.decode(each, type=KnownExport)
        say(f"export to {made.to}")
        remade = remake(folder, made, given)
        if remade.why:
            unreached.append(remade.why)
        if not remade.later:
            forgotten = forgotten.exported(each)
    return unreached


def _words(removed: dict[str, int], unreached: list[str], counts: dict[str, int], *, dry_run: bool) -> Iterator[str]:
    said = ", ".join(count(number, what.removesuffix("s")) for what, number in removed.items())
    if dry_run:
        yield f"Would remove: {said}. Nothing was changed."
    else:
        yield f"Removed: {said}. None of it is asked for again; what is known of it is a hash."
    if counts:
        known = ", ".join(f"{number:,} x {KINDS.get(kind, kind)}" for kind, number in counts.items())
        yield f"Forgotten in this folder: {known}."
    if unreached:
        yield "Exports of the folder:" if dry_run else "What still holds it, and must be looked after by hand:"
        yield from (f"  {each}" for each in unreached)
