"""Targets, rows and changes in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`.

All else is beside it: `postgres_polling_link` has the connections, `postgres_polling_tables` the tables,
`postgres_polling_targets` what whoever polls and discovery do with targets, `postgres_polling_control` what people do,
`postgres_polling_documents` rows and changes.

Tricky bits:

- A connection that breaks during a commit leaves open whether that was made. The error is transient then, as for any
  other break; whoever follows the changes reads them from the store after any error.
- An admin who has the rights needs none of this: `UPDATE polling_targets SET enabled = false` is heard of.
"""

from functools import partial

from sanderling.stores.documents import Schema
from sanderling.stores.polling import EXPECTED
from sanderling.stores.postgres_polling_control import PostgresControl, PostgresSettings
from sanderling.stores.postgres_polling_documents import PostgresChanges, PostgresDocuments
from sanderling.stores.postgres_polling_link import Link, open_link, raised
from sanderling.stores.postgres_polling_tables import prepare
from sanderling.stores.postgres_polling_targets import PostgresDiscovery, PostgresTargets, correct_clock, shift
from sanderling.stores.postgres_server import read_url


class PostgresPolling(
    PostgresTargets, PostgresDiscovery, PostgresDocuments, PostgresChanges, PostgresControl, PostgresSettings
):
    """See `open_postgres_polling`."""

    def __init__(self, link: Link, schema: Schema) -> None:
        PostgresTargets.__init__(self, link)
        PostgresDocuments.__init__(self, link, schema)

    async def claim(self, wall: float) -> None:
        """Be the one who polls, until `close`. Raises PollingStoreError (not transient) if another process is.

        Targets that are due later than max(interval, LONGEST_PAUSE) from now are due now: their clock was another.
        """
        await self._link.claim(lambda db: correct_clock(db, wall))

    async def shift(self, seconds: float) -> None:
        """Move all due times and ends of acceleration: the wall clock was set."""
        await self._link.write(lambda db: shift(db, seconds))

    async def close(self) -> None:
        """Let go."""
        await self._link.close()

    def __repr__(self) -> str:
        return f"<PostgresPolling {self._link.place}>"


async def open_postgres_polling(url: str, schema: Schema | None, source: str) -> PostgresPolling:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Without a schema it uses what is there. Raises PollingStoreError.
    """
    address = read_url(url, EXPECTED, raised)
    link, known = await open_link(address, partial(prepare, at=address, schema=schema, source=source))
    return PostgresPolling(link, known)
