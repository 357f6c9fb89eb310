"""How CPU grows with the size of what is read: growth is the same on a slow machine, time is not."""

from collections.abc import Callable
from time import thread_time


def grows(act: Callable[[int], object], small: int, factor: int, most: float) -> bool:
    """Whether `act` takes more than `most` times as long for `factor` times as much, in each of three trials."""
    for _ in range(3):
        least = min(cpu_of(act, small) for _ in range(5))
        # Clocks of CPU tick up to 4 ms late on some systems; the least of several is rid of that.
        if any(cpu_of(act, small * factor) <= most * max(least, 5e-6) for _ in range(5)):
            return False
    return True


def cpu_of(act: Callable[[int], object], size: int) -> float:
    begin = thread_time()
    act(size)
    return thread_time() - begin


def is_slow(act: Callable[[int], object]) -> bool:
    """Whether `act` takes more than its share longer for more."""
    # What doubles with each sign would never end at a thousand of them.
    return grows(act, 10, 2, 40) or grows(act, 500, 8, 24)
