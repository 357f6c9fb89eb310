"""What a database of `events` is after whoever writes it was killed."""

import asyncio

import analytics_killed
import pytest
from analytics_play import Place


class KilledContract:
    @pytest.mark.parametrize(("after", "crowd"), [(1, 1), (12, 1), (6, 3)])
    def test_kill_9_leaves_whole_batches(self, place: Place, after: int, crowd: int) -> None:
        for _ in range(2):
            analytics_killed.kill(place.url, after=after, crowd=crowd)
            asyncio.run(place.until_idle())
            asyncio.run(analytics_killed.check(place, after))

    def test_kill_9_in_the_middle_of_a_replay_leaves_whole_events(self, place: Place) -> None:
        asyncio.run(analytics_killed.fill(place))
        for after in (1, 14):
            analytics_killed.kill(place.url, after=after, crowd=1, what="replay")
            asyncio.run(place.until_idle())
            asyncio.run(analytics_killed.check_replays(place, after))

    def test_whoever_is_killed_with_the_claim_leaves_it_to_others(self, place: Place) -> None:
        analytics_killed.kill(place.url, after=1, crowd=1, what="claim")
        asyncio.run(analytics_killed.check_claim(place))
