"""Exchanges are counted as they were."""

import asyncio

import pytest

from sanderling.repos.measures import Exchanges
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

URL = "https://a.example/x"


class Answer:
    """A client that takes two seconds."""

    async def send(self, task: Task) -> Reply:
        await asyncio.sleep(2)
        return Reply(200, (), b"12345", task.url, 0.1)


class Refusing:
    async def send(self, task: Task) -> Reply:
        raise ConnectionRefusedError(task.url)


def test_what_is_sent_is_counted_by_status_and_timed() -> None:
    async def main() -> Exchanges:
        exchanges = Exchanges(Answer(), LoopClock())
        await exchanges.send(Task(URL))
        await exchanges.send(Task(URL))
        return exchanges

    exchanges = run_virtual(main())

    assert (exchanges.statuses, exchanges.latencies.total, exchanges.bytes) == ({"200": 2}, 4.0, 10)


def test_what_got_no_answer_is_counted_too() -> None:
    async def main() -> Exchanges:
        exchanges = Exchanges(Refusing(), LoopClock())
        with pytest.raises(ConnectionRefusedError):
            await exchanges.send(Task(URL))
        return exchanges

    assert run_virtual(main()).statuses == {"none": 1}
