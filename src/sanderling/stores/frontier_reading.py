"""What the file of a frontier says, for whoever has it open, to write or only to read.

Whoever only reads upgrades nothing: what an earlier format has not is left out, or 0.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sanderling.stores.frontier_rows import (
    Aside,
    End,
    Ended,
    Failed,
    Fault,
    HostBacklog,
    RetryUrl,
    WaitingRow,
    fault_of,
)
from sanderling.stores.sqlite_file import version_of

FAULTS: tuple[Fault, ...] = ("", "item", "host")  # of what waits, by number


def ends(db: sqlite3.Connection) -> bytearray:
    """The end of each URL, by id up to the highest; there is no id 0, and an id that is not here seems to wait."""
    ((last,),) = db.execute("SELECT coalesce(max(id), 0) FROM url")
    found = bytearray(last + 1)
    for number, end in db.execute("SELECT id, end FROM url WHERE end > 0"):
        found[number] = end
    return found


def versions(db: sqlite3.Connection) -> dict[int, int]:
    """How many rows each URL has, of those where that is not what its end says: they were visited again."""
    if not _has(db, "visit"):
        return {}
    sql = "SELECT visit.id, rows FROM visit JOIN url ON url.id = visit.id WHERE rows <> (end BETWEEN 1 AND 3)"
    return dict(db.execute(sql))


class VisitCounts(NamedTuple):
    """How often a URL was visited, how often it had changed, and when it is due again, in seconds since 1970."""

    visits: int
    changes: int
    due: float


def visits_of(db: sqlite3.Connection, number: int) -> VisitCounts | None:
    """The visits to the URL with this id; None if it is not visited again."""
    if not _has(db, "visit"):
        return None
    row = db.execute("SELECT visits, changes, due FROM visit WHERE id = ?", (number,)).fetchone()
    return None if row is None else VisitCounts._make(row)


def tally(db: sqlite3.Connection) -> dict[tuple[End, str], int]:
    """How many URLs ended so, for this reason, as the file says."""
    if version_of(db) < 5:
        return count_ends(db)
    return _by_name(db, db.execute("SELECT end, code, number FROM tally WHERE number <> 0"))


def count_ends(db: sqlite3.Connection) -> dict[tuple[End, str], int]:
    """The same, counted; 0.2 seconds for a million URLs."""
    return _by_name(db, db.execute("SELECT end, code, count(*) FROM url GROUP BY end, code"))


def _by_name(db: sqlite3.Connection, rows: Iterable[tuple[int, int, int]]) -> dict[tuple[End, str], int]:
    names = dict(db.execute("SELECT id, name FROM code"))
    return {(End(end), names.get(code, "")): number for end, code, number in rows}


def failed(db: sqlite3.Connection) -> Iterator[Failed]:
    """The URLs that failed or were refused, by id."""
    requests = "failure.requests" if version_of(db) >= 3 else "0"
    rows = db.execute(
        f"""SELECT url.id, url.url, host.name, url.depth, url.end, code.name, failure.status, failure.detail, {requests}
        FROM failure JOIN url ON url.id = failure.id JOIN host ON host.id = url.host JOIN code ON code.id = url.code
        ORDER BY failure.id"""  # noqa: S608 - ours, above
    )
    for number, url, host, depth, end, code, status, detail, sent in rows:
        yield Failed(number, url, host, depth, End(end), code, status, detail, sent, fault_of(End(end), code))


def failed_requests(db: sqlite3.Connection) -> Iterator[tuple[Failed, str]]:
    """The requests of a job that failed or were left out, by id, each with the name of its reader."""
    names = dict(db.execute("SELECT id, name FROM reader"))
    for each in failed(db):
        ((reader,),) = db.execute("SELECT reader FROM request WHERE id = ?", (each.id,))
        yield each, names[reader]


def waiting_hosts(db: sqlite3.Connection, after: tuple[float, int], most: int, wall: float) -> list[HostBacklog]:
    """The first so many hosts that have URLs that wait, by due time and id, behind such a pair, and due by then."""
    sql = """SELECT id, name, waiting, fetched, due FROM host INDEXED BY host_due
        WHERE (due, id) > (?, ?) AND due <= ? ORDER BY due, id LIMIT ?"""
    return [HostBacklog._make(row) for row in db.execute(sql, (*after, wall, most))]


def count_hosts(db: sqlite3.Connection) -> int:
    """How many hosts are known; 20 ms for a million."""
    ((number,),) = db.execute("SELECT count(*) FROM host")
    return int(number)


def misfit(db: sqlite3.Connection, ended: Sequence[Ended] | Sequence[RetryUrl]) -> str:
    """Say which of `ended` did not wait; the transaction in which they should have been decided still stands."""
    seen = set()
    for each in ended:
        row = db.execute("SELECT url FROM url WHERE id = ?", (each.id,)).fetchone()
        if row is None or row[0] != each.url:
            return f"no URL {each.url} with id {each.id} is known, so it cannot end"
        if each.id in seen:
            return f"{each.url} (id {each.id}) ends twice"
        seen.add(each.id)
    return f"of {len(ended)} URLs from {ended[0].url} to {ended[-1].url} some had ended before"


def aside(db: sqlite3.Connection) -> list[Aside]:
    """The hosts that were set aside, those with most URLs that wait first."""
    if not _has(db, "aside"):
        return []
    due = "aside.due" if version_of(db) >= 3 else "0.0"
    rows = db.execute(
        f"""SELECT host.name, (SELECT count(*) FROM url WHERE url.host = aside.host AND url.end = 0) AS waiting,
        code.name, status, detail, {due} FROM aside
        JOIN host ON host.id = aside.host JOIN code ON code.id = aside.code
        WHERE waiting > 0 ORDER BY waiting DESC, host.id"""  # noqa: S608 - ours, above
    )
    return [Aside._make(row) for row in rows]


def waiting_rows(db: sqlite3.Connection) -> Iterator[WaitingRow]:
    """What waits, host by host, each in the order of discovery."""
    # Of an earlier format there are tables like those it lacks, without rows.
    again = "again" if _has(db, "again") else "(SELECT NULL AS id, 0 AS failures, 0 AS code, 0 AS status, '' AS detail)"
    aside = "aside" if _has(db, "aside") else "(SELECT NULL AS host, 0 AS code, 0 AS status, '' AS detail)"
    rows = db.execute(
        f"""SELECT url.id, url.url, host.name, url.depth,
        CASE WHEN aside.host IS NOT NULL THEN 2 WHEN again.id IS NOT NULL THEN 1 ELSE 0 END,
        coalesce(code.name, ''), coalesce(aside.status, again.status, 0), coalesce(aside.detail, again.detail, ''),
        coalesce(again.failures, 0)
        FROM url INDEXED BY url_waiting CROSS JOIN host ON host.id = url.host
        LEFT JOIN {aside} AS aside ON aside.host = url.host LEFT JOIN {again} AS again ON again.id = url.id
        LEFT JOIN code ON code.id = coalesce(aside.code, again.code)
        WHERE url.end = 0 ORDER BY url.host, url.id"""  # noqa: S608 - ours, above
    )
    for number, url, host, depth, fault, *why in rows:
        yield WaitingRow(number, url, host, depth, FAULTS[fault], *why)


class Blamed(NamedTuple):
    """How many URLs failed for good, by whose fault, and how many wait since they failed themselves, by code."""

    failed: dict[Fault, int]
    again: dict[str, int]


def blamed(db: sqlite3.Connection) -> Blamed:
    """Whose fault it is, counted; hosts that were set aside are in `aside`."""
    if version_of(db) < 3:
        return Blamed({}, {})
    rows = db.execute(
        """SELECT code.name, count(*) FROM failure JOIN url ON url.id = failure.id
        JOIN code ON code.id = url.code WHERE url.end = 5 GROUP BY code.name"""
    )
    found: dict[Fault, int] = {}
    for code, number in rows:
        fault = fault_of(End.FAILED, code)
        found[fault] = found.get(fault, 0) + number
    waits = db.execute(
        """SELECT code.name, count(*) AS number FROM again JOIN code ON code.id = again.code
        WHERE again.host NOT IN (SELECT host FROM aside) GROUP BY again.code ORDER BY number DESC, code.id"""
    )
    return Blamed(found, dict(waits))


class HostWaits(NamedTuple):
    """Why what waits for a host waits: the host's own reason, if it was set aside, and those of its URLs, by code."""

    aside: Aside | None
    again: dict[str, int]


def waits_of(db: sqlite3.Connection, host: str) -> HostWaits:
    """The same as `waiting_rows` says of one host, counted."""
    if version_of(db) < 3:
        return HostWaits(next((each for each in aside(db) if each.host == host), None), {})
    row = db.execute(
        """SELECT host.name, (SELECT count(*) FROM url WHERE url.host = aside.host AND url.end = 0), code.name,
        aside.status, aside.detail, aside.due
        FROM host JOIN aside ON aside.host = host.id JOIN code ON code.id = aside.code WHERE host.name = ?""",
        (host,),
    ).fetchone()
    waits = db.execute(
        """SELECT code.name, count(*) AS number FROM host JOIN again ON again.host = host.id
        JOIN code ON code.id = again.code WHERE host.name = ? GROUP BY again.code ORDER BY number DESC, code.id""",
        (host,),
    )
    return HostWaits(None if row is None else Aside._make(row), dict(waits))


def _has(db: sqlite3.Connection, table: str) -> bool:
    """Whether there is such a table, which some formats have not."""
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone() is not None


class KnownUrl(NamedTuple):
    """A URL of a frontier, what became of it, and why that is so."""

    id: int
    url: str
    depth: int
    end: End
    why: str


def known_url(db: sqlite3.Connection, host: str, key: bytes) -> KnownUrl | None:
    """The URL of a host that is known by this key."""
    row = db.execute(
        """SELECT url.id, url.url, url.depth, url.end, url.host, code.name FROM host
        JOIN url ON url.host = host.id JOIN code ON code.id = url.code WHERE host.name = ? AND url.key = ?""",
        (host, key),
    ).fetchone()
    if row is None:
        return None
    number, url, depth, end, host_id, code = row
    if End(end) is End.WAITING:
        return KnownUrl(number, url, depth, End.WAITING, _why_it_waits(db, number, host_id))
    failure = db.execute("SELECT status, detail FROM failure WHERE id = ?", (number,)).fetchone()
    return KnownUrl(number, url, depth, End(end), _reason(code, *(failure or (0, ""))))


def _why_it_waits(db: sqlite3.Connection, number: int, host: int) -> str:
    for table, column, key, what in (
        ("aside", "host", host, "its host is set aside"),
        ("again", "id", number, "failed"),
    ):
        if not _has(db, table):
            continue
        row = db.execute(
            f"SELECT code.name, status, detail FROM {table} JOIN code ON code.id = code WHERE {table}.{column} = ?",  # noqa: S608 - ours
            (key,),
        ).fetchone()
        if row is not None:
            return f"{what}: {_reason(*row)}"
    return "not asked for yet"


def _reason(code: str, status: int, detail: str) -> str:
    said = f"{code} (HTTP {status})" if status else code
    return f"{said}: {detail}" if detail else said


def urls(db: sqlite3.Connection) -> Iterator[str]:
    """All that are known."""
    return (url for (url,) in db.execute("SELECT url FROM url"))


def host_names(db: sqlite3.Connection, most: int) -> list[str]:
    """Some hosts."""
    return [name for (name,) in db.execute("SELECT name FROM host ORDER BY name LIMIT ?", (most,))]


def urls_of(db: sqlite3.Connection, host: str, most: int) -> Iterator[str]:
    """Some URLs of a host that are kept."""
    rows = db.execute(
        """SELECT url.url FROM host CROSS JOIN url INDEXED BY url_known ON url.host = host.id
        WHERE host.name = ? AND url.end BETWEEN 1 AND 3 LIMIT ?""",
        (host, most),
    )
    return (url for (url,) in rows)
