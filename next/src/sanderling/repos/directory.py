"""Which accounts there are, and where each is: a list that somebody wrote, or a file filled from the log of PLC."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, Union

import msgspec

from sanderling.files import FolderError, disk_errors
from sanderling.options import OptionError
from sanderling.repos.atproto import EndpointError, host_at, is_did
from sanderling.stores.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from sanderling.repos.clickhouse_directory import ClickhouseDirectory

# What the feed reads page by page, and what is asked of accounts whose host says that they are gone.
Directory = Union["FileDirectory", "SqliteDirectory", "ClickhouseDirectory"]
NAME = "directory.db"
LOOKED_UP = 500  # DIDs at once
_APPLICATION = 0x504C4331  # "PLC1"
_TABLES = (
    "CREATE TABLE host (id INTEGER PRIMARY KEY, url TEXT UNIQUE)",
    # `host` is 0 for an account that was deleted; `at` is when its last operation was made, in microseconds since 1970.
    "CREATE TABLE account (did TEXT PRIMARY KEY, host INT, at INT) WITHOUT ROWID",
    "CREATE TABLE log (cursor TEXT, operations INT, refused INT)",
    "INSERT INTO log VALUES ('', 0, 0)",
)


class Account(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A DID, and the address of its host; "" where the account was deleted."""

    did: str
    host: str


class FileDirectory:
    """A list that somebody wrote, a line `DID HOST` each; # begins a comment."""

    knows_deleted = False

    def __init__(self, path: Path, *, private: bool) -> None:
        self.place = str(path)
        self._path = path
        self._private = private
        self._accounts: list[Account] = []

    async def __aenter__(self) -> Self:
        with disk_errors(self._path):
            lines = self._path.read_text(errors="replace").splitlines()
        found: dict[str, Account] = {}
        for number, line in enumerate(lines, 1):
            did, _, host = line.partition("#")[0].strip().partition(" ")
            if not did:
                continue
            if not is_did(did):
                raise OptionError(f"{self.place} line {number}: found {did[:80]!r}, expected DID HOST")
            try:
                found[did] = Account(did, host_at(host.strip(), private=self._private))
            except EndpointError as error:
                raise OptionError(f"{self.place} line {number}: {error}") from None
        self._accounts = [found[did] for did in sorted(found)]
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def page(self, after: str, limit: int) -> list[Account]:
        """The next lines by DID."""
        start = bisect_right(self._accounts, after, key=lambda each: each.did)
        return self._accounts[start : start + limit]

    async def find(self, dids: Sequence[str]) -> dict[str, str]:
        """Where these are by the list."""
        wanted = set(dids)
        return {each.did: each.host for each in self._accounts if each.did in wanted}


class SqliteDirectory:
    """A directory in a file, filled from the log of PLC by `repos directory`."""

    knows_deleted = True

    def __init__(self, path: Path, *, private: bool = False, read_only: bool = True) -> None:
        self.place = str(path)
        self.cursor = ""  # where the log goes on
        self.operations = self.refused = 0
        self._file = SqliteFile(path, _APPLICATION, read_only=read_only)
        self._private = private
        self._hosts: dict[int, str] = {0: ""}
        self._numbers: dict[str, int] = {"": 0}

    async def __aenter__(self) -> Self:
        await self._file.open()
        try:
            await self._file.call(self._open)
        except BaseException:
            await self._file.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._file.close()

    def _open(self) -> None:
        db = self._file.db
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            with self._file.transaction():
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
                for table in _TABLES:
                    db.execute(table)
        self._read_hosts()
        self.cursor, self.operations, self.refused = db.execute("SELECT * FROM log").fetchone()

    def _read_hosts(self) -> None:
        for number, url in self._file.db.execute("SELECT id, url FROM host"):
            self._hosts[number], self._numbers[url] = url, number

    async def page(self, after: str, limit: int) -> list[Account]:
        """The next accounts that have a host which may be requested."""
        return await self._file.call(lambda: self._page(after, limit))

    def _page(self, after: str, limit: int) -> list[Account]:
        found: list[Account] = []
        sql = "SELECT did, host FROM account WHERE did > ? ORDER BY did LIMIT ?"
        while missing := limit - len(found):
            rows = self._file.db.execute(sql, (after, missing)).fetchall()
            found += [Account(did, url) for did, number in rows if (url := self._url(number))]
            if len(rows) < missing:
                break
            after = rows[-1][0]
        return found

    def _url(self, number: int) -> str:
        if number not in self._hosts:
            self._read_hosts()  # another process fills the file
        url = self._hosts[number]
        return url if self._private or url.startswith("https://") else ""

    async def find(self, dids: Sequence[str]) -> dict[str, str]:
        """Where these are now."""

        def find() -> dict[str, str]:
            found: dict[str, str] = {}
            for start in range(0, len(dids), LOOKED_UP):
                chunk = dids[start : start + LOOKED_UP]
                places = ", ".join("?" * len(chunk))
                rows = self._file.db.execute(f"SELECT did, host FROM account WHERE did IN ({places})", chunk)
                found |= {did: self._url(number) for did, number in rows}
            return found

        return await self._file.call(find)

    async def counts(self) -> tuple[int, int]:
        """How many accounts and hosts there are; reads all of them."""
        sql = "SELECT (SELECT count(*) FROM account WHERE host), (SELECT count(*) FROM host)"
        return await self._file.call(lambda: self._file.db.execute(sql).fetchone())

    async def add(self, changes: Iterable[tuple[str, str, int]], cursor: str, operations: int, refused: int) -> None:
        """Note where accounts are since when, and where the log goes on: all of it or nothing."""
        last: dict[str, tuple[str, int]] = {}
        for did, url, at in changes:
            if did not in last or at >= last[did][1]:
                last[did] = url, at

        def add() -> None:
            with self._file.transaction() as db:
                for url in {url for url, _ in last.values()} - self._numbers.keys():
                    number = db.execute("INSERT INTO host (url) VALUES (?) RETURNING id", (url,)).fetchone()[0]
                    self._hosts[number], self._numbers[url] = url, number
                db.executemany(
                    """INSERT INTO account VALUES (?, ?, ?) ON CONFLICT DO UPDATE
                    SET host = excluded.host, at = excluded.at WHERE excluded.at >= at""",
                    sorted((did, self._numbers[url], at) for did, (url, at) in last.items()),
                )
                sql = "UPDATE log SET cursor = ?, operations = operations + ?, refused = refused + ?"
                db.execute(sql, (cursor, operations, refused))

        await self._file.call(add)
        self.cursor, self.operations, self.refused = cursor, self.operations + operations, self.refused + refused


def open_directory(path: Path | None, did_file: Path | None, folder: Path, *, private: bool) -> Directory:
    """The directory that was named, or the one in the folder. Raises OptionError."""
    if did_file is not None:
        return FileDirectory(did_file, private=private)
    found = folder / NAME if path is None else path
    if not found.exists():
        if path is not None:
            raise FolderError(f"{path} does not exist", f"fill it: sanderling repos directory {path}")
        raise OptionError(
            "which accounts there are is missing; expected --clickhouse-address HOST:8123, --did-file FILE, or "
            f"--directory FILE, which this fills: sanderling repos directory {found}"
        )
    return SqliteDirectory(found, private=private)
