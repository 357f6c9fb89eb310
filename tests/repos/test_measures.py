"""Exchanges are counted as they were, and what nobody will read holds no memory."""

import asyncio

import pytest

from sanderling.flow.memory import Memory
from sanderling.repos.measures import Exchanges
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

URL = "https://a.example/x"


class Answer:
    """A client that takes two seconds, and holds what it read."""

    def __init__(self, memory: Memory, status: int, *headers: tuple[str, str]) -> None:
        self._memory = memory
        self._reply = Reply(status, headers, b"12345", URL, 0.1)

    async def send(self, task: Task) -> Reply:
        await asyncio.sleep(2)
        await self._memory.hold(task.url, len(self._reply.body))
        return self._reply


class Refusing:
    async def send(self, task: Task) -> Reply:
        raise ConnectionRefusedError(task.url)


def test_what_is_sent_is_counted_by_status_and_timed() -> None:
    async def main() -> Exchanges:
        memory = Memory(100)
        exchanges = Exchanges(Answer(memory, 200), memory, LoopClock())
        await exchanges.send(Task(URL))
        await exchanges.send(Task(URL))
        return exchanges

    exchanges = run_virtual(main())

    assert (exchanges.statuses, exchanges.latencies.total, exchanges.bytes) == ({"200": 2}, 4.0, 10)


def test_what_got_no_answer_is_counted_too() -> None:
    async def main() -> Exchanges:
        exchanges = Exchanges(Refusing(), Memory(100), LoopClock())
        with pytest.raises(ConnectionRefusedError):
            await exchanges.send(Task(URL))
        return exchanges

    assert run_virtual(main()).statuses == {"none": 1}


@pytest.mark.parametrize(("status", "headers", "held"), [(200, (), 5), (302, (("Location", "/y"),), 0), (302, (), 5)])
def test_the_body_of_a_redirect_is_let_go(status: int, headers: tuple[tuple[str, str], ...], held: int) -> None:
    """Whoever follows it has no use for it, and whoever gets the end of the chase does not know of it."""

    async def main() -> int:
        memory = Memory(100)
        await Exchanges(Answer(memory, status, *headers), memory, LoopClock()).send(Task(URL))
        return memory.total

    assert run_virtual(main()) == held
