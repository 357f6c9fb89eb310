"""How far everything is settled, in the order of the directory. Pure."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Page:
    last: str
    left: int


class LowWater:
    """How far everything is settled, page by page of the directory, whatever the order in which DIDs are."""

    def __init__(self) -> None:
        self.cursor: str | None = None  # the DID up to which everything is settled; None before the first page is
        self._pages: deque[_Page] = deque()
        self._page_of: dict[str, _Page] = {}

    def __len__(self) -> int:
        return len(self._page_of)

    def begin(self, last: str, dids: Iterable[str]) -> None:
        """A page that ends with `last`; of it, these are still to be settled."""
        page = _Page(last, 0)
        for did in dids:
            page.left += 1
            self._page_of[did] = page
        self._pages.append(page)
        self._rise()

    def settle(self, did: str) -> None:
        """The DID is archived, ended, or has a due time. What belongs to no page is settled already."""
        page = self._page_of.pop(did, None)
        if page is not None:
            page.left -= 1
            if not page.left:
                self._rise()

    def _rise(self) -> None:
        while self._pages and self._pages[0].left == 0:
            self.cursor = self._pages.popleft().last
