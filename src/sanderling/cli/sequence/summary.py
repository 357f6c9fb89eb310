"""What came of a run of `sanderling sequence crawl`, in words and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from sanderling.apis.numbered import Status
from sanderling.cli import command_line
from sanderling.cli.options import Options
from sanderling.cli.running import Ran
from sanderling.cli.sequence.flags import SequenceFlags, SequencePace
from sanderling.cli.sequence.place import ROWS
from sanderling.observe.report import Report
from sanderling.sequence.report import SequenceFacts, explain_missed, queued
from sanderling.words import count, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSummary:
    """A crawl after a run. Counts are those of the run, but for `cursor`, `missed` and `queued`."""

    complete: bool  # whether it came to --until
    seconds: float
    api: str
    host: str
    cursor: int
    newest: int | None
    behind: int | None
    lag: float | None
    workers: int
    answers: dict[str, int]
    gaps: int
    skipped_ids: int
    missed: dict[str, int]
    published: int
    stored: int | None  # None if nothing is stored here
    queued: dict[str, int] | None
    trouble: str
    out: str

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return asdict(self)


def summarise(flags: SequenceFlags, ran: Ran[Report[SequenceFacts]]) -> SequenceSummary:
    """The summary of a run."""
    last, seconds = ran.last.facts, ran.last.process.seconds
    return SequenceSummary(
        complete=ran.complete,
        seconds=round(seconds, 3),
        api=last.api,
        host=last.host,
        cursor=last.cursor,
        newest=last.newest,
        behind=last.behind,
        lag=None if last.lag is None else round(last.lag, 3),
        workers=last.workers,
        answers=last.answers,
        gaps=last.gaps,
        skipped_ids=last.skipped,
        missed=last.missed,
        published=last.published,
        stored=last.stored,
        queued=last.queue,
        trouble=last.queue_trouble or last.store_trouble,
        out=str(flags.place.out),
    )


def again(flags: SequenceFlags, options: Options, *, complete: bool = False) -> str:
    """The command that goes on with this crawl, and with one that is complete goes beyond its last id."""
    until = None if complete else flags.pace.until
    onward = replace(flags.pace, target=None, buffer=SequencePace().buffer, until=until)
    groups = flags.place, flags.upstream, onward, flags.keeping, flags.readings, flags.alerting, flags.onward
    return command_line.again("sequence crawl", *groups, options, *(() if flags.store else ("--no-store",)))


def words(flags: SequenceFlags, ran: Ran[Report[SequenceFacts]], options: Options) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    last, seconds = ran.last.facts, ran.last.process.seconds
    yield ""
    yield f"Followed {last.api} at {last.host} for {duration(seconds)}: {_answers(last)}."
    yield _position(last)
    if last.gaps:
        yield f"Skipped {count(last.gaps, 'gap')} of {count(last.skipped, 'id')} in all, which are looked into later."
    if last.missed:
        yield f"Missed so far: {explain_missed(last.missed)}."
    yield _kept(flags, last)
    yield from _next(flags, ran, options)


def _answers(last: SequenceFacts) -> str:
    found, wanted = last.answered(Status.SUCCESS, Status.SKIPPED), last.answered(Status.SUCCESS)
    refused = last.answered(Status.RATE_LIMITED)
    told = f"{count(last.asked, 'answer')}, {count(found, 'record')}, {wanted:,} of them wanted"
    return f"{told}; {count(refused, 'request')} refused" if refused else told


def _position(last: SequenceFacts) -> str:
    told = f"Every id below {last.cursor} has its fate"
    if last.behind is None:
        return f"{told}."
    lag = "" if last.lag is None else f", and records came {duration(last.lag)} after they were made"
    return f"{told}; the head is {count(last.behind, 'id')} ahead{lag}."


def _kept(flags: SequenceFlags, last: SequenceFacts) -> str:
    queue = last.queue or {}
    dead = f", {count(queue['dead'], 'letter')} dead" if queue.get("dead") else ""
    left = f"{count(queued(queue), 'record')} in the queue{dead}"
    if last.stored is None:
        return f"Queued {count(last.published, 'record')}; {left}."
    # Where rows are that others may reach is for them to know: a URL may hold a password.
    where = f" in {flags.place.out / ROWS}" if flags.keeping.rows is None else ""
    return f"Stored {count(last.stored, 'record')}{where}; {left}."


def _next(flags: SequenceFlags, ran: Ran[Report[SequenceFacts]], options: Options) -> Iterator[str]:
    yield "Nothing is lost; go on where it stopped, see how it stands, and what was missed with:"
    yield ""
    yield f"    {again(flags, options, complete=ran.complete)}"
    yield f"    {command_line.again('status', flags.place.out)}"
    yield f"    {command_line.again('sequence missed list', flags.place)}"
    yield ""
