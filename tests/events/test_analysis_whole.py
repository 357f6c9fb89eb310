"""All stages together, as the consumer of a batch sees them."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.analyse import MOST_COMMENTS, Analyser, Analysis
from sanderling.events.analysis.aspects import load_aspects
from sanderling.events.analysis.impact import Risk
from sanderling.events.analysis.intent import load_intents
from sanderling.events.analysis.sentiment import Label, Scores
from sanderling.events.posts import Author, Comment, Interaction, Post

INTENTS, ASPECTS = load_intents(), load_aspects()
ANALYSER = Analyser(None, INTENTS, ASPECTS)
REACH = Author(followers=999, verified=False)  # log10(1000) is 3


def post(text: str = "", *comments: str, transcription: str = "", author: Author = REACH, likes: int = 100) -> Post:
    said = tuple(Comment(id=str(place), text=each, likes=10 - place) for place, each in enumerate(comments))
    interaction = Interaction(likes=likes)
    return Post(
        id="7", platform="tiktok", text=text, transcription=transcription,
        author=author, interaction=interaction, comments=said,
    )  # fmt: skip


class Counting:
    """A model that finds everything good, and remembers what it was asked."""

    name, version = "counting", "3"

    def __init__(self, said: Scores | None = None) -> None:
        self.said = said or Scores(0.0, 0.0, 1.0)
        self.asked: list[list[str]] = []

    def scores(self, texts: Sequence[str]) -> list[Scores]:
        self.asked.append(list(texts))
        return [self.said] * len(texts)


def test_a_post_with_something_to_say() -> None:
    text = "Thiết kế rất đẹp, pin dùng lâu nhưng giá quá đắt, thất vọng về bảo hành"

    found = ANALYSER.analyse(post(text, "Quá tệ luôn á", "mẫu này đẹp mà", "ở đâu vậy"))

    assert found.sentiment is Label.NEGATIVE
    assert -1 <= found.score < -0.25
    assert sum(found.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert list(found.probabilities) == ["NEGATIVE", "NEUTRAL", "POSITIVE"]
    assert found.intent == "COMPLAINT"
    assert found.intent_confidence == pytest.approx(0.6)
    assert {keyword.keyword for keyword in found.keywords} == {"thiết kế", "pin", "giá", "đắt", "bảo hành"}
    assert found.aspects["DESIGN"].label is Label.POSITIVE
    assert found.aspects["PRICE"].label is Label.NEGATIVE
    assert found.aspects["SERVICE"].label is Label.NEGATIVE
    assert [comment.label for comment in found.comments] == [Label.NEGATIVE, Label.POSITIVE, Label.NEUTRAL]
    assert (found.skipped, found.notes, found.model) == ("", (), "lexicon")


def test_impact_follows_from_the_mood_that_was_found() -> None:
    found = ANALYSER.analyse(post("Quá tệ, thất vọng toàn tập", likes=10_000))

    assert found.impact == {"engagement": 10_000.0, "reach": 3.0, "platform": 1.0, "mood": 1.5, "raw": 45_000.0}
    assert (found.impact_score, found.risk, found.viral, found.kol) == (45.0, Risk.MEDIUM, False, False)


@pytest.mark.parametrize(
    ("text", "why", "intent"),
    [
        ("", "too short", "DISCUSSION"),
        ("đẹp quá", "too short", "DISCUSSION"),
        ("😍😍😍😍😍😍😍😍😍😍😍😍", "too short", "DISCUSSION"),
        ("Hỗ trợ vay vốn cho bà con", "spam keyword", "SPAM"),
        ("Nhà cái uy tín hàng đầu", "spam", "SPAM"),
        ("Bấm vào giỏ hàng nha mọi người", "seeding", "SEEDING"),
    ],
)
def test_a_post_to_be_skipped_is_neutral_and_costs_no_model(text: str, why: str, intent: str) -> None:
    model = Counting()
    kol = Author(followers=60_000)

    found = Analyser(model, INTENTS, ASPECTS).analyse(post(text, author=kol, likes=10**9))

    assert (found.skipped, found.intent) == (why, intent)
    assert (found.sentiment, found.score, found.confidence) == (Label.NEUTRAL, 0.0, 0.0)
    assert (found.impact_score, found.risk, found.viral) == (0.0, Risk.LOW, False)
    assert (found.probabilities, found.aspects, found.impact, found.keywords, found.comments) == ({}, {}, {}, (), ())
    assert found.kol, "whom so many follow is known without reading"
    assert (found.model, found.model_version) == ("counting", "3")
    assert not any(model.asked)


def test_a_comment_cannot_have_a_post_skipped() -> None:
    found = ANALYSER.analyse(post("Sản phẩm này quá tệ, thất vọng", "vay tiền nhanh, nhà cái uy tín, link in my bio"))

    assert (found.skipped, found.intent) == ("", "COMPLAINT")


def test_the_model_is_asked_once_for_all_posts_and_once_for_each_text() -> None:
    model = Counting()
    posts = [
        post("Giá của mẫu này thế nào", "đẹp", "đẹp"),
        post("Nhà cái uy tín nhé"),
        post("Giá của mẫu này thế nào", "đẹp"),
    ]

    found = Analyser(model, INTENTS, ASPECTS).analyse_all(posts)

    assert len(model.asked) == 1
    assert len(model.asked[0]) == len(set(model.asked[0]))
    assert "đẹp" in model.asked[0]
    assert [analysis.skipped for analysis in found] == ["", "spam", ""]
    assert all(comment.label is Label.POSITIVE for comment in found[0].comments)


def test_no_posts_need_no_answer() -> None:
    assert ANALYSER.analyse_all([]) == []


def test_together_posts_are_what_they_are_alone() -> None:
    posts = [post("Thiết kế đẹp, giá rẻ", "tuyệt vời"), post("x"), post("Quá tệ, hàng lỗi hoài", "đúng rồi")]

    assert ANALYSER.analyse_all(posts) == [ANALYSER.analyse(each) for each in posts]


def test_the_most_liked_comments_are_judged_and_named_by_their_place() -> None:
    comments = tuple(Comment(id="x", text=f"số {place} đẹp", likes=place) for place in range(MOST_COMMENTS + 50))
    many = msgspec.structs.replace(post("Bài viết bình thường nhé"), comments=comments)

    found = ANALYSER.analyse(many)

    assert [comment.place for comment in found.comments] == list(range(50, MOST_COMMENTS + 50))
    assert MOST_COMMENTS == 200


def test_an_empty_comment_is_neutral_and_nothing_is_known_of_it() -> None:
    (comment,) = ANALYSER.analyse(post("Bài viết bình thường nhé", "\u200b")).comments

    assert (comment.label, comment.score, comment.confidence) == (Label.NEUTRAL, 0.0, 0.0)


def test_what_a_model_could_not_say_is_noted() -> None:
    model = Counting(Scores(float("nan"), 0.0, 0.0))

    found = Analyser(model, INTENTS, ASPECTS).analyse(post("Bài viết bình thường nhé", "đẹp"))

    assert (found.sentiment, found.confidence) == (Label.NEUTRAL, 0.0)
    assert found.notes == ("the model said nan, 0.0, 0.0; taken for neutral",)


def test_an_analysis_can_be_written_as_json_and_read_again() -> None:
    found = ANALYSER.analyse(post("Thiết kế đẹp, giá quá đắt 😍", "tuyệt vời"))

    text = msgspec.json.encode(found)

    assert msgspec.json.decode(text, type=Analysis) == found


def test_a_huge_post_is_read_as_far_as_makes_sense() -> None:
    huge = post("giá đẹp nhưng không " * 50_000, "đẹp 😍" * 200_000, transcription="pin " * 250_000)

    found = ANALYSER.analyse(huge)

    assert found.stats.is_cut
    assert found.stats.total_length < 50_000
    assert len(found.keywords) <= 30


COUNTS = st.integers(-(10**30), 10**30)
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("giá đẹp k. ,!😍\ud800\x00\u202e#")), max_size=80)
POSTS = st.builds(
    Post,
    id=st.just("1"),
    platform=st.sampled_from(["tiktok", "youtube", "", "\ud800"]),
    text=TEXTS,
    transcription=TEXTS,
    author=st.builds(Author, followers=COUNTS, verified=st.booleans()),
    interaction=st.builds(Interaction, views=COUNTS, likes=COUNTS, comments=COUNTS, shares=COUNTS, saves=COUNTS),
    comments=st.lists(st.builds(Comment, id=st.just("1"), text=TEXTS, likes=COUNTS), max_size=8).map(tuple),
)


@given(st.lists(POSTS, max_size=4))
def test_whatever_a_post_says_there_is_an_analysis(posts: list[Post]) -> None:
    for each, found in zip(posts, ANALYSER.analyse_all(posts), strict=True):
        assert -1 <= found.score <= 1
        assert 0 <= found.confidence <= 1
        assert 0 <= found.impact_score <= 100
        assert all(0 <= comment.place < len(each.comments) for comment in found.comments)
        assert bool(found.skipped) == (found.probabilities == {})
        msgspec.json.encode(found)
