"""What came of a run of a job, in numbers and in words, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sanderling.cli.pages.summary import by_reason, failed_by, hosts_aside, meaning
from sanderling.crawls.folder import FAILED
from sanderling.crawls.parts import FOLDER
from sanderling.jobs.files import RECORDS
from sanderling.jobs.report import JobFacts
from sanderling.observe.report import Report
from sanderling.stores.frontier_requests import RequestFrontier
from sanderling.stores.frontier_rows import Aside, End
from sanderling.words import count, duration, printable, size

REASONS = 5  # that are told in words; the others are counted together


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job after a run. Counts are those of all its runs; seconds and bytes are those of this one."""

    name: str
    complete: bool
    seconds: float
    records: int
    requests: int
    known: int
    fetched: int
    failed: int
    left_out: int
    refused: int  # by robots.txt
    passed_over: int  # links that lead to no page of the job, in this run
    waiting: int
    bytes: int
    out: str
    failed_by: dict[str, int]
    reasons: dict[str, int]  # what was said of those that failed or were left out, the most frequent first
    set_aside: int  # of those that wait, the ones of hosts that did not answer
    set_aside_by: dict[str, int]
    gone: dict[str, int]  # and those that wait for a reader that the job has not any more, by its name
    over_budget: bool
    spent: tuple[str, ...]  # the limits of the job that are reached
    gone_words: tuple[str, ...]
    aside: tuple[Aside, ...]
    files: str  # the folder of the files, or of those of each part
    again: str  # the command to go on with
    retry: str  # and the one to ask again for what failed

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("gone_words", "aside", "files", "again", "retry"):
            del shown[name]
        return shown

    @property
    def is_unfinished(self) -> bool:
        """Whether something waits that a run could not ask for."""
        return bool(self.waiting and not self.over_budget) or bool(self.gone)


def summarise(
    out: Path, ledgers: Sequence[RequestFrontier], last: Report[JobFacts], *, complete: bool, commands: tuple[str, str]
) -> JobSummary:
    """The summary of a run that ended with `last`: all ledgers are parts of one job.

    The commands are the one that goes on with it, and the one that asks for what failed, too.
    """
    counts, said = Counter[End](), Counter[str]()
    for each in ledgers:
        counts.update(each.counts())
        said.update(_reason(failed.code, failed.detail) for failed, _ in each.failed_requests())
    aside = sorted((host for each in ledgers for host in each.aside()), key=lambda host: -host.waiting)
    return JobSummary(
        name=last.facts.name,
        complete=complete,
        seconds=round(last.process.seconds, 3),
        records=sum(each.meta.records for each in ledgers),
        requests=sum(each.meta.requests for each in ledgers),
        known=sum(each.known for each in ledgers),
        fetched=counts[End.FETCHED],
        failed=counts[End.FAILED],
        left_out=counts[End.LEFT_OUT],
        refused=counts[End.REFUSED],
        passed_over=last.facts.passed_over,
        waiting=counts[End.WAITING],
        bytes=last.facts.bytes,
        out=str(out),
        failed_by=failed_by(ledgers),
        reasons=dict(said.most_common(100)),
        set_aside=sum(each.waiting for each in aside),
        set_aside_by=by_reason(aside),
        gone=last.facts.gone,
        over_budget=last.facts.over_budget,
        spent=last.facts.spent,
        gone_words=last.facts.explain_gone(),
        aside=tuple(aside),
        files=f"{out}/{FOLDER}/*" if (out / FOLDER).is_dir() else str(out),
        again=commands[0],
        retry=commands[1],
    )


def _reason(code: str, detail: str) -> str:
    return detail or meaning(code)


def words(summary: JobSummary) -> Iterator[str]:
    """The summary as lines; those that are indented must not be broken."""
    yield ""
    yield (
        f"{summary.name}: {count(summary.records, 'record')} of {count(summary.requests, 'request')}; "
        f"this run read {size(summary.bytes)} in {duration(summary.seconds)}."
    )
    if summary.passed_over:
        yield f"{count(summary.passed_over, 'link')} to no page of the job passed over."
    yield from _not_kept(summary)
    yield ""
    if summary.records:
        yield "The records:"
        yield from _indented(_path(summary, RECORDS))
    yield from _next(summary)


def _not_kept(summary: JobSummary) -> Iterator[str]:
    ended = [(summary.failed, "failed"), (summary.left_out, "left out"), (summary.refused, "refused by robots.txt")]
    if said := ", ".join(f"{count(number, 'request')} {what}" for number, what in ended if number):
        yield f"{said}:"
        listed = [f"{number:,} x {reason}" for reason, number in list(summary.reasons.items())[:REASONS]]
        more = len(summary.reasons) - REASONS
        yield from _indented(*map(printable, listed), *([f"and {count(more, 'more reason')}"] if more > 0 else []))


def _next(summary: JobSummary) -> Iterator[str]:
    if summary.aside:
        yield "Hosts that were set aside:"
        yield from _indented(*hosts_aside(summary.aside, "request"))
    yield from summary.gone_words
    if summary.waiting:
        left = f"{count(summary.waiting, 'request')} still to send."
        if summary.over_budget:
            yield f"The budget is spent. {left} Nothing is lost; raise {' and '.join(summary.spent)} in the job, then:"
        else:
            yield f"{left} Nothing is lost; go on with:"
        yield from _indented(summary.again)
    if summary.failed:
        yield "What failed, one line each, and how to ask for it again:"
        yield from _indented(_path(summary, FAILED), summary.retry)
    elif summary.left_out or summary.refused:
        yield "What was not asked for, one line each, and why:"
        yield from _indented(_path(summary, FAILED))
    yield "Proof that every request is accounted for:"
    yield from _indented(f"sanderling verify {shlex.quote(summary.out)}")


def _path(summary: JobSummary, name: str) -> str:
    """The path of a file; of one in every part, as a pattern that a shell expands."""
    if summary.files == summary.out:
        return shlex.quote(f"{summary.out}/{name}")
    return f"{shlex.quote(summary.out)}{summary.files.removeprefix(summary.out)}/{name}"


def _indented(*lines: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}" for line in lines)
    yield ""
