"""The API: what it gives, whom it lets in, and that each query finds its rows by an index."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from events.test_store import batch
from events.test_work import item
from msgspec import UNSET

from sanderling.clock import FakeClock
from sanderling.events.api import AlertsQuery, ErrorsQuery, PeriodQuery, PostPath, PostsApi, PostsQuery, TrendsQuery
from sanderling.events.store import SqliteEvents
from sanderling.formats.loose import moment
from sanderling.serving import Needs, Problem

P = "proj_xyz"


class Explained(SqliteEvents):
    """Notes the plan of each query."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.plans: list[str] = []

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        if sql.startswith("SELECT") and "processed_events" not in sql:
            rows = await super().read(f"EXPLAIN QUERY PLAN {sql}", *values)
            self.plans.append("; ".join(row[3] for row in rows))
        return await super().read(sql, *values)


async def filled(folder: Path) -> tuple[PostsApi, Explained]:
    store = Explained(folder / "events.db")
    await store.open()
    for day in range(1, 29):
        items = [
            item(f"{day:02}-{each}", {"text": ("great " if each % 2 else "terrible ") * 100},
                 published_at=f"2025-11-{day:02}T0{each}:00:00Z", platform="tiktok" if each else "youtube")
            for each in range(4)
        ]  # fmt: skip
        items[0]["interaction"], items[0]["author"] = {"shares": 10**6}, {"followers": 90_000}
        items.append(item(f"{day:02}-x", fetch_status="error", error_code="TIMEOUT"))
        await store.keep("m", batch(day, *items), 1.0)
    clock = FakeClock(wall=moment("2025-11-29T00:00:00Z") or 0.0)
    return PostsApi(store, clock, {}, postgres=False), store


async def test_posts_come_in_pages_and_by_filters(tmp_path: Path) -> None:
    api, store = await filled(tmp_path)

    seen, after = list[str](), ""
    while True:
        page = await api.posts(
            PostsQuery(project_id=P, sort_by="published_at", page_size=17, fetch_status="success",
                       after=after or UNSET)
        )  # fmt: skip
        seen += [each["id"] for each in page.items]
        if not (after := page.next):
            break
    negative = await api.posts(
        PostsQuery(project_id=P, sentiment="NEGATIVE", from_date="2025-11-05", to_date="2025-11-06")
    )
    other = await api.posts(PostsQuery(project_id="other"))

    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 112
    assert {each["id"] for each in negative.items} == {"05-0", "05-2"}
    assert len(negative.items[0]["content_text"]) == 300
    assert other.items == []
    await store.close()


async def test_a_post_a_summary_trends_alerts_and_errors(tmp_path: Path) -> None:
    api, store = await filled(tmp_path)

    one = await api.post(PostPath(id="03-0"))
    total = await api.summary(PeriodQuery(project_id=P))
    days = await api.trends(TrendsQuery(project_id=P, from_date="2025-11-03", to_date="2025-11-05"))
    weeks = await api.trends(TrendsQuery(project_id=P, granularity="week"))
    months = await api.trends(TrendsQuery(project_id=P, granularity="month"))
    alerts = await api.alerts(AlertsQuery(project_id=P, limit=5))
    errors = await api.errors(ErrorsQuery(error_code="TIMEOUT", page_size=5))
    more = await api.errors(ErrorsQuery(error_code="TIMEOUT", page_size=5, after=int(errors.next)))

    assert one.items[0]["impact_breakdown"]
    assert (total.posts, total.by_platform) == (112, {"tiktok": 84, "youtube": 28})
    assert total.by_sentiment == {"NEGATIVE": 56, "POSITIVE": 56}
    assert [each.posts for each in days] == [4, 4]
    assert [each.posts for each in weeks] == [8, 28, 28, 28, 20]
    assert [(each.posts, each.end - each.start) for each in months] == [(112, 30 * 86_400)]
    assert len(alerts.critical_posts) == len(alerts.viral_posts) == 5
    assert [len(each["content_text"]) for each in alerts.viral_posts] == [200] * 5
    assert len(errors.items) == len(more.items) == 5
    assert errors.items[-1]["id"] > more.items[0]["id"]
    assert msgspec.json.encode([one, total, alerts, errors])
    await store.close()


async def test_each_query_finds_its_rows_by_an_index(tmp_path: Path) -> None:
    api, store = await filled(tmp_path)
    store.plans.clear()
    for sort in ("analyzed_at", "published_at", "impact_score"):
        await api.posts(PostsQuery(project_id=P, sort_by=sort))
        await api.posts(PostsQuery(project_id=P, sort_by=sort, after="1~x", platform="tiktok"))
    await api.posts(PostsQuery(project_id=P, risk_level="HIGH", sentiment="NEGATIVE"))
    assert "idx_post_analytics_risk" in store.plans[-1]
    await api.post(PostPath(id="03-0"))
    await api.summary(PeriodQuery(project_id=P))
    await api.trends(TrendsQuery(project_id=P))
    await api.alerts(AlertsQuery(project_id=P))
    queries: list[Any] = [{}, {"project_id": P}, {"job_id": "x"}, {"error_code": "TIMEOUT"}]
    for which in queries:
        await api.errors(ErrorsQuery(**which))

    assert len(store.plans) == 17
    for plan in store.plans:
        assert "SEARCH" in plan
        assert not plan.startswith("SCAN")
    assert sum("USING COVERING INDEX idx_post_analytics_summary" in plan for plan in store.plans) == 2
    sorted_by_hand = [plan for plan in store.plans if "USE TEMP B-TREE FOR ORDER BY" in plan]
    assert sorted_by_hand == []
    await store.close()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (PostsQuery(project_id=P, from_date="yesterday"), "from_date is 'yesterday'"),
        (PostsQuery(project_id=P, after="x"), "after is 'x'"),
        (PeriodQuery(project_id=P, from_date="2020-01-01"), "expected up to 400"),
        (PeriodQuery(project_id=P, from_date="2025-12-01", to_date="2025-11-01"), "-30 days"),
        (PostPath(id="nosuch"), "no post 'nosuch'"),
    ],
)
async def test_what_is_wrong_is_said(query: Any, said: str, tmp_path: Path) -> None:
    api, store = await filled(tmp_path)
    asks: dict[Any, Any] = {PostsQuery: api.posts, PeriodQuery: api.summary, PostPath: api.post}
    with pytest.raises(Problem, match=said):
        await asks[type(query)](query)
    await store.close()


def test_who_may_read_is_said_by_each_route(tmp_path: Path) -> None:
    routes = PostsApi(SqliteEvents(tmp_path / "x"), FakeClock(), {}, postgres=False).routes()
    assert {each.path: each.needs for each in routes} == {
        "/posts": Needs.READ, "/posts/{id}": Needs.READ, "/summary": Needs.READ, "/trends": Needs.READ,
        "/alerts": Needs.READ, "/errors": Needs.READ, "/health": Needs.NOTHING,
    }  # fmt: skip


async def test_health_says_what_is_away(tmp_path: Path) -> None:
    api = PostsApi(SqliteEvents(tmp_path / "x"), FakeClock(), {"database": "no answer"}, postgres=False)
    assert (await api.health()).troubles == ["database: no answer"]
