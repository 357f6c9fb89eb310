"""What `verify` compares: every known URL waits, has ended, or has an entry beside the rows of this run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from sanderling.ids import partition_of, url_key
from sanderling.stores.rows import FORGOTTEN, KNOWN, VISITS, WAITING, Row, checked, is_whole
from sanderling.stores.work import SET_ASIDE, VISIT, Fault, due_of, host_number

TEMPORARY = ("row_keys", "waiting_keys", "visit_keys")
_CHUNK = 5_000


def _is_in(table: str) -> str:
    return f"EXISTS (SELECT 1 FROM {table} b WHERE b.key = a.key)"


_NOWHERE = " AND ".join(f"NOT {_is_in(table)}" for table in (*TEMPORARY, "ended"))
# Of each contradiction the end of a query for the keys that show it; SQL that both databases understand.
COMPARISONS = {
    "stored URLs are not known": f"FROM row_keys a WHERE NOT {_is_in('seen')}",
    "waiting URLs are not known": f"FROM waiting_keys a WHERE NOT {_is_in('seen')}",
    "URLs to visit again are not known": f"FROM visit_keys a WHERE NOT {_is_in('seen')}",
    "ended URLs are not known": f"FROM ended a WHERE NOT {_is_in('seen')}",
    "stored URLs wait": f"FROM row_keys a WHERE {_is_in('waiting_keys')}",
    "ended URLs wait": f"FROM ended a WHERE {_is_in('waiting_keys')}",
    "known URLs are nowhere": f"FROM seen a WHERE {_NOWHERE}",
}
# Not where pages are visited again: then a URL has a row for each change, and may end in spite of its rows.
_ENDED_TWICE = "stored URLs have ended otherwise"
COMPARISONS_WITHOUT_VISITS = {_ENDED_TWICE: f"FROM row_keys a WHERE {_is_in('ended')}"}
# Each host, and where the first of its URLs stands in the queue.
HOSTS = f"""SELECT host, partition, name, due, parked,
    (SELECT min(turn) FROM frontier f WHERE f.host = h.host AND turn < {SET_ASIDE}) FROM host h"""


class Audit:
    """Collects keys for the comparisons, and looks at each row on the way."""

    def __init__(self, tally: Mapping[tuple[str, str], int]) -> None:
        self._tally = tally
        self._ends = Counter[tuple[str, str]]()
        self._number = Counter[str]()  # of keys, by table
        self._distinct = Counter[str]()
        self._damaged = Counter[str]()
        self._example: dict[str, str] = {}
        self._late: list[str] = []  # hosts
        self.has_visits = bool(tally.get(VISITS))

    def row_keys(self, keys: Iterable[bytes]) -> Iterator[tuple[str, list[tuple[bytes]]]]:
        """Keys beside the rows, in parts for their temporary table."""
        stream = iter(keys)
        while chunk := [(key,) for key in islice(stream, _CHUNK)]:
            self._number["row_keys"] += len(chunk)
            yield "row_keys", chunk

    def frontier(self, rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[bytes]]]]:
        """Keys of URLs that wait, in parts for their temporary tables."""
        stream = iter(rows)
        while part := list(islice(stream, _CHUNK)):
            for table, is_visit in (("waiting_keys", False), ("visit_keys", True)):
                chunk = [(row[5] or url_key(row[4]),) for row in part if (row[1] == VISIT) == is_visit]
                self._number[table] += len(chunk)
                if chunk:
                    yield table, chunk
            self.checksums("frontier", part)

    def added(self, table: str, number: int) -> None:
        """So many of the keys were new to their temporary table."""
        self._distinct[table] += number

    def ended(self, rows: Iterable[Row]) -> None:
        """Count how URLs ended."""
        for row in rows:
            self._ends[row[5], row[6]] += 1
            self.checksums("ended", (row,))

    def hosts(self, rows: Iterable[Row]) -> None:
        """Look for hosts that are another, and for those that are due after their first URL."""
        for number, partition, name, due, parked, turn in rows:
            # A parked host is due when it may be asked again.
            if (number, partition) != (host_number(name), partition_of(name)) or parked not in (None, due):
                self._damaged["host"] += 1
                self._example.setdefault("host", name)
            elif parked is None and turn is not None and (due is None or due > due_of(turn) + 0.001):
                self._late.append(name)

    def forgotten(self, rows: Iterable[Row]) -> None:
        """Look at what is kept of forgotten URLs."""
        for (hash_,) in rows:
            if hash_ != checked(hash_[:12]):
                self._damaged["forgotten"] += 1
                self._example.setdefault("forgotten", hash_.hex())

    def checksums(self, table: str, rows: Iterable[Row]) -> None:
        """Look for flipped bits."""
        for row in rows:
            if not is_whole(row):
                self._damaged[table] += 1
                self._example.setdefault(table, repr(row)[:200])

    def faults(self, known: int, stored: int) -> Iterator[Fault]:
        """What is wrong with the rows, and with the counts of known URLs and of all hosts' stored ones."""
        for table, number in self._damaged.items():
            yield Fault(f"rows of {table} are damaged", number, self._example[table])
        if self._late:
            yield Fault("hosts are due too late", len(self._late), self._late[0])
        for table in TEMPORARY:
            twice = self._number[table] - self._distinct[table]
            if twice and not (self.has_visits and table == "row_keys"):
                yield Fault(f"{table.removesuffix('_keys')} URLs are there twice", twice)
        counted: dict[tuple[str, str], Any] = {
            KNOWN: known + self._tally.get(FORGOTTEN, 0),
            WAITING: self._distinct["waiting_keys"],
            **self._ends,
        }
        for name, number in counted.items():
            if self._tally.get(name, 0) != number:
                shown = " ".join(filter(None, name))
                yield Fault("counts are wrong", 1, f"{shown}: {self._tally.get(name, 0)} noted, {number} found")
        if not self._tally.get(FORGOTTEN) and stored != self._distinct["row_keys"]:
            yield Fault("counts are wrong", 1, f"rows: {stored} noted, {self._distinct['row_keys']} found")
