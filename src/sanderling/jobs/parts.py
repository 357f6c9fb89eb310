"""How a run of a job begins in its parts: what one process began is gone on with by others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sanderling.crawls.kept import Keep
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.parts import folders_of
from sanderling.jobs import forget
from sanderling.jobs.files import FRONTIER
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.job import Job
from sanderling.jobs.run import hosts_of
from sanderling.stores.board import BoardField
from sanderling.stores.frontier_rows import End


def begin_job_parts(
    out: Path, job: Job, arguments: Mapping[str, Any], wall: float, keep: Keep | None, *, retry: bool
) -> BegunParts:
    """Begin a run in every part, which processes then go on with; of what failed, too, with `retry`.

    Raises FolderError, JobError. What the job starts with is found by the first part.
    """
    job.first_reader  # noqa: B018 - raises if there is none
    forget.finish(out)
    folders, hosts, shown = folders_of(out), hosts_of(job), []
    resumed = any((path / FRONTIER).exists() for path in folders)
    for path in folders:
        with JobFolder.open(path, job, arguments, hosts, wall, keep) as folder:
            if retry:
                folder.ledger.reopen(End.FAILED)
            counts, meta = folder.ledger.counts(), folder.ledger.meta
            answered = counts[End.FETCHED] + counts[End.FAILED]
            shown.append(
                {
                    BoardField.REQUESTS: meta.requests,
                    BoardField.RECORDS: meta.records,
                    BoardField.ANSWERED: answered,
                }
            )
    return BegunParts(resumed, shown)
