"""A cadence is a contract: only refusals stretch it. Slow answers, outages and hanging requests do not."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from race_polling import Polling, play

from sanderling.task import Reply
from sanderling.worlds.race import RaceRules
from sanderling.worlds.race_day import DayRules

# One race, which is flown from the tenth second on for as long as anyone looks.
FLOWN = DayRules(pilots=6, late=0, removed=0, rounds=1, aborted=0, first=10.0, heat=3600.0, pause=200.0, lap=600.0)
LIVE_FROM = 25.0
TIMEOUT = 5.0  # seconds, the default of the command

Outage = Callable[[], Coroutine[Any, Any, Reply]]


async def refused_connection() -> Reply:
    raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")


async def reset() -> Reply:
    raise ConnectionResetError(errno.ECONNRESET, "reset by peer")


async def hang() -> Reply:
    await asyncio.sleep(TIMEOUT)
    raise TimeoutError("first byte")


def saying(status: int, **headers: str) -> Outage:
    async def say() -> Reply:
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return Reply(status, named, b"", "http://race.example/", 0.004)

    say.__name__ = f"say_{status}"
    return say


def during(begin: float, seconds: float, outage: Outage, path: str = "") -> Callable[[str, float], Any]:
    """The outage, for all paths or the one."""
    return lambda asked, now: outage() if begin <= now < begin + seconds and path in asked else None


class Race(Polling):
    """A race that goes on and on, polled by the settings of the command."""

    def __init__(self, folder: Path, cadence: float = 0.2) -> None:
        super().__init__(folder, RaceRules(FLOWN))
        self.cadence = cadence
        self.race = self.day.race_path(self.day.heats[0].id)

    def watch(self, seconds: float) -> None:
        """Poll it from its start on."""

        async def script() -> None:
            await self.open()
            await self.system.live.set("scheduler.raceActiveMs", f"{self.cadence * 1000:.0f}ms")
            await self.during(lambda: self.clock.sleep(seconds))
            await self.store.close()

        play(script())

    def rate(self, begin: float, end: float) -> float:
        """How often a second the race was asked for."""
        return sum(begin <= at < end for at in self.asked(self.race)) / (end - begin)

    def first(self, path: str, after: float) -> float:
        """Seconds until a path was asked for."""
        return next((at for at in self.asked(path) if at >= after), 1e9) - after


@pytest.mark.parametrize(
    ("cadence", "slow", "slowest"),
    [(0.2, 0.008, 0.160), (5.0, 0.02, 3.0), (0.2, 0.008, 0.5), (1.0, 0.02, 2.5)],
)
def test_a_cadence_stands_while_answers_get_slower(tmp_path: Path, cadence: float, slow: float, slowest: float) -> None:
    """Where an answer takes longer than the cadence, the race is asked for again at the next point."""
    polling, span = Race(tmp_path, cadence), max(60.0, 40 * cadence)
    polling.network.delay = lambda now: slow + (slowest - slow) * min(1.0, max(0.0, (now - LIVE_FROM) / span))

    polling.watch(LIVE_FROM + span + 60.0)

    points = max(1, -(-slowest // cadence))
    assert polling.rate(LIVE_FROM, LIVE_FROM + span + 60.0) >= 0.98 / (cadence * points)
    if slowest < cadence:
        assert polling.rate(LIVE_FROM + span, LIVE_FROM + span + 60.0) == pytest.approx(1 / cadence, rel=0.02)


@pytest.mark.parametrize(
    ("outage", "seconds"),
    [(refused_connection, 90.0), (saying(503), 90.0), (saying(500), 91.7), (hang, 603.3)],
)
def test_an_outage_is_over_for_us_when_it_is_over(tmp_path: Path, outage: Outage, seconds: float) -> None:
    polling = Race(tmp_path)
    back = 40.0 + seconds
    polling.network.outage = during(40.0, seconds, outage)

    polling.watch(back + 45.0)

    assert polling.first(polling.race, back) <= 2.0
    assert polling.rate(back + 2.0, back + 45.0) >= 4.9
    for path in polling.network.times:
        assert polling.first(path, back) <= 12.0 or "Channels" in path  # asked for each minute
    asked = [at for times in polling.network.times.values() for at in times if 60.0 <= at < back]
    assert len(asked) <= 1.3 * (back - 60.0), "a host that is down is asked about once a second"


def test_what_begins_during_an_outage_finds_its_targets_when_it_is_over(tmp_path: Path) -> None:
    polling = Race(tmp_path)
    polling.network.outage = during(0.0, 60.0, refused_connection)

    polling.watch(90.0)

    assert polling.first("/", 60.0) <= 2.0
    assert polling.first(polling.race, 60.0) <= 3.0
    assert polling.rate(70.0, 90.0) >= 4.9


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_after_is_heeded(tmp_path: Path, status: int) -> None:
    polling = Race(tmp_path)
    polling.network.outage = during(40.0, 0.3, saying(status, Retry_After="30"))

    polling.watch(90.0)

    everything = sorted(at for times in polling.network.times.values() for at in times)
    told = next(at for at in everything if at >= 40.0)
    assert not [at for at in everything if told + 0.3 < at < told + 30.0]
    assert polling.first(polling.race, told + 30.0) <= 2.0
    assert polling.rate(told + 32.0, 90.0) >= 4.9
