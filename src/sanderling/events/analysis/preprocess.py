"""A post as one clean text: what is said in it, written as a reader would, and a few numbers about it.

First the spelling (NFKC, small letters, single spaces), then links, hashtags, emoji and slang. Every part of a post is
cleaned by itself, as a comment may be in another language; then transcription, caption and the comments that most
people liked become one text.
"""

import re
from collections.abc import Iterable, Sequence
from operator import ne
from typing import NamedTuple
from unicodedata import is_normalized, normalize

from sanderling.events.analysis.scan import Phrases, plain_words, words_of
from sanderling.events.analysis.vietnamese import ANYWHERE, SLANG, looks_vietnamese, unslang
from sanderling.events.posts import Comment, Post

# Characters of a caption or a transcription that are read: half an hour of speech, and some 7 ms of work. What a text
# of a megabyte has to say, it says in its beginning.
MOST_TEXT = 20_000
MOST_COMMENT = 2_000
TOP_COMMENTS = 5
SHORT = 10  # characters; less is nothing to go by

# Controls, signs without a width, halves of characters and private ones: nobody sees them, and they hide words from us.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff\ufeff"
    "\ufff9-\uffff\U000e0000-\U000e0fff]"
)
_MANY_SIGNS = re.compile(r"([^\w\s]{30})[^\w\s]+")
_LINK = re.compile(r"(?:https?://|www\.)\S+")
_HASH = re.compile(r"#(?=[\w#])")
_HASHTAG = re.compile(r"#(?=\w)")
_DOTS = re.compile(r"\.{2,}")
_EMOTICON = re.compile(r"(?:[:=;]'?-?([()])+|<(3)+)(?!\w)")
_EMOTICONS = {")": " \U0001f642 ", "(": " \U0001f641 ", "3": " \u2764 "}
# What is left of emoji after NFKC. The ranges name symbols only: a single one from the first to the last would take
# all Chinese, Japanese and Korean with it.
_EMOJI = re.compile(
    "[\u2190-\u21ff\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u25a0-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3030\u303d\U0001f000-\U0001faff]"
)
_PERHAPS_EMOJI = re.compile("[\u2190-\U0001faff]")  # three times as fast, and most texts have none
# Colours of skin, and how to draw the sign before.
_VARIANTS = re.compile("[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]")
_TAIL = " .!?;:,"

# Ten digits from 0, or from 84, the number of the country; older numbers of mobile phones have one more.
_PHONE = re.compile(r"(?:0|84[ .-]?|\+84[ .-]?)(?:[35789]|1[2689])(?:[ .-]?[0-9]){8}(?![0-9])")


class Part(NamedTuple):
    """One text of a post, clean and vivid (with its emoji behind it), and the words of the latter."""

    text: str
    vivid: str
    words: list[str]


class TextStats(NamedTuple):
    """What is known of a post's text before anybody has understood it."""

    total_length: int  # characters of the clean text
    is_too_short: bool
    is_cut: bool  # there was more than we read
    hashtag_ratio: float  # of the words as they were written
    reduction_ratio: float  # how much of what was written is gone; 0 if it became longer
    has_transcription: bool
    has_phone: bool
    has_spam_keyword: bool  # in the post's own words


class Clean(NamedTuple):
    """A post's texts as one; `own` counts the words before those of the comments."""

    text: str
    vivid: str
    words: list[str]
    own: int
    parts: list[Part]
    comments: dict[int, Part]  # the most liked, by their place in the post
    stats: TextStats


def normalise(raw: str, most: int = MOST_TEXT) -> Part:
    """A text, clean and vivid."""
    text = raw[:most]
    plain = plain_words(text)
    if plain is not None:
        text, words = plain
        return Part(text, text, words) if SLANG.isdisjoint(words) else _replace_slang(text, words, [])
    if not is_normalized("NFKC", text):
        # Thousands of marks on one letter would take seconds to be put in order. Cut again: one letter may become 18.
        text = normalize("NFKC", _MANY_SIGNS.sub(r"\1", text))[:most]
    text = text.lower().strip()
    if not text.isprintable():
        # Line ends are not printable either, and stand for spaces.
        text = _INVISIBLE.sub("", " ".join(text.split())).strip()
    if "  " in text:
        text = " ".join(text.split())
    text = _without_signs(text)
    emoji: list[str] = []
    if _PERHAPS_EMOJI.search(text) is not None:
        emoji = _EMOJI.findall(text)
        text = without_emoji(text)
    return _replace_slang(text, words_of(text), emoji)


def _replace_slang(text: str, words: list[str], emoji: list[str]) -> Part:
    """A text without its emoji, which has those words: the part that it is, without slang."""
    if not SLANG.isdisjoint(words):
        everything = looks_vietnamese(text, words)
        if everything or not ANYWHERE.isdisjoint(words):
            text = unslang(text, everything=everything)
            words = words_of(text)
    return Part(text, " ".join([text, *emoji]), words + emoji) if emoji else Part(text, text, words)


def without_emoji(text: str) -> str:
    """The same without emoji."""
    return " ".join(_EMOJI.sub(" ", _VARIANTS.sub("", text)).split())


def _without_signs(text: str) -> str:
    """Without links, hash signs, rows of dots; emoticons become emoji, and apostrophes straight."""
    if "://" in text or "www." in text:
        text = " ".join(_LINK.sub(" ", text).split())
    if "#" in text:
        text = _HASH.sub("", text)
    if ".." in text:
        text = _DOTS.sub(".", text)
    if "\u2019" in text:
        text = text.replace("\u2019", "'")
    if ")" in text or "(" in text or "<3" in text:
        text = _EMOTICON.sub(lambda found: _EMOTICONS[found[1] or found[2]], text)
    return text


def comment_of(raw: str, known: dict[str, Part]) -> Part:
    """A comment, clean and vivid. Of what is known already, the same part: people repeat each other."""
    part = known.get(raw)
    if part is None:
        part = known[raw] = normalise(raw, MOST_COMMENT)
    return part


def preprocess(post: Post, spam: Phrases[bool], known: dict[str, Part] | None = None) -> Clean:
    """All texts of a post as one, and what can be counted about them; `spam` are the phrases nobody else uses.

    `known` has comments that were read before; those of this post are added.
    """
    known = {} if known is None else known
    # By what was written, so that a caption which repeats the transcription counts once.
    own = {raw: normalise(raw) for raw in (post.transcription, post.text) if raw}
    top = {place: post.comments[place].text for place in most_liked(post.comments, TOP_COMMENTS)}
    comments = {place: comment_of(raw, known) for place, raw in top.items()}
    words = _join_words(own.values())
    count = len(words)
    words += _join_words(comments.values())
    parts = [*own.values(), *comments.values()]
    text = ". ".join(filter(None, [part.text.rstrip(_TAIL) for part in parts]))
    vivid = " . ".join(filter(None, [part.vivid for part in parts]))
    heads = [raw[:MOST_TEXT] for raw in own] + [raw[:MOST_COMMENT] for raw in top.values()]
    stats = TextStats(
        total_length=len(text),
        is_too_short=len(text) < SHORT,
        is_cut=any(map(ne, heads, [*own, *top.values()])),
        hashtag_ratio=_hashtag_ratio(heads),
        reduction_ratio=_reduction_ratio(heads, text),
        has_transcription=bool(post.transcription and own[post.transcription].text),
        has_phone=has_phone(text),
        has_spam_keyword=spam.any(words[:count]),
    )
    return Clean(text, vivid, words, count, parts, comments, stats)


def most_liked(comments: Sequence[Comment], most: int) -> list[int]:
    """Places of the comments with the most likes, those first; of equals the earlier one."""
    likes = [-comment.likes for comment in comments]
    return sorted(range(len(likes)), key=likes.__getitem__)[:most]


def _join_words(parts: Iterable[Part]) -> list[str]:
    words: list[str] = []
    for part in parts:
        words += part.words
        words.append(".")
    return words


def _hashtag_ratio(raws: list[str]) -> float:
    tags = sum([len(_HASHTAG.findall(raw)) for raw in raws if "#" in raw])
    words = sum([raw.count(" ") + raw.count("\n") + 1 for raw in raws]) if tags else 1
    return min(1.0, tags / words)


def _reduction_ratio(raws: list[str], text: str) -> float:
    written = sum(map(len, raws))
    return max(0.0, 1 - len(text) / written) if written else 0.0


def has_phone(text: str) -> bool:
    """Whether there is a Vietnamese mobile number, also one with spaces, dots or dashes in it."""
    if "0" not in text and "84" not in text:
        return False
    return any(found.start() == 0 or not text[found.start() - 1].isdigit() for found in _PHONE.finditer(text))
