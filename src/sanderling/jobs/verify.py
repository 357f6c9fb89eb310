"""Prove that a job lost nothing and kept nothing twice: its records and its list of failures against the ledger."""

import zlib
from pathlib import Path

import msgspec

from sanderling.crawls.verify import CrawlProof, LedgerInspection, check_kept, inspect, numbered
from sanderling.jobs.files import FRONTIER, RECORDS
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import FILE, Forgotten


def verify_job(folder: Path) -> CrawlProof:
    """Compare all that the folder of a job holds with its ledger. FolderError if there is no such folder."""
    if not (folder / FRONTIER).exists():
        raise FolderError(f"there is no job in {folder}: it holds no {FRONTIER}")
    proof = CrawlProof()
    if Forgotten.of(folder).says.removing:
        proof.say(f"{FILE}: what it says was not all removed; run: sanderling forget {folder}")
    return inspect(folder / FRONTIER, proof, _look)


def _look(found: LedgerInspection) -> None:
    path, meta, proof = found.ledger.with_name(RECORDS), found.meta, found.proof
    length = checksum = 0
    for where, line in numbered(path, meta.watermark):
        try:
            msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            proof.say(f"{where}: no JSON: {error}")
        checksum, length, proof.rows = zlib.crc32(line, checksum), length + len(line), proof.rows + 1
    found.check_size(path, meta.watermark)
    if proof.rows != meta.records:
        proof.say(f"{path.name} has {proof.rows} records, expected {meta.records}")
    if length == meta.watermark and checksum != meta.checksum:
        proof.say(f"{path.name}: its checksum is {checksum:08x}, expected {meta.checksum:08x}: it was changed")
    if meta.kept:
        check_kept(found.ledger.parent, found)
    if meta.closed:
        found.check_failures()
