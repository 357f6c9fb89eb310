"""Which exports were made of a folder: in its exports.json, so that what is forgotten there is forgotten here too."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from sanderling.extras import load
from sanderling.records.export import export
from sanderling.records.files import MARK as FILE_MARK
from sanderling.records.folders import open_records
from sanderling.records.open_target import TargetOptions, file_of, open_target
from sanderling.records.parts import MARK, OLD_MARK
from sanderling.records.selection import Selection
from sanderling.records.sqlite_table import SqliteTables
from sanderling.records.tables import MARKS, TableDatabase, quoted
from sanderling.records.target import TargetError, target_errors
from sanderling.redact import redact_url
from sanderling.stores.durable import FolderError, plainly, write_new

FILE = "exports.json"
SERVERS = ("postgresql", "postgres")
REMADE = ("jsonl", "csv", "parquet", "sqlite", *SERVERS)
WIPE = "PRAGMA secure_delete = ON", "VACUUM"  # so that SQLite overwrites what it lets go of


class KnownExport(msgspec.Struct, frozen=True):
    """Where the records of a folder went, without secrets, and which."""

    to: str
    table: str = ""
    where: str = ""
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: TargetOptions, selection: Selection, name: str) -> Self:
        """An export that was made of a folder of this name."""
        kind, path = file_of(wanted.to, name)
        to = f"{kind}:{Path(path).absolute()}" if path else redact_url(wanted.to)
        return cls(to, wanted.table, selection.where, selection.fields)


def known_exports(folder: Path) -> list[KnownExport]:
    """The exports that were made of a folder. Raises FolderError."""
    path = folder / FILE
    with plainly(path):
        if not path.exists():
            return []
        try:
            return msgspec.json.decode(path.read_bytes(), type=list[KnownExport])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FolderError(
                f"{path} is damaged: {error}. Remove it; exports it names must be looked after by hand."
            ) from None


def note_export(folder: Path, made: KnownExport) -> None:
    """Remember an export, if the folder can be written to: one that is only read is no place to forget in."""
    try:
        known = known_exports(folder)
        if made not in known:
            with plainly(folder):
                write_new(folder / FILE, [msgspec.json.encode([*known, made]), b"\n"])
    except FolderError:
        return


class Remade(NamedTuple):
    """What came of an export that was to be made anew: why it was not, if so, and whether to try again."""

    why: str = ""
    later: bool = False


def remake(folder: Path, made: KnownExport, given: Sequence[str] = ()) -> Remade:
    """Make an export anew, from what the folder holds now. May be done again.

    `given` are URLs with the secrets that a folder does not keep.
    """
    to = next((each for each in given if redact_url(each) == made.to), made.to)
    kind, path = file_of(to, folder.resolve().name)
    if kind not in REMADE or not (path or kind in SERVERS):
        return Remade(f"{made.to}: it is of a kind that is not written anew")
    if path and not _is_there(kind, Path(path)):
        return Remade(f"{made.to}: it is not there any more; wherever it went, what was forgotten is still in it")
    try:
        with closing(open_records(folder)) as source:
            if source.about.notes:
                return Remade(f"{made.to}: {source.about.notes[0]}, and would be lost there")
            wanted = TargetOptions(to, made.table, made.fields or source.about.columns)
            _clear(kind, path or to, made.table)
            with closing(open_target(wanted, folder.resolve().name)) as target:
                export(source, target, Selection.parse(made.where, made.fields), new=False, watch=lambda *_: None)
    except TargetError as error:
        needs = "; if it wants a password, name it with that: --export URL" if kind in SERVERS else ""
        return Remade(f"{made.to}: {error}{needs}", later=True)
    return Remade()


def _is_there(kind: str, path: Path) -> bool:
    return any((path / each).exists() for each in (MARK, OLD_MARK)) if kind == "parquet" else path.exists()


def _clear(kind: str, place: str, table: str) -> None:
    """Remove what the export holds; an empty place is left, which is known to be ours."""
    if kind in SERVERS:
        _drop(load("sanderling.records.postgres_table", "PostgreSQL").PostgresTables(place), table)
        return
    path = Path(place)
    with target_errors(path):
        if kind == "sqlite":
            _drop(SqliteTables(path), table, *WIPE)
        elif kind == "parquet":
            for part in [*_parts(path), path / MARK, path / OLD_MARK]:
                part.unlink(missing_ok=True)
        else:
            path.write_bytes(b"")
            path.with_name(path.name + FILE_MARK).unlink(missing_ok=True)


def _drop(tables: TableDatabase, table: str, before: str = "", after: str = "") -> None:
    with closing(tables):
        tables.open()
        if before:
            tables.run(before)
        with tables.transaction():
            tables.run(f"DROP TABLE IF EXISTS {quoted(table)}")
            tables.run(f"DELETE FROM {MARKS} WHERE name = ?", table)  # noqa: S608 - ours
        if after:
            tables.run(after)


def _parts(path: Path) -> Sequence[Path]:
    return sorted(path.glob("part-*"))
