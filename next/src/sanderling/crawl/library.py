"""Crawls from Python: `await crawl_pages([url], "example", depth=2)`, `await run_job(job, "posts")`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sanderling.clock import SystemClock
from sanderling.crawl import functions
from sanderling.crawl.job import Job, JobError
from sanderling.crawl.opening import ROWS, check_file, open_run
from sanderling.crawl.options import CrawlOptions, JobOptions, PagesOptions
from sanderling.files import Exit


@dataclass(frozen=True, slots=True)
class Crawled:
    """How a crawl stands at its end."""

    exit: Exit
    folder: Path
    records: Path  # the file of them
    kept: int  # records, those of earlier runs among them
    fetched: int
    failed: int
    waiting: int


async def crawl_pages(urls: str | Iterable[str], folder: str | Path, **options: Any) -> Crawled:  # noqa: ANN401
    """Crawl pages into a folder, or go on there. Options are those of `sanderling pages crawl`: `depth=3`."""
    given = (urls,) if isinstance(urls, str) else tuple(urls)
    return await _crawled(PagesOptions(out=Path(folder), urls=given, **options), "pages", None)


async def run_job(job: Job, folder: str | Path, **options: Any) -> Crawled:  # noqa: ANN401 - those of `run`
    """Run a job into a folder, or go on there. Options are those of `sanderling run`: `set={"page": "3"}`."""
    if functions.reading_only:
        raise JobError(
            f"run_job({job.name}) is called while its file is read; put the call below if __name__ == '__main__':"
        )
    given: dict[str, Any] = {"file": check_file(job), "out": Path(folder), **options}
    if all(each.is_async for each in job.functions.values()):
        given.setdefault("readers", 0)  # nothing is read in other processes
    return await _crawled(JobOptions(**given), "jobs", job)


async def _crawled(options: CrawlOptions, system: str, job: Job | None) -> Crawled:
    async with open_run(options, SystemClock(), job) as run:
        try:
            code = await run.run()
        except BaseExceptionGroup as group:  # of what goes on beside each other; who calls us wants the error itself
            inner: BaseException = group
            while isinstance(inner, BaseExceptionGroup):
                inner = inner.exceptions[0]
            raise inner from group
        counts = run.standing.counts
        ends = {name: sum(n for (end, _), n in counts.ends.items() if end == name) for name in ("fetched", "failed")}
        file = options.out / f"{ROWS[system]}.jsonl"
        return Crawled(
            code, options.out, file, run.parts.progress.records, ends["fetched"], ends["failed"], counts.waiting
        )
