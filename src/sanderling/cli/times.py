"""Times as people type them behind `sanderling events`: an age such as 90d, or a moment such as 2026-11-01."""

from datetime import UTC, datetime

from sanderling.cli.command_error import CommandError
from sanderling.moments import moment
from sanderling.words import AGE_TEXT, parse_age

MINUTE, DAY = 60.0, 86_400.0
LONGEST = 10_000 * DAY
LATEST = 253_402_300_800  # the year 10000


def read_age(flag: str, text: str, least: float = MINUTE) -> float:
    """The seconds that an age is, at least and at most so many. Raises CommandError."""
    seconds = parse_age(text)
    if seconds is None or not least <= seconds <= LONGEST:
        bounds = f"from {least:.0f}s to {LONGEST / DAY:.0f}d"
        raise CommandError(f"{flag} is {_shown(text)}, expected an age such as 30m, 12h, 90d or 2w, {bounds}", code=2)
    return seconds


def read_time(flag: str, text: str, wall: float) -> float:
    """The Unix seconds of a moment, or of an age before `wall`, which is now. Raises CommandError.

    A moment is of UTC if it names no zone, and a date is the beginning of that day.
    """
    age = parse_age(text)
    found = (moment(text) if len(text) <= AGE_TEXT else None) if age is None else wall - age
    if found is None or (age is not None and age > LONGEST):
        expected = "expected a time such as 2026-11-01T08:00:00Z or 2026-11-01, or an age such as 2h or 7d"
        raise CommandError(f"{flag} is {_shown(text)}, {expected}", code=2)
    if found > wall:
        raise CommandError(f"{flag} is {_shown(text)}, which is in the future; it is {written(wall)} now", code=2)
    return found


def written(at: float) -> str:
    """A moment in UTC, as it may be typed again; whole seconds. What no calendar has is unknown."""
    if not 0 < at < LATEST:
        return "an unknown time"
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= AGE_TEXT else f"{text[:AGE_TEXT]!r}…"
