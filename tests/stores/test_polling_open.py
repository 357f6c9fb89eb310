import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from looping import in_loop
from polling_play import SCHEMA, WALL, event, keep
from postgres_polling_place import at, fresh_schema

from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore, open_polling

T = TypeVar("T")


def in_threads(work: Callable[..., T], /, *args: object) -> Awaitable[T]:
    return asyncio.to_thread(work, *args)


async def use(url: str) -> PollingStore:
    """Open it twice, as whoever polls and as an admin; gives what it was."""
    store = await open_polling(url, SCHEMA, "race", in_threads)
    await store.claim(WALL)
    assert len(await keep(store, event())) == 1
    admin = await open_polling(url, None, "", in_threads)
    assert [row.key for row in await admin.rows("events")] == ["e"]
    await admin.close()
    await store.close()
    return store


@in_loop
async def test_a_path_is_a_file(tmp_path: Path) -> None:
    assert isinstance(await use(f"sqlite:{tmp_path / 'polling.db'}"), PollingStore)
    assert (tmp_path / "polling.db").exists()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_url_of_a_server_is_that(postgres: str, scheme: str) -> None:
    with fresh_schema(postgres) as schema:
        url = at(scheme + postgres[postgres.index(":") :], schema)
        assert isinstance(asyncio.run(use(url)), PollingStore)


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite", "mysql://reader:hunter2@host/x", "polling.db", "x" * 500])
@in_loop
async def test_what_is_neither_is_said_in_few_words(url: str) -> None:
    with pytest.raises(PollingStoreError, match=r"is no kind of store; expected sqlite:PATH or postgresql://") as error:
        await open_polling(url, SCHEMA, "race", in_threads)

    assert not error.value.transient
    assert "hunter2" not in str(error.value)
    assert len(str(error.value)) < 200
