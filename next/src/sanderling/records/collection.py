"""What a folder has collected, from Python: `sanderling.open("posts").where("likes > `10`").fields("id", "author")`."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from sanderling.records.columns import as_double
from sanderling.records.export import Exported, export
from sanderling.records.rows import RowReader
from sanderling.records.selection import Selection
from sanderling.systems import system_of


def open(folder: str | Path) -> "Collection":  # noqa: A001 - said as sanderling.open("posts")
    """The records of a folder that a run wrote."""
    return Collection(Path(folder), system_of(Path(folder)).load().records)


class Collection:
    """The records of a folder, or some of them. Reading it changes nothing, and sees what counts at that moment."""

    def __init__(self, folder: Path, reader: Callable[[Path], RowReader], selection: Selection | None = None) -> None:
        self.folder = folder
        self._reader = reader
        self._selection = selection or Selection()

    def __repr__(self) -> str:
        return f"<Collection {self.folder}>"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each record; a fraction is a float, or a Decimal where no float holds it."""
        with self._reader(self.folder) as rows:
            for record in self._selection.records(rows):
                yield {name: _with_floats(value) for name, value in record.items()}
        self._selection.check()

    def where(self, condition: str) -> "Collection":
        """Those for which a JMESPath condition holds."""
        return self._narrowed(where=condition)

    def fields(self, *paths: str) -> "Collection":
        """Of each record only what these JMESPath expressions find, under their names."""
        return self._narrowed(fields=paths)

    def latest(self) -> "Collection":
        """Of each item only what its last run gave."""
        return self._narrowed(latest=True)

    def since(self, run_or_time: int | str) -> "Collection":
        """Those of this run and later ones, or those stored since a time, as in 2026-01-31T12:00 (UTC)."""
        return self._narrowed(since=run_or_time)

    def count(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)

    def export(self, to: str | Path, *, replace: bool = False, new: bool = False) -> Exported:
        """Write them to a file that ends in .jsonl, .csv, .parquet or .sqlite."""
        with self._reader(self.folder) as rows:
            return export(rows, self._selection, Path(to), replace=replace, new=new)

    def _narrowed(self, **changed: Any) -> "Collection":  # noqa: ANN401 - arguments of Selection
        now = self._selection
        kept: dict[str, Any] = {"where": now.where, "fields": now.fields, "latest": now.latest, "since": now.since}
        if now.where and "where" in changed:
            changed["where"] = f"({now.where}) && ({changed['where']})"
        return Collection(self.folder, self._reader, Selection(**kept | changed))


def _with_floats(value: object) -> object:
    match value:
        case Decimal():
            double = as_double(value)
            return value if double is None else double
        case list():
            return [_with_floats(each) for each in value]
        case dict():
            return {name: _with_floats(each) for name, each in value.items()}
    return value
