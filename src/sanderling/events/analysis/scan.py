"""Words, phrases and what they weigh, as they are best had here: in C if that was built, else in Python, and alike."""

import os
from typing import TYPE_CHECKING

from sanderling.events.analysis.scan_python import BREAKS, OTHER, OTHER_MARKS, Tree

if TYPE_CHECKING:
    from sanderling.events.analysis.scan_python import every, has_triple, longest, plain_words, words_of
    from sanderling.events.analysis.weigh_python import weigh
    from sanderling.events.analysis.windows_python import locate, windows

    ACTIVE: str
elif os.environ.get("SANDERLING_PURE"):  # for the tests, and for whoever distrusts the C
    from sanderling.events.analysis.scan_python import every, has_triple, longest, plain_words, words_of
    from sanderling.events.analysis.weigh_python import weigh
    from sanderling.events.analysis.windows_python import locate, windows

    ACTIVE = "python"
else:
    try:
        from sanderling.events.analysis._scan import (
            every,
            has_triple,
            locate,
            longest,
            plain_words,
            weigh,
            windows,
            words_of,
        )

        ACTIVE = "c"
    except ImportError:
        from sanderling.events.analysis.scan_python import every, has_triple, longest, plain_words, words_of
        from sanderling.events.analysis.weigh_python import weigh
        from sanderling.events.analysis.windows_python import locate, windows

        ACTIVE = "python"

__all__ = [
    "ACTIVE",
    "BREAKS",
    "OTHER",
    "OTHER_MARKS",
    "Tree",
    "every",
    "has_triple",
    "locate",
    "longest",
    "plain_words",
    "weigh",
    "windows",
    "words_of",
]
