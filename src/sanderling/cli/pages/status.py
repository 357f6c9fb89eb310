"""`sanderling status` of a crawl of pages: how a crawl of documents stands, beside it or after it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.pages.summary import FAULTS, by_reason, reasons
from sanderling.cli.published_words import tell
from sanderling.cli.report_words import line, report_lines
from sanderling.clock import SystemClock
from sanderling.pages.earlier import LEDGER
from sanderling.pages.report import report
from sanderling.pages.status import Status, published
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import End, Fault
from sanderling.stores.status_file import is_running

NOT_ASKED = {
    End.REFUSED: "by robots.txt",
    End.LEFT: "because of --max-pages",
    End.LEFT_OUT: "as --leave-out says",
}


class Kept(msgspec.Struct, frozen=True):
    """What the ledger says. It counts, and not what a crawl that was killed has said before."""

    crawl: int  # the how-manieth of this folder
    finished: bool  # nothing waits, and nothing will be asked any more
    known: int
    counts: dict[str, int]  # URLs by end, in lower case
    failed_by: dict[str, int]  # those that failed, by code, the most frequent first
    set_aside: int = 0  # of those that wait, the ones of hosts that did not answer in the last run
    set_aside_by: dict[str, int] = {}  # by code
    again: int = 0  # of those that wait, the ones that failed themselves and are asked for once more
    again_by: dict[str, int] = {}  # by code
    failed_by_fault: dict[Fault, int] = {}  # those that failed: item, host or us


def show_crawl(folder: Path, *, as_json: bool) -> None:
    """Print how the crawl of a folder stands. Raises CommandError."""
    kept, found, wall = kept_in(folder), published(folder), SystemClock().wall()
    tell(f"The crawl in {folder}", found, wall, words(kept, found, wall), as_json=as_json, kept=kept)


def check_crawl(folder: Path) -> None:
    """Raise CommandError where no crawl has begun."""
    if not (folder / LEDGER).is_file():
        found = f"it has no {LEDGER}" if folder.is_dir() else "it is a file" if folder.exists() else "it is not there"
        raise CommandError(f"{folder} is no crawl: {found}", code=2)


def kept_in(folder: Path) -> Kept:
    """What the ledger of a folder says. Raises CommandError."""
    check_crawl(folder)
    path = folder / LEDGER
    try:
        with plainly(path), closing(frontier_file.connect_to_read(path)) as db:
            db.execute("BEGIN")  # one state of the ledger, whatever a crawl does meanwhile
            meta, tally = frontier_file.read_meta(db, path), frontier_reading.tally(db)
            aside, blamed = frontier_reading.aside(db), frontier_reading.blamed(db)
    except FolderError as error:
        raise CommandError(str(error)) from None
    counts = {end.name.lower(): sum(each for (of, _), each in tally.items() if of is end) for end in End}
    failed = Counter({code: each for (end, code), each in tally.items() if end is End.FAILED})
    return Kept(
        meta.crawl,
        meta.finished,
        sum(counts.values()),
        counts,
        dict(failed.most_common()),
        sum(each.waiting for each in aside),
        by_reason(aside),
        sum(blamed.again.values()),
        blamed.again,
        blamed.failed,
    )


def words(kept: Kept, found: Status | None, wall: float) -> Iterator[str]:
    """The same as lines."""
    counts, running = kept.counts, found is not None and is_running(found, wall)
    also = ((counts["unchanged"], "unchanged"), (counts["moved"], "moved elsewhere"))
    yield line("pages", f"{counts['fetched']:,} fetched" + "".join(f", {n:,} {what}" for n, what in also if n))
    yield line("urls", f"{kept.known:,} known, {_waiting(kept)}")
    if kept.set_aside:
        yield line("set aside", f"{kept.set_aside:,} of hosts that did not answer: {reasons(kept.set_aside_by)}")
    if kept.again:
        yield line("again", f"{kept.again:,} failed and will be asked for once more: {reasons(kept.again_by)}")
    if counts["failed"]:
        yield line("failed", f"{counts['failed']:,}: {reasons(kept.failed_by)}")
    if kept.failed_by_fault:
        yield line("", ", ".join(f"{number:,} {FAULTS[fault]}" for fault, number in kept.failed_by_fault.items()))
    for end, why in NOT_ASKED.items():
        if number := counts[end.name.lower()]:
            yield line(end.name.lower().replace("_", " "), f"{number:,} {why}")
    if found is not None:
        yield from report_lines(report(found), running=running)


def _waiting(kept: Kept) -> str:
    waiting = kept.counts["waiting"]
    if not waiting:
        return "all of them decided" if kept.finished else "none of them waiting"
    # Rounded down: what is not all is never 100 %.
    return f"{100 * (kept.known - waiting) // kept.known} % of them decided, {waiting:,} still to ask for"
