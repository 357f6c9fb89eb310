"""Which accounts there are, from the table `plc_did_state` of a ClickHouse: a row a DID, and its endpoint."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from sanderling.files import FolderError
from sanderling.repos.atproto import EndpointError, host_at
from sanderling.repos.away import ServerAway
from sanderling.repos.directory import LOOKED_UP, Account
from sanderling.stores.clickhouse import Clickhouse, ClickhouseAway

# FINAL, since of two rows of a DID only the later counts, and the earlier may still be there. A tombstone's is empty.
_PAGE = """SELECT did, pds FROM plc_did_state FINAL WHERE pds != '' AND did > {after:String}
    ORDER BY did LIMIT {limit:UInt32}"""
_FIND = "SELECT did, pds FROM plc_did_state FINAL WHERE did IN {chunk:Array(String)}"
_COLUMNS = "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'plc_did_state'"


class ClickhouseDirectory:
    """A directory in a ClickHouse. Endpoints that are no plain host are left out."""

    knows_deleted = True

    def __init__(self, address: str, user: str, password: str, *, private: bool) -> None:
        self._database = Clickhouse(address, user, password)
        self._private = private
        self._stack = AsyncExitStack()
        self.place = self._database.place
        self.refused = 0  # endpoints that are no host

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._database)
            if {"did", "pds"} - {name for (name,) in await self._rows(_COLUMNS)}:
                found = f"{self.place} has no table plc_did_state with the columns did and pds"
                raise FolderError(found, "name the database that has it: clickhouse://HOST:8123/DATABASE")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def page(self, after: str, limit: int) -> list[Account]:
        """The next accounts; what is left out is made up for."""
        found: list[Account] = []
        while missing := limit - len(found):
            rows = await self._rows(_PAGE, after=after, limit=missing)
            found += [Account(did, host) for did, pds in rows if (host := self._host(pds))]
            if len(rows) < missing:
                break
            after = rows[-1][0]
        return found

    async def find(self, dids: Sequence[str]) -> dict[str, str]:
        """Where these are now."""
        found: dict[str, str] = {}
        for start in range(0, len(dids), LOOKED_UP):
            rows = await self._rows(_FIND, chunk=list(dids[start : start + LOOKED_UP]))
            # An endpoint that is no host says nothing of where the account is, and not that it was deleted.
            found |= {did: host for did, pds in rows if (host := self._host(pds)) or not pds}
        return found

    def _host(self, pds: str) -> str:
        try:
            return host_at(pds, private=self._private) if pds else ""
        except EndpointError:
            self.refused += 1
            return ""

    async def _rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
        try:
            return await self._database.rows(query, **parameters)
        except ClickhouseAway as error:
            raise ServerAway(str(error)) from error
