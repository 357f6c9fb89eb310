"""Which store of `polling` a URL means."""

import importlib
from pathlib import Path

from sanderling.executor import Executor
from sanderling.extras import load
from sanderling.stores.documents import Schema
from sanderling.stores.polling import EXPECTED, PollingStoreError
from sanderling.stores.polling_store import PollingStore


async def open_polling(url: str, schema: Schema | None, source: str, executor: Executor) -> PollingStore:
    """The store at `url`, which was reached; its tables are made where there are none, or used without a schema.

    Raises PollingStoreError, or MissingExtraError.
    """
    # By name and only now: a command that needs neither should load neither, and asyncpg is an extra.
    kind, _, path = url.partition(":")
    store: PollingStore
    if kind == "sqlite" and path:
        sqlite = importlib.import_module("sanderling.stores.sqlite_polling")
        store = await sqlite.open_sqlite_polling(Path(path), schema, source, executor)
        return store
    if kind not in ("postgresql", "postgres"):
        raise PollingStoreError(f"{kind[:20]!r} is no kind of store; {EXPECTED}", transient=False)
    postgres = load("sanderling.stores.postgres_polling", "PostgreSQL")
    store = await postgres.open_postgres_polling(url, schema, source)
    return store
