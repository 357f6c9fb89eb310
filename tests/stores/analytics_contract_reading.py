"""What every database of `events` promises to people who look."""

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest
from analytics_play import NOW, PROJECT, Place, all_posts, batch, comment, error, post
from looping import in_loop

from sanderling.stores import analytics_questions, analytics_store
from sanderling.stores.analytics import (
    AnalyticsError,
    ErrorFilter,
    Granularity,
    KeywordCount,
    PostFilter,
    PostSummary,
    Sort,
    StoredPost,
    Trend,
)
from sanderling.stores.analytics_store import AnalyticsStore

DAY = 86_400.0
NASTY = ["' OR 1=1 --", '"; DROP TABLE post_analytics; --', "$1", "?", "%", "\\", "{0}", "a\0b", "\ud800", "x" * 9999]


def at(year: int, month: int, day: int, *, last_second: bool = False) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp() + (DAY - 1 if last_second else 0)


async def ids(store: AnalyticsStore, most: int = 10_000, offset: int = 0, **fields: Any) -> list[str]:  # noqa: ANN401 - of any field
    page = await found(store, most, offset, **fields)
    return [each.row.post_id for each in page]


async def found(
    store: AnalyticsStore,
    most: int = 10_000,
    offset: int = 0,
    *,
    sort: Sort = "impact_score",
    descending: bool = False,
    **fields: Any,  # noqa: ANN401 - of any field
) -> list[StoredPost]:
    chosen = PostFilter(**({"project_id": PROJECT} | fields))
    return (await store.posts(chosen, sort=sort, descending=descending, offset=offset, most=most)).posts


class PostsContract:
    @pytest.mark.parametrize(
        ("asked", "field"),
        [
            ({"brand_name": "B"}, {"brand_name": "B"}),
            ({"keyword": "k"}, {"keyword": "k"}),
            ({"platform": "youtube"}, {"platform": "youtube"}),
            ({"sentiment": "POSITIVE"}, {"overall_sentiment": "POSITIVE"}),
            ({"risk_level": "CRITICAL"}, {"risk_level": "CRITICAL"}),
            ({"intent": "CRISIS"}, {"primary_intent": "CRISIS"}),
            ({"is_viral": True}, {"is_viral": True}),
            ({"is_kol": False}, {"is_kol": False}),
            ({"from_date": NOW}, {"published_at": NOW}),
            ({"from_date": NOW}, {"published_at": None, "analyzed_at": NOW}),
            ({"to_date": NOW - 9000}, {"published_at": NOW - 9001}),
        ],
    )
    @in_loop
    async def test_a_filter_chooses(self, place: Place, asked: dict[str, Any], field: dict[str, Any]) -> None:
        rows = [post("meant", **field), post("other"), post("elsewhere", project_id="p", **field)]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))

            assert await ids(store, **asked) == ["meant"]
            page = await store.posts(
                PostFilter(project_id=PROJECT, **asked), sort="view_count", descending=True, offset=5, most=1
            )
            assert page == ([], 1)
            assert (await store.summary(PostFilter(project_id=PROJECT, **asked))).posts == 1

    @in_loop
    async def test_the_opposite_of_a_flag_chooses_the_others(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a", is_viral=True, is_kol=False), post("b")]))

            assert await ids(store, is_viral=False) == ["b"]
            assert await ids(store, is_kol=True) == ["b"]
            assert await ids(store, is_viral=True, is_kol=True) == []

    @in_loop
    async def test_dates_are_from_the_one_on_and_before_the_other(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(posts=[post(str(n), published_at=NOW + n, impact_score=float(n)) for n in range(5)]))

            assert await ids(store, from_date=NOW + 1, to_date=NOW + 3) == ["1", "2"]
            assert await ids(store, from_date=float("-inf"), to_date=float("inf")) == ["0", "1", "2", "3", "4"]
            assert await ids(store, from_date=float("inf")) == []
            assert await ids(store, from_date=float("nan")) == []

    @pytest.mark.parametrize("sort", get_args(Sort))
    @in_loop
    async def test_pages_are_in_order_and_without_gaps(self, place: Place, sort: Sort) -> None:
        values: list[float | None] = [5.0, 1.0, 3.0, 3.0, 4.0, 3.0]
        if sort == "published_at":
            values[2] = None  # unknown: the earliest
        if sort.endswith("_count"):
            values = [int(value or 0) for value in values]
        rows = [post(str(n), **{sort: value}) for n, value in enumerate(values)]
        expected = [str(n) for n, _ in sorted(enumerate(values), key=lambda each: (each[1] or 0.0, each[0]))]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))
            # What was written last need not be last.
            await store.keep(batch("evt_2", [msgspec.structs.replace(rows[3], crawled_at=NOW)]))

            for descending in (False, True):
                pages = [await ids(store, 2, n, sort=sort, descending=descending) for n in (0, 2, 4, 6)]
                assert [each for page in pages for each in page] == expected
                expected.reverse()

    @in_loop
    async def test_a_page_is_as_large_as_may_be(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(analytics_questions, "MOST_ROWS", 3)
        async with place.opens() as store:
            await store.keep(batch(posts=[post(str(n)) for n in range(5)]))

            assert [len(await found(store, most)) for most in (-1, 0, 2, 3, 4, 2**70)] == [0, 0, 2, 3, 3, 3]
            assert [len(await found(store, 9, offset)) for offset in (-5, 4, 2**70)] == [3, 1, 0]

    def test_ten_thousand_rows_are_the_most(self) -> None:
        assert [analytics_questions.bounded(most) for most in (-1, 7, 10**9)] == [0, 7, 10_000]

    @in_loop
    async def test_an_answer_that_does_not_fit_into_memory_is_refused(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(analytics_store, "MOST_BYTES", 5 << 20)
        async with place.opens() as store:
            await store.keep(batch(posts=[post(str(n), content_text="x" * (2 << 20)) for n in range(3)]))

            assert len(await found(store, 2)) == 2
            with pytest.raises(AnalyticsError, match="more than 5 MB; ask for fewer rows at once") as told:
                await found(store, 3)
            assert not told.value.transient
            assert len(await found(store, 2)) == 2

    @in_loop
    async def test_whatever_is_asked_is_a_value_and_no_sql(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a")], errors=[error(1)]))
            for nasty in NASTY:
                for name in ("project_id", "brand_name", "keyword", "platform", "sentiment", "risk_level", "intent"):
                    asked: dict[str, Any] = {"project_id": PROJECT, name: nasty}
                    assert await ids(store, **asked) == []
                    assert await store.keywords(PostFilter(**asked), 5) == []
                for name in ("project_id", "job_id", "error_code", "error_category"):
                    asked = {name: nasty}
                    assert await store.errors(ErrorFilter(**asked), offset=0, most=9) == ([], 0)
                    assert await store.error_counts(ErrorFilter(**asked)) == {}
                assert not await store.processed(nasty)
            with pytest.raises(
                ValueError, match="cannot sort by 'id; DROP', expected one of analyzed_at, published_at"
            ):
                await found(store, sort="id; DROP")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="'year' is no period, expected one of day, week, month"):
                await store.trends(PostFilter(project_id=PROJECT), "year")  # type: ignore[arg-type]

            assert len(await all_posts(store)) == 1

    @in_loop
    async def test_a_value_with_quotes_is_found_as_it_is(self, place: Place) -> None:
        odd = "'\"; -- ? $1 {0} %s đ😀"
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a", brand_name=odd, keyword=odd)]))

            assert await ids(store, brand_name=odd, keyword=odd) == ["a"]

    @in_loop
    async def test_a_post_has_its_comments_the_most_liked_first(self, place: Place) -> None:
        comments = [comment(0, f"{n}", likes=likes) for n, likes in enumerate([2, 9, 5, 9])]
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a")], comments=comments))
            (only,) = await all_posts(store)

            shown = await store.post(only.id)
            assert shown is not None
            assert [each.comment_id for each in shown[1]] == ["1", "3", "2", "0"]
            assert [await store.post(number) for number in (only.id + 1, -1, 2**70)] == [None] * 3


class SumsContract:
    @in_loop
    async def test_a_summary_sums_up(self, place: Place) -> None:
        rows = [
            post("a", overall_sentiment_score=-1.0, impact_score=80.0, is_viral=True, risk_level="CRITICAL"),
            post("b", overall_sentiment="POSITIVE", overall_sentiment_score=0.25, impact_score=10.0, is_kol=False),
            post("c", platform="youtube", primary_intent="LEAD", overall_sentiment_score=0.0, impact_score=0.0),
            post("d", project_id="other"),
        ]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))

            assert await store.summary(PostFilter(project_id=PROJECT)) == PostSummary(
                posts=3,
                by_sentiment={"NEGATIVE": 2, "POSITIVE": 1},
                by_risk={"CRITICAL": 1, "LOW": 2},
                by_intent={"COMPLAINT": 2, "LEAD": 1},
                by_platform={"tiktok": 2, "youtube": 1},
                mean_score=-0.25,
                mean_impact=30.0,
                viral=1,
                kol=2,
                views=3000,
                likes=300,
                comments=30,
                shares=15,
                saves=12,
            )
            empty = await store.summary(PostFilter(project_id="nobody's"))
            assert (empty.posts, empty.mean_score, empty.views, empty.by_risk) == (0, 0.0, 0, {})

    @in_loop
    async def test_sums_of_counters_may_need_more_than_64_bits(self, place: Place) -> None:
        most = 2**63 - 1
        async with place.opens() as store:
            await store.keep(batch(posts=[post(str(n), view_count=most, like_count=-5) for n in range(3)]))

            summary = await store.summary(PostFilter(project_id=PROJECT))
            assert (summary.views, summary.likes) == (3 * most, -15)

    @pytest.mark.parametrize(
        ("granularity", "starts"),
        [
            ("day", [(1969, 12, 28), (2024, 2, 29), (2024, 12, 31), (2025, 6, 15), (2025, 6, 16)]),
            ("week", [(1969, 12, 22), (2024, 2, 26), (2024, 12, 30), (2025, 6, 9), (2025, 6, 16)]),
            ("month", [(1969, 12, 1), (2024, 2, 1), (2024, 12, 1), (2025, 6, 1)]),
        ],
    )
    @in_loop
    async def test_trends_are_by_period_in_utc(
        self, place: Place, granularity: Granularity, starts: list[tuple[int, int, int]]
    ) -> None:
        moments = [
            at(1969, 12, 28, last_second=True),  # a Sunday
            at(2024, 2, 29, last_second=True),
            at(2024, 12, 31),
            at(2025, 6, 15, last_second=True),  # a Sunday
            at(2025, 6, 16),
        ]
        async with place.opens() as store:
            await store.keep(batch(posts=[post(str(n), published_at=moment) for n, moment in enumerate(moments)]))

            trends = await store.trends(PostFilter(project_id=PROJECT), granularity)
            assert [each.start for each in trends] == [at(*start) for start in starts]
            assert sum(each.posts for each in trends) == 5

    @in_loop
    async def test_a_trend_has_sentiments_and_means(self, place: Place) -> None:
        rows = [
            post("a", published_at=None, analyzed_at=at(2025, 6, 10), overall_sentiment_score=-1.0, impact_score=1.0),
            post("b", published_at=at(2025, 6, 11), overall_sentiment_score=0.5, overall_sentiment="POSITIVE"),
            post("c", published_at=at(2025, 6, 12), overall_sentiment_score=0.0, impact_score=4.5),
            post("d", published_at=at(2025, 7, 1)),
        ]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))

            chosen = PostFilter(project_id=PROJECT, to_date=at(2025, 7, 1))
            sentiments = {"NEGATIVE": 2, "POSITIVE": 1}
            assert await store.trends(chosen, "month") == [
                Trend(start=at(2025, 6, 1), posts=3, by_sentiment=sentiments, mean_score=-1 / 6, mean_impact=6.0)
            ]
            assert await store.trends(PostFilter(project_id="nobody's"), "day") == []

    @in_loop
    async def test_too_many_groups_are_refused(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(analytics_questions, "MOST_GROUPS", 2)
        rows = [post(str(n), published_at=NOW + n * DAY, platform=f"p{n}") for n in range(3)]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))

            few = PostFilter(project_id=PROJECT, to_date=NOW + 1.5 * DAY)
            assert len(await store.trends(few, "day")) == 2
            assert (await store.summary(few)).posts == 2
            for call in (store.summary, lambda chosen: store.trends(chosen, "day")):
                with pytest.raises(AnalyticsError, match="more than 2 groups to sum up; narrow the filter") as told:
                    await call(PostFilter(project_id=PROJECT))
                assert not told.value.transient

    @in_loop
    async def test_the_most_frequent_keywords_come_first(self, place: Place) -> None:
        price, car = {"keyword": "giá", "aspect": "PRICE"}, {"keyword": "xe", "aspect": "DESIGN"}
        rows = [
            post("a", keywords=[price, car, price], overall_sentiment_score=-1.0),
            post("b", keywords=[price, {"keyword": "giá", "aspect": "SERVICE"}], overall_sentiment_score=0.0),
            post("c", keywords=["bare", {"keyword": "no aspect"}, 5, None, [], {"aspect": "no keyword"}]),
            post("d", keywords=[]),
            post("e", project_id="other", keywords=[car]),
        ]
        async with place.opens() as store:
            await store.keep(batch(posts=rows))

            assert await store.keywords(PostFilter(project_id=PROJECT), 10) == [
                KeywordCount("giá", "PRICE", 2, -0.5),
                KeywordCount("bare", "", 1, -0.5),
                KeywordCount("giá", "SERVICE", 1, 0.0),
                KeywordCount("no aspect", "", 1, -0.5),
                KeywordCount("xe", "DESIGN", 1, -1.0),
            ]
            assert len(await store.keywords(PostFilter(project_id=PROJECT), 2)) == 2
            assert await store.keywords(PostFilter(project_id=PROJECT), -1) == []


class ErrorsContract:
    @pytest.mark.parametrize(
        "asked", [{"project_id": "p"}, {"job_id": "j"}, {"error_code": "TIMEOUT"}, {"error_category": "network"}]
    )
    @in_loop
    async def test_a_filter_chooses_errors(self, place: Place, asked: dict[str, Any]) -> None:
        async with place.opens() as store:
            await store.keep(batch(errors=[error(0, **asked), error(1)]))

            (only,), total = await store.errors(ErrorFilter(**asked), offset=0, most=9)
            assert (only.row.item_index, total) == (0, 1)
            assert sum((await store.error_counts(ErrorFilter(**asked))).values()) == 1

    @in_loop
    async def test_errors_are_listed_the_newest_first_by_pages_and_dates(self, place: Place) -> None:
        times = [3, 1, 2, 2]
        async with place.opens() as store:
            await store.keep(batch(errors=[error(n, created_at=NOW + time) for n, time in enumerate(times)]))

            async def listed(**fields: Any) -> list[int]:  # noqa: ANN401 - of any field
                chosen, page = ErrorFilter(**fields.pop("chosen", {})), {"offset": 0, "most": 9} | fields
                return [each.row.item_index for each in (await store.errors(chosen, **page))[0]]

            assert await listed() == [0, 3, 2, 1]
            assert [await listed(offset=offset, most=2) for offset in (0, 2, 4)] == [[0, 3], [2, 1], []]
            assert await listed(chosen={"from_date": NOW + 2, "to_date": NOW + 3}) == [3, 2]
            assert (await store.errors(ErrorFilter(), offset=0, most=1))[1] == 4

    @in_loop
    async def test_errors_without_a_project_are_found_as_those_of_none(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(errors=[error(0, project_id=None), error(1)]))

            found, total = await store.errors(ErrorFilter(project_id=""), offset=0, most=9)
            assert ([each.row.item_index for each in found], total) == ([0], 1)

    @in_loop
    async def test_errors_are_counted_by_code_the_most_frequent_first(self, place: Place) -> None:
        codes = ["TIMEOUT", "RATE_LIMITED", "TIMEOUT", "unheard of"]
        async with place.opens() as store:
            await store.keep(batch(errors=[error(n, error_code=code) for n, code in enumerate(codes)]))

            counts = await store.error_counts(ErrorFilter(project_id=PROJECT))
            assert [*counts.items()] == [("TIMEOUT", 2), ("RATE_LIMITED", 1), ("unheard of", 1)]


class ReadingContract(PostsContract, SumsContract, ErrorsContract):
    """All of it."""
