"""The routes that read, asked over a real socket, with rows behind them that are held in memory."""

from typing import Any

import pytest
from events_house import (
    NOON,
    SUMMARY,
    FakeRows,
    a_comment,
    a_post,
    an_error,
    as_json,
    as_stored,
    events_house,
    is_enveloped,
)
from looping import in_loop

from sanderling.stores.analytics import (
    AnalyticsError,
    ErrorFilter,
    KeywordCount,
    PostFilter,
    PostRow,
    StoredError,
    Trend,
)

TIMES = {"published_at", "analyzed_at", "crawled_at"}


@in_loop
async def test_an_answer_is_in_an_envelope_with_its_page() -> None:
    rows = FakeRows(as_stored(a_post("1"), a_post("2"), a_post("3")))
    async with events_house(rows=rows) as opened:
        answer = await opened.get("/posts", project_id="p", page=2, page_size=2)

    assert answer.status == 200
    assert is_enveloped(answer)
    assert [post["post_id"] for post in answer.data["data"]] == ["3"]
    assert answer.data["pagination"] == {
        "page": 2,
        "page_size": 2,
        "total_items": 3,
        "total_pages": 2,
        "has_next": False,
        "has_prev": True,
    }


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, ("analyzed_at", True, 0, 20)),
        ({"page": 1, "page_size": 100}, ("analyzed_at", True, 0, 100)),
        ({"page": 4, "page_size": 7}, ("analyzed_at", True, 21, 7)),
        ({"sort_by": "published_at"}, ("published_at", True, 0, 20)),
        ({"sort_by": "impact_score", "order": "asc"}, ("impact_score", False, 0, 20)),
        ({"sort_by": "view_count", "order": "desc"}, ("view_count", True, 0, 20)),
        ({"sort_by": "like_count"}, ("like_count", True, 0, 20)),
        ({"page": 10_001, "page_size": 100}, ("analyzed_at", True, 1_000_000, 100)),
        ({"page": 1_000_001, "page_size": 1}, ("analyzed_at", True, 1_000_000, 1)),
    ],
)
@in_loop
async def test_a_page_is_asked_for_in_its_order(query: dict[str, object], asked: tuple[object, ...]) -> None:
    async with events_house() as opened:
        answer = await opened.get("/posts", project_id="p", **query)

    assert answer.status == 200
    assert opened.rows.asked == [("posts", PostFilter(project_id="p"), *asked)]


FILTERS: list[tuple[dict[str, object], dict[str, Any]]] = [
    ({"project_id": ""}, {"project_id": ""}),
    ({"project_id": "x" * 256}, {"project_id": "x" * 256}),
    (
        {"project_id": "'; DROP TABLE post_analytics; -- ☃/\x00\n"},
        {"project_id": "'; DROP TABLE post_analytics; -- ☃/\x00\n"},
    ),
    ({"brand_name": "A & B"}, {"brand_name": "A & B"}),
    ({"keyword": "VF 8 100%"}, {"keyword": "VF 8 100%"}),
    ({"platform": "TikTok"}, {"platform": "tiktok"}),
    ({"sentiment": "NEGATIVE"}, {"sentiment": "NEGATIVE"}),
    ({"risk_level": "CRITICAL"}, {"risk_level": "CRITICAL"}),
    ({"intent": "LEAD"}, {"intent": "LEAD"}),
    ({"is_viral": "true"}, {"is_viral": True}),
    ({"is_viral": "false"}, {"is_viral": False}),
    ({"is_kol": "true"}, {"is_kol": True}),
    ({"from_date": "2025-12-05T12:00:00Z"}, {"from_date": NOON}),
    ({"to_date": "2025-12-05T19:00:00+07:00"}, {"to_date": NOON}),
    ({"from_date": "2025-12-05", "to_date": "2025-12-05"}, {"from_date": NOON - 43_200, "to_date": NOON + 43_200}),
]


@pytest.mark.parametrize(("query", "chosen"), FILTERS, ids=lambda each: next(iter(each)))
@in_loop
async def test_posts_are_chosen_alike_everywhere(query: dict[str, object], chosen: dict[str, Any]) -> None:
    async with events_house() as opened:
        paths = ["/posts", "/posts/all", "/summary", "/top-keywords"]
        answers = [await opened.get(path, **({"project_id": "p"} | query)) for path in paths]

    assert [answer.status for answer in answers] == [200] * 4
    assert [asked[1] for asked in opened.rows.asked] == [PostFilter(**({"project_id": "p"} | chosen))] * 4


@in_loop
async def test_a_text_is_cut_in_a_list_and_whole_by_itself() -> None:
    text = "ố" * 299 + "🚗" * 2
    rows = FakeRows(as_stored(a_post(content_text=text), a_post(content_text=text[:300])))
    async with events_house(rows=rows) as opened:
        listed = [(await opened.get(path, project_id="p")).data["data"] for path in ("/posts", "/posts/all")]
        alerts = (await opened.get("/alerts", project_id="p")).data["data"]
        whole = (await opened.get("/posts/1")).data["data"]

    assert listed[0] == listed[1]
    assert [post["content_text"] for post in listed[0]] == [text[:299] + "…", text[:300]]
    assert {post["content_text"] for name in alerts if name != "totals" for post in alerts[name]} == {text[:199] + "…"}
    assert whole["content_text"] == text


@in_loop
async def test_a_post_is_shown_with_all_its_columns_and_its_comments() -> None:
    row = a_post("7441234567890123456", view_count=2**63 - 1)
    rows = FakeRows(as_stored(row), comments=[a_comment(), a_comment("c2", commented_at=None)])
    async with events_house(rows=rows) as opened:
        answer = await opened.get("/posts/1")

    shown, stored = answer.data["data"], as_json(row)
    columns = {*PostRow.__struct_fields__} - TIMES
    assert {name: shown[name] for name in columns} == {name: stored[name] for name in columns}
    assert {name: shown[name] for name in TIMES} == {
        "published_at": "2025-12-05T12:00:00Z",
        "analyzed_at": "2025-12-05T12:01:00Z",
        "crawled_at": "2025-12-05T12:00:30Z",
    }
    assert set(shown) == {"id", "comments", *PostRow.__struct_fields__}
    assert [(each["comment_id"], each["commented_at"]) for each in shown["comments"]] == [
        ("c1", "2025-12-05T12:00:10Z"),
        ("c2", None),
    ]
    assert shown["comments"][0] == {
        "comment_id": "c1",
        "text": "Indeed",
        "author_name": "Anybody",
        "likes": 2,
        "sentiment": "POSITIVE",
        "sentiment_score": 0.5,
        "commented_at": "2025-12-05T12:00:10Z",
    }


@in_loop
async def test_times_that_are_unknown_or_at_the_ends_of_the_calendar_are_shown() -> None:
    rows = FakeRows(
        as_stored(
            a_post(published_at=None, crawled_at=None),
            a_post(published_at=-62_135_596_800.0, crawled_at=253_402_300_799.9999999),
        )
    )
    async with events_house(rows=rows) as opened:
        first, second = [(await opened.get(f"/posts/{number}")).data["data"] for number in (1, 2)]

    assert (first["published_at"], first["crawled_at"]) == (None, None)
    assert (second["published_at"], second["crawled_at"]) == ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


@in_loop
async def test_a_post_that_there_is_not_is_not_found() -> None:
    async with events_house() as opened:
        answer = await opened.get("/posts/9223372036854775807")

    assert answer.status == 404
    assert answer.data["error"] == {"code": "RES_001", "message": "there is no post 9223372036854775807"}


@pytest.mark.parametrize(
    ("limit", "pieces"),
    [
        ({}, [(0, 1000)]),
        ({"limit": 1}, [(0, 1)]),
        ({"limit": 1000}, [(0, 1000)]),
        ({"limit": 2500}, [(0, 1000), (1000, 1000), (2000, 500)]),
        ({"limit": 10_000}, [(0, 1000), (1000, 1000), (2000, 1000)]),
    ],
)
@in_loop
async def test_all_posts_are_read_in_pieces_until_there_are_no_more(
    limit: dict[str, object], pieces: list[tuple[int, int]]
) -> None:
    rows = FakeRows(as_stored(*(a_post(str(number)) for number in range(2600))))
    async with events_house(rows=rows) as opened:
        answer = await opened.get("/posts/all", project_id="p", **limit)

    assert [asked[-2:] for asked in rows.asked] == pieces
    assert [post["id"] for post in answer.data["data"]] == [*range(1, min(2600, sum(most for _, most in pieces)) + 1)]
    assert "pagination" not in answer.data


@in_loop
async def test_a_post_that_moves_while_all_are_read_is_listed_once() -> None:
    moved = as_stored(*(a_post(str(number)) for number in range(1100)))
    rows = FakeRows([*moved[:1000], moved[999], *moved[1000:]])
    async with events_house(rows=rows) as opened:
        answer = await opened.get("/posts/all", project_id="p", limit=2000)

    assert [post["id"] for post in answer.data["data"]] == [*range(1, 1101)]


@in_loop
async def test_a_summary_is_shown_as_it_is() -> None:
    async with events_house() as opened:
        answer = await opened.get("/summary", project_id="p")

    assert answer.data["data"] == as_json(SUMMARY)
    assert answer.data["data"]["views"] == 2**63


@in_loop
async def test_trends_are_shown_by_the_first_day_of_each_period() -> None:
    mood = {"NEUTRAL": 2}
    rows = FakeRows(periods=[Trend(start=NOON - 43_200, posts=2, by_sentiment=mood, mean_score=0.5, mean_impact=1.5)])
    async with events_house(rows=rows) as opened:
        span = {"project_id": "p", "from_date": "2025-12-01", "to_date": "2025-12-31"}
        usual = await opened.get("/trends", **span)
        weeks = await opened.get("/trends", **span, granularity="week", is_kol="true")

    assert usual.data["data"] == [
        {"period": "2025-12-05", "posts": 2, "by_sentiment": mood, "mean_score": 0.5, "mean_impact": 1.5}
    ]
    chosen = PostFilter(project_id="p", from_date=1_764_547_200.0, to_date=1_767_225_600.0)
    assert rows.asked[0] == ("trends", chosen, "day")
    assert rows.asked[1][2] == "week"
    assert weeks.status == 200


@in_loop
async def test_keywords_are_as_many_as_asked_for() -> None:
    rows = FakeRows(words=[KeywordCount(f"k{number}", "PRICE", 9, 0.5) for number in range(60)])
    async with events_house(rows=rows) as opened:
        usual = (await opened.get("/top-keywords", project_id="p")).data["data"]
        most = (await opened.get("/top-keywords", project_id="p", limit=50)).data["data"]

    assert (len(usual), len(most)) == (20, 50)
    assert usual[0] == {"keyword": "k0", "aspect": "PRICE", "posts": 9, "mean_score": 0.5}


@in_loop
async def test_alerts_are_the_newest_of_three_sorts() -> None:
    rows = FakeRows(as_stored(*(a_post(str(number)) for number in range(12))))
    async with events_house(rows=rows) as opened:
        answer = await opened.get(
            "/alerts", project_id="p", brand_name="b", keyword="k", platform="x", to_date="2025-12-05"
        )
        fewer = await opened.get("/alerts", project_id="p", limit=3)

    scope: dict[str, Any] = {
        "project_id": "p",
        "brand_name": "b",
        "keyword": "k",
        "platform": "x",
        "to_date": NOON + 43_200,
    }
    assert rows.asked[:3] == [
        ("posts", PostFilter(**scope, **sort), "analyzed_at", True, 0, 10)
        for sort in ({"risk_level": "CRITICAL"}, {"is_viral": True}, {"intent": "CRISIS"})
    ]
    sorts = ["critical_posts", "viral_posts", "crisis_intents"]
    assert [len(answer.data["data"][sort]) for sort in sorts] == [10, 10, 10]
    assert answer.data["data"]["totals"] == dict.fromkeys(sorts, 12)
    assert [len(fewer.data["data"][sort]) for sort in sorts] == [3, 3, 3]


@in_loop
async def test_errors_are_shown_with_all_their_columns_and_a_message_that_is_cut() -> None:
    row = an_error(3, error_message="m" * 1001, project_id=None)
    rows = FakeRows(failed=[StoredError(id=7, row=row)])
    async with events_house(rows=rows) as opened:
        answer = await opened.get("/errors")

    expected = as_json(row) | {"id": 7, "created_at": "2025-12-05T12:00:03Z", "error_message": "m" * 999 + "…"}
    assert answer.data["data"] == [expected]
    assert answer.data["pagination"]["total_items"] == 1
    assert is_enveloped(answer)


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ({}, {}),
        ({"project_id": ""}, {"project_id": ""}),
        ({"project_id": "p"}, {"project_id": "p"}),
        ({"job_id": "p-brand-0"}, {"job_id": "p-brand-0"}),
        ({"error_code": "TIMEOUT"}, {"error_code": "TIMEOUT"}),
        ({"error_category": "network"}, {"error_category": "network"}),
        ({"from_date": "2025-12-05T12:00:00", "to_date": "2025-12-05T12:00:00Z"}, {"from_date": NOON, "to_date": NOON}),
    ],
)
@in_loop
async def test_errors_can_be_chosen_and_counted(query: dict[str, object], chosen: dict[str, Any]) -> None:
    async with events_house() as opened:
        page = await opened.get("/errors", **query, page=3, page_size=5)
        counts = await opened.get("/errors/counts", **query)

    assert page.status == 200
    assert opened.rows.asked == [
        ("errors", ErrorFilter(**chosen), 10, 5),
        ("error_counts", ErrorFilter(**chosen)),
    ]
    assert counts.data["data"] == {"by_code": {"TIMEOUT": 2, "PARSE_ERROR": 1}}


@pytest.mark.parametrize(
    ("page", "size", "total", "expected"),
    [
        (1, 20, 0, (0, False, False)),
        (1, 20, 20, (1, False, False)),
        (1, 20, 21, (2, True, False)),
        (2, 20, 21, (2, False, True)),
        (9, 20, 21, (2, False, True)),
        (10_000, 100, 2_000_000, (20_000, True, True)),
        (10_001, 100, 2_000_000, (20_000, False, True)),  # the next one is too deep to be asked for
    ],
)
@in_loop
async def test_pages_are_counted(page: int, size: int, total: int, expected: tuple[int, bool, bool]) -> None:
    async with events_house(rows=FakeRows(total=total)) as opened:
        found = (await opened.get("/posts", project_id="p", page=page, page_size=size)).data["pagination"]
        after = await opened.get("/posts", project_id="p", page=page + 1, page_size=size)

    if total:
        assert (found["total_pages"], found["has_next"], found["has_prev"]) == expected
    assert after.status == 200 or not found["has_next"]


@pytest.mark.parametrize(("transient", "seconds"), [(True, "5"), (False, "60")])
@pytest.mark.parametrize(
    "path",
    [
        "/posts?project_id=p",
        "/posts/all?project_id=p",
        "/posts/1",
        "/summary?project_id=p",
        "/trends?project_id=p&from_date=2025-01-01&to_date=2025-01-02",
        "/top-keywords?project_id=p",
        "/alerts?project_id=p",
        "/errors",
        "/errors/counts",
    ],
)
@in_loop
async def test_a_database_that_is_not_to_be_had_is_told(path: str, *, transient: bool, seconds: str) -> None:
    rows = FakeRows(trouble=AnalyticsError("analytics.db: disk I/O error", transient=transient))
    async with events_house(rows=rows) as opened:
        answer = await opened.ask("GET", f"/api/v1/analytics{path}")

    assert (answer.status, answer.headers["Retry-After"]) == (503, seconds)
    assert answer.data["error"]["code"] == "SYS_001"
    assert "disk I/O error" in answer.data["detail"]
    assert is_enveloped(answer)
