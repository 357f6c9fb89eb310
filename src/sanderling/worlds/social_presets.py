"""Crawlers to try things on."""

from collections.abc import Callable, Mapping

from sanderling.worlds.social_hostile import Spoil, Twist
from sanderling.worlds.social_market import MarketRules
from sanderling.worlds.social_plan import SocialRules


def demo() -> SocialRules:
    """A day in forty batches, some 1,000 items."""
    return SocialRules(batches=40, market=MarketRules(projects=3, competitors=1, longest=5), again=0.05)


def day() -> SocialRules:
    """A day in two thousand batches, some 60,000 items."""
    return SocialRules()


def hostile() -> SocialRules:
    """A day in 400 batches in which everything is wrong that can be."""
    twists = dict.fromkeys(Twist, 0.01) | {Twist.LONG: 0.002, Twist.HUGE: 0.0005, Twist.DEEP: 0.002}
    return SocialRules(batches=400, shared=0.08, twists=twists, spoils=dict.fromkeys(Spoil, 0.02), again=0.2, mixed=16)


PRESETS: Mapping[str, Callable[[], SocialRules]] = {each.__name__: each for each in (demo, day, hostile)}
