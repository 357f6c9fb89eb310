"""How a simulated day goes: what fails when, and how people feel. Two things happen, at the same hours every day.

A *throttling*: for a while the platforms refuse much of what the crawlers ask. A *crisis*: something is wrong with one
brand, and people say so; less so of the others. Both swell and fade, so that a plot of them looks like one.

Times are seconds since midnight, or since the first one.
"""

from collections.abc import Mapping
from math import pi, sin
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from sanderling.outcome import Code
from sanderling.worlds.chance import Weights
from sanderling.worlds.social_truth import Mood, PostIntent, PostSentiment

DAY = 86_400.0
HOUR = 3600.0

# What fails on a quiet day, by weight; every code that crawlers have.
CODES: Mapping[str, float] = MappingProxyType(
    {
        Code.RATE_LIMITED.value: 14,
        Code.AUTH_FAILED.value: 2,
        Code.ACCESS_DENIED.value: 4,
        Code.CONTENT_REMOVED.value: 16,
        Code.CONTENT_NOT_FOUND.value: 9,
        Code.CONTENT_UNAVAILABLE.value: 8,
        Code.NETWORK_ERROR.value: 6,
        Code.TIMEOUT.value: 9,
        Code.CONNECTION_REFUSED.value: 2,
        Code.DNS_ERROR.value: 1,
        Code.PARSE_ERROR.value: 4,
        Code.INVALID_URL.value: 1,
        Code.INVALID_RESPONSE.value: 3,
        Code.MEDIA_DOWNLOAD_FAILED.value: 8,
        Code.MEDIA_TOO_LARGE.value: 2,
        Code.MEDIA_FORMAT_ERROR.value: 2,
        Code.STORAGE_ERROR.value: 1,
        Code.UPLOAD_FAILED.value: 2,
        Code.DATABASE_ERROR.value: 1,
        Code.UNKNOWN_ERROR.value: 2,
        Code.INTERNAL_ERROR.value: 1,
    }
)
# Codes that nobody has told us about.
UNHEARD = ("CAPTCHA_REQUIRED", "GEO_BLOCKED", "AGE_RESTRICTED", "E1009")
# What fails during a throttling.
THROTTLED: Mapping[str, float] = MappingProxyType(
    {Code.RATE_LIMITED.value: 90, Code.ACCESS_DENIED.value: 7, Code.AUTH_FAILED.value: 3}
)

# How people feel on a quiet day, by weight.
CALM: Mapping[Mood, float] = MappingProxyType(
    {
        Mood(PostIntent.DISCUSSION, PostSentiment.POSITIVE): 30,
        Mood(PostIntent.DISCUSSION, PostSentiment.NEUTRAL): 24,
        Mood(PostIntent.DISCUSSION, PostSentiment.NEGATIVE): 7,
        Mood(PostIntent.LEAD, PostSentiment.NEUTRAL): 9,
        Mood(PostIntent.LEAD, PostSentiment.POSITIVE): 4,
        Mood(PostIntent.SUPPORT, PostSentiment.NEUTRAL): 7,
        Mood(PostIntent.COMPLAINT, PostSentiment.NEGATIVE): 9,
        Mood(PostIntent.SEEDING, PostSentiment.NEUTRAL): 5,
        Mood(PostIntent.SPAM, PostSentiment.NEUTRAL): 4,
        Mood(PostIntent.CRISIS, PostSentiment.NEGATIVE): 1,
    }
)
ANGRY: Mapping[Mood, float] = MappingProxyType(
    {
        Mood(PostIntent.CRISIS, PostSentiment.NEGATIVE): 5,
        Mood(PostIntent.COMPLAINT, PostSentiment.NEGATIVE): 3,
        Mood(PostIntent.DISCUSSION, PostSentiment.NEGATIVE): 2,
    }
)
NOTHING_MEANT = Mood(PostIntent.DISCUSSION, PostSentiment.NEUTRAL)


class Swell(NamedTuple):
    """Something that comes at the same hours every day."""

    start: float
    seconds: float

    def strength(self, since: float) -> float:
        """From 0 to 1 and back; 0 outside of its time."""
        passed = (since - self.start) % DAY
        return sin(pi * passed / self.seconds) if passed < self.seconds else 0.0


ERRORS = 0.06  # share of the items that fail when nothing in particular happens
UNHEARD_OF = 0.02  # of those, the share with codes that nobody has told us about
THROTTLING, REFUSED = Swell(9 * HOUR, 3 * HOUR), 0.6  # and the share of the items that is refused at its height
CRISIS = Swell(15 * HOUR, 5 * HOUR)
HIT, OTHERS = 0.9, 0.45  # shares of the posts about the brand that are angry at its height, and of those about others
_CODES, _THROTTLED, _CALM, _ANGRY = Weights(CODES), Weights(THROTTLED), Weights(CALM), Weights(ANGRY)


def throttled(since: float) -> float:
    """The share of items that is refused."""
    return REFUSED * THROTTLING.strength(since)


def angry(since: float, *, hit: bool) -> float:
    """The share of posts that is angry; `hit` says whether they are about the brand in question."""
    return (HIT if hit else OTHERS) * CRISIS.strength(since)


def draw_code(since: float, chance: Random) -> str:
    """With what an item fails; empty if it does not."""
    luck, refused = chance.random(), throttled(since)
    if luck < refused:
        return _THROTTLED.draw(chance.random())
    if luck >= refused + (1 - refused) * ERRORS:
        return ""
    if chance.random() < UNHEARD_OF:
        return UNHEARD[int(chance.random() * len(UNHEARD))]
    return _CODES.draw(chance.random())


def draw_mood(since: float, chance: Random, *, hit: bool) -> Mood:
    """What somebody writes."""
    moods = _ANGRY if chance.random() < angry(since, hit=hit) else _CALM
    return moods.draw(chance.random())
