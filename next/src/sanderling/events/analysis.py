"""What posts say, by lists of words: mood, what they are for, which sides of a thing they name, and their weight.

One pass over the words of a text finds all phrases of all lists; a text costs little more steps than it has words.

A negation before a word turns it over and weakens it, a degree strengthens or weakens it. At a pivot ("but") what came
before it in the sentence loses weight, and what follows gains. Good and bad are summed up apart, so that a text with
much of both is neutral, and not decided by a hair:  score = (good - bad) / (good + bad + 1)
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from math import log10
from typing import Any, NamedTuple
from unicodedata import is_normalized, normalize

VERSION = "lexicon-2"
MOST_TEXT, MOST_COMMENT = 20_000, 2_000  # characters that are read
MOST_COMMENTS, TOP_COMMENTS = 200, 5  # judged one by one; and as part of their post
SHORT = 10  # characters; less is nothing to go by
CLEAR = 0.25  # a score beyond it is a mood
VIRAL, KOL, FULL = 70, 50_000, 100_000  # by smap's impact calculator
_PLATFORMS = {"tiktok": 1.0, "facebook": 1.2, "youtube": 1.5, "instagram": 1.1}
_MOODS = {"NEGATIVE": 1.5, "NEUTRAL": 1.0, "POSITIVE": 1.1}
_NEGATION_REACHES, _DEGREE_REACHES = 4, 2  # words
_NOT_GOOD, _NOT_BAD = 0.7, 0.5  # what a negation leaves: "not good" is bad, but less than "bad"
_BEFORE_PIVOT, _AFTER_PIVOT, _CONCEDED, _ASKED = 0.35, 1.5, 0.5, 0.15
_LONGEST_LIST = 1000  # forms of a pattern

_LINK = re.compile(r"(?:https?://|www\.)\S+")
_WORD = re.compile(r"[\w']+|[.,;:!?()]|[\u2190-\u2bff\U0001f000-\U0001faff]")
_DRAWN = re.compile(r"([^\W\d_])\1\1+")
_CHOICE = re.compile(r"\(([^()]*)\)")
_COMBINING = re.compile("[\u0300-\u036f]")
_SLANG = {
    short: long.split()
    for long, shorts in {
        "không": "ko hok hông hổng khum hong", "được": "đc đx dc", "biết": "bik bít", "thích": "thik thít",
        "nhiều": "nhìu", "rồi": "rùi rồy", "luôn": "lun", "vui": "zui", "vậy": "zậy", "yêu": "iu", "quá": "qá wá",
        "nhưng mà": "nma nhma", "sản phẩm": "sp", "nhân viên": "nv", "điện thoại": "đt",
    }.items()
    for short in shorts.split()
}  # fmt: skip


class Found(NamedTuple):
    """What one text says."""

    good: float
    bad: float
    intents: tuple[tuple[str, int, bool], ...]  # name, priority, whether such posts are skipped; for each match
    aspects: tuple[tuple[str, str, float], ...]  # side, word, score of the clause
    spam: bool


def _spellings(phrase: str) -> Iterator[str]:
    yield phrase
    if " " in phrase:  # of single words too many would be the same without their marks
        plain = _COMBINING.sub("", normalize("NFD", phrase)).replace("đ", "d")
        if plain != phrase:
            yield plain


@cache
def _phrases() -> dict[str, Any]:
    """All lists as one tree: by word, what may follow; under "" what the words up to there mean, by list."""
    tree: dict[str, Any] = {}
    inferred: list[tuple[list[str], str, Any]] = []
    section: list[str] = []

    def add(words: list[str], kind: str, value: Any) -> None:  # noqa: ANN401 - a list's own
        node = tree
        for word in words:
            node = node.setdefault(word, {})
        node.setdefault("", {}).setdefault(kind, value)

    for line in (files("sanderling.events") / "words.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("["):
            section = line[1:-1].split()
            continue
        label, colon, rest = line.partition(": ")
        number = float(label) if colon and label.lstrip("-").replace(".", "").isdigit() else 0.0
        for entry in (rest if number else line).split(","):
            pieces = _CHOICE.split(entry.strip().lower())
            options = [piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)]
            for chosen in list(product(*options))[:_LONGEST_LIST]:
                kind, value = section[0], number
                if kind == "intent":
                    told: Any = (section[1], int(section[2]), len(section) > 3)
                else:
                    told = (section[1], entry.strip()) if kind == "aspect" else value
                for place, phrase in enumerate(_spellings(" ".join("".join(chosen).split()))):
                    words = _WORD.findall(phrase)
                    if words and place:
                        inferred.append((words, kind, told))
                    elif words:
                        add(words, kind, told)
    for words, kind, told in inferred:  # what is listed goes before a spelling that is only inferred
        add(words, kind, told)
    return tree


def _words(raw: str, most: int) -> list[str]:
    text = raw[:most]
    if not is_normalized("NFKC", text):
        text = normalize("NFKC", text)[:most]
    text = text.lower()
    if "://" in text or "www." in text:
        text = _LINK.sub(" ", text)
    if "\u2019" in text:
        text = text.replace("\u2019", "'")
    if _DRAWN.search(text):
        text = _DRAWN.sub(r"\1", text)
    words: list[str] = []
    for word in _WORD.findall(text):
        if word in _SLANG:
            words += _SLANG[word]
        else:
            words.append(word)
    return words


@lru_cache(2048)  # people repeat each other
def read_text(raw: str, most: int = MOST_TEXT) -> Found:
    """What a text says."""
    tree, words = _phrases(), _words(raw, most)
    good = bad = clause_good = clause_bad = 0.0
    intents: list[tuple[str, int, bool]] = []
    aspects: list[tuple[str, str, float]] = []
    sides: list[tuple[str, str]] = []
    spam = False
    weight = degree = 1.0
    degree_until = negated_until = judged_until = side_until = last_end = -1
    last = 0.0
    loud = 0
    size = len(words)
    for start, word in enumerate([*words, "."]):
        if start >= judged_until and word in ".!?,;:()":
            pivot = word in ",;:()"
            loud += word == "!"
            if not pivot or sides:
                score = (clause_good - clause_bad) / (clause_good + clause_bad + 1)
                aspects += [(side, name, score) for side, name in sides]
                sides = []
            if not pivot:
                good, bad = good + clause_good, bad + clause_bad
                clause_good = clause_bad = 0.0
                weight = 1.0
            elif weight == _CONCEDED:
                weight = 1.0
            negated_until = degree_until = -1
            continue
        node = tree.get(word)
        if node is None:
            continue
        end, judgement, judged_end, side, side_end = start, None, start, None, start
        while node is not None:
            end += 1
            means = node.get("")
            if means:
                if "intent" in means:
                    intents.append(means["intent"])
                spam = spam or "spam" in means
                if "aspect" in means:
                    side, side_end = means["aspect"], end
                if means.keys() - {"intent", "spam", "aspect"}:
                    judgement, judged_end = means, end
            node = node.get(words[end]) if end < size else None
        if side is not None and start >= side_until:
            sides.append(side)
            side_until = side_end
        if judgement is None or start < judged_until:
            continue
        judged_until = judged_end
        if "after" in judgement and start == last_end:
            more = last * (judgement["after"] - 1)
            clause_good, clause_bad = (clause_good + more, clause_bad) if last > 0 else (clause_good, clause_bad - more)
            last_end = judged_end
        elif "words" in judgement:
            value = judgement["words"] * weight * (degree if start <= degree_until else 1.0)
            if start <= negated_until:
                value *= -_NOT_GOOD if value > 0 else -_NOT_BAD
            if value > 0:
                clause_good += value
            else:
                clause_bad -= value
            last, last_end = value, judged_end
        elif "before" in judgement:
            degree, degree_until = judgement["before"], judged_end + _DEGREE_REACHES - 1
        elif "negations" in judgement:
            follows = words[judged_end] if judged_end < size else "?"
            if start - last_end <= 1 and (follows in ".?!" or "asking" in tree.get(follows, {}).get("", {})):
                less = last * (1 - _ASKED)  # "tốt không?" asks
                clause_good, clause_bad = (
                    (clause_good - less, clause_bad) if last > 0 else (clause_good, clause_bad + less)
                )
            else:
                negated_until = judged_end + _NEGATION_REACHES - 1
        elif "pivots" in judgement:
            score = (clause_good - clause_bad) / (clause_good + clause_bad + 1)
            aspects += [(side, name, score) for side, name in sides]
            sides = []
            good, bad = good + clause_good * _BEFORE_PIVOT, bad + clause_bad * _BEFORE_PIVOT
            clause_good = clause_bad = 0.0
            weight, negated_until = _AFTER_PIVOT, -1
        elif "concessions" in judgement:
            weight = _CONCEDED
    strength = 1 + 0.1 * min(loud, 3)
    return Found(good * strength, bad * strength, tuple(intents), tuple(aspects), spam)


def mood_of(good: float, bad: float) -> tuple[str, float, float, dict[str, float]]:
    """Label, score, confidence, and how likely each label is."""
    total = good + bad + 1
    score = (good - bad) / total
    likely = {"NEGATIVE": (bad + 0.25) / total, "NEUTRAL": 0.5 / total, "POSITIVE": (good + 0.25) / total}
    label = "POSITIVE" if score > CLEAR else "NEGATIVE" if score < -CLEAR else "NEUTRAL"
    return label, score, likely[label], {name: round(value, 4) for name, value in likely.items()}


def impact_of(post: dict[str, Any], mood: str) -> dict[str, Any]:
    """The columns of a post's weight."""
    engagement = (
        0.01 * post["views"] + post["likes"] + 2 * post["comment_count"] + 3 * post["saves"] + 5 * post["shares"]
    )
    reach = log10(post["followers"] + 1) * (1.2 if post["verified"] else 1.0)
    place = _PLATFORMS.get(post["platform"], 1.0)
    score = min(100.0, engagement * reach * place * _MOODS[mood] / FULL * 100)
    negative, kol = mood == "NEGATIVE", post["followers"] >= KOL
    if score >= VIRAL and negative:
        risk = "CRITICAL" if kol else "HIGH"
    else:
        risk = "MEDIUM" if score >= (40 if negative else 60) else "LOW"
    parts = {"engagement": engagement, "reach": reach, "platform": place, "sentiment": _MOODS[mood]}
    return {"impact_score": score, "risk_level": risk, "is_viral": score >= VIRAL, "is_kol": kol,
            "impact_breakdown": parts}  # fmt: skip


def analyse(posts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns of each post: what `pipeline` does by default."""
    return [_analyse(post) for post in posts]


def _analyse(post: dict[str, Any]) -> dict[str, Any]:
    own = [read_text(each) for each in dict.fromkeys((post["transcription"], post["text"])) if each]
    liked = sorted(post["comments"], key=lambda each: -each["likes"])[:MOST_COMMENTS]
    said = [read_text(each["text"], MOST_COMMENT) for each in liked]
    top = [*own, *said[:TOP_COMMENTS]]
    # Only the author's own words can make a post spam: otherwise whoever wants it out of sight would advertise below.
    matches = [each for found in own for each in found.intents]
    matches += [each for found in said[:TOP_COMMENTS] for each in found.intents if not each[2]]
    intent, confidence, skip = "DISCUSSION", 1.0, False
    if matches:
        intent, _, skip = max(matches, key=lambda each: each[1])
        confidence = min(1.0, 0.5 + 0.1 * sum(each[0] == intent for each in matches))
    size = len(post["text"]) + len(post["transcription"]) + sum(len(each["text"]) for each in liked[:TOP_COMMENTS])
    columns: dict[str, Any] = {"primary_intent": intent, "intent_confidence": confidence, "model_version": VERSION}
    if skip or size < SHORT or any(found.spam for found in own):
        return {**columns, "is_kol": post["followers"] >= KOL}
    mood, score, sure, likely = mood_of(sum(each.good for each in top), sum(each.bad for each in top))
    sides: dict[str, list[tuple[str, float]]] = {}
    for found in top:
        for side, name, value in found.aspects:
            sides.setdefault(side, []).append((name, value))
    aspects = {
        side: {
            "score": round(sum(value for _, value in named) / len(named), 3),
            "mentions": len(named),
            "keywords": list(dict.fromkeys(name for name, _ in named)),
        }
        for side, named in sides.items()
    }
    names = {name: side for side, named in sides.items() for name, _ in named}
    return columns | impact_of(post, mood) | {
        "overall_sentiment": mood, "overall_sentiment_score": score, "overall_confidence": sure,
        "sentiment_probabilities": likely, "aspects_breakdown": aspects,
        "keywords": [{"keyword": name, "aspect": side, "score": 1.0, "source": "DICT"}
                     for name, side in list(names.items())[:30]],
        "comments": {each["id"]: mood_of(found.good, found.bad)[:2] for each, found in zip(liked, said, strict=True)},
    }  # fmt: skip
