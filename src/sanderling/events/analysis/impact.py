"""How much a post matters: how many people it moved, how many the author reaches, where, and in which mood.

    engagement = views / 100 + likes + 2 comments + 3 saves + 5 shares
    reach      = log10(followers + 1), and a fifth more if the author is verified
    raw        = engagement x reach x platform x mood
    score      = raw / 1000, at most 100

So an author without followers has no impact, whatever the post did.
"""

from enum import StrEnum
from math import log10
from typing import NamedTuple

from sanderling.events.analysis.sentiment import Label
from sanderling.events.posts import Author, Interaction

VERIFIED = 1.2
PLATFORMS = {"tiktok": 1.0, "facebook": 1.2, "youtube": 1.5, "instagram": 1.1}  # others count once
MOODS = {Label.NEGATIVE: 1.5, Label.NEUTRAL: 1.0, Label.POSITIVE: 1.1}
FULL = 100_000  # raw impact that is a score of 100
VIRAL = 70.0
KOL = 50_000  # followers of somebody whose word counts
# Counters beyond this are no counts of people; it also keeps all sums far from what a float can hold.
MOST = 10**12


class Risk(StrEnum):
    """How soon somebody should look at a post."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class Impact(NamedTuple):
    """A post's weight, and what it is made of."""

    engagement: float
    reach: float
    platform: float
    mood: float
    raw: float
    score: float  # 0 to 100
    risk: Risk
    viral: bool
    kol: bool


def impact_of(interaction: Interaction, author: Author, platform: str, label: Label) -> Impact:
    """The impact of a post with those counters."""
    engagement = (
        0.01 * clamp_count(interaction.views)
        + 1.0 * clamp_count(interaction.likes)
        + 2.0 * clamp_count(interaction.comments)
        + 3.0 * clamp_count(interaction.saves)
        + 5.0 * clamp_count(interaction.shares)
    )
    followers = clamp_count(author.followers)
    reach = log10(followers + 1) * (VERIFIED if author.verified else 1.0)
    place = PLATFORMS.get(platform.lower(), 1.0)
    mood = MOODS[label]
    raw = engagement * reach * place * mood
    score = min(100.0, raw / FULL * 100)
    kol = is_kol(author)
    return Impact(engagement, reach, place, mood, raw, score, risk_of(score, label, kol=kol), score >= VIRAL, kol)


def clamp_count(number: int) -> int:
    """A counter as far as it can be one."""
    return min(max(number, 0), MOST)


def is_kol(author: Author) -> bool:
    """Whether so many follow the author that it makes a difference what they say."""
    return clamp_count(author.followers) >= KOL


def risk_of(score: float, label: Label, *, kol: bool) -> Risk:
    """The risk of a post with that score and mood."""
    negative = label is Label.NEGATIVE
    if score >= VIRAL and negative:
        return Risk.CRITICAL if kol else Risk.HIGH
    if score >= (40 if negative else 60):
        return Risk.MEDIUM
    return Risk.LOW
