"""Requests that are made up from the description by a tool that others maintain, against files and a real socket."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from events_house import (
    DAY,
    NOON,
    FolderControl,
    a_batch,
    a_comment,
    a_post,
    an_error,
    events_house,
    opened_queue,
    opened_store,
)
from hypothesis import HealthCheck, Phase, assume, given, settings
from polling_house import TOKEN

from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.queue import Letter


@cache
def tool() -> Any:  # noqa: ANN401 - the tool has types of its own
    """Loaded by who uses it: it takes every worker a second."""
    return pytest.importorskip("schemathesis", reason="schemathesis is not installed")


TOO_LARGE = 413  # which the tool does not take for a refusal
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
# What is well described and refused all the same: dates in the wrong order and pages that are too deep, and letters
# that there are not.
SPANS = ("posts", "all_posts", "summary", "trends", "top_keywords", "alerts", "errors", "error_counts")
EASY = {
    "health",
    "ready",
    "analytics_health",
    "detailed_health",
    "status",
    "modes",
}  # they take nothing, so nothing is wrong
OPAQUE = {**{name: {400} for name in SPANS}, "dead": {410}}


async def fill(folder: Path) -> None:
    """A few hundred rows of all sorts, and some dead letters."""
    async with opened_store(folder / "analytics.db") as store, opened_queue(folder / "queue.db") as queue:
        await keep(store, Random(5))
        await queue.publish([Letter(f"evt_{number}", b"\xff{}") for number in range(9)])
        for delivery in await queue.take(9, 1.0):
            await queue.bury(delivery, "no payload")


async def keep(store: AnalyticsStore, rng: Random) -> None:
    for number in range(6):
        posts = [
            a_post(
                f"{number}-{place}",
                project_id=rng.choice(["p", None]),
                platform=rng.choice(["tiktok", "youtube"]),
                overall_sentiment=rng.choice(["NEGATIVE", "NEUTRAL", "POSITIVE"]),
                risk_level=rng.choice(["LOW", "CRITICAL"]),
                primary_intent=rng.choice(["CRISIS", "LEAD"]),
                is_viral=rng.random() < 0.5,
                published_at=rng.choice([None, NOON + DAY * rng.uniform(-9999, 9999), -62_135_596_800.0]),
                view_count=rng.choice([0, 2**63 - 1]),
                content_text=rng.choice(["", "🚗" * 1000, "\u202eright to left", "a\r\n\t\x1b"]),
            )
            for place in range(50)
        ]
        comments = [a_comment(str(place), post=place) for place in range(50)]
        event = f"evt_{number}"
        errors = [an_error(50 + place, event_id=event, project_id=rng.choice([None, "0"])) for place in range(20)]
        await store.keep(a_batch(event, posts=posts, comments=comments, errors=errors))


@contextmanager
def served(folder: Path, token: str | None) -> Iterator[str]:
    """A house in a thread of its own: the tool is not asynchronous."""
    address: Future[str] = Future()
    closing: Future[asyncio.Event] = Future()

    async def main() -> None:
        end = asyncio.Event()
        async with (
            opened_store(folder / "analytics.db") as store,
            opened_queue(folder / "queue.db") as queue,
            events_house(rows=store, letters=queue, control=FolderControl(folder), token=token) as opened,
        ):
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("generated")
    asyncio.run(fill(made))
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder, TOKEN) as opened:
        yield opened


def operations(url: str) -> Iterator[tuple[str, Any]]:
    described = tool().openapi.from_url(f"{url}/openapi.json", headers=HEADERS)
    for found in described.get_all_operations():
        operation = found.ok()
        yield operation.definition.raw["operationId"], operation


def test_the_api_is_as_it_is_described(url: str) -> None:
    asked = []
    for name, operation in operations(url):
        ask(operation, OPAQUE.get(name, set()))
        asked.append(name)

    assert len(asked) == 18  # the tool leaves out the description itself


def ask(operation: Any, refused: set[int]) -> None:  # noqa: ANN401 - the tool's own
    @settings(max_examples=6, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy())
    def check(case: Any) -> None:  # noqa: ANN401 - the tool's own
        answer = case.call(headers=HEADERS)
        accepting = tool().checks.CHECKS.get_one("positive_data_acceptance")
        case.validate_response(answer, excluded_checks=[accepting] if answer.status_code in refused else [])

    check()


FULL: dict[str, dict[str, object]] = {
    "posts": {"page_size": 100},
    "all_posts": {"limit": 10_000},
    "summary": {},
    "trends": {"from_date": "0001-01-01", "to_date": "9999-12-31", "granularity": "month"},
    "top_keywords": {},
    "alerts": {},
    "errors": {},
    "error_counts": {},
}


def test_answers_with_many_rows_are_as_they_are_described(url: str) -> None:
    found = {}
    for name, operation in operations(url):
        if name in FULL:
            answer = operation.Case(query={"project_id": "", **FULL[name]}).call_and_validate(headers=HEADERS)
            found[name] = answer.json()["data"]
    one = found["posts"][0]["id"]
    for name, operation in operations(url):
        if name == "post":
            answer = operation.Case(path_parameters={"id": one}).call_and_validate(headers=HEADERS)
            found[name] = answer.json()["data"]

    assert len(found) == 9
    assert found["summary"]["posts"] == len(found["all_posts"]) > 100
    assert all(found.values())


def test_what_is_not_as_it_is_described_is_refused(folder: Path) -> None:
    # Without a token: the tool would take the one that we put in for its own mistake.
    with served(folder, None) as opened:
        for name, operation in operations(opened):
            if name not in EASY:
                refuse(operation.as_strategy(generation_mode=tool().GenerationMode.NEGATIVE))


def refuse(cases: Any) -> None:  # noqa: ANN401 - the tool's own
    wrong = tool().GenerationMode.NEGATIVE

    @settings(max_examples=5, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(cases)
    def check(case: Any) -> None:  # noqa: ANN401 - the tool's own
        # No header is wrong here: an id that cannot be used is not.
        assume(any(info.mode is wrong for where, info in case.meta.components.items() if where != "header"))
        answer = case.call()
        rejecting = tool().checks.CHECKS.get_one("negative_data_rejection")
        case.validate_response(answer, excluded_checks=[rejecting] if answer.status_code == TOO_LARGE else [])

    check()
