"""Which DIDs exist, from the table `plc_did_state` of a ClickHouse: one row per DID, its endpoint as DIDs spell it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sanderling.repos.directory import DirectoryEntry, DirectoryError
from sanderling.repos.plc import EndpointError, ImportTally, host_at
from sanderling.stores.clickhouse import Clickhouse, ClickhouseError

# DIDs asked about at once: they travel in the address of a request, which may have a megabyte and often less.
CHUNK = 500
# FINAL, since of two rows of a DID only the later counts, and the earlier may still be there. A tombstone's is empty.
LIVING = "FROM plc_did_state FINAL WHERE pds != ''"


class ClickhouseDirectory:
    """A directory in a ClickHouse. Endpoints that are no plain host are left out; those of pages are counted."""

    def __init__(self, store: Clickhouse, tally: ImportTally, *, plain: bool = False) -> None:
        """`plain` allows hosts without TLS. Raises DirectoryError if there is no such table."""
        self._store = store
        self._tally = tally
        self._plain = plain
        with self._plainly():
            ((tables,),) = store.rows(
                "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'plc_did_state'"
            )
        if not tables:
            raise DirectoryError(f"{store.place} has no table plc_did_state; is this the right database?")

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except ClickhouseError as error:
            raise DirectoryError(str(error)) from error

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        """The first DIDs after `after` in bytewise order; none without a host.

        Fewer than `limit` are the last: what is left out is made up for.
        """
        found: list[DirectoryEntry] = []
        while (missing := limit - len(found)) > 0:
            with self._plainly():
                rows = self._store.rows(
                    f"SELECT did, pds {LIVING} AND did > {{after:String}} ORDER BY did LIMIT {{limit:UInt32}}",
                    after=after,
                    limit=missing,
                )
            found += (DirectoryEntry(did, host) for did, pds in rows if (host := self._host(pds, did)))
            if len(rows) < missing:
                break
            after = rows[-1][0]
        return found

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """The hosts of these, as far as they have one."""
        found: dict[str, str] = {}
        for start in range(0, len(dids), CHUNK):
            chunk = list(dids[start : start + CHUNK])
            with self._plainly():
                rows = self._store.rows(f"SELECT did, pds {LIVING} AND did IN {{chunk:Array(String)}}", chunk=chunk)
            found |= {did: host for did, pds in rows if (host := self._host(pds))}
        return found

    def count(self) -> int:
        """How many DIDs have a host."""
        with self._plainly():
            rows = self._store.rows(f"SELECT pds, count() {LIVING} GROUP BY pds")
        return sum(number for pds, number in rows if self._host(pds))

    def _host(self, pds: str, counted: str = "") -> str | None:
        """The host; None if it is none, which is noted of the DID that is `counted`."""
        try:
            return host_at(pds, plain=self._plain)
        except EndpointError as error:
            if counted:
                self._tally.refused[error.reason] += 1
                self._tally.show(f"{counted}: {error}")
            return None

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def __repr__(self) -> str:
        return f"<ClickhouseDirectory {self._store.place}>"
