"""Takes the folder of a crawl that one process began apart, by the partition of its hosts, so that several can go on.

The parts are made beside all that is there, under another name, and nothing else is changed before they are whole. The
decision is `parts.json`: killed before it stands there, the next run begins again; killed after, it removes what is
left of the one folder. Documents and archives are linked where that is possible, and not copied.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive import index_path, segments, write_index
from sanderling.crawls.archive_forget import CaptureRemoval, sweep
from sanderling.crawls.folder import FAILED
from sanderling.crawls.parts import FILE, FOLDER, decide_on_parts, enough_parts, folder_in, number_of_parts, part_of
from sanderling.ids import HostError, host_of
from sanderling.stores import cookie_file, forgotten, limiter_file
from sanderling.stores.durable import plainly, sync_data, sync_folder, write_new
from sanderling.stores.rows_file import read_rows

DRAFT = "parts.draft"
CARRIED = {  # what every part gets whole: hosts of several parts may need it
    cookie_file.FILE: 0o600,
    limiter_file.FILE: 0o644,
    limiter_file.NEWS: 0o644,
    forgotten.FILE: 0o644,
}
BODIES = "bodies"

IsOwn = Callable[[str], bool]


class SplitSystem(Protocol):
    """How a system takes its own folder apart."""

    def is_one(self, out: Path) -> bool:
        """Whether a folder holds a crawl that one process began, or what is left of one."""

    def prepare(self, out: Path) -> None:
        """Finish what was cut short. Raises FolderError if the folder cannot be taken apart, and says why."""

    def split_part(self, out: Path, target: Path, is_own: IsOwn, *, first: bool) -> None:
        """Write a part, with what is of its own hosts; the first also gets what is of none."""

    def leftovers(self, out: Path) -> Iterable[Path]:
        """What is removed once there are parts, the ledger last."""


class SplitRow(msgspec.Struct):
    """What tells whose row a line is, and which files it speaks of."""

    url: str
    body_path: str | None = None
    screenshot: str | None = None


_decode = msgspec.json.Decoder(SplitRow).decode


def split_folder(out: Path, processes: int, system: SplitSystem) -> Iterator[str]:
    """Take a folder apart, enough for so many processes. Says after each step what it has done; take all of them.

    Whoever calls it holds the folder. Raises FolderError.
    """
    with plainly(out):
        if not number_of_parts(out):
            yield from _make(out, enough_parts(processes), system)
        for path in system.leftovers(out):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            yield f"{path.name} is removed"
        sync_folder(out)


def _make(out: Path, parts: int, system: SplitSystem) -> Iterator[str]:
    draft = out / DRAFT
    for left in (draft, out / FOLDER):
        shutil.rmtree(left, ignore_errors=True)
    yield "nothing is left of an earlier try"
    system.prepare(out)
    yield "the folder is whole"
    for part in range(parts):
        target = folder_in(draft, part)
        target.mkdir(parents=True)
        for name, mode in CARRIED.items():
            if (out / name).exists():
                write_new(target / name, [(out / name).read_bytes()], mode=mode)
        system.split_part(out, target, lambda host, part=part: part_of(host, parts) == part, first=part == 0)  # type: ignore[misc]
        yield f"part {part} is made"
    for path, _, _ in os.walk(draft):
        sync_folder(Path(path))
    draft.rename(out / FOLDER)
    sync_folder(out)
    yield "the parts have their place"
    decide_on_parts(out, parts)
    yield f"{FILE} says so"


class SourceRows(NamedTuple):
    """Rows that are taken apart: the file in which they stand, in a folder with the documents that they speak of."""

    root: Path
    rows: Path
    length: int  # of what the ledger vouches for
    crawl: int
    archived: bool


def split_rows(source: SourceRows, target: Path, copy: Path, is_own: IsOwn) -> int:
    """Write the rows of own hosts to `copy`, with the files and captures that they speak of; how long it is."""
    out, rows, length, crawl, archived = source
    if archived:
        for each in segments(out, f"pages-{crawl:04}"):
            link(each, target / WARCS / each.name)
    write_new(copy, CaptureRemoval(target, rows, length, lambda url: not is_own(host_in_row(url))).rows())
    size = copy.stat().st_size
    if archived and (target / WARCS).exists():
        sweep(target, crawl, copy, size)
        if index_path(out, crawl).exists():
            write_index(target, crawl, copy, size)
    for line, _ in read_rows(copy, 0, size):
        row = _decode(line)
        if row.body_path is not None:
            link(out / row.body_path, target / row.body_path)
        if row.screenshot is not None:
            link(rows.parent / row.screenshot, copy.parent / row.screenshot)
    return size


def split_failures(source: Path, target: Path, is_own: IsOwn) -> None:
    """Write the list of failures of own hosts, if there is one."""
    path = source / FAILED
    if path.exists():
        lines = (line for line, _ in read_rows(path, 0, path.stat().st_size))
        write_new(target / FAILED, (line + b"\n" for line in lines if is_own(host_in_row(_decode(line).url))))


def host_in_row(url: str) -> str:
    """The host of a URL that a row has; empty for what is none."""
    try:
        return host_of(url)
    except HostError:
        return ""


def link(source: Path, target: Path) -> None:
    """Have the file in two places, unless it is there; a copy where files cannot be linked, or are not there."""
    if target.exists() or not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another device, a file system without links, or too many of them
        shutil.copyfile(source, target)
        with target.open("rb+") as file:
            sync_data(file.fileno())
