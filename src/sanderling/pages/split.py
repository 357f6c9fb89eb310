"""Takes the folder of a crawl of pages apart: rows, documents, archives and ledgers, those of earlier crawls too."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive_forget import cut_archive
from sanderling.crawls.folder import FAILED, plan_of
from sanderling.crawls.split import BODIES, CARRIED, IsOwn, SourceRows, host_in_row, link, split_failures, split_rows
from sanderling.pages import earlier, forget, parquet
from sanderling.pages.earlier import LEDGER, NEXT
from sanderling.pages.files import FOLDER as PARTIAL
from sanderling.pages.files import PartialFile
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.output import PAGES
from sanderling.stores import forgotten
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import SCREENSHOTS
from sanderling.stores.frontier_split import split_ledger
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.rows_file import reaches


class PagesSplit:
    """How a crawl of pages is taken apart."""

    def is_one(self, out: Path) -> bool:
        """Whether a folder holds a crawl that one process began, or what is left of one."""
        return any((out / name).exists() for name in (LEDGER, NEXT))

    def prepare(self, out: Path) -> None:
        """Finish what was cut short. Raises FolderError if rows are missing."""
        for _ in earlier.go_on(out):
            pass
        forget.go_on(out)
        for crawl in forget.crawls(out):
            with closing(VisitedFrontier(crawl / LEDGER)) as ledger:  # which brings it to this format
                meta = ledger.meta
            if not reaches(crawl / PAGES, meta.watermark):
                raise FolderError(
                    f"{crawl / PAGES} lacks rows. Go on without --processes first: that fetches them again, and then "
                    "the crawl can be taken apart."
                )
            if plan_of(meta, crawl / LEDGER, CrawlPlan).keep == "warc":
                cut_archive(out, meta.crawl, crawl / PAGES, meta.watermark)

    def split_part(self, out: Path, target: Path, is_own: IsOwn, *, first: bool) -> None:
        """Write a part."""
        del first  # nothing is of no host
        for crawl in forget.crawls(out):
            place = target / crawl.relative_to(out)
            place.mkdir(parents=True, exist_ok=True)
            _split_crawl(out, crawl, target, place, is_own)
        _split_downloads(out / PARTIAL, target / PARTIAL, is_own)

    def leftovers(self, out: Path) -> Iterator[Path]:
        """What is removed once there are parts."""
        if not (out / LEDGER).exists():
            return
        folders = (BODIES, WARCS, SCREENSHOTS, PARTIAL, "earlier")
        names = (PAGES, FAILED, *folders, *(each for each in CARRIED if each != forgotten.FILE))
        yield from (out / name for name in names if (out / name).exists())
        yield from parquet.files(out)
        yield out / LEDGER


def _split_crawl(out: Path, crawl: Path, target: Path, place: Path, is_own: IsOwn) -> None:
    meta = split_ledger(crawl / LEDGER, place / LEDGER, is_own)
    archived = plan_of(meta, crawl / LEDGER, CrawlPlan).keep == "warc"
    rows = SourceRows(out, crawl / PAGES, meta.watermark, meta.crawl, archived)
    size = split_rows(rows, target, place / PAGES, is_own)
    with closing(VisitedFrontier(place / LEDGER)) as ledger:
        ledger.note(watermark=size)
    split_failures(crawl, place, is_own)
    if crawl != out and parquet.files(crawl) and parquet.have_parquet():
        parquet.write_in_child(place)  # that of the last crawl is written by the next run


def _split_downloads(source: Path, target: Path, is_own: IsOwn) -> None:
    """What has come of files that are not whole yet."""
    for known in source.glob("*.json"):
        try:
            url = msgspec.json.decode(known.read_bytes(), type=PartialFile).url
        except msgspec.MsgspecError:
            continue  # it is begun anew
        if is_own(host_in_row(url)):
            link(known.with_suffix(".part"), target / known.with_suffix(".part").name)
            link(known, target / known.name)
