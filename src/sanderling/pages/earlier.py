"""A finished crawl is crawled again: its files move to earlier/0001/, and a new ledger takes their place.

Killed after any step, whoever opens the folder next takes the rest of them. `ledger.next` is the decision: before it
stands there, whole, nothing has moved; as long as it stands there, the move is not over.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from sanderling.crawls.folder import FAILED
from sanderling.pages import parquet
from sanderling.pages.output import PAGES
from sanderling.stores import frontier_file
from sanderling.stores.durable import FolderError, plainly, sync_folder
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import SCREENSHOTS

LEDGER, NEXT, DRAFT = "ledger.db", "ledger.next", "ledger.draft"


def place(folder: Path, crawl: int) -> Path:
    """Where the files of a crawl move."""
    return folder / "earlier" / f"{crawl:04}"


def begin(folder: Path, meta: FrontierMeta) -> Iterator[str]:
    """Put a new ledger for `meta` into the folder; one that stands there moves, with all its crawl has made.

    Says after each step what it has done. Take all of them.
    """
    current = folder / LEDGER
    earlier = current if current.exists() else None
    if earlier is not None and (there := place(folder, meta.crawl - 1)).exists():
        raise FolderError(f"{there} is in the way: crawl {meta.crawl - 1} should move there. Give it another name.")
    for leftover in folder.glob(f"{DRAFT}*"):
        leftover.unlink()
    frontier_file.create(folder / DRAFT, meta, earlier)
    yield "a new ledger is made"
    (folder / DRAFT).replace(folder / NEXT)
    sync_folder(folder)
    yield "it was decided on"
    yield from go_on(folder)


def go_on(folder: Path) -> Iterator[str]:
    """The rest of the steps, if there are any."""
    if not (folder / NEXT).exists():
        return
    there = place(folder, _crawl(folder / NEXT) - 1)
    if (folder / LEDGER).exists():
        there.mkdir(parents=True, exist_ok=True)
        sync_folder(folder)
        sync_folder(there.parent)
        yield "the place is made"
        # Bodies stay: their names say what is in them, and both crawls may speak of the same.
        for path in (folder / PAGES, folder / FAILED, folder / SCREENSHOTS, *parquet.files(folder)):
            if path.exists():
                path.replace(there / path.name)
                yield f"{path.name} is moved"
        sync_folder(there)
        (folder / LEDGER).replace(there / LEDGER)
        sync_folder(there)
        yield "the ledger is moved"
    (folder / NEXT).replace(folder / LEDGER)
    sync_folder(folder)
    yield "the new ledger stands in its place"


def _crawl(path: Path) -> int:
    db = frontier_file.connect_to_read(path)
    try:
        with plainly(path):
            return frontier_file.read_meta(db, path).crawl
    finally:
        db.close()


def again(meta: FrontierMeta, wall: float) -> FrontierMeta:
    """What the ledger of the next crawl of the same plan says."""
    return msgspec.structs.replace(FrontierMeta(), plan=meta.plan, crawl=meta.crawl + 1, started=wall)
