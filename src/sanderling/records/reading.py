"""The records of a folder, from Python: `for record in sanderling.open("posts")`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from sanderling.records.folders import open_records
from sanderling.records.selection import Selection
from sanderling.stores.record_source import RecordSource


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a folder: read while they are asked for, from the beginning each time, beside a crawl too.

    Each is a dict. Whole numbers are ints of any size; a fraction is a float, or a Decimal where no float holds it.
    Raises RecordsError while it reads.
    """

    folder: Path
    source: RecordSource = field(repr=False)
    selection: Selection = field(default_factory=Selection)

    def where(self, condition: str) -> "Records":
        """Those of which this is true, as in `likes > 10`; docs/jobs_language.md has the language."""
        both = f"({self.selection.where}) and ({condition})" if self.selection.where else condition
        return replace(self, selection=Selection.parse(both, self.selection.fields))

    def fields(self, *paths: str) -> "Records":
        """Only what stands at these paths, each under its path: `fields("id", "author.name")`."""
        return replace(self, selection=Selection.parse(self.selection.where, paths))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record in self.source.read():
            if record.json and self.selection.wants(record.json):
                yield self.selection.pick(record.json)


def open(folder: str | PathLike[str]) -> Records:  # noqa: A001 - as in `sanderling.open(folder)`
    """The records of the folder of any system. Raises RecordsError if it is none."""
    path = Path(folder)
    return Records(path, open_records(path))
