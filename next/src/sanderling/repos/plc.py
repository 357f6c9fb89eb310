"""The log of did:plc, folded into a directory: the last operation of each DID says where its account is.

Of two formats of the export, one numbers its lines (`seq`), the older one says which were undone (`nullified`). To undo
an operation takes a newer one, so the last that was not undone is the right one in both.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from sanderling.clock import Clock
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest
from sanderling.files import Exit, FolderError, disk_errors
from sanderling.repos.atproto import EndpointError, host_at, is_did
from sanderling.repos.directory import SqliteDirectory

PAGE = 1000  # lines; the directory gives no more
LONGEST_LINE = 1 << 16  # an operation has 7,500 bytes at most
BATCH = 20_000  # lines of a file that are stored at once
SHOWN = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Service(msgspec.Struct):
    endpoint: str = ""


class _Services(msgspec.Struct):
    atproto_pds: _Service | None = None


class _Operation(msgspec.Struct):
    type: Literal["plc_operation", "create", "plc_tombstone"]
    services: _Services = msgspec.field(default_factory=_Services)
    service: str = ""  # of `create`, which was before there were services

    @property
    def endpoint(self) -> str:
        if self.type == "plc_operation":
            return self.services.atproto_pds.endpoint if self.services.atproto_pds else ""
        return self.service if self.type == "create" else ""


class _Line(msgspec.Struct):
    did: str
    operation: _Operation
    created_at: Annotated[datetime, msgspec.Meta(tz=True)] = msgspec.field(name="createdAt")
    nullified: bool = False
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


_decode = msgspec.json.Decoder(_Line).decode


def _operation_of(line: bytes) -> _Line:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"{len(line):,} bytes, expected at most {LONGEST_LINE:,}")
    found = _decode(line)
    if not is_did(found.did):
        raise ValueError(f"found {found.did[:80]!r}, expected a DID")
    return found


@dataclass(slots=True)
class ReadLines:
    """What was read of an export, and what was wrong with it."""

    changes: list[tuple[str, str, int]] = field(default_factory=list)
    lines: int = 0
    refused: int = 0  # endpoints that are no host
    bad: int = 0  # lines that are no operations
    shown: list[str] = field(default_factory=list)  # the first of both
    cursor: str = ""  # where to go on

    def read(self, line: bytes) -> None:
        """Take in one line; nothing that it says raises."""
        self.lines += 1
        try:
            found = _operation_of(line)
        except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
            self.bad += 1
            self._show(str(error))
            return
        at = (found.created_at - _EPOCH) // timedelta(microseconds=1)
        self.cursor = str(found.seq) if found.seq else found.created_at.isoformat(timespec="milliseconds")
        if found.nullified:
            return
        host = ""
        if endpoint := found.operation.endpoint:
            try:
                host = host_at(endpoint, private=True)
            except EndpointError as error:
                self.refused += 1
                self._show(f"{found.did}: {error}")
                return  # where it was before is as good a guess, and it may name another host later
        self.changes.append((found.did, host, at))

    def _show(self, said: str) -> None:
        if len(self.shown) < SHOWN:
            self.shown.append(f"line {self.lines:,}: {said}"[:300])


async def fill_from_file(directory: SqliteDirectory, lines: Iterable[bytes], most: int | None) -> ReadLines:
    """Fill a directory from an export that lies in a file."""
    total = ReadLines()
    for batch in _batches(lines, most):
        before = total.refused
        total.changes = []
        for line in batch:
            if not line.isspace():
                total.read(line)
        cursor = total.cursor or directory.cursor
        await directory.add(total.changes, cursor, len(total.changes), total.refused - before)
    return total


def _batches(lines: Iterable[bytes], most: int | None) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for number, line in enumerate(lines):
        if number == most:
            break
        batch.append(line)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def fill_from_log(
    directory: SqliteDirectory, client: Client, plc: str, most: int | None, clock: Clock
) -> ReadLines:
    """Bring a directory up to date by the log of PLC. Raises FolderError if it cannot be reached; what came is kept."""
    total = ReadLines()
    failures = 0
    while most is None or total.lines < most:
        after = directory.cursor or "0"
        url = f"{plc}export?count={PAGE}&after={after.replace('+00:00', 'Z')}"
        response = await client.send(HttpRequest(url, headers=(("Accept", "application/jsonlines"),), largest=64 << 20))
        if not response.outcome.ok:
            failures += 1
            if failures > 5 or not response.outcome.worth_retrying:
                said = response.outcome.detail or f"status {response.status}"
                raise FolderError(f"{plc} does not give its log: {said}", "run the same command again", Exit.LATER)
            await clock.sleep(max(response.outcome.retry_after or 0.0, min(60.0, 2.0**failures)))
            continue
        failures = 0
        before, total.changes, lines = total.refused, [], response.body.splitlines()
        for line in lines:
            total.read(line)
        if not lines or total.cursor == directory.cursor:
            break
        await directory.add(total.changes, total.cursor, len(total.changes), total.refused - before)
        if len(lines) < PAGE:
            break
        await asyncio.sleep(0)
    return total


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, none longer than is read at once."""
    with disk_errors(path), path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 2):
            yield line
