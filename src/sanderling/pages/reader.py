"""Reading a page, as it is best done here: in C if that was built, else in Python. Both give the same."""

import os
from typing import TYPE_CHECKING

from sanderling.pages.reader_python import Heads, Reading

if TYPE_CHECKING or os.environ.get("SANDERLING_PURE"):  # for the tests, and for whoever distrusts the C
    from sanderling.pages.reader_python import read

    ACTIVE = "python"
else:
    try:
        from sanderling.pages._reader import read

        ACTIVE = "c"
    except ImportError:
        from sanderling.pages.reader_python import read

        ACTIVE = "python"

__all__ = ["ACTIVE", "Heads", "Reading", "read"]
