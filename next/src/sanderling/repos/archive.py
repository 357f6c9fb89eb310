"""What an archive holds now: of each account the newest repo, unless it is gone, and as far as the ledger counts it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

import msgspec

from sanderling.files import Exit, FolderError, disk_errors
from sanderling.formats.rca import Block, RcaError, RcaReader
from sanderling.formats.repo import RepoRecord
from sanderling.formats.segments import PART, segments_in
from sanderling.ids import url_key
from sanderling.records.rows import Entry, RowReader
from sanderling.repos.atproto import address_of
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.sink import TOMBSTONES, Tombstone
from sanderling.stores import RowFile

JOURNAL = "forget.json"  # what is being removed; see forget.py


def key_of(block: Block) -> bytes:
    """The key of a repo in the ledger."""
    return url_key(address_of(block.pds, block.did))


def account_key(did: str) -> bytes:
    """What tells the records of one account from those of another."""
    return blake2b(did.encode(), digest_size=16).digest()


def read_tombstones(folder: Path, counted: Collection[RowFile]) -> dict[str, Tombstone]:
    """The last tombstone of each account, whether or not it still holds."""
    found: dict[str, Tombstone] = {}
    own = [each for each in counted if each.file.startswith(f"{TOMBSTONES}.") or "-" in each.file]
    own = [each for each in own if (folder / each.file).exists()]
    with RowReader(folder, TOMBSTONES, own) as rows:
        for entry in rows.entries():
            for line in entry.lines:
                each = msgspec.json.decode(line, type=Tombstone)
                if each.did not in found or each.at >= found[each.did].at:
                    found[each.did] = each
    return found


class Archive:
    """The segments of a folder, open to be read, and which of their repos count.

    `counted` says how far the `.part` of a run counts; without a ledger all that is whole in it does.
    """

    def __init__(
        self,
        folder: Path,
        counted: Collection[RowFile] = (),
        left_out: RepoLeaveOut | None = None,
        *,
        is_half: bool = False,  # whether something of it may be half forgotten
        faults: list[str] | None = None,  # where segments are noted that cannot be read, instead of raising
    ) -> None:
        if (folder / JOURNAL).exists() and not is_half:
            raise FolderError(f"a sanderling forget of {folder} did not end", "run it again", Exit.LATER)
        with disk_errors(folder):
            self.segments = segments_in(folder)
        self.folder = folder
        self._faults = faults
        self.tombstones = read_tombstones(folder, counted)
        self._lengths = {f"{each.file}{PART}": each.length for each in counted}
        self.left_out = left_out or RepoLeaveOut()
        self._current: dict[bytes, tuple[int, int]] | None = None  # of accounts that are there several times

    def blocks(self, start: Mapping[str, int] | None = None) -> Iterator[Block]:
        """All repos that count, segment by segment; `start` says how many of each to pass over."""
        for number, path in enumerate(self.segments):
            skipped = (start or {}).get(path.name, 0)
            for at, block in enumerate(self.read(path)):
                if at >= skipped and self.counts(number, block):
                    yield block

    def read(self, path: Path) -> Iterator[Block]:
        """All repos of a segment, as far as it counts. Raises FolderError for a fault."""
        length = self._lengths.get(path.name)
        try:
            with disk_errors(path), RcaReader(path) as reader:
                for block in reader:
                    if length is not None and not reader.finished and block.offset >= length:
                        return
                    yield block
        except RcaError as error:
            raise FolderError(str(error), "restore the segment from a copy, or move it away") from None

    def counts(self, number: int, block: Block) -> bool:
        """Whether a repo is the newest of its account, which is not gone or left out."""
        if self.is_gone(block) or self.left_out.names(block.did, block.pds):
            return False
        return self.is_newest(number, block.did, block.offset)

    def is_gone(self, block: Block) -> bool:
        """Whether the account was gone after its repo was archived."""
        stone = self.tombstones.get(block.did)
        return stone is not None and stone.at >= block.crawled_at

    def is_newest(self, number: int, did: str, offset: int) -> bool:
        """Whether the account has no later repo than the one there."""
        newest = self._newest().get(account_key(did))
        return newest is None or newest == (number, offset)

    def gone(self) -> Iterator[tuple[Tombstone, bool]]:
        """The tombstones that hold, and whether something of the account is archived."""
        last: dict[str, tuple[Path, int]] = {}
        for path in self.segments:
            last |= {did: (path, offset) for did, offset, _ in self.places(path) if did in self.tombstones}
        for did, stone in self.tombstones.items():
            if did not in last:
                yield stone, False
            elif self.is_gone(self.block_at(*last[did])):
                yield stone, True

    def block_at(self, path: Path, offset: int) -> Block:
        """One repo of a segment."""
        with disk_errors(path), RcaReader(path) as reader:
            return reader.block_at(offset)

    def _newest(self) -> dict[bytes, tuple[int, int]]:
        """Where the newest repo is of each account that has several."""
        if self._current is None:
            first: dict[bytes, tuple[int, int]] = {}
            self._current = {}
            for number, path in enumerate(self.segments):
                for did, offset, _ in self.places(path):
                    key = account_key(did)
                    if key in first:
                        self._current[key] = number, offset
                    first[key] = number, offset
        return self._current

    def places(self, path: Path) -> Iterator[tuple[str, int, int]]:
        """DID, offset and bytes of each repo of a segment, by its index if it has one."""
        length = self._lengths.get(path.name)
        try:
            with disk_errors(path), RcaReader(path) as reader:
                for did, offset, size in reader.places():
                    if length is None or reader.finished or offset < length:
                        yield did, offset, size
        except RcaError as error:
            if self._faults is None:
                raise FolderError(str(error), "restore the segment from a copy, or move it away") from None
            if str(error) not in self._faults:
                self._faults.append(str(error))

    def find(self, did: str) -> Block | None:
        """The newest repo of an account, be it gone or not."""
        for path in reversed(self.segments):
            try:
                with disk_errors(path), RcaReader(path) as reader:
                    block = reader.find(did)
            except RcaError as error:
                raise FolderError(str(error), "restore the segment from a copy, or move it away") from None
            length = self._lengths.get(path.name)
            if block is not None and (length is None or path.suffix != PART or block.offset < length):
                return block
        return None


def lines_of(block: Block, wanted: Callable[[str], bool] | None = None) -> Iterator[bytes]:
    """The records of a repo, each a line of JSON."""
    return lines(block.did, block.records(wanted))


def lines(did: str, found: Iterable[RepoRecord]) -> Iterator[bytes]:
    """Records of an account, each a line of JSON."""
    # Names, keys and DIDs have no character that JSON would escape; a record is JSON in one line.
    start = b'{"did":"%b","collection":"' % did.encode()
    for name, rkey, json in found:
        yield b'%b%b","rkey":"%b","record":%b}' % (start, name.encode(), rkey.encode(), json)


class ArchiveRows(RowReader):
    """The records of an archive, each account an entry."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.folder, TOMBSTONES, ())
        self._archive = archive
        self._stack = ExitStack()

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def count(self) -> int:
        """How many records there are; reads all heads."""
        return sum(each.records for block in self._archive.blocks() for each in block.collections)

    def position(self) -> dict[str, int]:
        """How many repos each segment has."""
        return {path.name: sum(1 for _ in self._archive.read(path)) for path in self._archive.segments}

    def entries(self, start: Mapping[str, int] | None = None) -> Iterator[Entry]:
        """The records of each account."""
        for block in self._archive.blocks(start):
            yield _entry(block)

    def places(self) -> Iterator[tuple[bytes, int, str, int]]:
        """Where the records of each account are."""
        for block in self._archive.blocks():
            yield account_key(block.did), 1, block.did, block.offset

    def entry(self, file: str, number: int) -> Entry:  # noqa: ARG002 - the DID says it all
        """The records of an account."""
        block = self._archive.find(file)
        if block is None:
            raise FolderError(f"{self.folder} lacks the repo of {file}", "run sanderling verify")
        return _entry(block)


def _entry(block: Block) -> Entry:
    return Entry(account_key(block.did), 1, b"".join([line + b"\n" for line in lines_of(block)]))
