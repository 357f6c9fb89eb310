"""The fast path as it is best had here: in C if that was built, else in Python. Both behave the same."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sanderling.limit._lane import Front, Lane, Permit

    NATIVE: bool
elif os.environ.get("SANDERLING_PURE"):  # for the tests, and for whoever distrusts the C
    from sanderling.limit.lane import Front, Lane, Permit

    NATIVE = False
else:
    try:
        from sanderling.limit._lane import Front, Lane, Permit

        NATIVE = True
    except ImportError:
        from sanderling.limit.lane import Front, Lane, Permit

        NATIVE = False

__all__ = ["NATIVE", "Front", "Lane", "Permit"]
