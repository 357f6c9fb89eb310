"""`sanderling show`: one record of a folder, with its history; or why it is not there."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.records.folders import open_records
from sanderling.stores.record_source import RecordLookup, RecordsError
from sanderling.words import count, printable

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
        for line in _words(found, key):
            print(printable(line))
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
    }


def _words(found: RecordLookup, key: str) -> Iterator[str]:
    if found.record is None:
        yield f"{key} has no record: {found.why}"
    else:
        yield from _pretty(found.record)
    if found.history:
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


def _pretty(record: bytes) -> Iterator[str]:
    """A record over several lines, its numbers as they stand there."""
    yield from msgspec.json.format(record, indent=INDENT).decode().splitlines()
