"""The routes about what was found: posts, what they amount to, what somebody should look at, and what went wrong."""

from typing import Protocol

from msgspec.structs import replace

from sanderling.events.analysis.impact import Risk
from sanderling.stores.analytics import PostFilter, PostPage, PostSummary, Reading, Summing
from sanderling.web.events_envelope import Answer, Listed, Paged, answer, listed, paged
from sanderling.web.events_types import (
    AlertsQuery,
    AllPostsQuery,
    Chosen,
    ErrorsChosen,
    ErrorsQuery,
    KeywordsQuery,
    PostPath,
    PostsQuery,
    TrendsQuery,
    errors_of,
    offset_of,
    posts_of,
    scope_of,
)
from sanderling.web.events_views import (
    ALERTED,
    AlertCounts,
    Alerts,
    ErrorCounts,
    ErrorView,
    KeywordView,
    PostDetail,
    PostItem,
    TrendView,
    error_view,
    keyword_view,
    pagination_of,
    post_detail,
    post_item,
    trend_view,
)
from sanderling.web.parsing import Nothing
from sanderling.web.problems import problem
from sanderling.web.routes import Asked

CRISIS = "CRISIS"
# Posts that are read at once. They come with all their texts, of which a list needs little; and a store that is asked
# for too many bytes gives none.
PIECE = 1_000


class Rows(Reading, Summing, Protocol):
    """What there must be behind these routes: `stores.analytics.AnalyticsStore` is one."""


class PostRoutes:
    """They answer."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def posts(self, asked: Asked[Nothing, PostsQuery, Nothing]) -> Paged[PostItem]:
        """Posts of a project, page by page. Texts are cut after 300 characters."""
        query = asked.query
        offset = offset_of(query.page, query.page_size)
        found = await self._page(query, offset, query.page_size)
        pagination = pagination_of(query.page, query.page_size, found.total)
        return paged(asked, map(post_item, found.posts), pagination)

    async def all_posts(self, asked: Asked[Nothing, AllPostsQuery, Nothing]) -> Listed[PostItem]:
        """Posts of a project, without pages. Texts are cut after 300 characters."""
        query = asked.query
        items: dict[int, PostItem] = {}  # by number: what is new meanwhile moves others into the next piece
        for offset in range(0, query.limit, PIECE):
            most = min(PIECE, query.limit - offset)
            found = await self._page(query, offset, most)
            items |= {each.id: post_item(each) for each in found.posts}
            if len(found.posts) < most:
                break
        return listed(asked, items.values())

    async def _page(self, query: PostsQuery | AllPostsQuery, offset: int, most: int) -> PostPage:
        descending = query.order == "desc"
        return await self._rows.posts(
            posts_of(query), sort=query.sort_by, descending=descending, offset=offset, most=most
        )

    async def post(self, asked: Asked[PostPath, Nothing, Nothing]) -> Answer[PostDetail]:
        """One post, with all that is known of it and its comments."""
        found = await self._rows.post(asked.path.id)
        if found is None:
            raise problem(404, f"there is no post {asked.path.id}")
        return answer(asked, post_detail(*found))


class SumRoutes:
    """They answer."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def summary(self, asked: Asked[Nothing, Chosen, Nothing]) -> Answer[PostSummary]:
        """Posts of a project, summed up."""
        return answer(asked, await self._rows.summary(posts_of(asked.query)))

    async def trends(self, asked: Asked[Nothing, TrendsQuery, Nothing]) -> Listed[TrendView]:
        """Posts of a project by day, week or month, the first before the others.

        They are counted by their time of publication, or of analysis where that is unknown.
        """
        found = await self._rows.trends(posts_of(asked.query), asked.query.granularity)
        return listed(asked, map(trend_view, found))

    async def top_keywords(self, asked: Asked[Nothing, KeywordsQuery, Nothing]) -> Listed[KeywordView]:
        """What posts of a project are about, the most frequent first."""
        found = await self._rows.keywords(posts_of(asked.query), asked.query.limit)
        return listed(asked, map(keyword_view, found))

    async def alerts(self, asked: Asked[Nothing, AlertsQuery, Nothing]) -> Answer[Alerts]:
        """What somebody should look at: critical posts, viral ones, and those about a crisis, the newest first.

        Texts are cut after 200 characters.
        """
        scope, limit = scope_of(asked.query), asked.query.limit
        critical = await self._newest(replace(scope, risk_level=Risk.CRITICAL.value), limit)
        viral = await self._newest(replace(scope, is_viral=True), limit)
        crisis = await self._newest(replace(scope, intent=CRISIS), limit)
        lists = {"critical_posts": critical, "viral_posts": viral, "crisis_intents": crisis}
        shown = {name: tuple(post_item(each, ALERTED) for each in found.posts) for name, found in lists.items()}
        totals = AlertCounts(**{name: found.total for name, found in lists.items()})
        return answer(asked, Alerts(**shown, totals=totals))

    async def _newest(self, chosen: PostFilter, most: int) -> PostPage:
        return await self._rows.posts(chosen, sort="analyzed_at", descending=True, offset=0, most=most)


class ErrorRoutes:
    """They answer."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def errors(self, asked: Asked[Nothing, ErrorsQuery, Nothing]) -> Paged[ErrorView]:
        """Items that were not fetched or cannot be read, the newest first, page by page."""
        query = asked.query
        offset = offset_of(query.page, query.page_size)
        found, total = await self._rows.errors(errors_of(query), offset=offset, most=query.page_size)
        return paged(asked, map(error_view, found), pagination_of(query.page, query.page_size, total))

    async def error_counts(self, asked: Asked[Nothing, ErrorsChosen, Nothing]) -> Answer[ErrorCounts]:
        """How many of them there are, by code."""
        return answer(asked, ErrorCounts(by_code=await self._rows.error_counts(errors_of(asked.query))))
