"""An API in a dictionary, and a job of it under virtual time."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from sanderling import Job
from sanderling.crawls.kept import Keep
from sanderling.fetch.attempts import Sends
from sanderling.fetch.render import Renderer
from sanderling.fetch.transport import Transport
from sanderling.jobs.folder import JobFolder
from sanderling.jobs.report import JobFacts, report_run
from sanderling.jobs.rules import JobRules
from sanderling.jobs.run import JobRun, hosts_of
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.observe.report import Report
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

API = "https://api.example"
T = TypeVar("T")
Answer = Reply | Exception


def answer(document: object = None, status: int = 200, *, body: bytes | None = None, **headers: str) -> Reply:
    """A reply of JSON; underscores in header names become hyphens."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, pairs, json.dumps(document).encode() if body is None else body, "http://set.later/", 0.1)


@dataclass(slots=True)
class Api:
    """Answers by a function of the task, and remembers what it was asked."""

    answers: Callable[[Task], Answer]
    latency: float = 0.1
    asked: list[Task] = field(default_factory=list)

    async def send(self, task: Task) -> Reply:
        """The answer."""
        self.asked.append(task)
        await asyncio.sleep(self.latency)
        found = self.answers(task)
        if isinstance(found, Exception):
            raise found
        return Reply(found.status, found.headers, found.body, task.url, self.latency)

    @property
    def urls(self) -> list[str]:
        """What was asked for."""
        return [task.url for task in self.asked]


def api(answers: Mapping[str, Any]) -> Api:
    """An API by URL or by path; each answer is a document, a Reply, an error, or a list of those for one after another.

    404 for what it does not know.
    """
    said: dict[str, int] = {}

    def find(task: Task) -> Answer:
        path = task.url.removeprefix(API)
        found = answers.get(path, answers.get(task.url, answer({"error": "not found"}, 404)))
        if isinstance(found, list):
            said[task.url] = said.get(task.url, -1) + 1
            found = found[min(said[task.url], len(found) - 1)]
        return found if isinstance(found, Reply | Exception) else answer(found)

    return Api(find)


@dataclass(slots=True)
class Ran:
    """What came of a job."""

    complete: bool
    records: list[Any]
    failed: list[dict[str, Any]]
    seconds: float
    run: JobRun
    report: Report[JobFacts]  # at the end

    @property
    def reasons(self) -> dict[str, str]:
        """Why each request failed, by URL."""
        return {each["url"]: each["detail"] for each in self.failed}


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


def run(
    job: Job,
    folder: Path,
    of: Sends,
    *,
    arguments: Mapping[str, Any] | None = None,
    rules: JobRules | None = None,
    stop_after: float | None = None,
    wanted: Mapping[float, Control] | None = None,
    rps: float = 10.0,
    retry: bool = False,
    keep: Keep | None = None,
    renderer: Renderer | None = None,
) -> Ran:
    """Run a job to its end under virtual time."""

    async def main() -> Ran:
        clock, hosts = LoopClock(1_800_000_000.0), hosts_of(job)
        with JobFolder.open(folder, job, job.arguments_with(arguments or {}), hosts, clock.wall(), keep) as opened:
            if retry:
                opened.ledger.reopen(End.FAILED)
            pace = PaceRules(initial_rps=rps, max_rps=rps)
            limiter = Limiter(LimiterRules(pace=pace), clock=clock, rng=Random(1))
            transport = Transport(of, limiter, Memory(2**30), renderer=renderer)
            one = JobRun(opened, transport, inline, rules=rules or JobRules(), clock=clock)
            for after, control in (wanted or {}).items():
                asyncio.get_running_loop().call_later(after, one.control, control)
            if stop_after is not None:
                asyncio.get_running_loop().call_later(stop_after, one.stop)
            complete = await one.run()
            opened.finish(clock.wall(), complete)
            counts, kept = one.counts, opened.ledger.counts()
            assert {end: counts[end] for end in End if end} == {end: kept[end] for end in End if end}
            assert one.source.waiting == kept[End.WAITING]
            assert complete == (not kept[End.WAITING])
            last = report_run(one, clock.now(), running=False)
            records, failed = lines(folder / "records.jsonl"), lines(folder / "failed.jsonl")
            return Ran(complete, records, failed, clock.now(), one, last)

    return run_virtual(main())


def lines(path: Path) -> list[Any]:
    """The values of a JSON lines file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
