"""Where polling keeps what it has: the flags that the commands of `sanderling polling` share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from cyclopts import Parameter

from sanderling.apis.polled import Kind
from sanderling.cli import CommandError
from sanderling.cli.pages_summary import printable
from sanderling.clock import SystemClock
from sanderling.flow.desk import Desk, desk_in
from sanderling.observe.logs import is_secret
from sanderling.stores.documents import Schema
from sanderling.stores.polling import PollingStore, PollingStoreError
from sanderling.stores.polling_open import open_polling

DATABASE = "polling.db"
KINDS = "source.kinds"  # a setting of ours: what kinds there are, for commands that do not know the source
# Seconds that a server may take to come up after us: whoever starts both at once need not put them in order.
PATIENCE, AGAIN = 30.0, 2.0

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder and the database. A command takes one as `*, place: Place = USUAL`."""

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


USUAL = Place()


def shown(url: str) -> str:
    """A URL as it may be shown: with the user, without the password, and without options that hold secrets."""
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    where, query, options = rest.partition("?")
    login, at, host = where.rpartition("@")  # whatever is before the last one may belong to the password
    kept = [each for each in options.split("&") if not is_secret(each.partition("=")[0])]
    return f"{scheme}://{login.partition(':')[0]}{at}{host}{query if any(kept) else ''}{'&'.join(kept)}"


@asynccontextmanager
async def opened(
    place: Place, schema: Schema | None, source: str, say: Callable[[str], object] | None = None
) -> AsyncIterator[tuple[PollingStore, Desk]]:
    """The database, reached, and the thread that disks are used in. Raises CommandError.

    With `say`, a server is given a while to come up, and `say` is told.
    """
    with ThreadPoolExecutor(1, "disk") as threads:
        desk = desk_in(threads)
        store = await _reached(lambda: open_polling(place.url, schema, source, desk), place, say)
        try:
            yield store, desk
        finally:
            await store.close()


async def _reached(reach: Callable[[], Awaitable[T]], place: Place, say: Callable[[str], object] | None) -> T:
    clock = SystemClock()  # of the world outside, also where ours is scaled
    patience = PATIENCE if say is not None and place.url.startswith("postgres") else 0.0
    until, said = clock.now() + patience, False
    while True:
        try:
            return await reach()
        except PollingStoreError as error:
            problem = printable(f"--database: {error}" if place.database else str(error))
            if not error.transient or clock.now() >= until:
                raise CommandError(problem, code=2 if not error.transient else 1) from None
        if say is not None and not said:
            say(f"{problem}; trying for {PATIENCE:.0f} s")
            said = True
        await clock.sleep(AGAIN)


@asynccontextmanager
async def known(place: Place) -> AsyncIterator[PollingStore]:
    """The database of a source that was polled before; it may be polled just now. Raises CommandError."""
    if not place.begun:
        raise CommandError(f"nothing is polled in {place.out}; choose another folder with --out", code=2)
    async with opened(place, None, "") as (store, _):
        yield store


async def keep_kinds(store: PollingStore, kinds: Sequence[Kind]) -> None:
    """Say which kinds there are, to commands that do not know the source."""
    text = msgspec.json.encode(kinds).decode()
    if (await store.settings()).get(KINDS) != text:
        await store.set(KINDS, text)


async def known_kinds(store: PollingStore) -> tuple[Kind, ...]:
    """The kinds of the source that was last polled. Raises CommandError."""
    try:
        return tuple(msgspec.json.decode((await store.settings()).get(KINDS, "[]"), type=list[Kind]))
    except (msgspec.DecodeError, ValueError):
        raise CommandError(f"the setting {KINDS} was changed by hand; poll once more, and it is right again") from None
