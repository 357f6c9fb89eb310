"""The writer of a crawl of ids: what became of each, on its way to disk, with the cursor of the same instant."""

from collections.abc import Sequence
from typing import Never

from sanderling.clock import Clock
from sanderling.engine.writer import Writer, WriterRules
from sanderling.sequence.cursor import Cursor
from sanderling.sequence.missed import Missed
from sanderling.sequence.sink import End, Resolved, SequenceSink
from sanderling.sequence.state import Saved

# Ids are small, and come by the thousand: while the queue is away, so much of them may wait for it.
RULES = WriterRules(items=2000, most_bytes=64 * 2**20, most_items=40_000)


class SequenceWriter(Writer[End, Never, Saved, None]):
    """`keep` a record, `skip` one, `miss` ids: the cursor may pass them from then on."""

    def __init__(
        self, sink: SequenceSink, cursor: Cursor, api: str, clock: Clock, rules: WriterRules | None = None
    ) -> None:
        self.cursor = cursor
        self.clock = clock
        self.newest: int | None = None  # the highest id that has a record
        self._api = api
        super().__init__(sink, self.checkpoint, clock, rules or RULES)

    def checkpoint(self) -> Saved:
        """Where the crawl is, as far as it has ended."""
        return Saved(self._api, self.cursor.position(), self.newest)

    def keep(self, number: int, message: bytes) -> None:
        """Queue a record with the next write."""
        self._resolve(Resolved(number, message), len(message))

    def skip(self, number: int) -> None:
        """Settle an id whose record nobody wants."""
        self._resolve(Resolved(number), 0)

    def miss(self, missed: Sequence[Missed]) -> None:
        """Settle ids that were not to be had, or note that they still are not."""
        for each in missed:
            if each.low == each.high:
                self.cursor.settle(each.low)
            self.add(each)

    def _resolve(self, ended: Resolved, size: int) -> None:
        self.newest = ended.number if self.newest is None else max(self.newest, ended.number)
        self.cursor.settle(ended.number)
        self.add(ended, size)
