"""Examples for the description of the routes of `events`."""

from datetime import UTC, date, datetime

from sanderling.events.modes import Modes
from sanderling.stores.analytics import PostSummary
from sanderling.web.events_envelope import Answer, Listed, Meta, Paged
from sanderling.web.events_types import ModesGiven, Replay
from sanderling.web.events_views import (
    AlertCounts,
    Alerts,
    Alive,
    CommentView,
    DeadPage,
    DeadView,
    ErrorCounts,
    ErrorView,
    KeywordView,
    Parts,
    PostDetail,
    PostItem,
    Replayed,
    TrendView,
    pagination_of,
)

_WHEN = datetime(2025, 12, 6, 10, 15, 30, tzinfo=UTC)
_META = Meta(timestamp=_WHEN, request_id="6f1c0e7bd1b04cf39a5c3b0a6a2f9e11")
_POST = PostItem(
    id=4711,
    post_id="7441234567890123456",
    project_id="proj_xyz",
    platform="tiktok",
    permalink="https://example.org/video/7441234567890123456",
    published_at=datetime(2025, 12, 5, 18, 2, tzinfo=UTC),
    analyzed_at=_WHEN,
    brand_name="Brand",
    keyword="brand model",
    job_id="proj_xyz-brand-0",
    content_text="The price is too high.",
    author_id="u1",
    author_name="Somebody",
    author_username="somebody",
    author_is_verified=False,
    follower_count=51_000,
    overall_sentiment="NEGATIVE",
    overall_sentiment_score=-0.6,
    overall_confidence=0.8,
    primary_intent="CRISIS",
    intent_confidence=0.6,
    impact_score=72.5,
    risk_level="CRITICAL",
    is_viral=True,
    is_kol=True,
    view_count=1_000_000,
    like_count=9_000,
    comment_count=800,
    share_count=700,
    save_count=60,
)
_COMMENT = CommentView(
    comment_id="c1",
    text="I agree.",
    author_name="Anybody",
    likes=3,
    sentiment="NEUTRAL",
    sentiment_score=0.0,
    commented_at=_WHEN,
)

POSTS = Paged(data=(_POST,), pagination=pagination_of(1, 20, 1), meta=_META)
POST = Answer(
    data=PostDetail(
        **{name: getattr(_POST, name) for name in PostItem.__struct_fields__},
        content_transcription="",
        media_duration=21.5,
        hashtags=("brand",),
        author_avatar_url="",
        aspects_breakdown={"PRICE": {"label": "NEGATIVE", "score": -0.6, "mentions": 1}},
        keywords=({"keyword": "price", "aspect": "PRICE"},),
        sentiment_probabilities={"NEGATIVE": 0.8, "NEUTRAL": 0.1, "POSITIVE": 0.1},
        impact_breakdown={"engagement": 24_280.0, "reach": 4.7},
        processing_time_ms=1,
        model_name="lexicon",
        model_version="1",
        skipped="",
        event_id="evt_abc123",
        batch_index=1,
        task_type="research_and_crawl",
        keyword_source="brand model",
        crawled_at=_WHEN,
        pipeline_version="crawler_tiktok_v3",
        fetch_status="success",
        comments=(_COMMENT,),
    ),
    meta=_META,
)
SUMMARY = Answer(
    data=PostSummary(
        posts=120,
        by_sentiment={"NEGATIVE": 20, "NEUTRAL": 60, "POSITIVE": 40},
        by_risk={"LOW": 119, "CRITICAL": 1},
        by_intent={"DISCUSSION": 118, "CRISIS": 2},
        by_platform={"tiktok": 100, "youtube": 20},
        mean_score=0.125,
        mean_impact=4.5,
        viral=1,
        kol=3,
        views=2_500_000,
        likes=40_000,
        comments=3_000,
        shares=1_200,
        saves=700,
    ),
    meta=_META,
)
TRENDS = Listed(
    data=(
        TrendView(
            period=date(2025, 12, 5),
            posts=7,
            by_sentiment={"NEUTRAL": 5, "POSITIVE": 2},
            mean_score=0.2,
            mean_impact=3.5,
        ),
    ),
    meta=_META,
)
KEYWORDS = Listed(data=(KeywordView(keyword="price", aspect="PRICE", posts=31, mean_score=-0.4),), meta=_META)
ALERTS = Answer(
    data=Alerts(
        critical_posts=(_POST,),
        viral_posts=(),
        crisis_intents=(),
        totals=AlertCounts(critical_posts=1, viral_posts=0, crisis_intents=0),
    ),
    meta=_META,
)
ERRORS = Paged(
    data=(
        ErrorView(
            id=12,
            event_id="evt_abc123",
            item_index=3,
            content_id="7441234567890123457",
            project_id="proj_xyz",
            job_id="proj_xyz-brand-0",
            platform="tiktok",
            error_code="RATE_LIMITED",
            error_category="rate_limiting",
            error_message="429 Too Many Requests",
            error_details={"status": 429},
            permalink="https://example.org/video/7441234567890123457",
            created_at=_WHEN,
        ),
    ),
    pagination=pagination_of(1, 20, 1),
    meta=_META,
)
ERROR_COUNTS = Answer(data=ErrorCounts(by_code={"RATE_LIMITED": 31, "CONTENT_REMOVED": 2}), meta=_META)
ALIVE = Answer(data=Alive(), meta=_META)
PARTS = Answer(
    data=Parts(
        status="degraded", parts={"database": "ok", "objects": "ok", "queue": "localhost:5672: connection refused"}
    ),
    meta=_META,
)
MODES = Answer(data=Modes(new=True, legacy=True, inline=False, canary=0.1), meta=_META)
MODES_GIVEN = ModesGiven(new=True, legacy=True, inline=False, canary=0.1)
DEAD = Answer(
    data=DeadPage(
        letters=(
            DeadView(
                key="evt_abc123",
                why="payload is a list, expected an object",
                tries=5,
                at=_WHEN.timestamp(),
                size=41,
                body='{"event_id": "evt_abc123", "payload": []}',
            ),
        ),
        next="evt_abc123",
    ),
    meta=_META,
)
REPLAY = Replay(keys=("evt_abc123",))
REPLAYED = Answer(data=Replayed(replayed=1), meta=_META)
