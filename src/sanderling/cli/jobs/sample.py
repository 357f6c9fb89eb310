"""The flag `--try` of `run`: some records of a job, shown and not kept."""

import copy
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from sanderling.cli import loop as event_loop
from sanderling.cli.command_error import CommandError
from sanderling.cli.jobs.run import KNOWN, JobNetwork, exit_with, open_folder, run_folder
from sanderling.cli.jobs.summary import JobSummary, summarise
from sanderling.cli.options import Options
from sanderling.cli.screen import Silent
from sanderling.jobs.files import RECORDS
from sanderling.jobs.job import Job
from sanderling.words import count, printable

# Requests that are sent at most for so many records: a reader that yields none must not walk through all of an API.
LEAST_REQUESTS, REQUESTS_EACH = 100, 20
REASONS = 10


def show_sample(  # noqa: PLR0913 - what the command was given
    job: Job,
    given: Mapping[str, str],
    number: int,
    asking: JobNetwork,
    options: Options,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    """Print the first records of a job, or those of its first pages, one line of JSON each; to stderr, what failed."""
    if out is not None:
        raise CommandError("--try keeps nothing, and --out names a folder to keep things in; expected one of them", 2)
    sampled = copy.copy(job)
    if job.patterns:
        most, shown = number, sys.maxsize
    else:
        most, shown = max(LEAST_REQUESTS, REQUESTS_EACH * number), number
        sampled.max_records = number
    sampled.max_requests = min(job.max_requests or sys.maxsize, most)
    sampled.max_answers = most  # what is in a cache is not sent
    transport = asking.transport(sampled)
    with TemporaryDirectory(prefix="sanderling-try-") as folder, open_folder(Path(folder), sampled, given) as held:
        with event_loop.explain_end("", KNOWN):
            ran = event_loop.run(run_folder(held, transport, asking, options, Silent()))
        summary = summarise(held.path, [held.ledger], ran.last, complete=ran.complete, commands=("", ""))
        with (held.path / RECORDS).open(encoding="utf-8") as lines:
            for line in islice(lines, shown):
                print(line, end="")
    if not as_json:
        for line in _words(summary, shown):
            print(printable(line), file=sys.stderr)
    if ran.stopped or not summary.over_budget:
        exit_with(summary, stopped=ran.stopped)


def _words(summary: JobSummary, wanted: int) -> Iterator[str]:
    shown = min(summary.records, wanted)
    yield f"{count(shown, 'record')} of {count(summary.requests, 'request')}; nothing is kept."
    for reason, number in list(summary.reasons.items())[:REASONS]:
        yield f"  {number:,} x {reason}"
    if shown < wanted < sys.maxsize and summary.over_budget:
        yield f"It stopped after {count(summary.requests, 'request')}, since there may be many more without a record."
