"""`sanderling forget`: remove hosts, pages or people from a folder and its exports, and never ask for them again."""

import json as jsonlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.system_folder import find_folder, system_of
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
    "events": "old errors and events go with: sanderling events forget",
    "polling": "a target is removed with: sanderling polling targets; its documents stay",
    "jobs": "only the job knows whose its records are: remove them, and run it in a new folder",
    "sequence": "an id is not somebody's: remove its rows in the store",
}
FORGETS: dict[str, Any] = {"pages": pages_forget, "repos": repos_forget}


def forget(
    folder: Annotated[Path, Parameter(help="The folder of a crawl of pages or repos, which is not running.")],
    /,
    *what: Annotated[
        str,
        Parameter(
            help="Of pages a URL, the beginning of URLs as https://example.org/ann/*, or a host as example.org or "
            "*.example.org; of repos a DID or a host. None, to go on with what was cut short."
        ),
    ],
    json: AsJson = False,
) -> None:
    """Forget what is named."""
    folder = find_folder(folder)
    system = system_of(folder)
    if system not in FORGETS:
        why = OTHERS.get(system, "it holds no crawl of pages or repos")
        raise CommandError(printable(f"nothing can be forgotten in {folder}: {why}"), code=2)
    forgets = FORGETS[system]
    try:
        if what:
            exports = [msgspec.json.encode(each).decode() for each in known_exports(folder)]
            forgets.begin(folder, what, exports)
        removed = forgets.finish(folder)._asdict()
        unreached = _remake_exports(folder)
    except ValueError as error:  # of what is no URL, host or DID
        raise CommandError(printable(str(error)), code=2) from None
    except (FolderError, ProgressError, RecordsError) as error:
        raise CommandError(printable(f"{error}. To go on: sanderling forget {folder}")) from None
    if json:
        print(jsonlib.dumps({"system": system, **removed, "unreached": unreached}))
        return
    for line in _words(removed, unreached):
        print(printable(line))


def _remake_exports(folder: Path) -> list[str]:
    """Make all exports anew that hold what was forgotten; why some cannot be."""
    forgotten, unreached = Forgotten.of(folder), []
    for each in forgotten.says.exports:
        if why := remake(folder, msgspec.json.decode(each, type=KnownExport)):
            unreached.append(why)
        forgotten = forgotten.exported(each)
    return unreached


def _words(removed: dict[str, int], unreached: list[str]) -> Iterator[str]:
    said = ", ".join(count(number, what.removesuffix("s").replace("bodie", "file")) for what, number in removed.items())
    yield f"Removed: {said}. None of it is asked for again; what is known of it is a hash."
    if unreached:
        yield "Exports that still hold it, and must be looked after by hand:"
        yield from (f"  {each}" for each in unreached)
