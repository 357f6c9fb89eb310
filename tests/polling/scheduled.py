"""Targets in memory, for tests."""

from random import Random

from sanderling.polling.entries import Entry
from sanderling.polling.schedule import Schedule
from sanderling.stores.polling import Target


def target(number: int = 1, **given: object) -> Target:
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
    return Target(**{**usual, **given})  # type: ignore[arg-type]  # of a Target


def entry(number: int = 1, at: float = 0.0, **given: object) -> Entry:
    """The same in memory."""
    made = Entry.of(target(number, **given))
    made.at = made.point = at
    return made


def schedule(*entries: Entry, lane: str = "host") -> Schedule:
    """A schedule without jitter, of these."""
    made = Schedule(lambda _: lane, Random(1))
    for each in entries:
        made.add(each)
    return made


def take(made: Schedule, now: float, *, live: bool = False, lane: str = "host") -> Entry | None:
    """The next one that is due, started."""
    if lane not in made.hosts:
        return None
    host = made.hosts[lane]
    found = host.live.pick(now)
    if found is None and not live:
        found = host.usual.pick(now)
    if found is not None:
        made.started(found)
    return found
