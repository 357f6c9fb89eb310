"""`sanderling world race`: a simulated race day."""

from collections.abc import Iterator
from math import inf

from sanderling.cli.worlds.world import ServedWorld, minutes, tallied
from sanderling.clock import ScaledClock
from sanderling.worlds.race import PRESETS, RaceDay, RaceServer
from sanderling.worlds.race_documents import CHANNELS


def race(*, seed: int, preset: str = "demo", speed: float = 1.0, port: int = 0) -> ServedWorld:
    """Races start and end, laps arrive, rounds are added, pilots leave."""
    clock = ScaledClock(speed)
    server = RaceServer(RaceDay(seed, PRESETS[preset](), began=clock.wall()), clock, port=port)
    day = server.day

    def describe() -> Iterator[dict[str, object]]:
        """Times of the races are seconds since it began, on its own clock."""
        races = [
            {"id": heat.id, "start": heat.start / 1000, "end": heat.end / 1000, "valid": not heat.aborted}
            for heat in day.heats
        ]
        times = {"began": day.began, "over": day.over, "utc_offset": day.rules.utc_offset}
        yield {"address": server.url(), "event": day.event, **times, "races": races}

    def lines() -> Iterator[str]:
        base = server.url()
        yield from (f"A simulated race day at {base}", "", *_in_store(day, speed), "", "Try in another terminal:", "")
        for path in ("/", day.path("Event"), day.race_path(day.heats[0].id), CHANNELS):
            yield f"    curl '{base}{path}'"
        yield f"    sanderling polling run --trackside {base} --private"

    tally = server.tally
    return ServedWorld(server, describe, lines, lambda: tallied(tally.asked, tally.kinds, tally.paths))


def _in_store(day: RaceDay, speed: float) -> Iterator[str]:
    """What is going to happen, a line each, by a real clock."""
    heats, weather = day.heats, day.rules.weather
    yield f"  {day.rules.day.pilots} pilots, {day.rules.day.rounds} rounds, {len(heats)} races"
    for which, heat in (("first", heats[0]), ("last", heats[-1])):
        start, end = (minutes(at / 1000 / speed) for at in (heat.start, heat.end))
        yield f"  the {which} race starts at {start} and ends at {end}"
    if aborted := sum(heat.aborted for heat in heats):
        yield f"  {aborted} races are aborted and flown again"
    if weather.half_written:
        yield f"  documents are half-written for {weather.half_written * 1000 / speed:g} ms after a change"
    if weather.quota < inf:
        yield f"  {weather.quota * speed:,g} requests a second are allowed"
    for kind, share in weather.faults.items():
        yield f"  {share:.1%} of the requests: {kind}"
