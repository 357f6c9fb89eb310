"""What a system has on disk, for `sanderling status`. It counts, and not what one that was killed has said before."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.cli.command_error import CommandError
from sanderling.cli.home import set_for
from sanderling.cli.pages.summary import FAULTS, by_reason, reasons
from sanderling.cli.report_words import line
from sanderling.cli.repos import progress as repos_progress
from sanderling.cli.sequence.place import SequenceFolder, known_state
from sanderling.crawls.parts import folders_of
from sanderling.jobs.files import FRONTIER
from sanderling.outcome import Code
from sanderling.pages.earlier import LEDGER
from sanderling.sequence.report import explain_missed
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import Aside, End, Fault

NOT_ASKED = {
    "refused": "by robots.txt",
    "left": "because of --max-pages",
    "left_out": "as --leave-out says, or of hosts that are out of scope",
    "cut_off": "by budgets: `pages failed --cut-off` lists them",
}


class OnDisk(NamedTuple):
    """The same in words, as JSON, and the labels of what a report says that it says better."""

    lines: tuple[str, ...]
    document: dict[str, Any]
    instead_of: tuple[str, ...] = ()


def _frontier(folder: Path, file: str) -> dict[str, Any]:
    """What the frontier of a crawl of pages, or of a job, says; or those of all its parts. Raises CommandError."""
    tally, again, faults, aside, metas = (
        Counter[tuple[End, str]](),
        Counter[str](),
        Counter[Fault](),
        list[Aside](),
        list[FrontierMeta](),
    )
    try:
        for each in folders_of(folder):
            with plainly(path := each / file), closing(frontier_file.connect_to_read(path)) as db:
                db.execute("BEGIN")  # one state of the frontier, whatever a crawl does meanwhile
                metas.append(frontier_file.read_meta(db, path))
                tally.update(frontier_reading.tally(db))
                aside += frontier_reading.aside(db)
                blamed = frontier_reading.blamed(db)
                again.update(blamed.again)
                faults.update(blamed.failed)
    except FolderError as error:
        raise CommandError(str(error)) from None
    counts = {end.name.lower(): sum(each for (of, _), each in tally.items() if of is end) for end in End}
    failed = Counter({code: each for (end, code), each in tally.items() if end is End.FAILED})
    return {
        "crawl": metas[0].crawl,
        "finished": all(meta.finished for meta in metas),
        "known": sum(counts.values()),
        "records": sum(meta.records for meta in metas),
        "requests": sum(meta.requests for meta in metas),
        "counts": counts,
        "cut_off": tally.get((End.LEFT_OUT, Code.CANCELLED), 0),
        "failed_by": dict(failed.most_common()),
        "set_aside": sum(each.waiting for each in aside),
        "set_aside_by": by_reason(aside),
        "again": again.total(),
        "again_by": dict(again),
        "failed_by_fault": dict(faults),
    }


def _ended(kept: dict[str, Any]) -> Iterator[str]:
    """Why something was not asked for, or failed."""
    counts = kept["counts"]
    if kept["set_aside"]:
        yield line("set aside", f"{kept['set_aside']:,} of hosts that did not answer: {reasons(kept['set_aside_by'])}")
    if kept["again"]:
        yield line("again", f"{kept['again']:,} failed and will be asked for once more: {reasons(kept['again_by'])}")
    if counts["failed"]:
        yield line("failed", f"{counts['failed']:,}: {reasons(kept['failed_by'])}")
    if kept["failed_by_fault"]:
        yield line("", ", ".join(f"{number:,} {FAULTS[fault]}" for fault, number in kept["failed_by_fault"].items()))
    asked = counts | {"left_out": counts["left_out"] - kept["cut_off"], "cut_off": kept["cut_off"]}
    for end, why in NOT_ASKED.items():
        if asked[end]:
            yield line(end.replace("_", " "), f"{asked[end]:,} {why}")


def _left(kept: dict[str, Any]) -> str:
    waiting, known = kept["counts"]["waiting"], kept["known"]
    if not waiting:
        return "all of them decided" if kept["finished"] else "none of them waiting"
    # Rounded down: what is not all is never 100 %.
    return f"{100 * (known - waiting) // known} % of them decided, {waiting:,} still to ask for"


def _pages(folder: Path) -> OnDisk:
    kept = _frontier(folder, LEDGER)
    counts = kept["counts"]
    also = ((counts["unchanged"], "unchanged"), (counts["moved"], "moved elsewhere"))
    pages = line("pages", f"{counts['fetched']:,} fetched" + "".join(f", {n:,} {what}" for n, what in also if n))
    return OnDisk((pages, line("urls", f"{kept['known']:,} known, {_left(kept)}"), *_ended(kept)), kept)


def _job(folder: Path) -> OnDisk:
    kept = _frontier(folder, FRONTIER)
    requests = line("requests", f"{kept['known']:,} known, {kept['requests']:,} sent, {_left(kept)}")
    return OnDisk((line("records", f"{kept['records']:,}"), requests, *_ended(kept)), kept)


def _ids(folder: Path) -> OnDisk:
    with known_state(SequenceFolder(out=folder)) as state:
        saved, missed = state.load(), {reason.value: ids for reason, ids in state.counts().items()}
    kept: dict[str, Any] = {"missed": missed}
    lines = [line("missed", explain_missed(missed))]
    if saved is not None:
        at = saved.position
        kept |= {"api": saved.api, "cursor": at.low, "next": at.next, "open": len(at.open), "newest": saved.newest}
        lines.insert(0, line("ids", f"all below {at.low:,} have their fate"))
    return OnDisk(tuple(lines), kept, ("ids", "missed") if saved is not None else ())


def _repos(folder: Path) -> OnDisk:
    place = repos_progress.ArchiveFolder(out=folder, **set_for(("repos", "crawl"), ["redis_address"]))
    return OnDisk(*repos_progress.describe_progress(place))


ON_DISK: dict[str, Callable[[Path], OnDisk]] = {"pages": _pages, "jobs": _job, "sequence": _ids, "repos": _repos}
