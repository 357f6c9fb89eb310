"""Proves a WARC against the rows that vouch for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

from sanderling.crawls.archive import FOLDER, decode_row, segments
from sanderling.formats import warc
from sanderling.stores.rows_file import read_rows


def check_archive(
    folder: Path, crawl: int, rows: Path, length: int, say: Callable[[str], object], *, closed: bool
) -> None:
    """Compare the captures of a crawl with its rows: each there once, whole and with its digest.

    Of a run that was not `closed`, what stands behind the last capture of a row was not vouched for yet: it is cut off.
    """
    said: dict[tuple[str, int], str] = {}
    for line, _ in read_rows(rows, 0, length):
        row = decode_row(line)
        if row.warc_file is not None:
            said[row.warc_file, row.warc_offset] = row.warc_digest
    behind: list[str] = []  # what is wrong behind the last capture of which a row speaks
    for path in segments(folder, f"pages-{crawl:04}"):
        for record in _captures(path, behind):
            digest = said.pop((path.name, record.offset), None)
            if digest is None:
                behind.append(f"{_where(path, record)}: a capture of {record.url} of which no row speaks")
                continue
            while behind:
                say(behind.pop(0))
            _check_record(path, record, digest, say)
    while closed and behind:
        say(behind.pop(0))
    for name, offset in said:
        say(f"{FOLDER}/{name}: no capture at byte {offset}, of which a row speaks")


def _captures(path: Path, problems: list[str]) -> Iterator[warc.WarcRecord]:
    """The captures of a segment, as far as it can be read; why no further is put to the problems."""
    try:
        yield from (record for record in warc.read_records(path) if record.kind in ("response", "revisit"))
    except warc.WarcError as error:
        problems.append(str(error))


def _where(path: Path, record: warc.WarcRecord) -> str:
    return f"{FOLDER}/{path.name} byte {record.offset}"


def _check_record(path: Path, record: warc.WarcRecord, digest: str, say: Callable[[str], object]) -> None:
    if record.headers.get("warc-payload-digest") != digest:
        say(f"{_where(path, record)}: {record.url} has another digest than its row")
    elif record.headers.get("warc-block-digest") != warc.digest_of(record.block):
        say(f"{_where(path, record)}: the content of {record.url} has another digest than it says")
