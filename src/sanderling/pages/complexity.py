"""Pages that would cost a tree-building parser too much are refused before it sees them.

The fast one (lexbor) takes time by the square of the nesting, of the attributes of a tag and of the options of a list,
and memory by the product of formatting that was never closed and the blocks behind it: 80,000 nested tags cost it ten
seconds, 43 KB of such formatting a hundred megabytes. One pass over the tags tells how many steps it will take at most.
"""

import os
from typing import TYPE_CHECKING

from sanderling.pages.complexity_python import COSTLY, MOST_WORK, SMALL, UNCLEAR

if TYPE_CHECKING or os.environ.get("SANDERLING_PURE"):
    from sanderling.pages.complexity_python import weigh

    ACTIVE = "python"
else:
    try:
        from sanderling.pages._complexity import weigh

        ACTIVE = "c"
    except ImportError:
        from sanderling.pages.complexity_python import weigh

        ACTIVE = "python"

LONGEST = 8 * 2**20  # characters of a page that is made a tree of

_REASONS = {
    COSTLY: f"the page is nested too deeply, or has too many tags or attributes: over {MOST_WORK:,} steps to parse",
    UNCLEAR: f"the page has markup that parsers read differently, and more than {SMALL:,} characters behind it",
}


class PageTooComplexError(ValueError):
    """A page that no parser should be given. The message says what it has too much of."""


def check_complexity(html: str) -> None:
    """Raise PageTooComplexError for a page that would cost a parser more than a page may."""
    if len(html) > LONGEST:
        raise PageTooComplexError(f"the page has {len(html):,} characters, expected at most {LONGEST:,}")
    verdict, _ = weigh(html)
    if verdict in _REASONS:
        raise PageTooComplexError(_REASONS[verdict])
