"""How many random plays of a world there are: a few in every run of the tests, all of them in `make soak`."""

import os

FEW = 2


def seeds(number: int) -> range:
    """The seeds of so many plays, or of the first few."""
    return range(number if "SANDERLING_SOAK" in os.environ else min(number, FEW))
