"""`sanderling export`: the records of a folder into a file, a database or a bucket."""

import json as jsonlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Self, TextIO

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.loop import explain_end
from sanderling.clock import Clock, SystemClock
from sanderling.records.export import Exported, export
from sanderling.records.folders import open_records
from sanderling.records.known_exports import KnownExport, note_export
from sanderling.records.open_target import STREAM, TABLE, TargetOptions, file_of, open_target
from sanderling.records.selection import Selection, SelectionError
from sanderling.records.target import ExportTarget, TargetError
from sanderling.stores.record_source import RecordsError, RecordSource
from sanderling.words import count, duration, printable

MOST_NOTES = 20  # shown one by one
LOOK_EVERY, SAY_EVERY = 0.5, 10.0  # seconds, on a terminal and elsewhere


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFlags:
    """Where records go, and which."""

    to: Annotated[str, Parameter(allow_leading_hyphen=True)]
    """A file.jsonl, .csv, .sqlite or .duckdb, a folder.parquet, postgresql://user@host/database or s3://bucket/prefix.

    jsonl, csv, parquet, sqlite or duckdb alone is a file that is called like the folder; jsonl:PATH and so on is a path
    that ends otherwise. jsonl:- and csv:- print."""

    table: str = TABLE
    """The table of a database."""

    where: str = ""
    """Only records of which this is true, as in 'likes > 10 and lang = "en"'; docs/jobs_language.md has it all."""

    fields: str = ""
    """Only what stands at these paths, as in id,author.name; each is a column."""

    new: Annotated[bool, Parameter(negative=())] = False
    """Only what has come since the last export to the same place; all, if there was none."""


def export_command(
    folder: Annotated[Path, Parameter(help="The folder of any system, or of a job.")],
    /,
    *,
    flags: ExportFlags,
    json: SummaryAsJson = False,
) -> None:
    """Write the records of a folder elsewhere."""
    clock = SystemClock()
    began = clock.now()
    selection = _selection(flags)
    with explain_end(again("export", folder, flags), (RecordsError, TargetError)), closing(_opened(folder)) as source:
        _check_fields(selection.fields, source.about.columns)
        columns = selection.fields or source.about.columns
        wanted = TargetOptions(flags.to, flags.table, columns)
        with closing(_target(wanted, folder)) as target:
            silent = json or _prints(flags)
            with ExportProgress(clock, silent=silent) as progress:
                done = export(source, target, selection, new=flags.new, watch=progress.show)
            place, system = target.place, source.about.system
    if not _prints(flags):
        note_export(folder, KnownExport.of(wanted, selection, folder.resolve().name))
    seconds = clock.now() - began
    if json:
        print(jsonlib.dumps(_as_json(done, place, system, seconds)), file=_summary_file(flags))
        return
    for line in _words(done, place, seconds, flags):
        print(printable(line), file=_summary_file(flags))


def _selection(flags: ExportFlags) -> Selection:
    fields = tuple(field.strip() for field in flags.fields.split(",") if field.strip())
    try:
        return Selection.parse(flags.where, fields)
    except SelectionError as error:
        raise CommandError(printable(f"--{error}"), code=2) from None


def _check_fields(fields: Sequence[str], known: Sequence[str]) -> None:
    """Raise CommandError for one that no record has, where it is known what records have."""
    unknown = [field for field in fields if known and field.partition(".")[0] not in known]
    if unknown:
        near = get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(known)}"
        raise CommandError(printable(f"--fields: no record has {unknown[0]}; {hint}"), code=2)


@contextmanager
def _usage() -> Iterator[None]:
    try:
        yield
    except (RecordsError, TargetError) as error:
        raise CommandError(printable(str(error)), code=2) from None


def _opened(folder: Path) -> RecordSource:
    with _usage():
        return open_records(folder)


def _target(wanted: TargetOptions, folder: Path) -> ExportTarget:
    with _usage():
        return open_target(wanted, folder.resolve().name)


def _prints(flags: ExportFlags) -> bool:
    return file_of(flags.to, "")[1] == STREAM


def _summary_file(flags: ExportFlags) -> TextIO:
    return sys.stderr if _prints(flags) else sys.stdout


class ExportProgress:
    """How far it is: a line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, clock: Clock, *, silent: bool) -> None:
        self._clock = clock
        self._silent = silent
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began = self._said = clock.now()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def show(self, read: int, written: int) -> None:
        """So many records were read, and written."""
        now = self._clock.now()
        if self._silent or now - self._said < (LOOK_EVERY if self._terminal else SAY_EVERY):
            return
        self._said, self._shown = now, True
        rate = read / max(now - self._began, 1e-9)
        said = f"{written:,} written of {count(read, 'record')} read, {rate:,.0f} a second"
        if self._terminal:
            print(f"\r\x1b[K{said}", end="", file=sys.stderr, flush=True)
        else:
            print(said, file=sys.stderr, flush=True)


def _as_json(done: Exported, place: str, system: str, seconds: float) -> dict[str, object]:
    return {
        "system": system,
        "target": place,
        "read": done.read,
        "written": done.written,
        "records": done.records,
        "resumed": done.resumed,
        "notes": done.notes,
        "seconds": round(seconds, 3),
    }


def _words(done: Exported, place: str, seconds: float, flags: ExportFlags) -> Iterator[str]:
    if done.resumed:
        yield "It went on with an export that had not come to its end."
    left_out = f" of {done.read:,} read" if done.read != done.written else ""
    yield f"{count(done.written, 'record')}{left_out} written to {place} in {duration(seconds)}."
    if not _prints(flags) and done.records != done.written:
        yield f"It holds {count(done.records, 'record')} now."
    yield from done.notes[:MOST_NOTES]
    if len(done.notes) > MOST_NOTES:
        yield f"and {len(done.notes) - MOST_NOTES} notes more; --json has all of them"
