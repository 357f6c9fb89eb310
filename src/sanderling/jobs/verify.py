"""Prove that a job lost nothing and kept nothing twice: its records and its list of failures against the frontier.

Reads beside a job that is running, up to the watermark it finds first, and changes nothing.
"""

import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sanderling.jobs.folder import FAILED, FRONTIER, RECORDS, failed_line
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import Aside, End

MOST_PROBLEMS = 100


@dataclass(slots=True)
class JobProof:
    """What was found: how many requests there are in each end, how many records, and what is wrong."""

    counts: dict[End, int] = field(default_factory=lambda: dict.fromkeys(End, 0))
    records: int = 0
    finished: bool = False
    problems: list[str] = field(default_factory=list)  # the first hundred
    wrong: int = 0  # how many problems there are in all
    aside: tuple[Aside, ...] = ()  # hosts that did not answer; of what waits, this is why

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.wrong == 0

    def say(self, problem: str) -> None:
        """Something is wrong."""
        self.wrong += 1
        if self.wrong <= MOST_PROBLEMS:
            self.problems.append(problem)


def verify_job(folder: Path) -> JobProof:
    """Compare all that the folder of a job holds with its frontier. FolderError if there is no such folder."""
    if not (folder / FRONTIER).exists():
        raise FolderError(f"there is no job in {folder}: it holds no {FRONTIER}")
    proof = JobProof()
    try:
        with plainly(folder / FRONTIER), closing(frontier_file.connect_to_read(folder / FRONTIER)) as db:
            db.execute("BEGIN")  # one state of the frontier, whatever a job does meanwhile
            meta = frontier_file.read_meta(db, folder / FRONTIER)
            for (end, _), number in frontier_reading.tally(db).items():
                proof.counts[end] += number
            proof.finished, proof.aside = meta.finished, tuple(frontier_reading.aside(db))
            if sum(proof.counts.values()) != meta.known:
                proof.say(f"{FRONTIER} has {sum(proof.counts.values())} requests, expected {meta.known}")
            failures = list(map(failed_line, frontier_reading.failed_requests(db))) if meta.closed else None
    except FolderError as error:
        proof.say(str(error))
        return proof
    with plainly(folder):
        _check_records(folder / RECORDS, meta, proof)
        if failures is not None:
            _check_failures(folder / FAILED, failures, proof)
    return proof


def _check_records(path: Path, meta: frontier_file.FrontierMeta, proof: JobProof) -> None:
    offset = checksum = 0
    for number, line in enumerate(_lines(path), 1):
        if offset >= meta.watermark:
            break
        line = line[: meta.watermark - offset]  # noqa: PLW2901 - what is behind was never vouched for
        try:
            msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            proof.say(f"{path.name} line {number} (byte {offset}): no JSON: {error}")
        checksum, offset, proof.records = zlib.crc32(line, checksum), offset + len(line), proof.records + 1
    surplus = path.stat().st_size - meta.watermark if path.exists() else 0
    if meta.closed and surplus > 0:  # else a run may just write it, or was killed as it did; the next run removes it
        proof.say(f"{path.name} has {surplus} bytes behind the {meta.watermark} that {FRONTIER} knows of")
    if offset != meta.watermark:
        proof.say(f"{path.name} has {offset} bytes, expected {meta.watermark}")
    if proof.records != meta.records:
        proof.say(f"{path.name} has {proof.records} records, expected {meta.records}")
    if offset == meta.watermark and checksum != meta.checksum:
        proof.say(f"{path.name}: its checksum is {checksum:08x}, expected {meta.checksum:08x}: it was changed")


def _check_failures(path: Path, expected: list[bytes], proof: JobProof) -> None:
    found = list(_lines(path))
    if found != expected:
        line = next((at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None)
        at = min(len(found), len(expected)) if line is None else line
        proof.say(f"{path.name} differs from {FRONTIER} at line {at + 1}: {len(found)} lines, expected {len(expected)}")


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file
