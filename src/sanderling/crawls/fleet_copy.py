"""The copy of a part's ledger that its owner works on: made from a snapshot and the log, or gone on with.

A copy that stands where the server's log once stood is brought up by the rest of the log. One that does not, since the
server has forgotten commits or the copy is older than the snapshot, is made anew. A copy is never what counts: it may
be deleted at any time.
"""

import secrets
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.crawls.fleet_orphans import snapshot_key
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import FleetStore, PartState
from sanderling.stores.leases import Lease, LeaseLostError
from sanderling.stores.ledger_log import SharedHead, apply_commits, head_of

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, compress, decompress
else:
    from backports.zstd import ZstdError, compress, decompress

T = TypeVar("T")

LARGEST = 4 * 2**30  # bytes of a snapshot
AT_ONCE = 200  # commits that are read from the server together
# A snapshot is made when the log has grown to half of what it would be, and not for less than this.
SMALLEST_LOG = 4 * 2**20
DRAFT = ".snapshot"


class Ask(Protocol):
    """Waits for the answer of a server."""

    def __call__(self, ask: Callable[[], Coroutine[Any, Any, T]], /) -> T:
        """What comes of it."""


class LedgerCopy:
    """The copy of one part, in the file `path`; `create` makes the empty ledger that every copy begins with.

    `ask` brings the answers of servers: as often as it takes, for who has a lease.
    """

    def __init__(
        self, path: Path, server: FleetStore, part: int, place: ObjectPlace, create: Callable[[Path], object], ask: Ask
    ) -> None:
        self.path = path
        self._server = server
        self._part = part
        self._place = place
        self._create = create
        self._ask = ask
        self.size = 0  # bytes of the last snapshot
        self._snapshot = ""  # its name
        self.replayed = 0  # commits that were taken from the log
        self.begun = False  # whether it had to be made anew

    def bring_up(self) -> PartState:
        """Make the copy what the server knows; where the part stands. Raises FolderError, and what `ask` raises.

        In a thread: the server may be away for a while.
        """
        state = self._ask(partial(self._server.state, self._part))
        self._snapshot = state.key
        for left in self.path.parent.glob(f"*{DRAFT}"):
            left.unlink(missing_ok=True)
        if not self._goes_on(state):
            self._begin(state)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            self._replay(db, state)
        return state

    def _goes_on(self, state: PartState) -> bool:
        """Whether the copy stands where the server's log once stood."""
        if not self.path.exists():
            return False
        try:
            with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
                head = head_of(db)
        except (sqlite3.Error, ValueError):
            return False
        if head.number in (0, state.snapshot):
            return head == SharedHead(state.snapshot, state.token)
        if not state.snapshot < head.number <= state.head:
            return False
        found = self._ask(partial(self._server.log, self._part, head.number - 1, 1))
        return bool(found) and (found[0].number, found[0].token) == head

    def _begin(self, state: PartState) -> None:
        """Make the copy anew, as the snapshot has it."""
        self.begun = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for old in self.path.parent.glob(f"{self.path.name}*"):
            old.unlink()
        if not state.snapshot:
            self._create(self.path)
            return
        packed = self._ask(partial(self._place.get, state.key, LARGEST))
        try:
            self.path.write_bytes(decompress(packed))
        except ZstdError as error:
            raise FolderError(f"the snapshot {state.key} is damaged: {error}") from None
        self.size = len(packed)

    def _replay(self, db: sqlite3.Connection, state: PartState) -> None:
        at = head_of(db).number
        while at < state.head:
            found = self._ask(partial(self._server.log, self._part, at, min(AT_ONCE, state.head - at)))
            numbers = [each.number for each in found]
            if not found or numbers != list(range(at + 1, at + 1 + len(found))):
                where = f"part {self._part}: its log has commits {numbers[:3]} behind {at}"
                raise FolderError(f"{where}, expected {at + 1} next; try again")
            apply_commits(db, ((SharedHead(each.number, each.token), each.body) for each in found))
            at, self.replayed = found[-1].number, self.replayed + len(found)

    def is_due(self, logged: int) -> bool:
        """Whether a snapshot should be made, with so many bytes in the log."""
        return logged > max(SMALLEST_LOG, self.size // 2)

    def keep_snapshot(self, lease: Lease) -> str:
        """Put the ledger, as it is now, into the object store; the name of the one before. In a thread of its own.

        Commits go on meanwhile. Raises LeaseLostError, ObjectError, FolderError.
        """
        # A name of its own: who had the part before us, here, may still be at one.
        draft = self.path.with_name(f"{secrets.token_hex(4)}{DRAFT}")
        try:
            with closing(sqlite3.connect(self.path)) as db, closing(sqlite3.connect(draft)) as copy:
                db.backup(copy)
                head = head_of(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            packed = compress(draft.read_bytes(), 3)
        except sqlite3.Error as error:
            raise FolderError(f"{self.path}: no snapshot could be made: {error}") from None
        finally:
            draft.unlink(missing_ok=True)
        key = snapshot_key(lease, head.number, head.token)
        self._ask(partial(self._place.put, key, packed))
        self.size = len(packed)
        try:
            self._ask(partial(self._server.keep_snapshot, lease, head.number, head.token, key))
        except LeaseLostError:
            # A try whose answer was lost may have been this one.
            if self._ask(partial(self._server.state, self._part)).key != key:
                raise
        earlier, self._snapshot = self._snapshot, key
        return earlier
