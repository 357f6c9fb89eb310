"""What the parts of a worker share in a crawl of pages."""

import asyncio
from collections.abc import Sequence

from sanderling.pages.fleet import PartHandOver


class Feed:
    """Takes rows until it is stopped."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self.stopped = False

    async def hand(self, found: Sequence[bytes]) -> bool:
        self.rows += found
        return not self.stopped

    def stop(self) -> None:
        self.stopped = True


def test_a_part_that_goes_to_others_does_not_stop_the_hand_over_of_the_rest() -> None:
    feed, leaving = Feed(), [False]
    one, two = (PartHandOver(feed, lambda: leaving[0]) for _ in range(2))

    one.stop()
    assert asyncio.run(two.hand([b"a row"]))
    leaving[0] = True
    two.stop()

    assert (feed.rows, feed.stopped) == ([b"a row"], True)
