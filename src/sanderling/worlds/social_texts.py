"""The texts of a simulated market: captions, transcriptions and comments whose mood is known.

Vietnamese with its marks, without them, and with the short forms that people type; and English. Sentences are filled in
beforehand, a dozen times each, all but the brand: so that a text of ten takes microseconds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from random import Random
from typing import NamedTuple

from sanderling.worlds.social_chance import Weights, check_share, check_shares, pick
from sanderling.worlds.social_market import Brand, without_marks
from sanderling.worlds.social_phrases import EMOJI, ENGLISH, REMARKS, SENTENCES, SLANG, TAGS, VIETNAMESE, WORDS
from sanderling.worlds.social_truth import Intent, Mood, Sentiment

FORMS = 12  # of each sentence
# Sentences of a transcription, and comments: from so many up to so many. Some 500 characters on the one platform, which
# has clips, and some 2,500 on the other.
SPOKEN = {"tiktok": (6, 12), "youtube": (25, 60)}
REMARKED = {"tiktok": (0, 20), "youtube": (5, 45)}
AGREEING = 0.7  # of the comments are meant like the post; the others are neutral

_SLOT = re.compile(r"\{(\w+)\}")
_SHORTENED = re.compile(r"\b(" + "|".join(SLANG) + r")\b")


class Register(StrEnum):
    """How somebody writes."""

    MARKED = "marked"  # Vietnamese as it should be
    BARE = "bare"  # without marks
    SLANG = "slang"  # with short forms
    ENGLISH = "english"

    @property
    def language(self) -> str:
        """As the crawlers name it."""
        return ENGLISH if self is Register.ENGLISH else VIETNAMESE


@dataclass(frozen=True, slots=True)
class TextRules:
    """Shares of the posts."""

    english: float = 0.25
    bare: float = 0.15
    slang: float = 0.15
    transcribed: float = 0.6
    emoji: float = 0.4  # captions that end with some
    links: float = 0.05  # captions with an address in them

    def __post_init__(self) -> None:
        for name in ("transcribed", "emoji", "links"):
            check_share(name, getattr(self, name))
        check_shares("languages", {"english": self.english, "bare": self.bare, "slang": self.slang})


class Words(NamedTuple):
    """What a post says."""

    language: str
    caption: str
    transcription: str
    tags: tuple[str, ...]
    remarks: list[str]  # what is said below it


Bank = Mapping[Register, tuple[str, ...]]


class Texts:
    """Writes what a post says."""

    def __init__(self, rules: TextRules) -> None:
        self._rules = rules
        marked = 1 - rules.english - rules.bare - rules.slang
        self._registers = Weights(
            {
                Register.MARKED: max(0.0, marked),
                Register.BARE: rules.bare,
                Register.SLANG: rules.slang,
                Register.ENGLISH: rules.english,
            }
        )
        self._sentences, self._remarks = _banks()

    def words(self, mood: Mood, brand: Brand, platform: str, chance: Random) -> Words:
        """What a post of that mood says of a brand."""
        register = self._registers.draw(chance.random())
        name = brand.bare if register is Register.BARE else brand.name
        tags = (brand.tag, *chance.sample(TAGS, 2))
        caption = self._caption(mood, register, tags, chance).replace("{brand}", name)
        spoken = ""
        if chance.random() < self._rules.transcribed:
            spoken = self._spoken(mood, register, SPOKEN[platform], chance).replace("{brand}", brand.name)
        remarks = self._below(mood.sentiment, register, REMARKED[platform], chance)
        return Words(register.language, caption, spoken, tags, remarks)

    def _caption(self, mood: Mood, register: Register, tags: tuple[str, ...], chance: Random) -> str:
        first, more = self._sentences[mood][register], self._sentences[_alike(mood)][register]
        parts = [pick(first, chance) + ".", pick(more, chance) + "!"]
        if chance.random() < self._rules.emoji:
            parts.append(pick(EMOJI[mood.sentiment], chance))
        if chance.random() < self._rules.links:
            parts.append(f"https://notes.example/{chance.getrandbits(24):06x}")
        return " ".join((*parts, f"#{tags[0]} #{tags[1]} #{tags[2]}"))

    def _spoken(self, mood: Mood, register: Register, count: tuple[int, int], chance: Random) -> str:
        """What is said aloud: marked, since whoever wrote it down was a machine."""
        heard = Register.ENGLISH if register is Register.ENGLISH else Register.MARKED
        said = [pick(self._sentences[mood][heard], chance)]
        said += chance.choices(self._sentences[_alike(mood)][heard], k=_between(count, chance) - 1)
        return ". ".join(said)

    def _below(self, mood: Sentiment, register: Register, count: tuple[int, int], chance: Random) -> list[str]:
        """Comments of two remarks each: first those that are meant like the post, and then the others."""
        total = _between(count, chance)
        agreeing = round(total * AGREEING)
        said = chance.choices(self._remarks[mood][register], k=2 * agreeing)
        said += chance.choices(self._remarks[Sentiment.NEUTRAL][register], k=2 * (total - agreeing))
        return [f"{one}, {other}" for one, other in zip(said[::2], said[1::2], strict=True)]


def _between(bounds: tuple[int, int], chance: Random) -> int:
    least, most = bounds
    return least + int(chance.random() * (most - least + 1))


def _alike(mood: Mood) -> Mood:
    """The mood of the sentences around the one that matters; of advertisements all of them do."""
    if mood.intent in (Intent.SPAM, Intent.SEEDING):
        return mood
    return Mood(Intent.DISCUSSION, mood.sentiment)


@cache
def _banks() -> tuple[dict[Mood, Bank], dict[Sentiment, Bank]]:
    """All sentences and all remarks; the same for every market."""
    chance = Random("texts of a market")
    sentences = {mood: _bank(texts, chance) for mood, texts in SENTENCES.items()}
    return sentences, {mood: _bank(texts, chance) for mood, texts in REMARKS.items()}


def _bank(texts: Mapping[str, str], chance: Random) -> Bank:
    marked = _filled(VIETNAMESE, texts[VIETNAMESE], chance)
    return {
        Register.MARKED: marked,
        Register.BARE: tuple(without_marks(text) for text in marked),
        Register.SLANG: tuple(_shortened(text) for text in marked),
        Register.ENGLISH: _filled(ENGLISH, texts[ENGLISH], chance),
    }


def _filled(language: str, lines: str, chance: Random) -> tuple[str, ...]:
    words = WORDS[language]

    def fill(slot: re.Match[str]) -> str:
        match slot[1]:
            case "brand":
                return slot[0]
            case "phone":
                return _phone(chance)
            case "link":
                return f"https://bargains.example/{chance.getrandbits(20):05x}"
        return pick(words[slot[1]], chance)

    return tuple(_SLOT.sub(fill, line) for line in lines.strip().splitlines() for _ in range(FORMS))


def _phone(chance: Random) -> str:
    """A number of eleven digits, as mobile phones had until 2018: it cannot be anybody's."""
    digits = f"{pick(('0128', '0168', '0199'), chance)}{chance.randrange(10**7):07d}"
    return pick(
        (digits, f"{digits[:4]} {digits[4:7]} {digits[7:]}", f"{digits[:4]}.{digits[4:7]}.{digits[7:]}"), chance
    )


def _shortened(text: str) -> str:
    return _SHORTENED.sub(lambda word: SLANG[word[0]], text)
