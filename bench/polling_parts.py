"""What the benchmarks of polling share: a source of plain documents, an upstream in process, a system of real parts."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from sanderling.apis.json_source import JsonSource
from sanderling.clock import Clock
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.polling.system import PollingResources, PollingSystem
from sanderling.stores.polling import Reconciliation, WantedTarget
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.task import Reply, Task

T = TypeVar("T")
ORIGIN = "http://127.0.0.1:9"
EVENT = "plain"


async def at_once(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk without threads."""
    return work(*args)


def source(kinds: dict[str, float], origin: str = ORIGIN) -> JsonSource:
    """A source with these kinds and how many seconds each is usually apart; `live` can be active, every 200 ms."""
    described = {
        name: {"url": f"{origin}/{name}/{{id}}", "seconds": seconds, "ids_url": f"{origin}/ids/{name}"}
        | ({"active_seconds": 0.2, "active_when": "never = 1"} if name == "live" else {})
        for name, seconds in kinds.items()
    }
    return JsonSource.from_settings({"name": EVENT, "kinds": described})


class Upstream:
    """Answers every question after so many seconds, with a document that never changes, or lists ids."""

    def __init__(self, clock: Clock, seconds: float, ids: dict[str, int]) -> None:
        self.times: dict[str, list[float]] = {}
        self._clock = clock
        self._seconds = seconds
        self._ids = ids

    async def send(self, task: Task) -> Reply:
        """The reply."""
        path = task.url.removeprefix(ORIGIN)
        self.times.setdefault(path, []).append(self._clock.now())
        if path.startswith("/ids/"):
            kind = path.rpartition("/")[2]
            ids = ",".join(f'"{number}"' for number in range(self._ids[kind]))
            return Reply(200, (), f"[{ids}]".encode(), task.url, 0.0)
        await self._clock.sleep(self._seconds)
        return Reply(200, (), b'{"id": "' + path.rpartition("/")[2].encode() + b'"}', task.url, self._seconds)


@asynccontextmanager
async def polling(
    folder: Path, described: JsonSource, sends: Sends, clock: Clock, rps: float, desk: Executor = at_once
) -> AsyncIterator[PollingSystem]:
    """A system of real parts, opened; its database is in the folder, and is written at the desk."""
    async with AsyncExitStack() as stack:
        store = await open_sqlite_polling(folder / "polling.db", described.schema, described.name, desk)
        stack.push_async_callback(store.close)
        pace = PaceRules(initial_rps=rps, min_rps=1.0, max_rps=rps)
        limiter = Limiter(LimiterRules(pace), clock=clock, rng=Random(1))
        fetcher = Fetcher(sends, limiter, clock=clock, follow=False, retry=False)
        tools = PollingResources(described, fetcher, limiter, Memory(2**28), store, desk)
        system = PollingSystem(tools, clock=clock, rng=Random(1))
        await system.open()
        yield system


def found(kind: str, number: int, seconds: float) -> WantedTarget:
    """A target, as discovery would want it."""
    return WantedTarget(kind, f"{number:08d}-0000-4000-8000-000000000000", EVENT, None, seconds, 0)


def inserted(kind: str, numbers: range, seconds: float) -> Reconciliation:
    """A plan that makes these targets."""
    return Reconciliation(insert=tuple(found(kind, number, seconds) for number in numbers))


def percentile(values: list[float], percent: float) -> float:
    """The least value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def gaps(times: list[float]) -> list[float]:
    """Seconds between each and the next."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]
