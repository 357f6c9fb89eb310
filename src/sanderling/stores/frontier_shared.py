"""A frontier whose transactions are shared with other machines."""

import sqlite3
from collections.abc import Callable
from typing import cast

from sanderling.stores.frontier import Frontier
from sanderling.stores.ledger_log import RecordedDb, SharedHead

COPY_CACHE = 4_000  # KiB of memory for pages of a ledger that is shared: one process has many


class SharedFrontier(Frontier):
    """A frontier that may be a copy, of which others have copies too."""

    def share(self, share: Callable[[bytes], SharedHead]) -> None:
        """From now on, hand each transaction to `share` before it is committed here; what it raises undoes it here too.

        What counts is what `share` keeps: this file is a copy, which a machine that fails may set back a little.
        """
        self._db = cast("sqlite3.Connection", RecordedDb(self._db, share))
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(f"PRAGMA cache_size = -{COPY_CACHE}")
