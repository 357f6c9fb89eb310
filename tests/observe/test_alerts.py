"""Alerts: nobody who has something to say waits, and what is said arrives, in order, or is counted."""

import asyncio
import io
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from sanderling.observe import logs
from sanderling.observe.alerts import Alert, AlertRules, Alerts, Fate, Field, Level, Receipt, duration
from sanderling.testing import LoopClock, run_virtual

SENT, LATER, NEVER = Receipt(Fate.SENT), Receipt(Fate.LATER, "status 500"), Receipt(Fate.NEVER, "status 404")
T = TypeVar("T")


class FakeSink:
    """Takes each attempt as the test wrote it, the last way for ever; remembers when which alert came."""

    def __init__(self, *receipts: Receipt, seconds: float = 0) -> None:
        self.receipts = list(receipts) or [SENT]
        self.seconds = seconds
        self.attempts: list[tuple[float, Alert]] = []
        self.said: list[float] = []

    async def send(self, alert: Alert, at: float) -> Receipt:
        self.attempts.append((LoopClock().now(), alert))
        self.said.append(at)
        await asyncio.sleep(self.seconds)
        return self.receipts.pop(0) if len(self.receipts) > 1 else self.receipts[0]

    @property
    def kinds(self) -> list[str]:
        return [alert.kind for _, alert in self.attempts]

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.attempts]


@pytest.fixture
def logged() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    structlog.reset_defaults()


def play(sink: FakeSink | None, main: Callable[[Alerts], Awaitable[T]], rules: AlertRules | None = None) -> T:
    async def played() -> T:
        async with Alerts(sink, LoopClock(), random.Random(1), rules) as alerts:
            return await main(alerts)

    return run_virtual(played())


def saying(*kinds: str, then: float = 0) -> Callable[[Alerts], Awaitable[None]]:
    async def main(alerts: Alerts) -> None:
        for kind in kinds:
            alerts.say(Alert(kind, kind))
        await asyncio.sleep(then)

    return main


def log_only(alert: Alert) -> None:
    async def main(alerts: Alerts) -> None:
        alerts.say(alert)

    play(None, main)


def test_what_is_said_is_sent_in_order_and_not_faster_than_allowed() -> None:
    sink = FakeSink()

    play(sink, saying("a", "b", "c", then=60))

    assert sink.kinds == ["a", "b", "c"]
    assert sink.times == [0, 2, 4]


def test_saying_never_waits_whatever_the_receiver_does() -> None:
    sink = FakeSink(seconds=1000)

    async def main(alerts: Alerts) -> float:
        for _ in range(5000):
            alerts.say(Alert("a", "A"))
            await asyncio.sleep(0)
        return LoopClock().now()

    assert play(sink, main) == 0
    assert len(sink.attempts) == 1


def test_an_alert_carries_the_time_at_which_it_was_said() -> None:
    sink = FakeSink()

    play(sink, saying("a", "b", then=60))

    assert sink.said == [1_800_000_000, 1_800_000_000]


def test_a_passing_failure_is_tried_again_after_ever_longer_pauses() -> None:
    sink = FakeSink(LATER, LATER, LATER, SENT)

    play(sink, saying("a", "b", then=600))

    assert sink.kinds == ["a", "a", "a", "a", "b"]
    pauses = [later - earlier for earlier, later in zip(sink.times[:3], sink.times[1:4], strict=True)]
    assert all(longest / 2 <= pause <= longest for pause, longest in zip(pauses, (1, 2, 4), strict=True))


def test_what_the_receiver_asked_for_is_waited_for_also_before_the_next_alert() -> None:
    sink = FakeSink(Receipt(Fate.LATER, "status 429", wait=64.57))

    play(sink, saying("a", "b", then=600), AlertRules(attempts=2))

    assert sink.kinds == ["a", "a", "b", "b"]
    pauses = [later - earlier for earlier, later in zip(sink.times[:3], sink.times[1:], strict=True)]
    assert all(pause >= 64.57 - 1e-6 for pause in pauses)


def test_what_is_refused_for_good_is_not_tried_again() -> None:
    sink = FakeSink(NEVER, SENT)

    play(sink, saying("a", "b", then=60))

    assert sink.kinds == ["a", "b"]


def test_the_next_alert_says_how_many_were_not_sent() -> None:
    sink = FakeSink(NEVER, NEVER, SENT)

    play(sink, saying("a", "b", "c", "d", then=60))

    fields = [[tuple(field) for field in alert.fields] for _, alert in sink.attempts]
    assert fields == [[], *([[("Alerts Not Sent Before", number, True)] for number in "12"]), []]


def test_those_that_were_dropped_for_want_of_room_are_said_too() -> None:
    sink = FakeSink()

    play(sink, saying("a", "b", "c", "d", "e", then=60), AlertRules(most=2))

    assert sink.kinds == ["d", "e"]
    assert sink.attempts[0][1].fields == (Field("Alerts Not Sent Before", "3"),)


def test_a_crowd_of_sparse_alerts_becomes_one_a_minute() -> None:
    sink = FakeSink()

    async def main(alerts: Alerts) -> None:
        for number in range(300):
            alerts.say(Alert(f"{number}", "Unresolved", patience=5 if number % 2 else 10))
            await asyncio.sleep(1)

    play(sink, main)

    assert sink.times == [0, 60, 120, 180, 240, 300]


def test_what_is_left_is_sent_before_we_end() -> None:
    sink = FakeSink()

    play(sink, saying("a", "b", "c"))

    assert sink.kinds == ["a", "b", "c"]


def test_the_end_is_not_put_off_for_long(logged: Callable[[], list[dict[str, Any]]]) -> None:
    sink = FakeSink(seconds=1000)

    async def played() -> float:
        async with Alerts(sink, LoopClock(), random.Random(1)) as alerts:
            await saying("a", "b", "c")(alerts)
        return LoopClock().now()

    assert run_virtual(played()) == 5
    assert [(each["event"], each["number"]) for each in logged() if "number" in each] == [("ALERTS_NOT_SENT", 3)]


def test_the_end_does_not_wait_for_what_would_not_go_in_time() -> None:
    async def played() -> float:
        async with Alerts(FakeSink(), LoopClock(), random.Random(1)) as alerts:
            alerts.say(Alert("a", "A", patience=50))
            alerts.say(Alert("b", "B", patience=50))
        return LoopClock().now()

    assert run_virtual(played()) == 0


def test_what_ended_the_crawl_comes_out_as_it_was_and_what_was_said_of_it_is_sent() -> None:
    sink = FakeSink()

    async def main(alerts: Alerts) -> None:
        alerts.say(Alert("a", "A"))
        raise KeyError("disk")

    with pytest.raises(KeyError, match="disk"):
        play(sink, main)
    assert sink.kinds == ["a"]


def test_a_cancelled_crawl_still_sends_what_it_said() -> None:
    sink = FakeSink(seconds=1)

    async def crawl() -> None:
        async with Alerts(sink, LoopClock(), random.Random(1)) as alerts:
            alerts.say(Alert("a", "A"))
            alerts.say(Alert("b", "B"))
            await asyncio.sleep(1000)

    async def main() -> None:
        async with asyncio.timeout(0.5):
            await crawl()

    with pytest.raises(TimeoutError):
        run_virtual(main())
    assert sink.kinds == ["a", "b"]


def test_after_the_end_they_go_only_into_the_log(logged: Callable[[], list[dict[str, Any]]]) -> None:
    sink = FakeSink()

    async def played() -> None:
        async with Alerts(sink, LoopClock(), random.Random(1)) as alerts:
            pass
        alerts.say(Alert("late", "Late"))

    run_virtual(played())

    assert sink.kinds == []
    assert [each["event"] for each in logged()] == ["LATE"]


def test_every_alert_is_in_the_log_at_once_with_its_fields(logged: Callable[[], list[dict[str, Any]]]) -> None:
    fields = (Field("Lag Behind Head (P20)", "45.5s"), Field("Instance Id", "`17`"))

    log_only(Alert("gap_skipped", "Gap", fields, Level.SERIOUS))

    (line,) = logged()
    assert (line["event"], line["level"], line["title"]) == ("GAP_SKIPPED", "warning", "Gap")
    assert (line["lag_behind_head_p20"], line["instance_id"]) == ("45.5s", "17")


@pytest.mark.parametrize(
    ("level", "written"),
    [
        (Level.STATUS, "info"),
        (Level.INFO, "info"),
        (Level.WARNING, "warning"),
        (Level.SERIOUS, "warning"),
        (Level.ERROR, "error"),
        (Level.CRITICAL, "error"),
    ],
)
def test_what_matters_more_is_logged_at_a_higher_level(
    level: Level, written: str, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    log_only(Alert("a", "A", level=level))

    assert [line["level"] for line in logged()] == [written]


def test_a_receiver_that_fails_is_logged_once_until_it_works_again(
    logged: Callable[[], list[dict[str, Any]]],
) -> None:
    sink = FakeSink(NEVER, NEVER, SENT, LATER)

    play(sink, saying("a", "b", "c", "d", then=60), AlertRules(attempts=1))

    complaints = [(each["why"], each["again"]) for each in logged() if each["event"] == "ALERTS_FAIL"]
    assert complaints == [("status 404", False), ("status 500", True)]


@given(st.lists(st.tuples(st.text(max_size=12), st.text()), max_size=5), st.text(max_size=9), st.sampled_from(Level))
def test_saying_never_raises_whatever_is_said(fields: list[tuple[str, str]], kind: str, level: Level) -> None:
    logs.configure("json", stream=(stream := io.StringIO()))
    alerts = Alerts(FakeSink(), LoopClock(), random.Random(1))

    async def say() -> None:
        alerts.say(Alert(kind, kind, tuple(Field(name, value) for name, value in fields), level))

    run_virtual(say())

    structlog.reset_defaults()
    assert len(stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize("name", ["self", "event", "Level", "method name", "exc_info", "title", "timestamp", "", "!"])
def test_a_field_cannot_take_the_place_of_what_a_line_has_anyway(
    name: str, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    log_only(Alert("kind", "Title", (Field(name, "intruder"),)))

    (line,) = logged()
    assert (line["event"], line["title"], line["level"]) == ("KIND", "Title", "info")
    assert "intruder" in line.values()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (float("nan"), "unknown"),
        (float("inf"), "unknown"),
        (0, "0ms"),
        (0.5, "500ms"),
        (0.9994, "999ms"),
        (0.9996, "1s"),
        (45.5, "45.5s"),
        (59.94, "59.9s"),
        (59.96, "1m"),
        (330.5, "5m 30.5s"),
        (3599.96, "1h"),
        (5415.5, "1h 30m 15.5s"),
        (3601.5, "1h 1.5s"),
        (300, "5m"),
        (5400, "1h 30m"),
        (360_000, "100h"),
        (-45.5, "-45.5s"),
    ],
)
def test_durations_are_written_as_people_say_them(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_a_duration_says_what_it_is_to_a_tenth(seconds: float) -> None:
    units = {"ms": 0.001, "h": 3600.0, "m": 60.0, "s": 1.0}
    parts = duration(seconds).split()

    total = 0.0
    for part in parts:
        unit = next(unit for unit in units if part.endswith(unit))
        total += float(part.removesuffix(unit)) * units[unit]
    assert total == pytest.approx(seconds, abs=0.0501)
    assert all(0 < float(part.rstrip("ms")) < 60 for part in parts[1:])
