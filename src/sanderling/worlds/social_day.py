"""How a simulated day goes: what fails when, and how people feel. Two things happen, at the same hours every day.

A *throttling*: for a while the platforms refuse much of what the crawlers ask. A *crisis*: something is wrong with one
brand, and people say so; less so of the others. Both swell and fade, so that a plot of them looks like one.

Times are seconds since midnight, or since the first one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import pi, sin
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from sanderling.outcome import Code
from sanderling.worlds.social_chance import Weights, check_share, check_weights
from sanderling.worlds.social_truth import Intent, Mood, Sentiment

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
        Mood(Intent.DISCUSSION, Sentiment.POSITIVE): 30,
        Mood(Intent.DISCUSSION, Sentiment.NEUTRAL): 24,
        Mood(Intent.DISCUSSION, Sentiment.NEGATIVE): 7,
        Mood(Intent.LEAD, Sentiment.NEUTRAL): 9,
        Mood(Intent.LEAD, Sentiment.POSITIVE): 4,
        Mood(Intent.SUPPORT, Sentiment.NEUTRAL): 7,
        Mood(Intent.COMPLAINT, Sentiment.NEGATIVE): 9,
        Mood(Intent.SEEDING, Sentiment.NEUTRAL): 5,
        Mood(Intent.SPAM, Sentiment.NEUTRAL): 4,
        Mood(Intent.CRISIS, Sentiment.NEGATIVE): 1,
    }
)
ANGRY: Mapping[Mood, float] = MappingProxyType(
    {
        Mood(Intent.CRISIS, Sentiment.NEGATIVE): 5,
        Mood(Intent.COMPLAINT, Sentiment.NEGATIVE): 3,
        Mood(Intent.DISCUSSION, Sentiment.NEGATIVE): 2,
    }
)
NOTHING_MEANT = Mood(Intent.DISCUSSION, Sentiment.NEUTRAL)


class Throttling(NamedTuple):
    """At its height such a share of the items is refused."""

    start: float
    seconds: float
    share: float


class Crisis(NamedTuple):
    """At its height such a share of the posts about a brand is angry, and that of the posts about others."""

    start: float
    seconds: float
    share: float
    others: float


@dataclass(frozen=True, slots=True)
class DayRules:
    """What a day is like."""

    errors: float = 0.06  # share of the items that fail when nothing in particular happens
    unheard: float = 0.02  # of those, the share with codes that nobody has told us about
    codes: Mapping[str, float] = field(default_factory=lambda: CODES)  # weights
    moods: Mapping[Mood, float] = field(default_factory=lambda: CALM)  # weights
    throttlings: tuple[Throttling, ...] = (Throttling(9 * HOUR, 3 * HOUR, 0.6),)
    crises: tuple[Crisis, ...] = (Crisis(15 * HOUR, 5 * HOUR, 0.9, 0.45),)

    def __post_init__(self) -> None:
        for name in ("errors", "unheard"):
            check_share(name, getattr(self, name))
        check_weights("codes", self.codes)
        check_weights("moods", self.moods)
        spans: tuple[Throttling | Crisis, ...] = (*self.throttlings, *self.crises)
        for what in spans:
            name = type(what).__name__
            if not (0 <= what.start < DAY and 0 < what.seconds <= DAY):
                raise ValueError(f"{name} from {what.start} for {what.seconds} s, expected to begin within a day")
            for share in what[2:]:
                check_share(f"share of {name}", share)


class Day:
    """Any day: they are all alike."""

    def __init__(self, rules: DayRules) -> None:
        self._rules = rules
        self._codes = Weights(rules.codes)
        self._throttled = Weights(THROTTLED)
        self._calm, self._angry = Weights(rules.moods), Weights(ANGRY)

    def throttled(self, since: float) -> float:
        """The share of items that is refused."""
        return max((each.share * _strength(each, since) for each in self._rules.throttlings), default=0.0)

    def angry(self, since: float, *, hit: bool) -> float:
        """The share of posts that is angry; `hit` says whether they are about the brand in question."""
        crises = self._rules.crises
        return max(((each.share if hit else each.others) * _strength(each, since) for each in crises), default=0.0)

    def code(self, since: float, chance: Random) -> str:
        """With what an item fails; empty if it does not."""
        luck, throttled = chance.random(), self.throttled(since)
        if luck < throttled:
            return self._throttled.draw(chance.random())
        if luck >= throttled + (1 - throttled) * self._rules.errors:
            return ""
        if chance.random() < self._rules.unheard:
            return UNHEARD[int(chance.random() * len(UNHEARD))]
        return self._codes.draw(chance.random())

    def mood(self, since: float, chance: Random, *, hit: bool) -> Mood:
        """What somebody writes."""
        moods = self._angry if chance.random() < self.angry(since, hit=hit) else self._calm
        return moods.draw(chance.random())


def _strength(what: Throttling | Crisis, since: float) -> float:
    """From 0 to 1 and back; 0 outside of its time."""
    passed = (since - what.start) % DAY
    return sin(pi * passed / what.seconds) if passed < what.seconds else 0.0
