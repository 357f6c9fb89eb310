"""`polling` in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`.

`postgres_polling_link` has the connections, `postgres_polling_tables` the tables, `postgres_polling_targets` what this
database does in its own way.

Tricky bits:

- A connection that breaks during a commit leaves open whether that was made. The error is transient then, as for any
  other break; whoever follows the changes reads them from the store after any error.
- An admin who has the rights needs none of this: `UPDATE polling_targets SET enabled = false` is heard of.
"""

from functools import partial

from sanderling.stores.documents import Schema
from sanderling.stores.polling import EXPECTED
from sanderling.stores.polling_documents import Tables
from sanderling.stores.polling_store import PollingStore, raised
from sanderling.stores.postgres_polling_link import open_link
from sanderling.stores.postgres_polling_tables import prepare
from sanderling.stores.postgres_polling_targets import PostgresPollingDialect
from sanderling.stores.postgres_server import read_url


async def open_postgres_polling(url: str, schema: Schema | None, source: str) -> PollingStore:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Without a schema it uses what is there. Raises PollingStoreError.
    """
    address = read_url(url, EXPECTED, raised)
    link, known = await open_link(address, partial(prepare, at=address, schema=schema, source=source))
    tables = Tables({table.name: table for table in known.tables}, known.tables, f"{address.schema}.")
    return PollingStore(link, tables, PostgresPollingDialect())
