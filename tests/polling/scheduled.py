"""Targets in memory, for tests."""

from random import Random

from sanderling.engine.classes import Class, Shares
from sanderling.polling.schedule import Schedule
from sanderling.polling.source import ENGINE
from sanderling.polling.targets import ScheduledTarget
from sanderling.stores.polling import PollingTarget


def target(number: int = 1, **given: object) -> PollingTarget:
    """A race that is polled every ten seconds."""
    usual: dict[str, object] = {
        "id": number,
        "kind": "race",
        "source_id": f"race-{number}",
        "event": "event-1",
        "seconds": 10.0,
        "next_due": 0.0,
        "runs": 1,
    }
    return PollingTarget(**{**usual, **given})  # type: ignore[arg-type]  # of a Target


def entry(number: int = 1, at: float = 0.0, **given: object) -> ScheduledTarget:
    """The same in memory."""
    made = ScheduledTarget.of(target(number, **given))
    made.at = made.point = at
    return made


def schedule(*entries: ScheduledTarget, lane: str = "host") -> Schedule:
    """A schedule without jitter, of these."""
    made = Schedule(lambda _: lane, Random(1))
    for each in entries:
        made.add(each)
    return made


def take(made: Schedule, now: float, *, live: bool = False, lane: str = "host") -> ScheduledTarget | None:
    """The next one that is due, started, as the engine takes them."""
    if lane not in made.hosts:
        return None
    host = made.hosts[lane]
    lines = {Class.LIVE: host.live} if live else {Class.LIVE: host.live, Class.NEW: host.usual}
    classes = [of for of, line in lines.items() if line.due(now) <= now]
    if not classes:
        return None
    host.shares = host.shares or Shares()
    found = host.pick(of := host.shares.next(classes), now)
    host.shares.charge(of, ENGINE.weights)
    assert found is not None
    made.started(found)
    return found


def next_at(made: Schedule) -> float | None:
    """When the next one falls due, of those that are not due yet."""
    found = made.upcoming()
    return found[0].at if found else None
