"""When a target is due: phases, the grid of what is live, jitter, backoff. Pure; times in milliseconds or seconds."""

from random import Random

LONGEST_BACKOFF = 60.0  # seconds
LIVE_BACKOFF = 0.8  # seconds: a request within a second of an outage's end, its own time included
LIVE_BELOW = 1000  # milliseconds: a shorter interval is live, and has no jitter
_OFFSET, _PRIME, _BITS = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF


def fnv64(text: str) -> int:
    """FNV-1 with 64 bits, as Go's fnv.New64 has it."""
    value = _OFFSET
    for byte in text.encode():
        value = value * _PRIME & _BITS ^ byte
    return value


def phase(source_id: str, interval_ms: int) -> float:
    """Seconds from discovery to the first poll, so that targets do not come together."""
    return fnv64(source_id) % interval_ms / 1000 if interval_ms > 0 else 0.0


def next_pause(interval_ms: int, jitter_ms: int, failures: int, random: Random) -> float:
    """Seconds until a target that is not live is due again, after `failures` in a row."""
    if failures:
        return min(LONGEST_BACKOFF, 2.0 ** min(failures - 1, 16))
    return (interval_ms + random.uniform(0, jitter_ms)) / 1000


def next_on_grid(due: float, interval: float, begun: float) -> tuple[float, int]:
    """The next instant of a live target that began at `begun` what was due at `due`, and how many it has missed."""
    missed = max(0, int((begun - due) / interval + 1e-9))
    return due + (missed + 1) * interval, missed


def live_pause(interval: float, failures: int) -> float:
    """Seconds until a live target is requested again after `failures` in a row."""
    return min(max(interval, LIVE_BACKOFF), interval * 2.0 ** min(failures - 1, 16))
