"""How a run begins in the parts of a crawl: all of them are at one crawl of the folder.

Killed in the middle of it, the next run takes the rest of the steps.
"""

from contextlib import closing
from pathlib import Path

from sanderling.crawls.folder import plan_of
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.parts import folders_of
from sanderling.pages import forget
from sanderling.pages.earlier import LEDGER
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.record import SITEMAP
from sanderling.pages.revisits import VisitRules
from sanderling.stores.board import BoardField
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import FrontierMeta, connect_to_read, read_meta
from sanderling.stores.frontier_rows import End
from sanderling.stores.frontier_visits import VisitedFrontier


def begin_parts(
    out: Path, plan: CrawlPlan | None, *, resume: bool, wall: float, visits: VisitRules | None, reopen: End | None
) -> BegunParts:
    """Begin a run in every part, which processes then go on with. Raises FolderError.

    Who resumes it has what was left asked for, and what came to the end `reopen`.
    """
    forget.finish(out)
    folders = folders_of(out)
    metas = {path: meta for path in folders if (meta := _meta(path)) is not None}
    latest = max((meta.crawl for meta in metas.values()), default=1)
    goes_on = resume or len(metas) < len(folders) or not all(meta.finished for meta in metas.values())
    if plan is None and len(metas) < len(folders):
        if not metas:
            raise FolderError(f"there is nothing to resume in {out}: it holds no crawl. Begin without resume.")
        plan = plan_of(next(iter(metas.values())), out, CrawlPlan)
    shown = []
    for path in folders:
        there = metas.get(path)
        here = there is not None and goes_on and there.crawl == latest
        asked = plan if plan is not None or there is None else plan_of(there, path, CrawlPlan)
        with CrawlFolder.open(path, asked, resume=here, wall=wall, visits=visits, whatever=True) as folder:
            if resume:
                reopen_left(folder.ledger, reopen)
            counts, sitemaps = folder.ledger.counts(), folder.ledger.by_code().get((End.FETCHED, SITEMAP), 0)
            shown.append({BoardField.FETCHED: counts[End.FETCHED] + counts[End.UNCHANGED] - sitemaps})
    return BegunParts(bool(metas) and goes_on, shown)


def reopen_left(ledger: VisitedFrontier, also: End | None = None) -> None:
    """What a limit cut off waits again: that may be another now; and what came to the end `also`."""
    ledger.reopen(End.LEFT)
    if also is not None:
        ledger.reopen(also)


def _meta(folder: Path) -> FrontierMeta | None:
    path = folder / LEDGER
    if not path.exists():
        return None
    with plainly(path), closing(connect_to_read(path)) as db:
        return read_meta(db, path)
