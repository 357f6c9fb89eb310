"""What came of a crawl of repos, in words and as JSON."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sanderling.apis.atproto import AtprotoCategory
from sanderling.cli import command_line
from sanderling.cli.repos.progress import CATEGORIES, MEANINGS, ArchiveFolder, SavedProgress, hosts_aside
from sanderling.observe.report import Report
from sanderling.repos.parts import all_segments
from sanderling.repos.report import ReposFacts
from sanderling.stores.durable import plainly
from sanderling.stores.ports import HostAside
from sanderling.words import count, duration, size

# Why a record is not in the archive though its repo is.
DROPPED = {"missing": "not sent by the host", "bad_record": "not DAG-CBOR", "bad_key": "under a key that is none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """A crawl after a run. `run` and `seconds` are those of the run, the others of the crawl."""

    complete: bool  # every repo is archived, left out or gone for good
    walked: bool  # all of the directory was read, and nothing is left but what has a due time
    seconds: float
    run: dict[str, int]
    archived: int
    bytes_written: int
    dropped: dict[str, int]  # records of repos that were archived without them, in this run
    unchanged: int
    gone: dict[str, int]  # for good, by category
    failed: dict[str, int]  # and may go otherwise: what the next run asks for
    scheduled: int  # of those that may go otherwise, the ones with a due time
    due: int | None  # the first of these times, Unix seconds
    hosts_aside: int
    aside: tuple[HostAside, ...]  # the first of the hosts that were set aside
    segments: int
    newest: str  # of them
    output_dir: str
    again: str  # the command to go on with

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown = asdict(self)
        del shown["again"], shown["newest"], shown["walked"]
        return shown | {"aside": [each._asdict() for each in self.aside]}


def summarise(
    place: ArchiveFolder, last: Report[ReposFacts], kept: SavedProgress, *, complete: bool, again: str
) -> ArchiveSummary:
    """The summary of a run that ended with `last`."""
    view = kept.view
    failed = {name: number for name, number in view.failed.items() if name != AtprotoCategory.UNCHANGED}
    gone = {name: number for name, number in failed.items() if name in CATEGORIES and AtprotoCategory(name).permanent}
    left = {name: number for name, number in failed.items() if name not in gone}
    with plainly(place.out):
        segments = all_segments(place.out)
    return ArchiveSummary(
        complete=complete and not left,
        walked=complete,
        seconds=round(last.process.seconds, 3),
        run={
            "archived": last.facts.archived,
            "records": last.facts.records,
            "bytes_read": last.facts.bytes_read,
            "hosts": last.facts.hosts,
        },
        archived=view.total_crawled,
        bytes_written=view.bytes_written,
        dropped=last.facts.dropped,
        unchanged=view.failed.get(AtprotoCategory.UNCHANGED, 0),
        gone=gone,
        failed=left,
        scheduled=view.scheduled,
        due=kept.due,
        hosts_aside=view.hosts_aside,
        aside=kept.aside,
        segments=len(segments),
        newest=str(segments[-1]) if segments else "",
        output_dir=str(place.out),
        again=again,
    )


def words(summary: ArchiveSummary, place: ArchiveFolder, wall: float) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    run = summary.run
    yield ""
    yield (
        f"Archived {count(run['archived'], 'repo')} with {count(run['records'], 'record')} from "
        f"{count(run['hosts'], 'host')} in {duration(summary.seconds)}, {size(run['bytes_read'])} read."
    )
    if summary.dropped:
        reasons = ", ".join(f"{number:,} {DROPPED[why]}" for why, number in summary.dropped.items())
        yield f"{count(sum(summary.dropped.values()), 'record')} of these repos could not be kept: {reasons}."
    if summary.unchanged:
        yield f"{count(summary.unchanged, 'repo')} unchanged since the earlier archive."
    if summary.gone:
        yield f"{count(sum(summary.gone.values()), 'repo')} not to be had: {_reasons(summary.gone)}."
    if summary.failed:
        yield f"{count(sum(summary.failed.values()), 'repo')} not archived for now: {_reasons(summary.failed)}."
        yield from hosts_aside(summary.aside, summary.hosts_aside, wall)
    held = f"{count(summary.archived, 'repo')}, {size(summary.bytes_written)}, in {count(summary.segments, 'segment')}"
    yield f"The archive holds {held}:"
    yield from _indented(shlex.quote(summary.output_dir))
    yield from _next(summary, place, wall)


def _reasons(failed: dict[str, int]) -> str:
    ordered = sorted(failed.items(), key=lambda each: -each[1])
    return ", ".join(
        f"{number:,} {MEANINGS[AtprotoCategory(name)] if name in CATEGORIES else name}" for name, number in ordered
    )


def _next(summary: ArchiveSummary, place: ArchiveFolder, wall: float) -> Iterator[str]:
    if not summary.walked:
        yield "Nothing is lost; go on where it stopped with:"
        yield from _indented(summary.again)
    elif summary.failed:
        wait = 0.0 if summary.due is None else summary.due - wall
        when = f"; the first is due in {duration(wait)}" if wait > 0 else ""
        yield f"What is left is on disk{when}. The same command asks for it first:"
        yield from _indented(summary.again)
    if not summary.segments:
        return
    yield "What is in the last segment, all records as a table, and how far it is:"
    out = shlex.quote(summary.output_dir)
    yield from _indented(
        f"sanderling repos inspect {shlex.quote(summary.newest)}",
        f"sanderling repos replay {out} --to chdb:{out}/records",
        command_line.again("status", place.out),
    )


def _indented(*lines: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}" for line in lines)
    yield ""
