"""The routes of `events` on real files: rows and dead letters in SQLite."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

import pytest
from events_house import (
    DAY,
    EVENTS,
    NOON,
    EventsHouse,
    a_batch,
    a_comment,
    a_post,
    an_error,
    events_house,
    opened_queue,
    opened_store,
)
from looping import in_loop

from sanderling.stores.queue import Letter

POSTS = [
    a_post("plain"),
    a_post("other", project_id="q"),
    a_post("dry", project_id=None),
    a_post("tube", platform="youtube", brand_name="B & C", keyword="k/2", published_at=NOON - DAY),
    a_post("sad", overall_sentiment="NEGATIVE", overall_sentiment_score=-0.5, analyzed_at=NOON + 70, impact_score=3.0),
    a_post("alarm", risk_level="CRITICAL", is_viral=True, is_kol=True, primary_intent="CRISIS", published_at=None),
    a_post("seen", view_count=2**62, like_count=7, published_at=NOON + DAY, keywords=["design"]),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "analytics.db"

    async def fill() -> None:
        async with opened_store(path) as store:
            comments = [a_comment("few", likes=1), a_comment("many", likes=5)]
            errors = [an_error(20), an_error(21, error_code="TIMEOUT", error_category="network", job_id="j")]
            await store.keep(a_batch("evt", posts=POSTS, comments=comments, errors=errors))

    asyncio.run(fill())
    return path


@asynccontextmanager
async def stored_house(path: Path) -> AsyncIterator[EventsHouse]:
    async with opened_store(path) as store, events_house(rows=store) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {"plain", "tube", "sad", "alarm", "seen"}),
        ({"project_id": "q"}, {"other"}),
        ({"project_id": ""}, {"dry"}),
        ({"project_id": "none"}, set()),
        ({"project_id": "p\0"}, set()),
        ({"platform": "YouTube"}, {"tube"}),
        ({"brand_name": "B & C"}, {"tube"}),
        ({"keyword": "k/2"}, {"tube"}),
        ({"sentiment": "NEGATIVE"}, {"sad"}),
        ({"risk_level": "CRITICAL"}, {"alarm"}),
        ({"intent": "CRISIS"}, {"alarm"}),
        ({"is_viral": "true"}, {"alarm"}),
        ({"is_kol": "false", "platform": "tiktok"}, {"plain", "sad", "seen"}),
        ({"from_date": "2025-12-06"}, {"seen"}),
        ({"to_date": "2025-12-04"}, {"tube"}),
        ({"from_date": "2025-12-05", "to_date": "2025-12-05"}, {"plain", "sad", "alarm"}),
        ({"from_date": "2025-12-05T12:00:00Z", "to_date": "2025-12-05T12:00:00Z"}, set()),
        ({"from_date": "2025-12-05T12:00:00Z", "to_date": "2025-12-05T12:00:01Z"}, {"plain", "sad"}),
    ],
)
@in_loop
async def test_posts_are_found_by_all_that_can_be_asked(
    stored: Path, query: dict[str, object], expected: set[str]
) -> None:
    async with stored_house(stored) as opened:
        asked = {"project_id": "p"} | query
        answers = [await opened.get(path, **asked) for path in ("/posts", "/posts/all")]
        summary = await opened.get("/summary", **asked)

    assert [{post["post_id"] for post in answer.data["data"]} for answer in answers] == [expected] * 2
    assert summary.data["data"]["posts"] == answers[0].data["pagination"]["total_items"] == len(expected)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ({}, "sad"),
        ({"sort_by": "published_at"}, "seen"),
        ({"sort_by": "published_at", "order": "asc"}, "alarm"),
        ({"sort_by": "impact_score"}, "sad"),
        ({"sort_by": "view_count"}, "seen"),
        ({"sort_by": "like_count", "order": "asc"}, "seen"),
    ],
)
@in_loop
async def test_posts_are_sorted_as_asked(stored: Path, query: dict[str, object], first: str) -> None:
    async with stored_house(stored) as opened:
        answer = await opened.get("/posts", project_id="p", **query)

    assert answer.data["data"][0]["post_id"] == first


@in_loop
async def test_all_pages_together_have_every_post_once(stored: Path) -> None:
    async with stored_house(stored) as opened:
        pages: list[list[str]] = []
        more = True
        while more:
            answer = (await opened.get("/posts", project_id="p", page=len(pages) + 1, page_size=2)).data
            pages.append([post["post_id"] for post in answer["data"]])
            more = answer["pagination"]["has_next"]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(chain.from_iterable(pages)) == ["alarm", "plain", "sad", "seen", "tube"]


@in_loop
async def test_a_post_that_was_listed_can_be_looked_at_with_its_comments(stored: Path) -> None:
    async with stored_house(stored) as opened:
        (found,) = (await opened.get("/posts", project_id="p", intent="CRISIS")).data["data"]
        alone = (await opened.get(f"/posts/{found['id']}")).data["data"]
        listed = (await opened.get("/posts", project_id="p", sort_by="analyzed_at", order="asc")).data["data"]
        ids = [post["id"] for post in listed if post["post_id"] == "plain"]
        plain = (await opened.get(f"/posts/{ids[0]}")).data["data"]

    assert alone["published_at"] is None
    assert {name: alone[name] for name in found} == found
    assert [each["comment_id"] for each in plain["comments"]] == ["many", "few"]


@in_loop
async def test_trends_keywords_alerts_and_errors_come_from_the_rows(stored: Path) -> None:
    async with stored_house(stored) as opened:
        span = {"project_id": "p", "from_date": "2025-12-01", "to_date": "2025-12-31"}
        days, months = [
            (await opened.get("/trends", **span, granularity=each)).data["data"] for each in ("day", "month")
        ]
        words = (await opened.get("/top-keywords", project_id="p")).data["data"]
        alerts = (await opened.get("/alerts", project_id="p")).data["data"]
        errors = await opened.get("/errors", job_id="j")
        counts = (await opened.get("/errors/counts", project_id="p")).data["data"]

    assert [(day["period"], day["posts"]) for day in days] == [
        ("2025-12-04", 1),
        ("2025-12-05", 3),
        ("2025-12-06", 1),
    ]
    assert [(month["period"], month["posts"]) for month in months] == [("2025-12-01", 5)]
    assert [(word["keyword"], word["aspect"], word["posts"]) for word in words] == [
        ("price", "PRICE", 4),
        ("design", "", 1),
    ]
    assert {name: [post["post_id"] for post in alerts[name]] for name in alerts if name != "totals"} == {
        "critical_posts": ["alarm"],
        "viral_posts": ["alarm"],
        "crisis_intents": ["alarm"],
    }
    assert [each["error_code"] for each in errors.data["data"]] == ["TIMEOUT"]
    assert counts == {"by_code": {"RATE_LIMITED": 1, "TIMEOUT": 1}}


@in_loop
async def test_dead_letters_of_a_real_queue_are_listed_and_replayed(tmp_path: Path) -> None:
    async with opened_queue(tmp_path / "queue.db") as queue:
        await queue.publish([Letter(f"evt_{number}", b"{}") for number in range(3)])
        for delivery in await queue.take(3, 1.0):
            await queue.bury(delivery, "no payload")
        async with events_house(letters=queue) as opened:
            first = (await opened.ask("GET", f"{EVENTS}/dead?limit=2")).data["data"]
            rest = (await opened.ask("GET", f"{EVENTS}/dead?after={first['next']}")).data["data"]
            one = await opened.ask("POST", f"{EVENTS}/dead/replay", {"keys": ["evt_1"]})
            gone = await opened.ask("GET", f"{EVENTS}/dead?after=evt_1")
            others = await opened.ask("POST", f"{EVENTS}/dead/replay", {"all": True})
        depth = await queue.depth()

    assert [letter["key"] for letter in (*first["letters"], *rest["letters"])] == ["evt_0", "evt_1", "evt_2"]
    assert first["letters"][0]["why"] == "no payload"
    assert (one.data["data"], gone.status, others.data["data"]) == ({"replayed": 1}, 410, {"replayed": 2})
    assert (depth.ready, depth.dead) == (3, 0)
