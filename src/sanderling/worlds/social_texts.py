"""The texts of a simulated market: captions, transcriptions and comments whose mood is known.

Vietnamese with its marks, without them, and with the short forms that people type; and English. Sentences are filled in
beforehand, a dozen times each, all but the brand: so that a text of ten takes microseconds.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from random import Random
from typing import NamedTuple

import msgspec

from sanderling.worlds.chance import Weights, pick
from sanderling.worlds.social_market import Brand, without_marks
from sanderling.worlds.social_truth import Mood, PostIntent, PostSentiment

VIETNAMESE, ENGLISH = "vi", "en"
FORMS = 12  # of each sentence
# Shares of the posts.
TRANSCRIBED = 0.6
WITH_EMOJI = 0.4  # captions that end with some
LINKED = 0.05  # captions with an address in them
# Sentences of a transcription, and comments: from so many up to so many. Some 500 characters on the one platform, which
# has clips, and some 2,500 on the other.
SPOKEN = {"tiktok": (6, 12), "youtube": (25, 60)}
REMARKED = {"tiktok": (0, 20), "youtube": (5, 45)}
AGREEING = 0.7  # of the comments are meant like the post; the others are neutral


class _Phrases(msgspec.Struct):
    """What people write in a simulated market, one sentence an item. Invented, all of it.

    `{brand}` and the other words in braces are filled in. A sentence has the mood that it is listed under, for whoever
    reads it; nothing was written with a particular reader in mind. No remark asks, offers or complains of anything: a
    comment has no part in what a post is for.
    """

    words: dict[str, dict[str, tuple[str, ...]]]  # for the braces, by language
    sentences: dict[str, dict[str, tuple[str, ...]]]  # by intent and sentiment, and by language
    remarks: dict[PostSentiment, dict[str, tuple[str, ...]]]
    emoji: dict[PostSentiment, tuple[str, ...]]
    tags: tuple[str, ...]
    slang: dict[str, str]  # short forms, as people type them


PHRASES = msgspec.json.decode((files(__package__) / "phrases.json").read_bytes(), type=_Phrases)
_SLOT = re.compile(r"\{(\w+)\}")
_SHORTENED = re.compile(r"\b(" + "|".join(PHRASES.slang) + r")\b")


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


class Words(NamedTuple):
    """What a post says."""

    language: str
    caption: str
    transcription: str
    tags: tuple[str, ...]
    remarks: list[str]  # what is said below it


REGISTERS = Weights({Register.MARKED: 0.45, Register.BARE: 0.15, Register.SLANG: 0.15, Register.ENGLISH: 0.25})
Bank = Mapping[Register, tuple[str, ...]]


class Texts:
    """Writes what a post says."""

    def __init__(self, registers: Weights[Register] = REGISTERS) -> None:
        self._registers = registers
        self._sentences, self._remarks = _banks()

    def words(self, mood: Mood, brand: Brand, platform: str, chance: Random) -> Words:
        """What a post of that mood says of a brand."""
        register = self._registers.draw(chance.random())
        name = brand.bare if register is Register.BARE else brand.name
        tags = (brand.tag, *chance.sample(PHRASES.tags, 2))
        caption = self._caption(mood, register, tags, chance).replace("{brand}", name)
        spoken = ""
        if chance.random() < TRANSCRIBED:
            spoken = self._spoken(mood, register, SPOKEN[platform], chance).replace("{brand}", brand.name)
        remarks = self._below(mood.sentiment, register, REMARKED[platform], chance)
        return Words(register.language, caption, spoken, tags, remarks)

    def _caption(self, mood: Mood, register: Register, tags: tuple[str, ...], chance: Random) -> str:
        first, more = self._sentences[mood][register], self._sentences[_alike(mood)][register]
        parts = [pick(first, chance) + ".", pick(more, chance) + "!"]
        if chance.random() < WITH_EMOJI:
            parts.append(pick(PHRASES.emoji[mood.sentiment], chance))
        if chance.random() < LINKED:
            parts.append(f"https://notes.example/{chance.getrandbits(24):06x}")
        return " ".join((*parts, f"#{tags[0]} #{tags[1]} #{tags[2]}"))

    def _spoken(self, mood: Mood, register: Register, count: tuple[int, int], chance: Random) -> str:
        """What is said aloud: marked, since whoever wrote it down was a machine."""
        heard = Register.ENGLISH if register is Register.ENGLISH else Register.MARKED
        said = [pick(self._sentences[mood][heard], chance)]
        said += chance.choices(self._sentences[_alike(mood)][heard], k=_between(count, chance) - 1)
        return ". ".join(said)

    def _below(self, mood: PostSentiment, register: Register, count: tuple[int, int], chance: Random) -> list[str]:
        """Comments of two remarks each: first those that are meant like the post, and then the others."""
        total = _between(count, chance)
        agreeing = round(total * AGREEING)
        said = chance.choices(self._remarks[mood][register], k=2 * agreeing)
        said += chance.choices(self._remarks[PostSentiment.NEUTRAL][register], k=2 * (total - agreeing))
        return [f"{one}, {other}" for one, other in zip(said[::2], said[1::2], strict=True)]


def _between(bounds: tuple[int, int], chance: Random) -> int:
    least, most = bounds
    return least + int(chance.random() * (most - least + 1))


def _alike(mood: Mood) -> Mood:
    """The mood of the sentences around the one that matters; of advertisements all of them do."""
    if mood.intent in (PostIntent.SPAM, PostIntent.SEEDING):
        return mood
    return Mood(PostIntent.DISCUSSION, mood.sentiment)


@cache
def _banks() -> tuple[dict[Mood, Bank], dict[PostSentiment, Bank]]:
    """All sentences and all remarks; the same for every market."""
    chance = Random("texts of a market")
    sentences = {_mood(words): _bank(texts, chance) for words, texts in PHRASES.sentences.items()}
    return sentences, {mood: _bank(texts, chance) for mood, texts in PHRASES.remarks.items()}


def _mood(words: str) -> Mood:
    intent, sentiment = words.split()
    return Mood(PostIntent(intent), PostSentiment(sentiment))


def _bank(texts: Mapping[str, tuple[str, ...]], chance: Random) -> Bank:
    marked = _filled(VIETNAMESE, texts[VIETNAMESE], chance)
    return {
        Register.MARKED: marked,
        Register.BARE: tuple(without_marks(text) for text in marked),
        Register.SLANG: tuple(_shortened(text) for text in marked),
        Register.ENGLISH: _filled(ENGLISH, texts[ENGLISH], chance),
    }


def _filled(language: str, lines: tuple[str, ...], chance: Random) -> tuple[str, ...]:
    words = PHRASES.words[language]

    def fill(slot: re.Match[str]) -> str:
        match slot[1]:
            case "brand":
                return slot[0]
            case "phone":
                return _phone(chance)
            case "link":
                return f"https://bargains.example/{chance.getrandbits(20):05x}"
        return pick(words[slot[1]], chance)

    return tuple(_SLOT.sub(fill, line) for line in lines for _ in range(FORMS))


def _phone(chance: Random) -> str:
    """A number of eleven digits, as mobile phones had until 2018: it cannot be anybody's."""
    digits = f"{pick(('0128', '0168', '0199'), chance)}{chance.randrange(10**7):07d}"
    return pick(
        (digits, f"{digits[:4]} {digits[4:7]} {digits[7:]}", f"{digits[:4]}.{digits[4:7]}.{digits[7:]}"), chance
    )


def _shortened(text: str) -> str:
    return _SHORTENED.sub(lambda word: PHRASES.slang[word[0]], text)
