"""Prove that a crawl lost nothing and kept nothing twice: ledger, rows, bodies and derived files against each other."""

import re
from pathlib import Path

from sanderling.crawls.archive_check import check_archive
from sanderling.crawls.folder import plan_of
from sanderling.crawls.verify import ComparedRow, CrawlProof, LedgerInspection, check_bodies, inspect, size_of
from sanderling.extras import load
from sanderling.pages import parquet
from sanderling.pages.earlier import LEDGER, NEXT
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.output import PAGES
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import FILE, Forgotten
from sanderling.stores.frontier_reading import versions
from sanderling.stores.frontier_rows import KEPT

_BODY = re.compile(r"bodies/([0-9a-f]{2})/\1[0-9a-f]{62}(\.[\w+-]{1,16})?", re.ASCII)


def verify(folder: Path) -> CrawlProof:
    """Compare all that the folder of a crawl holds with its ledger. FolderError if there is no such folder."""
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}")
    proof = CrawlProof()
    if (folder / NEXT).exists():
        proof.say(f"{NEXT}: the move of a finished crawl to earlier/ was cut short; crawl again to end it")
    if Forgotten.of(folder).says.removing:
        proof.say(
            f"{FILE}: what it says was not all removed, since that was cut short; run: sanderling forget {folder}"
        )
    # The bodies of an earlier crawl are where they were.
    root = folder.parent.parent if folder.parent.name == "earlier" else folder

    def check_path(where: str, row: ComparedRow) -> None:
        path = row.body_path
        if path is not None and not _BODY.fullmatch(path):
            proof.say(f"{where}: body_path is {path!r}, expected bodies/ab/ab….pdf or so")
        elif path is not None and not (root / path).is_file():
            proof.say(f"{where}: {path} is not there")

    def look(found: LedgerInspection) -> None:
        proof.rows = found.check_rows(
            folder / PAGES, found.meta.watermark, KEPT, found.differs, check_path, versions(found.db)
        )
        check_bodies(root, proof)
        if plan_of(found.meta, folder / LEDGER, CrawlPlan).keep == "warc":
            length = min(found.meta.watermark, size_of(folder / PAGES))
            check_archive(root, found.meta.crawl, folder / PAGES, length, proof.say, closed=found.meta.closed)
        if found.meta.closed:
            _check_parquet(folder, found.check_failures(), proof)
        else:
            proof.unproven.append("failed.jsonl and Parquet: they are made when a run ends, and the last one has not")

    return inspect(folder / LEDGER, proof, look)


def _check_parquet(folder: Path, failed: int, proof: CrawlProof) -> None:
    """As many rows in Parquet as in the files it was made from."""
    files = parquet.files(folder)
    if files and not parquet.have_parquet():
        proof.unproven.append("Parquet: pyarrow is not installed")
        return
    for name, rows in (("pages", proof.rows), ("failed", failed)):
        of_it = [path for path in files if path.name.startswith(name)]
        counted = 0
        for path in of_it:
            try:
                counted += load("pyarrow.parquet", "Parquet").read_metadata(path).num_rows
            except (OSError, ValueError) as error:  # pyarrow's own are both
                proof.say(f"{path.name}: {error}")
        if of_it and counted != rows:
            proof.say(f"{of_it[0].name} to {of_it[-1].name}: {counted} rows, expected {rows}")
