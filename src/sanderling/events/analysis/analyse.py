"""All stages, one after the other, for many posts at once: the model is asked a single time for all of their texts.

A post is skipped if it says too little to go by, or is spam; then its sentiment is neutral, its impact 0, and nothing
was asked of the model.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from sanderling.events.analysis.aspects import Aspects, AspectSentiment, Keyword, load_aspects, sum_up, windows
from sanderling.events.analysis.impact import Risk, impact_of, is_kol
from sanderling.events.analysis.intent import Intent, Intents, load_intents
from sanderling.events.analysis.lexicon import LexiconModel
from sanderling.events.analysis.preprocess import Clean, Part, TextStats, comment_of, most_liked, preprocess
from sanderling.events.analysis.sentiment import Label, Sentiment, SentimentModel, judge_all
from sanderling.events.posts import Post

# Comments of a post whose sentiment is read, the most liked of them.
MOST_COMMENTS = 200
IMPACT_PARTS = ("engagement", "reach", "platform", "mood", "raw")  # the first fields of an Impact


class CommentSentiment(msgspec.Struct, frozen=True, gc=False):
    """What one comment of a post says; `place` is where it is among the post's."""

    place: int
    label: Label
    score: float
    confidence: float


class Analysis(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known about a post now. Counters are not here: they are the post's."""

    sentiment: Label = Label.NEUTRAL
    score: float = 0.0  # -1 to 1
    confidence: float = 0.0
    probabilities: dict[str, float] = {}  # by label; empty if the post was skipped
    intent: str
    intent_confidence: float
    keywords: tuple[Keyword, ...] = ()
    aspects: dict[str, AspectSentiment] = {}
    impact: dict[str, float] = {}  # what the impact is made of; empty if the post was skipped
    impact_score: float = 0.0  # 0 to 100
    risk: Risk = Risk.LOW
    viral: bool = False
    kol: bool
    comments: tuple[CommentSentiment, ...] = ()  # the most liked, by their place; none if the post was skipped
    skipped: str = ""  # why, if it was
    stats: TextStats
    model: str
    model_version: str
    notes: tuple[str, ...] = ()  # what went wrong without being an error


class AnalysisDraft(NamedTuple):
    """A post that waits for what the model says, or is skipped."""

    post: Post
    clean: Clean
    intent: Intent
    skipped: str  # why, if it is
    keywords: list[Keyword]
    windows: list[list[str]]
    comments: dict[int, Part]


class Analyser:
    """Model, families and aspects; what is not given is that of the package."""

    def __init__(
        self, model: SentimentModel | None = None, intents: Intents | None = None, aspects: Aspects | None = None
    ) -> None:
        self.model = model or LexiconModel()
        self._intents = intents or load_intents()
        self._aspects = aspects or load_aspects()

    def analyse(self, post: Post) -> Analysis:
        """What one post says."""
        return self.analyse_all([post])[0]

    def analyse_all(self, posts: Sequence[Post]) -> list[Analysis]:
        """What each post says, in their order."""
        known: dict[str, Part] = {}
        drafts = [self._draft(post, known) for post in posts]
        texts: dict[str, Sequence[Part]] = {}
        for draft in drafts:
            if not draft.skipped:
                _gather(draft, texts)
        verdicts = judge_all(self.model, texts)
        return [self._skip(draft) if draft.skipped else self._finish(draft, verdicts) for draft in drafts]

    def _draft(self, post: Post, known: dict[str, Part]) -> AnalysisDraft:
        clean = preprocess(post, self._intents.spam, known)
        intent = self._intents.classify(clean.words, clean.own)
        skipped = _why_skip(clean.stats, intent)
        if skipped:
            return AnalysisDraft(post, clean, intent, skipped, [], [], {})
        keywords = self._aspects.find(clean.text, clean.words)
        comments = dict(clean.comments)
        for place in most_liked(post.comments, MOST_COMMENTS):
            if place not in comments:
                comments[place] = comment_of(post.comments[place].text, known)
        return AnalysisDraft(post, clean, intent, "", keywords, windows(clean.text, keywords), comments)

    def _skip(self, draft: AnalysisDraft) -> Analysis:
        return Analysis(
            intent=draft.intent.name,
            intent_confidence=draft.intent.confidence,
            kol=is_kol(draft.post.author),
            skipped=draft.skipped,
            stats=draft.clean.stats,
            model=self.model.name,
            model_version=self.model.version,
        )

    def _finish(self, draft: AnalysisDraft, verdicts: dict[str, Sentiment]) -> Analysis:
        post, whole = draft.post, verdicts[draft.clean.vivid]
        impact = impact_of(post.interaction, post.author, post.platform, whole.label)
        places = sorted(draft.comments)
        comments = [verdicts[draft.comments[place].vivid] for place in places]
        around = [[verdicts[text] for text in texts] for texts in draft.windows]
        everything = chain([whole], comments, *around)
        return Analysis(
            sentiment=whole.label,
            score=whole.score,
            confidence=whole.confidence,
            probabilities=_probabilities(whole),
            intent=draft.intent.name,
            intent_confidence=draft.intent.confidence,
            keywords=tuple(draft.keywords),
            aspects=sum_up(draft.keywords, around),
            impact=dict(zip(IMPACT_PARTS, impact[:5], strict=True)),
            impact_score=impact.score,
            risk=impact.risk,
            viral=impact.viral,
            kol=impact.kol,
            comments=tuple(map(_comment, places, comments)),
            stats=draft.clean.stats,
            model=self.model.name,
            model_version=self.model.version,
            notes=tuple({verdict.scores.note: None for verdict in everything if verdict.scores.note}),
        )


def _why_skip(stats: TextStats, intent: Intent) -> str:
    if stats.is_too_short:
        return "too short"
    if stats.has_spam_keyword:
        return "spam keyword"
    return intent.name.lower() if intent.should_skip else ""


def _gather(draft: AnalysisDraft, texts: dict[str, Sequence[Part]]) -> None:
    """Add every text about which the model is asked, with its parts if we have them."""
    texts[draft.clean.vivid] = draft.clean.parts
    for part in draft.comments.values():
        texts.setdefault(part.vivid, (part,))
    for around in draft.windows:
        for text in around:
            texts.setdefault(text, ())


def _comment(place: int, verdict: Sentiment) -> CommentSentiment:
    label, score, confidence, _ = verdict
    return CommentSentiment(place, label, score, confidence)


def _probabilities(verdict: Sentiment) -> dict[str, float]:
    negative, neutral, positive, _ = verdict.scores
    return {"NEGATIVE": round(negative, 6), "NEUTRAL": round(neutral, 6), "POSITIVE": round(positive, 6)}
