"""The records of a crawl in parts: those of one part after the other; where they have ids, each with its part."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from sanderling.stores.record_source import Record, RecordLookup, RecordSource, read_position


class PartPositions(msgspec.Struct, frozen=True):
    """How far each part was read; null where nothing was."""

    parts: list[str | None]


class PartRecords:
    """The records of several folders, as one."""

    def __init__(self, folders: Sequence[Path], opens: Callable[[Path], RecordSource]) -> None:
        self._folder = folders[0].parent.parent
        self._has_earlier = folders[-1] == self._folder
        self._sources = [opens(folder) for folder in folders]
        # A part without records yet may not know which crawl it is of.
        about = max((source.about for source in self._sources), key=lambda each: each.origin)
        self.about = replace(about, columns=("part", *about.columns)) if about.columns else replace(about)
        for source in self._sources:
            source.about = replace(source.about, notes=self.about.notes)

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The records behind a position, part by part."""
        at = self._positions(after)
        for number, source in enumerate(self._sources):
            # The positions of the others are the same for all of these.
            before, behind = (msgspec.json.encode(part).decode()[1:-1] for part in (at[:number], at[number + 1 :]))
            head = f'{{"parts":[{before}{"," if before else ""}'
            tail = f"{',' if behind else ''}{behind}]}}"
            for record in source.read(at[number]):
                at[number] = record.position
                position = f"{head}{msgspec.json.encode(record.position).decode()}{tail}"
                # Ids are those of a part; records of jobs have none, and are as their job made them.
                json = b'{"part":%d,%b' % (number, record.json[1:]) if self.about.columns else record.json
                yield Record(json, position)

    def _positions(self, after: str | None) -> list[str | None]:
        """How far each part was read."""
        if after is None:
            return [None] * len(self._sources)
        if self._has_earlier and not after.startswith('{"parts":'):
            # From before there were parts, when one process wrote what the folder itself has.
            return [*([None] * (len(self._sources) - 1)), after]
        return read_position(after, PartPositions, self._folder).parts

    def show(self, key: str) -> RecordLookup:
        """The record of a key, of whichever part it is, and the newest of several; or why there is none."""
        found = [source.show(key) for source in self._sources]
        there = [each for each in found if each.record is not None]
        if there:
            return max(there, key=lambda each: each.at)
        # Most parts only say that they do not know it.
        common = Counter(each.why for each in found)
        return max(found, key=lambda each: (bool(each.history), -common[each.why], len(each.why)))

    def close(self) -> None:
        """Let go of the files."""
        for source in self._sources:
            source.close()
