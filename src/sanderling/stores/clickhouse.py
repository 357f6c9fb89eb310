"""ClickHouse: a server over HTTP, or the same engine in this process (chDB), by one client and one SQL.

`chdb:PATH` keeps its tables in a folder, which one process at a time may open; `chdb:` keeps them in memory. A server
is `clickhouse://user:password@host:8123/database`, or `clickhouses://` with TLS. The password may also come from
CLICKHOUSE_PASSWORD, or from the file that CLICKHOUSE_PASSWORD_FILE names; it is never shown.

Tricky bits:

- The engine is loaded when it is opened, not before: that costs a second and some 250 MB.
- It does not survive a fork. Whoever needs another process must start a fresh one.
- ReplacingMergeTree forgets the older of two rows when it merges them, at a time of its own: ask with FINAL.
"""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sanderling.extras import load

# By year, and not by month: an insert makes a part in every partition that it has rows of, and records say themselves
# when they were made. Whatever they say, there are 19 partitions: "2022" is also all before, "2040" all after.
REPO_RECORDS = """
CREATE TABLE IF NOT EXISTS repo_records (
    repo String,
    collection String,
    rkey String,
    operation Enum8('create' = 1, 'update' = 2, 'delete' = 3),
    record_json String,
    created_at DateTime64(6),
    indexed_at DateTime64(6) DEFAULT now64(6),
    time_us Int64,
    INDEX idx_repo repo TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_collection collection TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_created_at created_at TYPE minmax GRANULARITY 1
) ENGINE = ReplacingMergeTree(time_us)
PARTITION BY least(greatest(toYear(created_at), 2022), 2040)
ORDER BY (collection, repo, rkey, operation)
"""
PLC_DID_STATE = """
CREATE TABLE IF NOT EXISTS plc_did_state (
    did String,
    handle String,
    pds String,
    created_at DateTime64(6),
    indexed_at DateTime64(6) DEFAULT now64(6),
    time_us Int64
) ENGINE = ReplacingMergeTree(time_us)
ORDER BY did
"""

# A batch of 64 MB takes a second; a server that is merging or far away may take a hundred times as long.
CONNECT_SECONDS, ANSWER_SECONDS = 10, 300
# A table of an earlier release has a partition for each month that a record names; by default a server takes a hundred.
INSERT_SETTINGS = {"max_partitions_per_insert_block": 0}
LONGEST_REASON = 300
SERVERS = {"clickhouse": ("http", 8123), "clickhouses": ("https", 8443)}
EXPECTED = "expected chdb:PATH or clickhouse://user@host:8123/database"
# What the client says, and what that means to whoever has to do something about it; the first that fits.
MEANINGS = {
    "already initialized with path": "this process has another chDB open; close that one first",
    "initializing EmbeddedServer": "cannot be opened: another process uses it, or this one may not write there",
    "Failed to establish a new connection": "nobody listens there. Is the server up, and is this its HTTP port?",
    "Failed to resolve": "there is no host of that name",
    "timed out": "no answer in time. Is the server busy, and is this its HTTP port?",
    "Code: 516": "user or password are wrong; see CLICKHOUSE_PASSWORD",
    "Code: 81.": "there is no such database; make it first, or name none",
}


class ClickhouseError(Exception):
    """ClickHouse cannot be used, or not for this. The message says what was found, where, and what to do."""


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a server is; only `place` is ever shown."""

    place: str
    interface: str
    host: str
    port: int
    database: str | None
    username: str | None
    password: str = field(repr=False)


class Clickhouse:
    """A database. Its methods may be called from any thread, one at a time gets its turn; all raise ClickhouseError."""

    def __init__(self, client: Any, place: str) -> None:  # noqa: ANN401 - an extra, which need not be there
        self._client = client
        self._turn = threading.Lock()
        self.place = place

    def execute(self, statement: str, **parameters: object) -> None:
        """Run a statement that gives no rows; `{name:String}` in it stands for a parameter."""
        with self._alone():
            self._client.command(statement, parameters=parameters)

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """All rows of an answer, so ask for a page at a time."""
        with self._alone():
            return [tuple(row) for row in self._client.query(query, parameters=parameters).result_rows]

    def insert(self, table: str, rows: Any) -> None:  # noqa: ANN401 - a pyarrow.Table, which has no types
        """Insert an Arrow table; when it returns, the rows are there."""
        with self._alone():
            self._client.insert_arrow(table, rows, settings=INSERT_SETTINGS)

    def close(self) -> None:
        """Let go of it; of a folder so that others may open it."""
        with self._alone():
            self._client.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._turn, _plainly(self.place):
            yield

    def __repr__(self) -> str:
        return f"<Clickhouse {self.place}>"


def open_clickhouse(url: str, environment: Mapping[str, str] = os.environ) -> Clickhouse:
    """The database at `url`, which was reached and has answered. Raises ClickhouseError, or MissingExtraError."""
    # Without a handler of its own, what it logs of an error that we report would be printed as well.
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
    kind, _, rest = url.partition(":")
    if kind == "chdb":
        return _embedded(rest.removeprefix("//"))
    server = _server(url, environment)
    with _plainly(server.place):
        client = load("clickhouse_connect", server.place).get_client(
            interface=server.interface,
            host=server.host,
            port=server.port,
            database=server.database,
            username=server.username,
            password=server.password,
            connect_timeout=CONNECT_SECONDS,
            send_receive_timeout=ANSWER_SECONDS,
            autogenerate_session_id=False,
        )
    return Clickhouse(client, server.place)


def _embedded(path: str) -> Clickhouse:
    if path and not (Path(path).is_dir() or Path(path).parent.is_dir()):
        raise ClickhouseError(f"chdb:{path}: there is no folder {Path(path).parent}; make it first")
    with _plainly(f"chdb:{path}"):
        load("chdb", "chdb:")
        connect = load("clickhouse_connect", "chdb:").get_client
        client = connect(interface="chdb", path=path or None)
    return Clickhouse(client, f"chdb:{path}")


def _server(url: str, environment: Mapping[str, str]) -> _Server:
    # The URL may hold a password, in the wrong place too: no message quotes it, or what is said of it.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ClickhouseError(f"that of the ClickHouse is no URL; {EXPECTED}, special characters as %2F") from None
    if parts.scheme not in SERVERS or not parts.hostname:
        raise ClickhouseError(f"{parts.scheme or 'no scheme'!r} is no ClickHouse with a host; {EXPECTED}")
    if parts.query or parts.fragment or "/" in parts.path[1:]:
        raise ClickhouseError(f"the URL of {parts.hostname} goes on behind its database; {EXPECTED}")
    interface, usual = SERVERS[parts.scheme]
    database = unquote(parts.path[1:])
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return _Server(
        place=f"{parts.scheme}://{host}:{port or usual}/{database}",
        interface=interface,
        host=parts.hostname,
        port=port or usual,
        database=database or None,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else _password(environment),
    )


def _password(environment: Mapping[str, str]) -> str:
    if path := environment.get("CLICKHOUSE_PASSWORD_FILE"):
        try:
            return Path(path).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ClickhouseError(f"CLICKHOUSE_PASSWORD_FILE: cannot read {path} ({type(error).__name__})") from None
    return environment.get("CLICKHOUSE_PASSWORD", "")


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Turn whatever the client raises into a ClickhouseError."""
    try:
        yield
    except OSError as error:  # the engine takes what is inserted from a temporary file
        raise ClickhouseError(f"{place}: {error.strerror or error}") from error
    except Exception as error:
        if not type(error).__module__.startswith("clickhouse_connect."):
            raise
        raise ClickhouseError(f"{place}: {_reason(str(error))}") from error


def _reason(said: str) -> str:
    """What the client said, short, and what to do about it."""
    for sign, meaning in MEANINGS.items():
        if sign in said:
            return meaning
    first = said.partition("Stack trace")[0].strip().replace("\n", " ")
    return first if len(first) <= LONGEST_REASON else f"{first[:LONGEST_REASON]}…"
