"""Where polling keeps what it has: the flags that the commands of `sanderling polling` share."""

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.apis.polled import PolledKind
from sanderling.cli.command_error import CommandError, not_begun
from sanderling.cli.reach import Say, reached
from sanderling.executor import Executor, in_threads
from sanderling.stores.documents import Schema
from sanderling.stores.polling_store import PollingStore, open_polling

DATABASE = "polling.db"
KINDS = "source.kinds"  # a setting of ours: what kinds there are, for commands that do not know the source


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PollingFolder:
    """The folder and the database. A command takes one as `*, place: PollingFolder = USUAL`."""

    out: Annotated[Path, Parameter(name="--out")] = Path("polling")
    """The folder for all that is kept on this machine."""

    database: str | None = None
    """Where targets, rows and changes are: sqlite:PATH or postgresql://…; by default polling.db in the folder."""

    @property
    def url(self) -> str:
        """The URL of the database."""
        return self.database or f"sqlite:{self.out / DATABASE}"

    @property
    def begun(self) -> bool:
        """Whether there is anything yet, as far as can be told without a server."""
        return self.database is not None or (self.out / DATABASE).is_file()


USUAL = PollingFolder()


@asynccontextmanager
async def opened(
    place: PollingFolder, schema: Schema | None, source: str, say: Say | None = None
) -> AsyncIterator[tuple[PollingStore, Executor]]:
    """The database, reached, and a desk for all else. Raises CommandError.

    With `say`, a server is given a while to come up, and `say` is told. The database has its own thread: while somebody
    has locked it, large documents are still read.
    """
    with ThreadPoolExecutor(1, "database") as database, ThreadPoolExecutor(1, "disk") as disk:
        opening = partial(open_polling, place.url, schema, source, in_threads(database))
        store = await reached("--database", place.database, opening, say)
        try:
            yield store, in_threads(disk)
        finally:
            await store.close()


@asynccontextmanager
async def known(place: PollingFolder) -> AsyncIterator[PollingStore]:
    """The database of a source that was polled before; it may be polled just now. Raises CommandError."""
    if not place.begun:
        raise not_begun("nothing was polled", place.out, "--out", "sanderling polling run")
    async with opened(place, None, "") as (store, _):
        yield store


async def keep_kinds(store: PollingStore, kinds: Sequence[PolledKind]) -> None:
    """Say which kinds there are, to commands that do not know the source."""
    text = msgspec.json.encode(kinds).decode()
    if (await store.settings()).get(KINDS) != text:
        await store.set(KINDS, text)


async def known_kinds(store: PollingStore) -> tuple[PolledKind, ...]:
    """The kinds of the source that was last polled. Raises CommandError."""
    try:
        return tuple(msgspec.json.decode((await store.settings()).get(KINDS, "[]"), type=list[PolledKind]))
    except (msgspec.DecodeError, ValueError):
        raise CommandError(f"the setting {KINDS} was changed by hand; poll once more, and it is right again") from None
