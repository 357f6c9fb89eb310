"""A queue in a SQLite file, for one process or several of one machine.

Tricky bits:

- A letter that is taken comes back after a **lease**, or once the lock on its taker's file is free: the taker is dead.
- Letters and bodies are apart: a letter changes its state three times, and a body of 80 kB would be written anew.
- Only what must not be lost waits for the disk. After a power cut, letters that were done may be delivered again.
- Times are of the wall clock, since they outlive the process. When it is set back, what is delayed is set back with it;
  by how much is known from the last change, so a letter waits at most twice as long as it should.
- The file does not shrink: the pages of what is done are used again, and it stays as large as the queue was at most.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sanderling.clock import Clock
from sanderling.executor import Executor, in_threads
from sanderling.stores.durable import FolderError, Lock, plainly
from sanderling.stores.queue import LONGEST_WHY, Dead, Delivery, Depth, Letter, QueueError, checked
from sanderling.stores.sqlite_file import FileKind, keep_tally, open_file, tally, transaction

T = TypeVar("T")

# Storing a batch takes seconds; a taker that is alive and has said nothing for so long has lost it.
LEASE_SECONDS = 600.0
# How soon a letter is seen that another process has published; our own are seen at once.
POLL_SECONDS = 0.25
# How often to look for takers that died.
SWEEP_SECONDS = 1.0
# Less than that is the clock being adjusted, and no letter is worth the writing.
SET_BACK_SECONDS = 1.0
# What is handed out at once, whatever was asked for: five hundred letters may be anything between 1 MB and 7 GB.
TAKE_BYTES = 64 << 20
# Letters that come back in one transaction: all those delayed by an outage may be due together.
COMEBACKS = 1_000
# The write-ahead log grows with the largest transaction and is cut down to this again.
LOG_BYTES = 32 << 20


class LetterState(IntEnum):
    """Where a letter is; the numbers are in the file, and in the statements below."""

    READY = 0
    DELAYED = 1
    TAKEN = 2
    DEAD = 3


TABLES = (
    # One row: the number of the next letter, taker or turn, and the latest time at which anything was changed.
    "CREATE TABLE book (next INTEGER NOT NULL, seen REAL NOT NULL)",
    "INSERT INTO book VALUES (1, 0)",
    # `at`: 0 for what is ready; when it comes back, if delayed or taken; when it was buried.
    """CREATE TABLE letter (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL, tries INTEGER NOT NULL, state INTEGER NOT NULL,
        at REAL NOT NULL, taker INTEGER NOT NULL, turn INTEGER NOT NULL, why TEXT NOT NULL)""",
    "CREATE INDEX letter_state ON letter (state, at)",
    "CREATE UNIQUE INDEX letter_waiting ON letter (key) WHERE state < 2",
    "CREATE UNIQUE INDEX letter_dead ON letter (key) WHERE state = 3",
    "CREATE TABLE body (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TRIGGER letter_gone AFTER DELETE ON letter BEGIN DELETE FROM body WHERE id = old.id; END",
)

QUEUE = FileKind("queue", 0x53414E51, 1, TABLES)  # "SANQ"


class Held(NamedTuple):
    """The tag of a delivery: a letter, and the turn at which it was taken. After its lease it may be in another's."""

    id: int
    turn: int


class SqliteQueue:
    """Made where there is none. Without a `executor` its work is done in a thread of its own."""

    def __init__(self, path: Path, clock: Clock, executor: Executor | None = None) -> None:
        self._path = path
        self._clock = clock
        self._threads = ThreadPoolExecutor(1, "queue")
        self._executor = executor or in_threads(self._threads)
        self._turn = threading.Lock()
        self._news = asyncio.Event()
        self._caught: deque[Delivery] = deque()
        self._taker: tuple[int, Lock] | None = None
        self._swept = float("-inf")
        self._closed = False
        with self._alone():
            self._db = open_file(path, QUEUE)
            self._db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
            keep_tally(self._db, "letter", by="state")

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Return when all are on disk; all are, or none. One that waits under the same key is replaced."""
        bodies = checked(letters)
        if bodies:
            await self._executor(self._publish, bodies, self._clock.wall())
            self._news.set()

    async def publish_dead(self, letter: Letter, why: str) -> None:
        """Put it among the dead letters, in place of one that has its key."""
        await self._executor(self._publish, checked([letter]), self._clock.wall(), why[:LONGEST_WHY], LetterState.DEAD)

    async def take(self, most: int, wait: float) -> list[Delivery]:
        """Up to `most` letters, the oldest first; waits up to `wait` seconds for the first."""
        if most < 1:
            raise ValueError(f"cannot take {most} letters")
        deadline = self._clock.now() + wait
        while True:
            self._news.clear()
            if not self._caught:
                # What is caught is kept here and not returned: if we are cancelled meanwhile, the next one takes it.
                await self._executor(self._catch, most, self._clock.now(), self._clock.wall())
            if self._caught:
                return [self._caught.popleft() for _ in range(min(most, len(self._caught)))]
            left = deadline - self._clock.now()
            if left <= 0:
                return []
            alarm = self._clock.call_later(min(left, POLL_SECONDS), self._news.set)
            try:
                await self._news.wait()
            finally:
                alarm.cancel()

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._executor(self._done, [_held(each) for each in deliveries], self._clock.wall())

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        """Deliver it again after so long; a letter that has its key and waits replaces it."""
        wall = self._clock.wall()
        await self._executor(self._later, _held(delivery), wall + max(0.0, seconds), failed, why[:LONGEST_WHY], wall)

    async def bury(self, delivery: Delivery, why: str) -> None:
        """Put it among the dead letters, in place of one that has its key."""
        await self._executor(self._bury, _held(delivery), why[:LONGEST_WHY], self._clock.wall())

    async def depth(self) -> Depth:
        """How many letters there are. Those that are due and that nobody has asked for count as delayed."""
        counts = await self._executor(self._counts)
        return Depth(
            *(
                counts.get(state, 0)
                for state in (LetterState.READY, LetterState.TAKEN, LetterState.DELAYED, LetterState.DEAD)
            )
        )

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        return await self._executor(self._dead, limit, after)

    async def replay(self, keys: Collection[str] | None = None) -> int:
        """Make these ready again, or all; one is dropped if a newer one of its key waits."""
        replayed = await self._executor(self._replay, keys, self._clock.wall())
        self._news.set()
        return replayed

    async def close(self) -> None:
        """Give back what was taken, and let go of the file."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._executor(self._close, self._clock.wall())
        finally:
            self._threads.shutdown(wait=False)

    # What follows runs at the executor.

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self._turn, plainly(self._path):
                yield
        except FolderError as error:
            raise QueueError(str(error)) from error

    @contextmanager
    def _change(self, wall: float, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; `durable` if it must survive the power too."""
        with self._alone():
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with transaction(self._db):
                self._look_at_the_clock(wall)
                yield self._db

    def _look_at_the_clock(self, wall: float) -> None:
        ((seen,),) = self._db.execute("SELECT seen FROM book")
        if _set_back(seen, wall):
            self._db.execute("UPDATE letter SET at = at - ? WHERE state IN (1, 2)", (seen - wall,))
        self._db.execute("UPDATE book SET seen = ?", (wall,))

    def _numbers(self, count: int) -> int:
        """The first of so many numbers that nothing else ever has."""
        ((first,),) = self._db.execute("SELECT next FROM book")
        self._db.execute("UPDATE book SET next = next + ?", (count,))
        return int(first)

    def _publish(
        self, bodies: dict[str, bytes], wall: float, why: str = "", state: LetterState = LetterState.READY
    ) -> None:
        same, at = ("state < 2", 0.0) if state is LetterState.READY else ("state = 3", wall)
        with self._change(wall, durable=True) as db:
            first = self._numbers(len(bodies))
            db.executemany(f"DELETE FROM letter WHERE key = ? AND {same}", ((key,) for key in bodies))  # noqa: S608 - ours
            rows = ((number, key, state, at, why) for number, key in enumerate(bodies, first))
            db.executemany("INSERT INTO letter VALUES (?, ?, 0, ?, ?, 0, 0, ?)", rows)
            db.executemany("INSERT INTO body VALUES (?, ?)", enumerate(bodies.values(), first))

    def _catch(self, most: int, now: float, wall: float) -> None:
        if now >= self._swept + SWEEP_SECONDS:
            self._sweep(wall)
            self._swept = now
        if self._any("state IN (1, 2) AND at <= ?", wall):
            self._bring_back(wall)
        # Looking costs no writer its turn; most looks are of somebody idle.
        if self._any("state = ?", LetterState.READY):
            self._caught.extend(self._take(most, wall))

    def _any(self, condition: str, value: float) -> bool:
        with self._alone():
            found = self._db.execute(f"SELECT 1 FROM letter WHERE {condition} LIMIT 1", (value,))  # noqa: S608 - ours
            return found.fetchone() is not None

    def _take(self, most: int, wall: float) -> list[Delivery]:
        taker = self._number_of_taker(wall)
        with self._change(wall, durable=False) as db:
            turn = self._numbers(1)
            rows = db.execute(
                """SELECT key, body, tries, id FROM letter JOIN body USING (id)
                WHERE state = 0 AND at = 0 ORDER BY id LIMIT ?""",
                (most,),
            )
            taken = [Delivery(key, body, tries, Held(number, turn)) for key, body, tries, number in _some(rows)]
            db.executemany(
                "UPDATE letter SET state = 2, at = ?, taker = ?, turn = ? WHERE id = ?",
                ((wall + LEASE_SECONDS, taker, turn, _held(each).id) for each in taken),
            )
        return taken

    def _bring_back(self, wall: float) -> None:
        """Make ready what is due."""
        with self._change(wall, durable=False) as db:
            rows = db.execute("SELECT id FROM letter WHERE state IN (1, 2) AND at <= ? LIMIT ?", (wall, COMEBACKS))
            self._make_ready([number for (number,) in rows])

    def _sweep(self, wall: float) -> None:
        """Make ready what dead takers had, and notice if the clock was set back."""
        with self._alone():
            ((seen,),) = self._db.execute("SELECT seen FROM book")
            takers = self._db.execute("SELECT DISTINCT taker FROM letter WHERE state = 2").fetchall()
        others = [taker for (taker,) in takers if self._taker is None or taker != self._taker[0]]
        if others or _set_back(seen, wall):
            with self._change(wall, durable=False) as db:
                for taker in filter(self._is_gone, others):
                    self._make_ready([number for (number,) in db.execute(OF_TAKER, (taker,))])

    def _make_ready(self, ids: Collection[int]) -> None:
        """At their old place in line. The newest of a key is kept, whether it waits already or comes back too."""
        newest_first = [(number,) for number in sorted(ids, reverse=True)]
        self._db.executemany("UPDATE OR IGNORE letter SET state = 0, at = 0, taker = 0 WHERE id = ?", newest_first)
        self._db.executemany("DELETE FROM letter WHERE id = ? AND state != 0", newest_first)

    def _number_of_taker(self, wall: float) -> int:
        """Ours. It has a lock before any letter is its, and nobody looks at the locks outside of a transaction."""
        if self._taker is None:
            with self._change(wall, durable=False):
                number = self._numbers(1)
            with self._change(wall, durable=False):
                for other in self._locks():
                    self._is_gone(other)
                self._taker = number, Lock(self._lock_of(number))
        return self._taker[0]

    def _locks(self) -> list[int]:
        """The takers that there are files of, dead or alive."""
        names = (each.name.rpartition("-taker-") for each in self._path.parent.iterdir())
        return [int(taker) for name, _, taker in names if name == self._path.name and taker.isdecimal()]

    def _lock_of(self, taker: int) -> Path:
        return self._path.with_name(f"{self._path.name}-taker-{taker}")

    def _is_gone(self, taker: int) -> bool:
        """Whether nobody holds its lock; if so, removes it."""
        try:
            lock = Lock(self._lock_of(taker))
        except FolderError:
            return False
        self._lock_of(taker).unlink()
        lock.release()
        return True

    def _done(self, held: Sequence[Held], wall: float) -> None:
        with self._change(wall, durable=False) as db:
            db.executemany("DELETE FROM letter WHERE id = ? AND state = 2 AND turn = ?", held)

    def _later(self, held: Held, at: float, tries: int, why: str, wall: float) -> None:
        with self._change(wall, durable=False) as db:
            db.execute(
                """UPDATE OR IGNORE letter SET state = 1, tries = tries + ?, at = ?, taker = 0, why = ?
                WHERE id = ? AND state = 2 AND turn = ?""",
                (tries, at, why, *held),
            )
            # Still taken: another of its key waits.
            db.execute("DELETE FROM letter WHERE id = ? AND state = 2 AND turn = ?", held)

    def _bury(self, held: Held, why: str, wall: float) -> None:
        with self._change(wall, durable=True) as db:
            db.execute(
                """DELETE FROM letter WHERE state = 3
                AND key = (SELECT key FROM letter WHERE id = ? AND state = 2 AND turn = ?)""",
                held,
            )
            db.execute(
                "UPDATE letter SET state = 3, at = ?, taker = 0, why = ? WHERE id = ? AND state = 2 AND turn = ?",
                (wall, why, *held),
            )

    def _counts(self) -> dict[int | str, int]:
        with self._alone():
            return tally(self._db, "letter")

    def _dead(self, limit: int, after: str) -> list[Dead]:
        with self._alone(), transaction(self._db, "DEFERRED"):
            place = (float("-inf"), 0)
            if after:
                row = self._db.execute("SELECT at, id FROM letter WHERE key = ? AND state = 3", (after,)).fetchone()
                if row is None:
                    raise QueueError(f"{self._path} has no dead letter {after!r} any more; begin with the first page")
                place = row
            rows = self._db.execute(
                """SELECT key, body, why, tries, at FROM letter JOIN body USING (id)
                WHERE state = 3 AND (at, id) > (?, ?) ORDER BY at, id LIMIT ?""",
                (*place, limit),
            )
            return [Dead(*row) for row in _some(rows)]

    def _replay(self, keys: Collection[str] | None, wall: float) -> int:
        with self._change(wall, durable=True) as db:
            if keys is None:
                rows = db.execute("SELECT id FROM letter WHERE state = 3").fetchall()
            else:
                found = (db.execute("SELECT id FROM letter WHERE key = ? AND state = 3", (key,)) for key in set(keys))
                rows = [row for each in found for row in each]
            db.executemany("UPDATE letter SET tries = 0, why = '' WHERE id = ?", rows)
            self._make_ready([number for (number,) in rows])
        return len(rows)

    def _close(self, wall: float) -> None:
        self._caught.clear()
        try:
            if self._taker is not None:
                number, lock = self._taker
                with self._change(wall, durable=False) as db:
                    self._make_ready([row[0] for row in db.execute(OF_TAKER, (number,))])
                    self._lock_of(number).unlink()
                lock.release()
                self._taker = None
        finally:
            self._db.close()

    def __repr__(self) -> str:
        return f"<SqliteQueue {self._path}>"


OF_TAKER = "SELECT id FROM letter WHERE state = 2 AND taker = ?"


def _set_back(seen: float, wall: float) -> bool:
    return wall < seen - SET_BACK_SECONDS


def _some(rows: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The first of them: as many as are handed out at once. Their second column is the body."""
    size = 0
    with closing(rows):
        for row in rows:
            yield row
            size += len(row[1])
            if size >= TAKE_BYTES:
                break


def _held(delivery: Delivery) -> Held:
    if not isinstance(delivery.tag, Held):
        raise TypeError(f"letter {delivery.key!r} is of another queue")
    return delivery.tag
