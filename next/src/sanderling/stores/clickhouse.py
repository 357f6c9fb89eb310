"""ClickHouse: a server over HTTP, or the engine in this process (chDB), by one client and one SQL.

`chdb:FOLDER` keeps its tables in a folder, which one process at a time can open; `chdb:` keeps them in memory. A server
is `clickhouse://user:password@host:8123/database`, `clickhouses://` with TLS, or `host:8123`. The engine costs a second
and 250 MB when it is opened, and does not survive a fork.

A ReplacingMergeTree forgets the older of two rows at a time of its own: query with FINAL. Each insert makes a part on
disk, however small: hand over many rows at once.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import unquote, urlsplit

from sanderling.files import Exit, FolderError, ServiceAway
from sanderling.options import OptionError
from sanderling.redact import redact

try:
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError, OperationalError
except ImportError:
    raise FolderError("ClickHouse needs clickhouse-connect", 'pip install "sanderling[clickhouse]"') from None

T = TypeVar("T")

SERVERS = {"clickhouse": ("http", 8123), "clickhouses": ("https", 8443)}
NATIVE_PORTS = {9000: 8123, 9440: 8443}  # another protocol; and the port of HTTP beside it
CONNECT_SECONDS, ANSWER_SECONDS = 10, 300
LONGEST_REASON = 300
# A memory limit, too many parts or queries, a table that is read-only for now, time-outs: the same may work later.
PASSING = frozenset({"159", "202", "209", "210", "241", "242", "243", "252", "319", "425", "439", "499"})
WRONG = {"516": "refuses the user or the password", "81": "has no such database"}


class ClickhouseAway(ServiceAway):
    """ClickHouse cannot be used now; the same call may work later. The message says why."""


class Clickhouse:
    """A database, entered to connect: FolderError with exit code 75 if it is away.

    All methods raise ClickhouseAway while it cannot be used, and FolderError where waiting does not help.
    """

    def __init__(self, address: str, user: str = "", password: str = "") -> None:
        self._client: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="clickhouse")
        if address.startswith("chdb:"):
            self.place, path = address, address[5:].removeprefix("//")
            if not Path(path).absolute().parent.is_dir():
                raise FolderError(f"{address}: there is no folder {Path(path).parent}", "make it first")
            self._connection: dict[str, Any] = {"interface": "chdb", "path": path or None}
            return
        parts = urlsplit(address if "://" in address else f"clickhouse://{address}")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in SERVERS or not parts.hostname or port == 0:
            expected = "clickhouse://user:password@host:8123/database, host:8123 or chdb:FOLDER"
            raise OptionError(f"found {redact(address)[:100]!r}, expected {expected}")
        if port in NATIVE_PORTS:
            http = f"{parts.hostname}:{NATIVE_PORTS[port]}"
            raise OptionError(f"{port} is the port of ClickHouse's native protocol; type {http}, its port for HTTP")
        interface, usual = SERVERS[parts.scheme]
        self.place = f"{parts.scheme}://{parts.hostname}:{port or usual}{parts.path}"
        self._connection = {
            "interface": interface,
            "host": parts.hostname,
            "port": port or usual,
            "database": unquote(parts.path[1:]) or None,
            "username": user or unquote(parts.username or "") or None,
            "password": password or unquote(parts.password or ""),
            "connect_timeout": CONNECT_SECONDS,
            "send_receive_timeout": ANSWER_SECONDS,
            "autogenerate_session_id": False,
        }

    async def __aenter__(self) -> Self:
        logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)  # it is said here in one line
        try:
            self._client = await self._call(lambda: clickhouse_connect.get_client(**self._connection))
        except ClickhouseAway as away:
            self._thread.shutdown()
            raise FolderError(str(away), "check that it runs and that the address names it", Exit.LATER) from None
        except BaseException:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._client.close))
        self._thread.shutdown()

    async def execute(self, statement: str, **parameters: object) -> None:
        """Run a statement that gives no rows; `{name:String}` in it stands for a parameter."""
        await self._call(lambda: self._client.command(statement, parameters=parameters))

    async def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """All rows of an answer: ask for a page at a time. A String must be UTF-8, else ask for hex(…)."""
        return await self._call(lambda: list(map(tuple, self._client.query(query, parameters=parameters).result_rows)))

    async def insert(self, table: str, columns: Mapping[str, Sequence[object]]) -> None:
        """Insert columns of values, all equally long; the rows are there when this returns.

        A String takes only str or only bytes, a DateTime64(6) whole microseconds since 1970.
        """
        names, values = list(columns), list(columns.values())
        await self._call(lambda: self._client.insert(table, values, column_names=names, column_oriented=True))

    async def insert_arrow(self, table: str, names: Sequence[str], rows: bytes) -> None:
        """Insert rows that lie in an Arrow stream, by the names of their columns."""
        await self._call(lambda: self._client.raw_insert(table, names, rows, fmt="ArrowStream"))

    async def _call(self, work: Callable[[], T]) -> T:
        """Run it in the thread, in the order of the calls, to its end even if the caller is cancelled."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._plainly, work))

    def _plainly(self, work: Callable[[], T]) -> T:
        """Turn what the client raises into ClickhouseAway, or into FolderError where waiting does not help."""
        try:
            return work()
        except ImportError:
            raise FolderError("chdb: needs the engine", "pip install chdb-core-lite") from None
        except (ClickHouseError, OSError) as error:
            said = " ".join(str(error).partition("Stack trace")[0].split())[:LONGEST_REASON]
            code = said.partition("Code: ")[2].partition(".")[0]
            if "EmbeddedServer" in said or "already initialized" in said:
                raise FolderError(
                    f"{self.place} is in use", "end what uses it; one at a time can", Exit.LATER
                ) from None
            if code in WRONG:
                raise FolderError(f"ClickHouse at {self.place} {WRONG[code]}", "check the address") from None
            by_proxy = type(error) is DatabaseError and not code  # what stands before the server has answered
            if isinstance(error, OperationalError | OSError) or code in PASSING or by_proxy:
                raise ClickhouseAway(f"ClickHouse at {self.place}: {_away(said)}") from None
            raise FolderError(f"ClickHouse at {self.place}: {said}", "check the table that is there") from None


def _away(said: str) -> str:
    if "NewConnectionError" in said:
        return "nobody listens there"
    return "there is no host of that name" if "NameResolutionError" in said else said
