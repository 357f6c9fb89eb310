"""What waits to be written, and the commit: rows into files, then all other places, then the folder's own file.

So a record is everywhere before its id counts as decided, and a kill can only write again what is there.
"""

import zlib
from collections.abc import Sequence
from random import Random

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError, ServiceAway
from sanderling.observe.log import log
from sanderling.records.rows import RowWriter
from sanderling.sequence.retries import Reason, check_in
from sanderling.sequence.store import KeptRecord, Missed, SavedState, SequenceBatch, SequenceStore, Visit, key_of
from sanderling.sequence.targets import QueueTarget, RecordTarget

LONGEST_AWAY = 600.0  # seconds that a database or a queue may be away
MOST_UNWRITTEN = 5_000  # records in memory meanwhile
OFFERED = frozenset({Reason.HIDDEN, Reason.REFUSED})  # what is asked again because the API would not say


class Storing:
    """The records, ids and visits that no commit has yet, and the places for them."""

    def __init__(
        self,
        store: SequenceStore,
        rows: RowWriter,
        targets: Sequence[RecordTarget],
        clock: Clock,
        random: Random,
        revisit: Sequence[float] = (),  # seconds after a record was stored first
        batch: SequenceBatch | None = None,  # what is to be committed already
    ) -> None:
        self.store, self.rows, self.random = store, rows, random
        self.batch = batch or SequenceBatch()
        self.records: list[KeptRecord] = []
        self.trouble = ""  # why nothing can be committed now
        self.stopping = False  # then it waits for nobody
        self._targets, self._clock, self._revisit = targets, clock, revisit
        self._queue = next((each for each in targets if isinstance(each, QueueTarget)), None)

    @property
    def is_full(self) -> bool:
        """Whether no more can wait."""
        return bool(self.trouble) and len(self.records) > MOST_UNWRITTEN

    def keep(self, number: int, line: bytes) -> None:
        """A new record."""
        self.records.append(KeptRecord(number, line))
        self.batch.decided.append(number)
        self._plan(number, 1, self._clock.wall(), zlib.crc32(line))

    def keep_state(self, visit: Visit, line: bytes) -> bool:
        """What a visit found; an empty line: the record was deleted. Whether that is new."""
        changed = zlib.crc32(line) != visit.crc
        if changed:
            self.records.append(KeptRecord(visit.number, line, visit.nth))
        if line:
            self._plan(visit.number, visit.nth + 1, visit.since, zlib.crc32(line))
        else:
            self.batch.visited.append(visit.number)
        return changed

    def put_off(self, visit: Visit, seconds: float) -> None:
        """A visit said nothing: it is made again."""
        due = self._clock.wall() + seconds
        self.batch.visits.append(Visit(visit.number, visit.nth, visit.since, due, visit.crc))

    def _plan(self, number: int, nth: int, since: float, crc: int) -> None:
        if nth <= len(self._revisit):
            self.batch.visits.append(Visit(number, nth, since, since + self._revisit[nth - 1], crc))
        elif nth > 1:
            self.batch.visited.append(number)

    def miss(self, number: int, reason: Reason, tries: int = 1, since: float | None = None) -> None:
        """There is no record of this id yet."""
        wall = self._clock.wall()
        due = wall + check_in(reason, tries, self.random)
        self.batch.missed.append(Missed(number, number, reason, tries, since or wall, due))

    def take(self) -> tuple[SequenceBatch, list[KeptRecord]]:
        """All of it, for `write`; what comes from now on waits for the next commit."""
        batch, self.batch = self.batch, SequenceBatch()
        records, self.records = self.records, []
        return batch, records

    async def write(self, batch: SequenceBatch, records: Sequence[KeptRecord], state: SavedState) -> None:
        """Commit what was taken. While a database or a queue is away it waits."""
        if records:
            for each in records:
                self.rows.append(key_of(each.number), [each.line] if each.line else [], each.visit + 1)
            state.files = await self.store.file.call(self.rows.write)
        offered = [(each.low, each.due) for each in batch.missed if each.tries == 1 and each.reason in OFFERED]
        await self._wait_for_places(records, offered)
        await self.store.commit(batch, state)

    async def _wait_for_places(self, records: Sequence[KeptRecord], offered: Sequence[tuple[int, float]]) -> None:
        begun = self._clock.now()
        while True:
            try:
                if records:
                    for each in self._targets:
                        await each.write(records)
                if offered and self._queue is not None:
                    await self._queue.offer(offered)
            except ServiceAway as away:
                if not self.trouble:
                    log.warning("away", say=f"Waiting, nothing is lost: {away}")
                self.trouble = str(away)
                if self.stopping or self._clock.now() - begun > LONGEST_AWAY:
                    raise FolderError(self.trouble, "the same command goes on once it is back", Exit.LATER) from None
                await self._clock.sleep(1.0)
            else:
                self.trouble = ""
                return
