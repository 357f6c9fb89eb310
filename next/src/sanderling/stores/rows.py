"""The rows of both databases, how they come from what is committed, and what `verify` compares."""

import zlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import Any

import msgspec

from sanderling.ids import url_key
from sanderling.stores.work import (
    KIND_NUMBER,
    KINDS,
    VISIT,
    Batch,
    FoundUrl,
    HostNote,
    HostWork,
    PageMemory,
    QueuedUrl,
    UrlState,
    due_of,
    host_number,
    turn_of,
)

FRONTIER = "host, kind, turn, id, url, key, depth, priority, failures, function, data, code, crc"
ENDED = "key, host, name, url, depth, state, code, status, detail, requests, function, priority, data, crc"
MEMORY = "key, etag, modified, digest, seen, every, crc"
# Kept in `tally` beside the ends.
KNOWN, WAITING, VISITS, FORGOTTEN = ("known", ""), ("waiting", ""), ("visits", ""), ("forgotten", "")
COMMITS = ("commits", "")  # of each process: was the commit made whose answer was lost?
KEPT = frozenset({KNOWN, WAITING, VISITS, FORGOTTEN, COMMITS})
DOCUMENTS = ("note", "good", "pace", "robots", "cookies")  # of a host, stored as their place here
HOST_BYTES = 5  # of a key, that are its host's
PAGE = 2_000  # rows that are read at once of a table
_AGAIN = KIND_NUMBER["again"]
_encode = msgspec.msgpack.Encoder().encode
Row = tuple[Any, ...]


def with_crc(*row: Any) -> Row:  # noqa: ANN401 - columns
    """A row with its checksum: neither database finds a flipped bit in what it stores."""
    return *row, zlib.crc32(_encode(row))


def is_whole(row: Sequence[Any]) -> bool:
    """Whether the checksum at the end of a row is right."""
    return bool(zlib.crc32(_encode(tuple(row[:-1]))) == row[-1])


def place_of(item: QueuedUrl) -> Row:
    """The primary key of a URL that waits."""
    return host_number(item.host), KIND_NUMBER[item.kind], item.turn, item.id


def queued_row(item: QueuedUrl, kind: int, turn: int, failures: int, code: str) -> Row:
    """The row of a URL that waits again."""
    key = None if item.key == url_key(item.url) else item.key
    return with_crc(
        host_number(item.host), kind, turn, item.id, item.url, key, item.depth, item.priority, failures,
        item.function, item.data, code,
    )  # fmt: skip


def found_row(found: FoundUrl, number: int) -> Row:
    """The row of a URL that is new."""
    turn = turn_of(found.priority, found.due)
    return with_crc(
        host_number(found.host), KIND_NUMBER[found.kind], turn, number, found.url, found.key or None, found.depth,
        found.priority, 0, found.function, found.data, found.code,
    )  # fmt: skip


def queued(row: Sequence[Any], host: str, memory: PageMemory | None = None) -> QueuedUrl:
    """The URL of a row of `frontier`."""
    _, kind, turn, number, url, key, depth, priority, failures, function, data, code, _ = row
    return QueuedUrl(
        number, host, url, key or url_key(url), depth, KINDS[kind], priority, turn, failures, function, data, code,
        memory,
    )  # fmt: skip


def waiting_state(row: Sequence[Any]) -> UrlState:
    """What is known of the URL of a row of `frontier`."""
    _, _, turn, _, url, key, depth, priority, failures, function, data, code, _ = row
    return UrlState(
        "waiting", url.split("/", 3)[2], url, key or url_key(url), depth, code,
        requests=failures, function=function, priority=priority, data=data, due=due_of(turn),
    )  # fmt: skip


def ended_state(row: Sequence[Any]) -> UrlState:
    """What is known of the URL of a row of `ended`."""
    key, _, name, url, depth, end, code, status, detail, requests, function, priority, data, _ = row
    return UrlState(end, name, url, key, depth, code, status, detail, requests, function, priority, data)


def requeued_row(row: Sequence[Any]) -> Row:
    """The row of a URL that waits for later, due now."""
    return with_crc(*row[:2], turn_of(row[7], 0.0), *row[3:8], 0, *row[9:-1])


def retried_row(row: Sequence[Any], number: int) -> Row:
    """The row in `frontier` for one of `ended`."""
    key, host, _, url, depth, _, _, _, _, _, function, priority, data, _ = row
    own = None if key == url_key(url) else key
    turn = turn_of(priority, 0.0)
    return with_crc(host, _AGAIN, turn, number, url, own, depth, priority, 0, function, data, "")


def memory_row(memory: PageMemory) -> Row:
    """The row of what the next request has to know."""
    return with_crc(memory.key, memory.etag, memory.modified, memory.digest, memory.seen, memory.interval)


def due_by_host(found: Iterable[FoundUrl]) -> dict[str, float | None]:
    """When the first of what was found is due, by host; None where all is set aside."""
    first: dict[str, float] = {}
    for each in found:
        first[each.host] = min(first.get(each.host, inf), each.due)
    return {host: None if due == inf else due for host, due in first.items()}


def hosts_to_wake(new: Iterable[FoundUrl], batch: Batch) -> list[str]:
    """The hosts with something new to do, parked ones among them."""
    hosts = dict.fromkeys(each.host for each in new if each.due != inf)
    hosts |= dict.fromkeys(each.item.host for each in batch.again if each.due != inf)
    hosts |= dict.fromkeys(note.host for note in batch.hosts if note.parked == 0.0)
    return list(hosts)


def document_rows(note: HostNote) -> list[Row]:
    """The rows of what was learned about a host."""
    good = None if note.good is None else note.good.encode()
    bodies = enumerate((note.note, good, note.pace, note.robots, note.cookies))
    return [with_crc(host_number(note.host), what, body) for what, body in bodies if body is not None]


def host_work(name: str, wait: float, *, parked: bool, stored: int, documents: Mapping[str, bytes]) -> HostWork:
    """A host with work, from its row and its documents."""
    good, pace = documents.get("good", b""), documents.get("pace", b"")
    return HostWork(
        name, max(0.0, wait), good.decode() or None, stored, parked, documents.get("note", b""), pace or None
    )


def forgotten_hash(key: bytes, salt: bytes) -> bytes:
    """What is kept of a forgotten URL: enough to know it again, too little to say which it was; and a checksum."""
    return checked(blake2b(key, key=salt, digest_size=12).digest())


def checked(hash_: bytes) -> bytes:
    """A hash of 12 bytes, and the four of its checksum."""
    return hash_ + zlib.crc32(hash_).to_bytes(4)


def forgotten_hashes(keys: Iterable[bytes], salt: bytes) -> dict[bytes, list[bytes]]:
    """By what it would be known that keys are forgotten: each alone, or its whole host."""
    found: dict[bytes, list[bytes]] = {}
    for key in keys:
        found.setdefault(forgotten_hash(key, salt), []).append(key)
        found.setdefault(forgotten_hash(key[:HOST_BYTES], salt), []).append(key)
    return found


def host_keys(host: str) -> tuple[bytes, bytes]:
    """The first and the last key that a URL of a host can have."""
    start = url_key(f"https://{host}/")[:HOST_BYTES]
    return start + bytes(16 - HOST_BYTES), start + b"\xff" * (16 - HOST_BYTES)


def page_query(state: str, host: str | None, code: str | None, last: Row | None, mark: str) -> tuple[str, list[Any]]:
    """A query for the next rows of `frontier` or `ended`, in the order of their keys, and its values.

    `last` is the key of the last row that was read; `mark` stands before the number of a value.
    """
    values: list[Any] = []

    def value(given: Any) -> str:  # noqa: ANN401 - of any column
        values.append(given)
        return f"{mark}{len(values)}"

    if state == "waiting":
        columns, table, order = FRONTIER, "frontier", "host, kind, turn, id"
        conditions = [f"kind <> {value(VISIT)}"]
    else:
        columns, table, order = ENDED, "ended", "key"
        conditions = [f"state = {value(state)}"]
    if host is not None:
        conditions.append(f"host = {value(host_number(host))}")
    if code is not None:
        conditions.append(f"code = {value(code)}")
    if last is not None:
        conditions.append(f"({order}) > ({', '.join(value(each) for each in last)})")
    return f"SELECT {columns} FROM {table} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {PAGE}", values


def page_end(state: str, rows: Sequence[Sequence[Any]]) -> Row:
    """The key of the last row of a page."""
    return tuple(rows[-1][:4] if state == "waiting" else rows[-1][:1])


def late_visits(
    changed: Mapping[str, float], urls: Mapping[bytes, str], seen: Iterable[Sequence[Any]], hosts: Container[str]
) -> dict[str, set[bytes]]:
    """The keys of pages that have changed since they were `seen`, by host, as far as it is one of these."""
    late: dict[str, set[bytes]] = {}
    for key, at in seen:
        url = urls[key]
        if at < changed[url] and (host := url.split("/", 3)[2]) in hosts:
            late.setdefault(host, set()).add(key)
    return late


class Changes:
    """What a batch changes of the URLs that were taken, as rows."""

    def __init__(self, batch: Batch) -> None:
        self.gone: list[Row] = []  # places in `frontier`
        self.again: list[Row] = []  # rows for `frontier`
        self.ended: list[Row] = []
        self.stored = Counter[str]()  # by host
        self.tally = Counter(batch.tally)
        for stored in batch.stored:
            self._leave(stored.item, stored.end, stored.code)
            if stored.item.kind != "visit":
                self.stored[stored.item.host] += 1
            if stored.visit_at is not None:
                self.tally[VISITS] += 1
                self.again.append(queued_row(stored.item, VISIT, turn_of(0, stored.visit_at), 0, ""))
        for ended in batch.ended:
            item = ended.item
            self._leave(item, ended.end, ended.code)
            self.ended.append(
                with_crc(
                    item.key, host_number(item.host), item.host, item.url, item.depth, ended.end, ended.code,
                    ended.status, ended.detail, ended.requests, item.function, item.priority, item.data,
                )
            )  # fmt: skip
        for again in batch.again:
            item = again.item
            self.gone.append(place_of(item))
            kind = _AGAIN if item.kind == "new" else KIND_NUMBER[item.kind]
            turn = turn_of(item.priority, again.due)
            self.again.append(queued_row(item, kind, turn, again.failures, again.code))

    def _leave(self, item: QueuedUrl, end: str, code: str) -> None:
        self.gone.append(place_of(item))
        self.tally[end, code] += 1
        if item.kind != "visit":
            self.tally[WAITING] -= 1
