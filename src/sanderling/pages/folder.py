"""The folder of a crawl: whose it is, what it holds, and how a run begins and ends in it.

A run that was killed is gone on with. A crawl that is finished is crawled again, and its files move to earlier/0001/.
What would mix two crawls is refused, with what to do instead.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Self

import msgspec

from sanderling.crawls.archive import PageArchive, write_index
from sanderling.crawls.folder import LedgerFolder, failed_line, plan_of
from sanderling.crawls.kept import Keep
from sanderling.crawls.parts import check_one
from sanderling.outcome import Code
from sanderling.pages import earlier, forget, parquet
from sanderling.pages.earlier import LEDGER, NEXT
from sanderling.pages.forget import ForgottenUrls
from sanderling.pages.output import PAGES, PageRows, whole_rows
from sanderling.pages.revisits import VisitRules
from sanderling.pages.sitemaps import is_sitemap
from sanderling.pages.urls import host_in
from sanderling.pages.visiting import Visiting
from sanderling.stores.durable import FolderError, Lock, check_empty, plainly
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import KEPT, End, Ended, FoundUrl, RetryUrl
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.rows_file import reaches


class CrawlPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to crawl: where to begin, which hosts to follow links to, and how far."""

    seeds: tuple[str, ...]
    allow: tuple[str, ...]
    depth: int
    keep: Keep | None = None  # the pages as they came, beside what is read in them


class FolderState(Enum):
    """How a run finds its folder."""

    NEW = "new"
    RESUMED = "resumed"
    AGAIN = "again"  # crawled before, to the end


class CrawlFolder(LedgerFolder[VisitedFrontier]):
    """A folder that one run holds alone, from `open` to the end of its `with` block."""

    def __init__(
        self, path: Path, lock: Lock, ledger: VisitedFrontier, visits: VisitRules | None = None, wall: float = 0.0
    ) -> None:
        super().__init__(path, lock, ledger)
        self.plan = plan_of(ledger.meta, path / LEDGER, CrawlPlan)
        if ledger.known:
            self.state = FolderState.RESUMED
        else:
            self.state = FolderState.NEW if ledger.meta.crawl == 1 else FolderState.AGAIN
        self.forgotten = ForgottenUrls(Forgotten.of(path))
        self.heard_moved: list[str] = []  # hosts that seeds of other parts live at, for the next commit
        self.put_back = 0  # URLs to be asked for once more, because their rows were lost
        self.rows: PageRows = self._reconciled()
        # Whoever goes on with pages that are visited adds to what their visits have taught.
        noted = visits is not None or ledger.meta.visited
        self.visiting = Visiting(ledger, visits or VisitRules(), wall) if noted else None

    @classmethod
    def open(
        cls,
        path: Path,
        plan: CrawlPlan | None,
        *,
        resume: bool,
        wall: float,
        visits: VisitRules | None = None,
        whatever: bool = False,
    ) -> Self:
        """Begin a run of `plan`, or with `resume` of whatever the folder holds. FolderError says why not.

        With `visits`, a crawl that is finished is not begun anew: its pages are visited when they are due. A part of a
        crawl is resumed `whatever` is left of it: that other parts find something for it is not known yet.
        """
        if plan is None and not resume:
            raise ValueError("neither a plan nor anything to resume")
        with plainly(path):
            _check_place(path, resume=resume)
            if plan is not None:
                path.mkdir(parents=True, exist_ok=True)
            opens = partial(
                _open_ledger, path, plan, resume=resume, wall=wall, visits=visits is not None, whatever=whatever
            )
            return cls.hold(path, opens, visits, wall)

    @property
    def archive(self) -> PageArchive | None:
        """The WARC of what is fetched, if there is one."""
        return self.rows.archive

    @property
    def crawl(self) -> int:
        """The how-manieth crawl of this folder it is."""
        return self.ledger.meta.crawl

    @property
    def moved_hosts(self) -> tuple[str, ...]:
        """Hosts that the seeds turned out to live at."""
        return msgspec.json.decode(self.ledger.meta.moved_hosts, type=tuple[str, ...])

    def allow_moved(self, url: str) -> None:
        """Remember the host of a URL that a seed turned out to live at, and let other parts know."""
        host = host_in(url)
        if self.others is not None:
            self.others.tell_all(FoundUrl(url, host, 0))
        self._note_moved(host)

    def _note_moved(self, *hosts: str) -> None:
        both = dict.fromkeys((*self.moved_hosts, *hosts))
        self.ledger.note(moved_hosts=msgspec.json.encode(list(both)).decode())

    def holds_earlier(self, url: str) -> bool:
        """Whether a 304 would do: of pages that are visited; with an archive, if it has that of an earlier crawl."""
        before = self.crawl > 1 or self.ledger.meta.visited
        return before and (self.archive is None or self.archive.earlier(url) is not None)

    def write(
        self, ended: Sequence[Ended], found: Sequence[FoundUrl], again: Sequence[RetryUrl], requests: int | None
    ) -> dict[str, int]:
        """Write bodies and rows, then the ledger. A page that has not changed leads where it led before."""
        del requests  # nobody counts them
        if self.heard_moved:
            self._note_moved(*self.heard_moved)
            self.heard_moved.clear()
        follow = list(found)
        for each in ended:
            if each.end is End.UNCHANGED:
                depth = min(each.depth + 1, self.plan.depth)
                links = self.ledger.remembered_links(each.url)
                found_again = ((link, host_in(link)) for link in links)
                follow.extend(
                    FoundUrl(link, host, depth)
                    for link, host in found_again
                    if (depth > each.depth or is_sitemap(link)) and not self.forgotten.has(link, host)
                )
        if self.visiting is None:
            return self.ledger.commit(ended, follow, self.rows.write(ended), again)
        kept, visits = self.visiting.settle(ended)
        return self.ledger.commit_visits(ended, follow, self.rows.write(kept), again, visits)

    # By position, since that is how a thread is handed its work.
    def finish(self, wall: float, complete: bool, parquet_too: bool = False) -> None:  # noqa: FBT001, FBT002
        """End the run: write what is made from rows and ledger, and if all is decided call the crawl finished."""
        with plainly(self.path):
            self.list_failures(map(failed_line, self.ledger.failed()))
            if self.plan.keep == "warc":
                write_index(self.path, self.crawl, self.path / PAGES, self.rows.length)
            if parquet_too:
                parquet.write_in_child(self.path)
            else:
                parquet.remove(self.path)  # those of an earlier run have fewer rows
            self.ledger.note(closed=True, finished=complete, ended=wall)

    def _reconciled(self) -> PageRows:
        """The rows, as long as the ledger says; or if they are not, what of them is whole, and the ledger knows."""
        path, watermark = self.path / PAGES, self.ledger.meta.watermark
        if reaches(path, watermark):
            return self._with_archive(PageRows(self.path, watermark))
        ends, versions = self.ledger.ends(), self.ledger.versions()
        length = whole_rows(path, ends, versions)
        rows = PageRows(self.path, length)
        # Those that were found are cleared.
        lost = [number for number, end in enumerate(ends) if end in KEPT and number not in versions]
        lacking = {number: left for number, left in versions.items() if left}
        self.ledger.lose_versions(dict.fromkeys(lost, 1) | lacking)
        self.put_back = self.ledger.put_back([*lost, *lacking], length)
        return self._with_archive(rows)

    def _with_archive(self, rows: PageRows) -> PageRows:
        """The rows, and if the crawl keeps one the archive, as long as they say."""
        if self.plan.keep == "warc":
            try:
                rows.archive = PageArchive(self.path, self.crawl, self.path / PAGES, rows.length)
            except BaseException:
                rows.close()
                raise
        return rows

    def __repr__(self) -> str:
        return f"<CrawlFolder {self.path} crawl={self.crawl} {self.state.value}>"


def _check_place(path: Path, *, resume: bool) -> None:
    """Raise FolderError for a folder that is none, or somebody else's, before anything is written there."""
    check_one(path)
    holds_crawl = any((path / name).exists() for name in (LEDGER, NEXT))
    if resume and not holds_crawl and (path.is_dir() or not path.exists()):
        raise FolderError(f"there is nothing to resume in {path}: it holds no {LEDGER}. Begin without resume.")
    check_empty(path, LEDGER, NEXT)


def _open_ledger(
    path: Path, plan: CrawlPlan | None, *, resume: bool, wall: float, visits: bool, whatever: bool
) -> VisitedFrontier:
    """The ledger of this run: the one that is there, if it is to be gone on with, or a new one."""
    _take(earlier.go_on(path))
    forget.go_on(path)
    plan = _without_forgotten(path, plan)
    if not (path / LEDGER).exists():
        _take(earlier.begin(path, FrontierMeta(plan=msgspec.json.encode(plan).decode(), started=wall)))
        return VisitedFrontier(path / LEDGER)
    ledger = VisitedFrontier(path / LEDGER)
    try:
        goes_on = _goes_on(ledger, path, plan, resume=resume, visits=visits, whatever=whatever)
    except BaseException:
        ledger.close()
        raise
    if goes_on:
        return ledger
    ledger.close()
    if (path / f"{LEDGER}-wal").exists():
        raise FolderError(f"{path / LEDGER} is in use by another program, so it cannot be moved. Try again later.")
    _take(earlier.begin(path, earlier.again(ledger.meta, wall)))
    return VisitedFrontier(path / LEDGER)


def _without_forgotten(path: Path, plan: CrawlPlan | None) -> CrawlPlan | None:
    """The plan without what the folder has forgotten. Raises FolderError if nothing is left of it."""
    forgotten = ForgottenUrls(Forgotten.of(path))
    if plan is None or not any(forgotten.has(seed, host_in(seed)) for seed in plan.seeds):
        return plan
    seeds = tuple(seed for seed in plan.seeds if not forgotten.has(seed, host_in(seed)))
    if not seeds:
        raise FolderError(f"{path} has forgotten all that this crawl begins with: it is not asked for again")
    return msgspec.structs.replace(plan, seeds=seeds)


def _goes_on(
    ledger: VisitedFrontier, path: Path, plan: CrawlPlan | None, *, resume: bool, visits: bool, whatever: bool
) -> bool:
    """Whether the crawl that is there is gone on with; False if it is finished and a new one is due."""
    found = plan_of(ledger.meta, path / LEDGER, CrawlPlan)
    if plan is not None and (differences := plan_differences(plan, found)):
        which = "a finished" if ledger.meta.finished else "an unfinished"
        advice = "" if ledger.meta.finished else ", or resume without a plan"
        raise FolderError(
            f"{path} holds {which} crawl of another plan: {differences}. Choose another folder, use that plan{advice}."
        )
    if not ledger.meta.finished or visits:
        return True
    counts = ledger.counts()
    cut = ledger.by_code().get((End.LEFT_OUT, Code.CANCELLED), 0)
    if resume and not whatever and not counts[End.FAILED] + counts[End.LEFT] + cut:
        raise FolderError(f"there is nothing to resume in {path}: its crawl is finished. Crawl again without resume.")
    return resume


def plan_differences(asked: CrawlPlan, found: CrawlPlan) -> str:
    """What of a plan is not as it is in another, in words; nothing if they are the same."""
    said = []
    for name in ("seeds", "allow"):
        ours, theirs = set(getattr(asked, name)), set(getattr(found, name))
        said += [f"{name} {each} was not there" for each in sorted(ours - theirs)[:3]]
        said += [f"{name} {each} is missing" for each in sorted(theirs - ours)[:3]]
    if asked.depth != found.depth:
        said.append(f"depth was {found.depth}, not {asked.depth}")
    if asked.keep != found.keep:
        said.append(f"keep was {found.keep or 'nothing'}, not {asked.keep or 'nothing'}")
    return "; ".join(said)


def _take(steps: Iterator[str]) -> None:
    """Take all of the steps."""
    for _ in steps:
        pass
