"""Requests that are made up from the description by a tool that others maintain, against a real socket."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from polling_house import TOKEN, FakeControl, a_target, house

from sanderling.stores.documents import SourceRow


@cache
def tool() -> Any:  # noqa: ANN401 - the tool has types of its own
    """Loaded by who uses it: it takes every worker a second."""
    return pytest.importorskip("schemathesis", reason="schemathesis is not installed")


# What is well described and refused all the same: cursors, numbers of changes and settings that there are not, and a
# whole number that is written with a fraction of nothing.
OPAQUE = {
    "targets": {400},
    "changes": {410},
    "change_setting": {422},
    "reset_setting": {422},
    "change_target": {400},
}
ENDLESS = {"events"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A house in a thread of its own: the tool is not asynchronous."""
    address: Future[str] = Future()
    closing: Future[asyncio.Event] = Future()

    async def main() -> None:
        control = FakeControl([a_target(1), a_target(2), a_target(3, "results", "e1")])
        control.tables["laps"] = [SourceRow("laps", f"k{number}", {"event": "e1"}) for number in range(9)]
        control.tell(*[control.store.add(lap=number) for number in range(30)])
        end = asyncio.Event()
        async with house(control) as opened:
            closing.set_result(end)
            address.set_result(opened.address.url)
            await end.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        yield address.result(300)
    finally:
        loop.call_soon_threadsafe(closing.result(300).set)
        thread.join(300)
        loop.close()


def test_the_api_is_as_it_is_described(url: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    described = tool().openapi.from_url(f"{url}/openapi.json", headers=headers)
    asked = []
    for found in described.get_all_operations():
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        if name not in ENDLESS:
            ask(operation, headers, OPAQUE.get(name, set()))
            asked.append(name)

    assert len(asked) == 22  # the tool leaves out the description itself


def ask(operation: Any, headers: dict[str, str], refused: set[int]) -> None:  # noqa: ANN401 - the tool's own
    @settings(max_examples=5, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy())
    def check(case: Any) -> None:  # noqa: ANN401 - the tool's own
        answer = case.call(headers=headers)
        accepting = tool().checks.CHECKS.get_one("positive_data_acceptance")
        case.validate_response(answer, excluded_checks=[accepting] if answer.status_code in refused else [])

    check()
