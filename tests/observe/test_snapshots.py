import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog
from fake_snapshot import Seen, Snapshot

from sanderling.clock import Timer
from sanderling.observe import logs
from sanderling.observe.snapshots import log_snapshots, snapshot_fields


class Enough(Exception):  # noqa: N818 - not an error
    """Ends a loop that has no end."""


class SlowClock:
    """Moves by what was slept and by the next of `late`; when there are no more, it is enough."""

    def __init__(self, *late: float) -> None:
        self.time = 1000.0
        self.late = iter(late)

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        try:
            self.time += seconds + next(self.late)
        except StopIteration:
            raise Enough from None

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        raise NotImplementedError(seconds, callback)


class Times:
    """A log that keeps only when it was written to."""

    def __init__(self, clock: SlowClock) -> None:
        self.clock = clock
        self.at: list[float] = []

    def info(self, event: str, **fields: object) -> None:
        assert event == "limiter_snapshot"
        assert fields == snapshot_fields(Snapshot())
        self.at.append(self.clock.now() - 1000)


def times(*late: float, every: float = 10.0) -> list[float]:
    clock = SlowClock(*late)
    log = Times(clock)
    with pytest.raises(Enough):
        asyncio.run(log_snapshots(Snapshot, log, clock, every))
    return log.at


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    handlers, stream = logging.root.handlers, io.StringIO()
    yield stream
    logging.root.handlers = handlers
    structlog.reset_defaults()


def test_a_line_comes_every_ten_seconds() -> None:
    assert times(0, 0, 0) == [10, 20, 30]


def test_being_late_once_does_not_make_the_next_ones_late() -> None:
    assert times(1.5, 0.5, 0) == [11.5, 20.5, 30]


def test_lines_that_were_overslept_are_left_out() -> None:
    assert times(25, 0, 0) == [35, 40, 50]


def test_a_sleep_that_ends_a_hair_early_is_not_logged_twice() -> None:
    assert [round(at) for at in times(-1e-9, -1e-9, -1e-9)] == [10, 20, 30]


def test_a_long_run_does_not_drift() -> None:
    assert times(*[0.0] * 100_000, every=0.1)[-1] == pytest.approx(10_000, abs=1e-6)


def test_the_fields_are_totals_and_the_three_busiest_hosts() -> None:
    hosts = tuple(
        Seen(host=f"{name}.example", rate=rate) for name, rate in zip("abcd", (40, 2.5, 0.25, 0.1), strict=True)
    )

    assert snapshot_fields(Snapshot(top=hosts)) == {
        "requests": 100,
        "throttled": 40,
        "denied": 7,
        "rejected": 5,
        "retries": 6,
        "waited": 12.5,
        "hosts": 10,
        "open": 2,
        "half_open": 1,
        "busiest": "a.example=40.00 b.example=2.50 c.example=0.25",
    }


def test_an_idle_limiter_has_no_busiest_host() -> None:
    assert snapshot_fields(Snapshot(top=()))["busiest"] == ""


def test_a_host_may_have_any_name(stream: io.StringIO) -> None:
    """Not one that takes the place of a field, nor one that looks like a secret."""
    hosts = (Seen(host="event"), Seen(host="auth.example", rate=4), Seen(host="api-token.example", rate=0.5))
    logs.configure("json", "info", stream)

    logs.get("test").info("limiter_snapshot", **snapshot_fields(Snapshot(top=hosts)))

    event = json.loads(stream.getvalue())
    assert (event["event"], event["requests"]) == ("limiter_snapshot", 100)
    assert event["busiest"] == "event=2.50 auth.example=4.00 api-token.example=0.50"
