"""`sanderling run` without its pace, which no flag of it takes away: a job with the requests that `unpaced.py` has.

Usage: unpaced_job.py list|tree ORIGIN OUT COUNT. `list` begins with every document; `tree` with the first one, and each
answer brings ten further requests. Either way an answer is one record. All else is as people run it: guard, limiter,
watchdog, frontier, commits.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from site_server import linked
from unpaced import FASTEST, PACE

from sanderling.cli import loop
from sanderling.cli.jobs.run import JobNetwork, open_folder, run_folder
from sanderling.cli.options import Options
from sanderling.cli.report_screen import fitting
from sanderling.jobs.job import Job
from sanderling.jobs.reply import JobReply
from sanderling.jobs.request import Request
from sanderling.limit import Limiter, LimiterRules


def make_job(shape: str, origin: str, count: int) -> Job:
    """The job that a user would write."""
    first = [f"{origin}/doc/{number}" for number in range(count if shape == "list" else 1)]
    job = Job("documents", start=first)

    @job.read
    def document(reply: JobReply) -> Iterator[object]:
        record = reply.json()
        yield {"url": reply.url, **record}
        if shape == "tree":
            for number in linked(record["id"], count):
                yield Request(f"/doc/{number}")

    return job


def main(shape: str, origin: str, out: Path, count: int) -> None:
    """Run it to its end, or go on with what the folder holds."""
    job = make_job(shape, origin, count)
    asking = JobNetwork(rps=FASTEST, private=True)
    transport = replace(asking.transport(job), limiter=Limiter(LimiterRules(pace=PACE)))
    with open_folder(out, job, {}) as folder:
        loop.run(run_folder(folder, transport, asking, Options(), fitting(json=True)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
