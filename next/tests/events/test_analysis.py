"""What the lists of words say of texts: mood, intent, sides, weight."""

from typing import Any

import msgspec
import pytest

from sanderling.events.analysis import analyse, impact_of, mood_of, read_text
from sanderling.events.items import Comment, Post


def judged(text: str, *comments: tuple[str, int], **more: Any) -> dict[str, Any]:
    post = Post(id="1", platform="tiktok", text=text, **more)
    post.comments = [Comment(str(place), said, "", likes, None) for place, (said, likes) in enumerate(comments)]
    return analyse([msgspec.to_builtins(post)])[0]


def score(text: str) -> float:
    found = read_text(text)
    return mood_of(found.good, found.bad)[1]


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("Xe đẹp quá, rất thích", "POSITIVE"),
        ("xe dep qua, rat thich", "POSITIVE"),  # typed without marks
        ("dịch vụ tệ, thất vọng", "NEGATIVE"),
        ("không hề cảm thấy thoải mái chút nào", "NEGATIVE"),
        ("This phone is great!", "POSITIVE"),
        ("not good at all", "NEGATIVE"),
        ("nothing to complain about", "POSITIVE"),
        ("the battery is terrible", "NEGATIVE"),
        ("it is a phone with a screen", "NEUTRAL"),
        ("good, bad, good, bad", "NEUTRAL"),
        ("looooove it", "POSITIVE"),
        ("ĐẸP QUÁ https://example.org/terrible", "POSITIVE"),
        ("🔥 tuyệt vời 👍", "POSITIVE"),
        ("", "NEUTRAL"),
    ],
)
def test_moods(text: str, mood: str) -> None:
    found = read_text(text)
    assert mood_of(found.good, found.bad)[0] == mood


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("very good", "good"),
        ("good", "a little good"),
        ("đẹp quá", "đẹp"),
        ("good!!!", "good"),
        ("bad but good", "good but bad"),
        ("tốt", "tốt không?"),  # a question
        ("good", "although good"),
        ("not bad", "bad"),
        ("good", "not good"),
        ("not good. good", "not good, good and bad"),
    ],
)
def test_words_around_a_word_change_it(more: str, less: str) -> None:
    assert score(more) > score(less)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("xe bị cháy nổ ngoài đường, rất nguy hiểm", "CRISIS"),
        ("dịch vụ quá tệ, đòi hoàn tiền mãi không được", "COMPLAINT"),
        ("hôm nay trời đẹp, cả nhà đi chơi", "DISCUSSION"),
        ("make money online fast, work from home and earn", "SPAM"),
    ],
)
def test_intents(text: str, intent: str) -> None:
    assert judged(text)["primary_intent"] == intent


def test_what_is_too_short_or_spam_is_not_judged() -> None:
    for text in ("đẹp", "buy real followers now, great offer"):
        assert "overall_sentiment" not in judged(text)
    spam_below = judged("a long enough text about great phones", ("make money online fast", 9))
    assert (spam_below["overall_sentiment"], spam_below["primary_intent"]) == ("POSITIVE", "DISCUSSION")


def test_the_most_liked_comments_count_and_each_is_judged() -> None:
    comments = [("terrible", 10), *((f"very terrible {number}", 9) for number in range(4)), *[("great", 1)] * 9]
    found = judged("i bought this phone last week", *comments)

    assert found["overall_sentiment"] == "NEGATIVE"
    assert [found["comments"][str(place)][0] for place in (0, 13)] == ["NEGATIVE", "POSITIVE"]


def test_sides_have_the_mood_of_their_clause() -> None:
    found = judged("giá hợp lý nhưng dịch vụ quá tệ")["aspects_breakdown"]

    assert found["PRICE"]["score"] > 0.25 > -0.25 > found["SERVICE"]["score"]
    assert "giá" in found["PRICE"]["keywords"]


@pytest.mark.parametrize(
    ("counts", "mood", "expected"),
    [
        # engagement × reach × platform × mood, as a hundred-thousandth in percent
        ({"views": 100_000, "followers": 999}, "NEUTRAL", {"impact_score": 3.0, "risk_level": "LOW"}),
        (
            {"shares": 10**6, "followers": 60_000},
            "NEGATIVE",
            {"risk_level": "CRITICAL", "is_viral": True, "is_kol": True},
        ),
        (
            {"shares": 10**6, "followers": 10},
            "NEGATIVE",
            {"impact_score": 100.0, "risk_level": "HIGH", "is_kol": False},
        ),
        ({"likes": 10**6, "followers": 10**6}, "POSITIVE", {"risk_level": "MEDIUM"}),
        ({"likes": 20_000, "followers": 99}, "NEGATIVE", {"impact_score": 60.0, "risk_level": "MEDIUM"}),
        ({"likes": 10**6, "followers": 0}, "NEUTRAL", {"impact_score": 0.0}),
        ({"likes": 10_000, "followers": 99, "verified": True}, "NEUTRAL", {"impact_score": 24.0}),
    ],
)
def test_impact_is_as_smap_computes_it(counts: dict[str, int], mood: str, expected: dict[str, Any]) -> None:
    post = {"views": 0, "likes": 0, "comment_count": 0, "shares": 0, "saves": 0, "followers": 0, "verified": False}
    found = impact_of({**post, "platform": "tiktok", **counts}, mood)
    assert {name: pytest.approx(found[name]) for name in expected} == expected


def test_long_texts_take_time_that_grows_with_them() -> None:
    assert judged("rất đẹp nhưng không tốt, " * 100_000)["overall_sentiment"]
