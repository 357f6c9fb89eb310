"""What a user's function does wrong is the outcome of its request, with the place; nothing of that request is kept."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from small_api import API, Api, answer, api, run

from sanderling import Job, JobReply, Reply, Request, Task
from sanderling.jobs import functions
from sanderling.jobs.calls import LONGEST_CALL
from sanderling.jobs.job import JobError
from sanderling.testing import LoopClock

HERE = Path(__file__).name


class Post(msgspec.Struct):
    """What a record must have."""

    id: int


@dataclass
class Plain:
    """A record that is no dict."""

    id: int


def raises_after_a_record(reply: JobReply) -> Iterator[object]:
    yield {"id": 1}
    yield Request("/further")
    helper(reply)


def helper(reply: JobReply) -> None:
    raise KeyError(f"{reply.status}")


async def raises_async(reply: JobReply) -> AsyncIterator[object]:
    yield {"id": 1}
    reply.json()["absent"]


def yields_no_json(_: JobReply) -> Iterator[object]:
    yield {"id": 1}
    yield {"id": object()}


async def yields_no_json_async(_: JobReply) -> AsyncIterator[object]:
    yield {"id": 1}
    yield {"id": {1: {2: {(3, 4): 5}}}}


def yields_text(_: JobReply) -> Iterator[object]:
    yield "/a/relative/address"


def yields_another_type(_: JobReply) -> Iterator[object]:
    yield {"id": "7"}


def reads_no_json(reply: JobReply) -> object:
    return reply.json()


def asks_for_an_unknown_reader(_: JobReply) -> Iterator[object]:
    yield {"id": 1}
    yield Request("/x", read="nobody")


def asks_for_no_address(_: JobReply) -> Iterator[object]:
    yield Request("mailto:somebody@example.org")


def carries_no_json(_: JobReply) -> Iterator[object]:
    yield Request("/x", data={"when": object()})


def yields_without_end(_: JobReply) -> Iterator[object]:
    while True:
        yield {"id": 1}


async def takes_too_long(_: JobReply) -> None:
    await LoopClock().sleep(2 * LONGEST_CALL)


async def cannot_be_cancelled(_: JobReply) -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await LoopClock().sleep(1.0)


async def cannot_be_cancelled_yielding(_: JobReply) -> AsyncIterator[object]:
    yield {"id": 1}
    while True:
        with suppress(asyncio.CancelledError):
            await LoopClock().sleep(1.0)


def awaits_what_was_cancelled(_: JobReply) -> object:
    async def wait() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1.0, future.cancel)
        await future

    return wait()


class Odd(BaseException):
    """No Exception."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raises_what_is_no_exception(_: JobReply) -> Iterator[object]:
    yield {"id": 1}
    raise Odd


def returns_from_a_generator(_: JobReply) -> Generator[object, None, object]:
    yield {"id": 1}
    return [Request("/x", read="nobody")]


MISTAKES: dict[Callable[..., Any], tuple[str, str]] = {
    raises_after_a_record: ("KeyError: '200'", "raise KeyError("),
    raises_async: ("KeyError: 'absent'", '"absent"'),
    yields_no_json: ("record 2 is no JSON: Encoding objects of type object is unsupported", "object()}"),
    yields_no_json_async: ("record 2 is no JSON: id has the key 1, expected a text", "(3, 4)"),
    yields_text: ("'/a/relative/address' is no record, expected a dict, a list, a struct, a dataclass", "    yield"),
    asks_for_an_unknown_reader: ("read is 'nobody', which is no reader; expected one of ", '"nobody"'),
    asks_for_no_address: ("expected one that begins with https:// or http://", "mailto"),
    carries_no_json: ("Encoding objects of type object is unsupported", "object()}"),
    yields_without_end: ("more than 1,000 values for one reply; none of them is kept", "    yield"),
    takes_too_long: ("takes_too_long took more than 60 s", "def takes_too_long"),
    cannot_be_cancelled: ("cannot_be_cancelled took more than 60 s", "def cannot_be"),
    cannot_be_cancelled_yielding: ("cannot_be_cancelled_yielding took more than 60 s", "def cannot_be"),
    awaits_what_was_cancelled: ("CancelledError", "await future"),
    raises_what_is_no_exception: ("Odd: its words raise RuntimeError", "raise Odd"),
    returns_from_a_generator: ("read is 'nobody', which is no reader", "return ["),
}


def ran_with(reader: Callable[..., Any], folder: Path, body: object = None, **options: Any) -> Any:  # noqa: ANN401
    job = Job("mistaken", start=[f"{API}/good", f"{API}/bad"])

    @job.read
    def start(reply: JobReply) -> Iterator[object]:
        yield Request(reply.url, read=reader.__name__ if reply.url.endswith("bad") else "fine", key="2" + reply.url)

    @job.read
    def fine(_: JobReply) -> object:
        return Plain(0)

    (job.read(**options) if options else job.read)(reader)
    world = api({"/good": {}, "/bad": body if body is not None else {}})
    return run(job, folder, world)


@pytest.mark.parametrize("reader", MISTAKES, ids=lambda reader: reader.__name__)
def test_a_mistake_ends_its_request_with_file_and_line(
    reader: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "MOST_YIELDS", 1_000)
    said, words = MISTAKES[reader]
    first = reader.__code__.co_firstlineno - 1
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines[first:], first + 1) if words in text)

    alone = reader in (yields_no_json, yields_no_json_async)  # what is wrong is the second of two records

    ran = ran_with(reader, tmp_path / "out")

    assert ran.records == [{"id": 0}, {"id": 1}][: 1 + alone]
    assert ran.complete
    (failed,) = ran.failed
    assert said in failed["detail"]
    assert failed["detail"].endswith(f"({HERE}:{line})")
    assert (failed["outcome"], failed["read"], failed["requests"]) == ("PARSE_ERROR", reader.__name__, 1 - alone)


EXITS = (SystemExit("bye"), KeyboardInterrupt("x"), GeneratorExit("x"), asyncio.CancelledError("x"), Odd())


@pytest.mark.parametrize("error", EXITS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", ["plain", "generator", "coroutine", "async_generator", "before", "after", "key"])
def test_whatever_a_function_raises_is_the_outcome_of_its_request(
    kind: str, error: BaseException, tmp_path: Path
) -> None:
    """Also what ends other programs: only a Ctrl-C ends a run."""

    def plain(_: object) -> None:
        raise error

    def generator(_: object) -> Iterator[object]:
        yield {"id": 1}
        raise error

    async def coroutine(_: object) -> None:
        raise error

    async def async_generator(_: object) -> AsyncIterator[object]:
        yield {"id": 1}
        raise error

    def fine(reply: JobReply) -> object:
        return Request("/fine", read="other") if kind == "key" else {"url": reply.url}

    def other(_: JobReply) -> None:
        """Nothing."""

    bad: dict[str, Callable[..., Any]] = {
        each.__name__: each for each in (plain, generator, coroutine, async_generator)
    }
    given = {"key": lambda request: plain(request) if request.url == "/fine" else None} if kind == "key" else {}
    job = Job("exits", start=f"{API}/a", **given)  # type: ignore[arg-type]
    job.read(bad.get(kind, fine))
    job.read(other)
    if kind in ("before", "after"):
        getattr(job, kind)(coroutine)

    ran = run(job, tmp_path / "out", api({"/a": {}}))

    (failed,) = ran.failed
    assert (ran.complete, ran.records, failed["outcome"]) == (True, [], "PARSE_ERROR")
    assert failed["detail"].startswith(type(error).__name__)
    assert f"({HERE}:" in failed["detail"]


@pytest.mark.parametrize("error", EXITS, ids=lambda error: type(error).__name__)
def test_whatever_start_raises_is_said_with_its_place(error: BaseException, tmp_path: Path) -> None:
    def start(_: object) -> Iterator[str]:
        yield f"{API}/a"
        raise error

    job = Job("exits", start=start, hosts=["api.example"])
    job.read(reads_no_json)

    with pytest.raises(JobError, match=rf"start of exits: {type(error).__name__}.* \({HERE}:"):
        run(job, tmp_path / "out", api({}))


def test_a_call_that_is_cancelled_from_outside_is_no_mistake(tmp_path: Path) -> None:
    """The request waits for the next run."""

    async def reader(_: JobReply) -> None:
        asyncio.get_running_loop().call_later(0.1, main.cancel)
        await LoopClock().sleep(10.0)

    job = Job("cancelled", start=f"{API}/a")
    job.read(reader)
    main: asyncio.Task[Any]

    class World(Api):
        async def send(self, task: Task) -> Reply:
            nonlocal main
            (main,) = [each for each in asyncio.all_tasks() if "main" in repr(each.get_coro())]
            return await Api.send(self, task)

    with pytest.raises(asyncio.CancelledError):
        run(job, tmp_path / "out", World(lambda _: answer({})))

    @job.before
    def check(_: Request) -> None:
        raise RuntimeError("asked again")

    assert "asked again" in run(job, tmp_path / "out", api({"/a": {}})).failed[0]["detail"]


class Mood(Enum):
    """A kind of value."""

    GOOD = "good"


WRITTEN: list[tuple[Any, Any]] = [
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    (datetime(2026, 1, 2, 3, 4, 5, 600), "2026-01-02T03:04:05.000600"),  # noqa: DTZ001 - as users do
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4), "03:04:00"),
    (timedelta(days=1, seconds=2), "P1DT2S"),
    (Decimal("1.10"), "1.10"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Mood.GOOD, "good"),
    ((1, 2), [1, 2]),
    (Plain(3), {"id": 3}),
    (Post(4), {"id": 4}),
    (10**30, 10**30),
]
CHANGED: list[tuple[Any, str]] = [
    (float("nan"), "v[0] is nan, expected a number"),
    (float("-inf"), "v[0] is -inf, expected a number"),
    (Decimal("NaN"), "v[0] is NaN, expected a number"),
    (b"x", "v[0] is bytes, expected what JSON has"),
    (bytearray(b"x"), "v[0] is bytearray, expected"),
    ({1}, "v[0] is set, expected"),
    (frozenset(), "v[0] is frozenset, expected"),
    (msgspec.Raw(b"no\njson"), "v[0] is Raw, expected"),
    ({1: 1}, "v[0] has the key 1, expected a text"),
    ({"a": {None: 1}}, "v[0].a has the key None, expected a text"),
    (Plain({2}), "v[0].id is set, expected"),  # type: ignore[arg-type]
    (Post(b"x"), "v[0].id is bytes, expected"),  # type: ignore[arg-type]
    ("\ud800", "a text has half of a surrogate pair in it"),
    (10**5000, "Exceeds the limit"),
]


def test_values_are_written_as_documented(tmp_path: Path) -> None:
    """In a record, and in what a request carries along."""
    given = {"v": [each for each, _ in WRITTEN]}

    def reader(reply: JobReply) -> Iterator[object]:
        yield reply.data or given
        if not reply.data:
            yield Request("/bad", key="x", data=given, method="POST", json=given)

    ran = ran_with(reader, tmp_path / "out")

    assert ran.failed == []
    assert ran.records[1:] == [{"v": [each for _, each in WRITTEN]}] * 2


@pytest.mark.parametrize(("value", "says"), CHANGED, ids=[says for _, says in CHANGED])
@pytest.mark.parametrize("place", ["record", "data", "json"])
def test_values_that_json_has_not_are_mistakes(value: object, says: str, place: str, tmp_path: Path) -> None:
    def reader(_: JobReply) -> object:
        given: dict[str, Any] = {place: {"v": [value]}}
        return given["record"] if place == "record" else Request("/bad", key="x", method="POST", **given)

    ran = ran_with(reader, tmp_path / "out")

    assert ran.records == [{"id": 0}]
    assert says in ran.failed[0]["detail"]
    assert f"({HERE}:" in ran.failed[0]["detail"]


def test_a_record_is_checked_against_its_type(tmp_path: Path) -> None:
    ran = ran_with(yields_another_type, tmp_path / "out", record=Post)

    assert 'record 1 is no Post: Expected `int`, got `str` - at `$.id`: b\'{"id":"7"}\'' in ran.failed[0]["detail"]
    assert ran.records == [{"id": 0}]


def test_what_is_no_json_is_shown_with_its_place(tmp_path: Path) -> None:
    ran = ran_with(reads_no_json, tmp_path / "out", answer(body=b'{"a": 1, oops}'))

    detail = ran.failed[0]["detail"]
    assert "the body is no JSON: " in detail
    assert "b'{\"a\": 1, oops}'" in detail


def test_functions_around_a_request_are_checked_as_well(tmp_path: Path) -> None:
    """And what they may return, they may: another request, and what became of a reply."""
    job = Job("around", start=[f"{API}/{name}" for name in ("signed", "raises", "odd", "gone", "late", "bad", "lured")])
    told: list[str] = []

    @job.before
    async def sign(request: Request) -> Request | None:
        if request.url.endswith("raises"):
            raise RuntimeError("no key")
        if request.url.endswith("lured"):
            return request.replace(url="https://other.example/")
        return request.with_headers(X_Signature="s3cret") if request.url.endswith("signed") else None

    @job.after
    def look(reply: JobReply) -> object:
        name = reply.url.rpartition("/")[2]
        told.append(name)
        if name == "late" and told.count("late") == 1:
            return job.refused(5.0)
        if name == "bad":
            return job.failed("says sorry")
        return {"odd": "odd", "gone": job.missing("no more")}.get(name)

    @job.read
    def read(reply: JobReply) -> object:
        return {"url": reply.url, "headers": list(reply.request.headers)}

    world = api({f"/{name}": {} for name in ("signed", "raises", "odd", "gone", "late", "bad")})
    ran = run(job, tmp_path / "out", world)

    assert {each["url"] for each in ran.records} == {f"{API}/signed", f"{API}/late"}
    assert all(not each["headers"] for each in ran.records)  # what was added is neither stored nor shown
    assert [dict(task.headers) for task in world.asked if task.url.endswith("signed")] == [{"X-Signature": "s3cret"}]
    reasons = {url.rpartition("/")[2]: detail for url, detail in ran.reasons.items()}
    assert reasons["raises"].startswith("RuntimeError: no key (test_jobs_mistakes.py:")
    assert reasons["odd"].startswith("look returned str, expected job.missing(), job.refused(), job.failed() or None")
    assert reasons["lured"] == "a function before the request has changed its host from api.example to other.example"
    assert (reasons["gone"], reasons["bad"]) == ("no more", "says sorry")
    assert (told.count("late") > 1, told.count("bad")) == (True, 4)  # a refusal is waited for, an error is retried
    assert b"s3cret" not in b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
