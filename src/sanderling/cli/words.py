"""Numbers, sizes, times and strangers' texts, as people read them."""


def finishing(requests: int) -> str:
    """What a crawl does that was asked to stop."""
    return f"finishing {count(requests, 'request')} in flight"


def count(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def size(number: int) -> str:
    """Bytes, as people say it."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"


def duration(seconds: float) -> str:
    """Seconds, as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def clock_face(seconds: float) -> str:
    """Seconds, as a stopwatch shows them."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def printable(text: str) -> str:
    """The text without what could move a cursor, change a colour or turn the reading direction: hosts write it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
