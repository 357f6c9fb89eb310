"""`sanderling events migrate up`, `down` and `status`: revisions of the database, and the way between them."""

import json as jsonlib
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from sanderling.cli import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.place import OWN_ROWS, USUAL, Folder, Rows
from sanderling.cli.reach import explained, reached
from sanderling.events.outlet import DATABASE
from sanderling.redact import redact_url
from sanderling.stores.analytics_migrate import HEAD, REVISIONS, Revision, migrate, steps
from sanderling.stores.analytics_migrate import status as revisions_of
from sanderling.words import count, printable

BASE, NEWEST = "base", "head"


class Moved(NamedTuple):
    """From which revision to which, and the steps that were taken, in order; a revision that is none is None."""

    before: str | None
    now: str | None
    steps: Sequence[Revision]


def up(
    *,
    to: Annotated[str, Parameter(help="The revision, as `migrate status` shows them; head is the newest.")] = NEWEST,
    json: AsJson = False,
    rows: Rows = OWN_ROWS,
    folder: Folder = USUAL,
) -> None:
    """Bring the database up."""
    _check(to, NEWEST)
    moved = explained(_up(to, rows, folder))
    _tell(moved, "applied", where(rows, folder), as_json=json)


def down(
    *,
    to: Annotated[
        str | None,
        Parameter(help="The revision, as `migrate status` shows them; base is none. One below the present by default."),
    ] = None,
    yes: Annotated[bool, Parameter(negative=(), help="Really do it.")] = False,
    json: AsJson = False,
    rows: Rows = OWN_ROWS,
    folder: Folder = USUAL,
) -> None:
    """Bring the database down."""
    if to is not None:
        _check(to, BASE)
    moved = explained(_down(to, rows, folder, yes=yes))
    _tell(moved, "undone", where(rows, folder), as_json=json)


def status(*, json: AsJson = False, rows: Rows = OWN_ROWS, folder: Folder = USUAL) -> None:
    """Say which revisions there are, and which the database has."""
    found = explained(_revisions(rows, folder))
    at = _name(_height(found))
    place, way = where(rows, folder), again("events migrate up", folder, rows)
    if json:
        listed = [each._asdict() for each in found]
        print(jsonlib.dumps({"at": at, "head": HEAD, "revisions": listed}))
    else:
        for each in found:
            print(printable(f"  {each.name}  {'applied' if each.applied else 'not yet':<8}  {each.what}"))
    if at != HEAD:
        there = f"is at revision {at}, the newest is {HEAD}" if at else "has no tables of ours yet"
        raise CommandError(printable(f"{place} {there}; bring it up: {way}"))


async def _up(to: str, rows: Rows, folder: Folder) -> Moved:
    found = await _revisions(rows, folder)
    here, there = _height(found), len(REVISIONS) if to == NEWEST else REVISIONS.index(to) + 1
    if there < here:
        way = again("events migrate down --to", to, folder, rows)
        raise CommandError(_misled(rows, folder, here, f"above {to}", way), code=2)
    if there > here:
        if rows.database is None:
            folder.made()
        await _reach(rows, folder, to)
    return Moved(_name(here), _name(there), found[here:there])


async def _down(to: str | None, rows: Rows, folder: Folder, *, yes: bool) -> Moved:
    if not rows.there(folder):
        raise CommandError(printable(f"there is no {where(rows, folder)}; choose another, see --help"), code=2)
    found = await _revisions(rows, folder)
    here = _height(found)
    there = max(0, here - 1) if to is None else 0 if to == BASE else REVISIONS.index(to) + 1
    if there > here:
        way = again("events migrate up --to", to, folder, rows)
        raise CommandError(_misled(rows, folder, here, f"below {to}", way), code=2)
    undone = found[there:here][::-1]
    if undone and not yes:
        lost = "".join(f"\n    {each.name}  {each.what}" for each in undone)
        what = f"this undoes {count(len(undone), 'revision')} of {where(rows, folder)}, and loses what each has added:"
        raise CommandError(f"{printable(what)}\n{lost}\n\nMake a backup, then say --yes as well.", code=2)
    if undone:
        await _reach(rows, folder, _name(there) or BASE)
    return Moved(_name(here), _name(there), undone)


async def _reach(rows: Rows, folder: Folder, target: str) -> None:
    url = rows.url(folder)
    await reached("--database", rows.database, lambda: migrate(url, target))


async def _revisions(rows: Rows, folder: Folder) -> list[Revision]:
    """All of them; where there is no database none is applied, and none is made. Raises CommandError."""
    if not rows.there(folder):
        return [Revision(name, what, applied=False) for name, what in steps().described()]
    url = rows.url(folder)
    return await reached("--database", rows.database, lambda: revisions_of(url))


def _check(to: str, also: str) -> None:
    if to not in (also, *REVISIONS):
        raise CommandError(f"--to is {to[:40]!r}, expected {also} or one of {', '.join(REVISIONS)}", code=2)


def _height(found: Sequence[Revision]) -> int:
    """How many revisions the database has."""
    return sum(each.applied for each in found)


def _name(height: int) -> str | None:
    return REVISIONS[height - 1] if height else None


def where(rows: Rows, folder: Folder) -> str:
    """The database, as it may be shown."""
    return str(folder.out / DATABASE) if rows.database is None else redact_url(rows.database)


def _misled(rows: Rows, folder: Folder, here: int, side: str, way: str) -> str:
    """What to say to somebody who goes up to get down, or down to get up."""
    return printable(f"{where(rows, folder)} is at revision {_name(here) or 'none'}, which is {side}; use: {way}")


def _tell(moved: Moved, done: str, where: str, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"before": moved.before, "now": moved.now, done: [each.name for each in moved.steps]}))
        return
    for each in moved.steps:
        print(printable(f"  {each.name}  {done}  {each.what}"))
    still = "now" if moved.steps else "already, nothing was changed"
    at = f"is at revision {moved.now}" if moved.now else "has no tables of ours"
    print(printable(f"{where} {at} {still}."))
