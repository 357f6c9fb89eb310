"""`sanderling events migrate`: revisions of the database, and the way between them."""

import json as jsonlib
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.place import OWN_ROWS, USUAL, EventsDatabase, EventsFolder
from sanderling.cli.reach import explained, reached
from sanderling.events.outbox import DATABASE
from sanderling.redact import redact_url
from sanderling.stores.analytics_open import Revision, migrate, revisions
from sanderling.stores.analytics_open import status as revisions_of
from sanderling.stores.analytics_revisions import HEAD, REVISIONS
from sanderling.words import count, printable

BASE, NEWEST = "base", "head"
HEIGHTS = {BASE: 0, **{name: place for place, name in enumerate(REVISIONS, 1)}, NEWEST: len(REVISIONS)}
APPLIED, UNDONE = "applied", "undone"


class Migrated(NamedTuple):
    """From which revision to which, and the steps that were taken, in order; a revision that is none is None."""

    before: str | None
    now: str | None
    steps: Sequence[Revision]


def migrate_command(
    to: Annotated[
        str | None, Parameter(help="The revision: head is the newest, base is none; without one, say which there are.")
    ] = None,
    /,
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Really go down, and lose what was added.")] = False,
    json: AsJson = False,
    rows: EventsDatabase = OWN_ROWS,
    folder: EventsFolder = USUAL,
) -> None:
    """Say where the database is, or bring it elsewhere."""
    if to is None:
        _tell_status(rows, folder, as_json=json)
        return
    if to not in HEIGHTS:
        raise CommandError(f"{to[:40]!r} is no revision, expected one of {', '.join(HEIGHTS)}", code=2)
    moved, done = explained(_move(to, rows, folder, yes=yes))
    _tell(moved, done, where(rows, folder), as_json=json)


def _tell_status(rows: EventsDatabase, folder: EventsFolder, *, as_json: bool) -> None:
    """Say which revisions there are, and which the database has."""
    found = explained(_revisions(rows, folder))
    at = _name(_height(found))
    place, way = where(rows, folder), again("events migrate head", folder, rows)
    if as_json:
        listed = [each._asdict() for each in found]
        print(jsonlib.dumps({"at": at, "head": HEAD, "revisions": listed}))
    else:
        for each in found:
            print(printable(f"  {each.name}  {'applied' if each.applied else 'not yet':<8}  {each.what}"))
    if at != HEAD:
        there = f"is at revision {at}, the newest is {HEAD}" if at else "has no tables of ours yet"
        raise CommandError(printable(f"{place} {there}; bring it up: {way}"))


async def _move(to: str, rows: EventsDatabase, folder: EventsFolder, *, yes: bool) -> tuple[Migrated, str]:
    """Go there, up or down; what was done, and how that is called."""
    there = HEIGHTS[to]
    if to == BASE and not rows.there(folder):
        raise CommandError(printable(f"there is no {where(rows, folder)}; choose another, see --help"), code=2)
    found = await _revisions(rows, folder)
    here = _height(found)
    if there < here:
        return Migrated(
            _name(here), _name(there), await _down(found[there:here][::-1], to, rows, folder, yes=yes)
        ), UNDONE
    if there > here:
        if rows.database is None:
            folder.made()
        await _reach(rows, folder, to)
    return Migrated(_name(here), _name(there), found[here:there]), APPLIED


async def _down(
    undone: list[Revision], to: str, rows: EventsDatabase, folder: EventsFolder, *, yes: bool
) -> list[Revision]:
    if not yes:
        lost = "".join(f"\n    {each.name}  {each.what}" for each in undone)
        what = f"this undoes {count(len(undone), 'revision')} of {where(rows, folder)}, and loses what each has added:"
        raise CommandError(f"{printable(what)}\n{lost}\n\nMake a backup, then say --yes as well.", code=2)
    await _reach(rows, folder, to)
    return undone


async def _reach(rows: EventsDatabase, folder: EventsFolder, target: str) -> None:
    url = rows.url(folder)
    await reached("--database", rows.database, lambda: migrate(url, target))


async def _revisions(rows: EventsDatabase, folder: EventsFolder) -> list[Revision]:
    """All of them; where there is no database none is applied, and none is made. Raises CommandError."""
    if not rows.there(folder):
        return revisions(None)
    url = rows.url(folder)
    return await reached("--database", rows.database, lambda: revisions_of(url))


def _height(found: Sequence[Revision]) -> int:
    """How many revisions the database has."""
    return sum(each.applied for each in found)


def _name(height: int) -> str | None:
    return REVISIONS[height - 1] if height else None


def where(rows: EventsDatabase, folder: EventsFolder) -> str:
    """The database, as it may be shown."""
    return str(folder.out / DATABASE) if rows.database is None else redact_url(rows.database)


def _tell(moved: Migrated, done: str, where: str, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"before": moved.before, "now": moved.now, done: [each.name for each in moved.steps]}))
        return
    for each in moved.steps:
        print(printable(f"  {each.name}  {done}  {each.what}"))
    still = "now" if moved.steps else "already, nothing was changed"
    at = f"is at revision {moved.now}" if moved.now else "has no tables of ours"
    print(printable(f"{where} {at} {still}."))
