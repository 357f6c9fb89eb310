"""`sanderling show`: one record of a folder, with its history; or why it is not there."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.outcome import Code
from sanderling.records.folders import open_records
from sanderling.stores.record_source import RecordLookup, RecordsError
from sanderling.words import count, printable, size

INDENT = 2


def show_command(
    folder: Annotated[Path, Parameter(help="The folder of any system, or of a job.")],
    key: Annotated[str, Parameter(help="Which record.")],
    /,
    *,
    json: AsJson = False,
) -> None:
    """Show one record."""
    try:
        with closing(open_records(folder)) as source:
            found, system = source.show(key), source.about.system
    except RecordsError as error:
        raise CommandError(printable(str(error)), code=2) from None
    if json:
        print(msgspec.json.encode(_as_json(found, system, key)).decode())
    else:
        for line in _words(found, key, versions=system == "pages"):
            print(printable(line))
        if found.about:
            print()
            print(printable(f"{found.about[:1].upper()}{found.about[1:]}."))
    if found.record is None:
        sys.exit(1)


def _as_json(found: RecordLookup, system: str, key: str) -> dict[str, object]:
    return {
        "system": system,
        "key": key,
        "record": None if found.record is None else msgspec.Raw(found.record),
        "history": [msgspec.Raw(each) for each in found.history],
        "why": found.why,
        "nearest": list(found.nearest),
        "about": found.about,
    }


def _words(found: RecordLookup, key: str, *, versions: bool) -> Iterator[str]:
    if found.record is None:
        yield f"{key} has no record: {found.why}"
    else:
        yield from _pretty(found.record)
    if found.history and found.record and versions:
        yield ""
        yield f"{count(len(found.history) + 1, 'version')}, the oldest first; --json has all of each:"
        yield ""
        yield from version_lines([*found.history, found.record])
    elif found.history:
        yield ""
        yield (
            f"{count(len(found.history), 'earlier version')}, the oldest first:" if found.record else "What there was:"
        )
        for each in found.history:
            yield ""
            yield from _pretty(each)
    if found.nearest:
        yield ""
        yield "The nearest that are there:"
        yield from (f"  {each}" for each in found.nearest)


class PageVersion(msgspec.Struct):
    """What tells a version of a page from the one before."""

    fetched_at: str = ""
    outcome: str = ""
    bytes: int | None = None
    title: str | None = None
    text: str | None = None


def version_lines(rows: Sequence[bytes]) -> Iterator[str]:
    """A line for each version of a page: when it was fetched, how large it was, and what became other."""
    before: PageVersion | None = None
    for row in rows:
        version = msgspec.json.decode(row, type=PageVersion)
        if version.outcome == Code.NOT_MODIFIED:  # of a later crawl
            yield f"  {version.fetched_at}  as it was"
            continue
        said = f"  {version.fetched_at}  {size(version.bytes or 0):>9}  {_difference(before, version)}"
        yield said.rstrip()
        before = version


def _difference(before: PageVersion | None, now: PageVersion) -> str:
    """Lines of its text that came and went, counted; of the first its title, and also where that became other."""
    title = f"{now.title!r}" if now.title and (before is None or before.title != now.title) else ""
    if before is None:
        return title
    was, lines = Counter((before.text or "").splitlines()), Counter((now.text or "").splitlines())
    return f"{f'+{(lines - was).total():,} -{(was - lines).total():,} lines':<16}  {title}"


def _pretty(record: bytes) -> Iterator[str]:
    """A record over several lines, its numbers as they stand there."""
    yield from msgspec.json.format(record, indent=INDENT).decode().splitlines()
