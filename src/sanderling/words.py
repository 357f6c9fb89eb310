"""Numbers, sizes, times and strangers' texts, as people read and write them. Pure."""

import re

UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([KMGT]B)?", re.IGNORECASE)

# In one case only: an M may be meant as a month, and what is older than three minutes is nearly everything.
AGES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
AGE_TEXT = 40  # characters; what is longer is no age
_AGE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([smhdw])", re.ASCII)


def count(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Bytes, as people say it."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number:.0f} B"


def parse_size(text: str) -> int:
    """Bytes, from what people write; units are powers of 1024. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    number = float(found[1]) * UNITS[(found[2] or "").upper()] if found else 0.0
    if not 1 <= number < 2**62:
        raise ValueError(f"{text[:40]!r}, expected a size like 2GB, 512MB or 1000000")
    return int(number)


def parse_age(text: str) -> float | None:
    """The seconds of an age such as 30m, 12h, 90d or 2w; None if it is none."""
    found = _AGE.fullmatch(text.strip()) if len(text) <= AGE_TEXT else None
    return float(found[1]) * AGES[found[2]] if found else None


def duration(seconds: float | None) -> str:
    """Seconds, as people say it."""
    if seconds is None:
        return "unknown"
    if 0 < abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 100:
        return f"{seconds:.1f} s" if 0 < abs(seconds) < 9.95 else f"{seconds:.0f} s"
    if 0 < seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes = round(seconds / 60)
    if abs(minutes) < 100:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24:,} days"


def clock_face(seconds: float) -> str:
    """Seconds, as a stopwatch shows them."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def printable(text: str) -> str:
    """The text without what could move a cursor, change a colour or turn the reading direction: hosts write it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
