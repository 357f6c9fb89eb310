"""How a job stands, beside it or after it: `sanderling status DIR`."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from sanderling.cli.command_error import CommandError
from sanderling.cli.pages.summary import by_reason, reasons
from sanderling.cli.published_words import tell
from sanderling.cli.report_words import line, report_lines
from sanderling.clock import SystemClock
from sanderling.jobs.folder import FRONTIER
from sanderling.jobs.report import report
from sanderling.jobs.status import JobStatus, published
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import End
from sanderling.stores.status_file import is_running


class KeptJob(msgspec.Struct, frozen=True):
    """What the frontier says. It counts, and not what a job that was killed has said before."""

    finished: bool  # nothing waits, and nothing will be asked any more
    known: int
    records: int
    requests: int
    counts: dict[str, int]  # requests by end, in lower case
    failed_by: dict[str, int]  # by code
    set_aside: int  # of those that wait, the ones of hosts that did not answer in the last run
    set_aside_by: dict[str, int]  # by code


def show_job(folder: Path, *, as_json: bool) -> None:
    """Print how the job of a folder stands. Raises CommandError."""
    kept, found, wall = kept_in(folder), published(folder), SystemClock().wall()
    tell(f"The job in {folder}", found, wall, words(kept, found, wall), as_json=as_json, kept=kept)


def kept_in(folder: Path) -> KeptJob:
    """What the frontier of a folder says. Raises CommandError."""
    path = folder / FRONTIER
    try:
        with plainly(path), closing(frontier_file.connect_to_read(path)) as db:
            db.execute("BEGIN")  # one state of the frontier, whatever a job does meanwhile
            meta, tally = frontier_file.read_meta(db, path), frontier_reading.tally(db)
            aside = frontier_reading.aside(db)
    except FolderError as error:
        raise CommandError(str(error)) from None
    counts = {end.name.lower(): sum(each for (of, _), each in tally.items() if of is end) for end in End}
    failed = {code: number for (end, code), number in tally.items() if end is End.FAILED}
    return KeptJob(
        finished=meta.finished,
        known=meta.known,
        records=meta.records,
        requests=meta.requests,
        counts=counts,
        failed_by=dict(sorted(failed.items(), key=lambda each: -each[1])),
        set_aside=sum(each.waiting for each in aside),
        set_aside_by=by_reason(aside),
    )


def words(kept: KeptJob, found: JobStatus | None, wall: float) -> Iterator[str]:
    """The same as lines."""
    running = found is not None and is_running(found, wall)
    if found is not None:
        yield line("job", found.name)
    yield line("records", f"{kept.records:,}")
    waiting = kept.counts["waiting"]
    left = f"{waiting:,} still to send" if waiting else "all decided" if kept.finished else "none waiting"
    yield line("requests", f"{kept.known:,} known, {kept.requests:,} sent, {left}")
    if kept.set_aside:
        yield line("set aside", f"{kept.set_aside:,} of hosts that did not answer: {reasons(kept.set_aside_by)}")
    if kept.counts["failed"]:
        yield line("failed", f"{kept.counts['failed']:,}: {reasons(kept.failed_by)}")
    if kept.counts["left_out"]:
        yield line("left out", f"{kept.counts['left_out']:,} of hosts that are out of scope")
    if found is not None:
        yield from report_lines(report(found), running=running)
