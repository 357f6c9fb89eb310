"""A batch as it came becomes a batch of rows, without any I/O: so it can be done in any thread.

There is a row for each post, for each comment and for each item that is no post, and what others must be told.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from sanderling.clock import Clock
from sanderling.events.analysis.analyse import Analyser, Analysis
from sanderling.events.analysis.sentiment import Label
from sanderling.events.envelopes import Envelope
from sanderling.events.items import read_item
from sanderling.events.posts import Context, CrawlError, Post
from sanderling.events.taxonomy import classify
from sanderling.outcome import Category, Code, Retry
from sanderling.stores.analytics import AnalyticsBatch, CommentRow, ErrorRow, OutboxMessage, PostRow

EVENTS_EXCHANGE, RETRY_KEY = "smap.events", "crawl.retry"
MOST_RETRIES = 500  # items of one message: a megabyte at the most, and no queue takes much more
RESULTS_EXCHANGE, RESULT_KEY = "results.inbound", "analyze.result"

# A label as a plain text. There are a dozen to a post, and to ask each for its value takes five times as long.
WRITTEN = {label: label.value for label in Label}
NEUTRAL = WRITTEN[Label.NEUTRAL]

# What a mistake of ours can raise on a text that nobody thought of. It is the item's error then, with its message: it
# must not take 49 others along, or come back for ever.
BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Arrival(NamedTuple):
    """A message as it came, when that was, and the exchange that those hear who sent it."""

    at: float  # Unix seconds
    message: bytes = b""
    exchange: str = EVENTS_EXCHANGE
    last: bool = False  # whether it is not tried again


class Numbered(NamedTuple):
    """An item that is no post, and its place in the batch."""

    place: int
    error: CrawlError


class SortedItems(NamedTuple):
    """The items of a batch: posts, and the others with their places."""

    posts: list[Post]
    errors: list[Numbered]


class ProcessedBatch(NamedTuple):
    """What is to be written, and what was seen on the way."""

    batch: AnalyticsBatch
    posts: list[Post]
    analyses: list[Analysis]
    errors: list[Numbered]


class Times(NamedTuple):
    """When it was analysed, in Unix seconds; and how many milliseconds one item took."""

    analyzed: float
    milliseconds: int


def process_batch(
    envelope: Envelope, items: Sequence[object], analyser: Analyser, arrival: Arrival, clock: Clock
) -> ProcessedBatch:
    """The rows of a batch. The clock says when, and how long it took."""
    context, began, wall = envelope.context, clock.now(), clock.wall()
    posts, analyses, errors = analyse_items(sort_items(items, context, envelope.default_status), analyser)
    times = Times(wall, round((clock.now() - began) * 1000 / max(1, len(items))))
    result = result_message(context, len(posts), len(errors), wall)
    batch = AnalyticsBatch(
        event_id=context.event_id,
        job_id=context.job_id,
        project_id=context.project_id,
        platform=context.platform,
        mode=envelope.mode,
        received_at=arrival.at,
        processed_at=wall,
        posts=post_rows(posts, analyses, context, times),
        comments=comment_rows(posts, analyses),
        errors=error_rows(errors, context, wall),
        outbox=(*retry_messages(errors, context, wall, arrival.exchange), *((result,) if result else ())),
        message=arrival.message,
    )
    return ProcessedBatch(batch, posts, analyses, errors)


def sort_items(items: Sequence[object], context: Context, default_status: str) -> SortedItems:
    """Read each item by itself: one that cannot be read is an error, and the others are none the worse."""
    posts: list[Post] = []
    errors: list[Numbered] = []
    for index, item in enumerate(items):
        read = read_item(item, context, index, default_status)
        if isinstance(read, Post):
            posts.append(read)
        else:
            errors.append(Numbered(index, read))
    return SortedItems(posts, errors)


def analyse_items(found: SortedItems, analyser: Analyser) -> tuple[list[Post], list[Analysis], list[Numbered]]:
    """Analyse the posts together; if that fails, one by one, and one that fails alone is an error."""
    try:
        return found.posts, analyser.analyse_all(found.posts), found.errors
    except BUGS:
        return _analyse_one_by_one(found, analyser)


def _analyse_one_by_one(found: SortedItems, analyser: Analyser) -> tuple[list[Post], list[Analysis], list[Numbered]]:
    posts: list[Post] = []
    analyses: list[Analysis] = []
    errors = list(found.errors)
    taken = {index for index, _ in found.errors}
    places = (place for place in range(len(found.posts) + len(taken)) if place not in taken)
    for place, post in zip(places, found.posts, strict=True):
        try:
            analyses.append(analyser.analyse(post))
        except BUGS as error:
            failure = CrawlError(
                content_id=post.id,
                platform=post.platform,
                code=Code.INTERNAL_ERROR.value,
                category=Category.GENERIC,
                message=f"the analysis failed: {type(error).__name__}: {error}"[:500],
                permalink=post.permalink,
            )
            errors.append(Numbered(place, failure))
        else:
            posts.append(post)
    return posts, analyses, errors


def post_rows(posts: Sequence[Post], analyses: Sequence[Analysis], context: Context, times: Times) -> list[PostRow]:
    """A row for each post."""
    return [_post_row(post, analysis, context, times) for post, analysis in zip(posts, analyses, strict=True)]


def _post_row(post: Post, analysis: Analysis, context: Context, times: Times) -> PostRow:
    author, seen = post.author, post.interaction
    return PostRow(
        post_id=post.id,
        project_id=context.project_id,
        platform=post.platform,
        published_at=post.published_at,
        analyzed_at=times.analyzed,
        overall_sentiment=analysis.sentiment.value,
        overall_sentiment_score=analysis.score,
        overall_confidence=analysis.confidence,
        primary_intent=analysis.intent,
        intent_confidence=analysis.intent_confidence,
        impact_score=analysis.impact_score,
        risk_level=analysis.risk.value,
        is_viral=analysis.viral,
        is_kol=analysis.kol,
        aspects_breakdown=msgspec.to_builtins(analysis.aspects),
        keywords=msgspec.to_builtins(analysis.keywords),
        sentiment_probabilities=analysis.probabilities,
        impact_breakdown=analysis.impact,
        view_count=seen.views,
        like_count=seen.likes,
        comment_count=seen.comments,
        share_count=seen.shares,
        save_count=seen.saves,
        follower_count=author.followers,
        processing_time_ms=times.milliseconds,
        model_name=analysis.model,
        model_version=analysis.model_version,
        skipped=analysis.skipped,
        event_id=context.event_id,
        job_id=context.job_id,
        batch_index=context.batch_index,
        task_type=context.task_type,
        keyword_source=post.keyword_source,
        crawled_at=post.crawled_at,
        pipeline_version=post.pipeline_version,
        brand_name=context.brand_name,
        keyword=context.keyword,
        content_text=post.text,
        content_transcription=post.transcription,
        media_duration=post.duration,
        hashtags=post.hashtags,
        permalink=post.permalink,
        author_id=author.id,
        author_name=author.name,
        author_username=author.username,
        author_avatar_url=author.avatar_url,
        author_is_verified=author.verified,
    )


def comment_rows(posts: Sequence[Post], analyses: Sequence[Analysis]) -> list[CommentRow]:
    """A row for each comment; those that nobody judged are neutral."""
    return [
        row
        for place, (post, analysis) in enumerate(zip(posts, analyses, strict=True))
        for row in _comments(place, post, analysis)
    ]


def _comments(place: int, post: Post, analysis: Analysis) -> Iterator[CommentRow]:
    judged = {each.place: each for each in analysis.comments}
    for number, comment in enumerate(post.comments):
        verdict = judged.get(number)
        yield CommentRow(
            post=place,
            comment_id=comment.id,
            text=comment.text,
            author_name=comment.author_name,
            likes=comment.likes,
            sentiment=NEUTRAL if verdict is None else WRITTEN[verdict.label],
            sentiment_score=0.0 if verdict is None else verdict.score,
            commented_at=comment.created_at,
        )


def error_rows(errors: Sequence[Numbered], context: Context, wall: float) -> list[ErrorRow]:
    """A row for each item that is no post."""
    return [
        ErrorRow(
            event_id=context.event_id,
            item_index=place,
            content_id=error.content_id,
            project_id=context.project_id,
            job_id=context.job_id,
            platform=error.platform,
            error_code=error.code,
            error_category=error.category.value,
            error_message=error.message,
            error_details=error.details,
            permalink=error.permalink,
            created_at=wall,
        )
        for place, error in errors
    ]


def retry_messages(
    errors: Sequence[Numbered], context: Context, wall: float, exchange: str = EVENTS_EXCHANGE
) -> Iterator[OutboxMessage]:
    """What the crawler is asked to fetch once more, in as many messages as it takes."""
    again = [
        {"content_id": error.content_id, "permalink": error.permalink, "error_code": error.code}
        for _, error in errors
        if classify(error.code).retry is Retry.YES
    ]
    for number, first in enumerate(range(0, len(again), MOST_RETRIES)):
        body = {
            "event_id": f"retry-{context.event_id}{f'-{number + 1}' if number else ''}",
            "event_type": RETRY_KEY,
            "timestamp": wall,
            "payload": {
                "job_id": context.job_id,
                "project_id": context.project_id,
                "platform": context.platform,
                "source_event_id": context.event_id,
                "items": again[first : first + MOST_RETRIES],
            },
        }
        yield OutboxMessage(exchange=exchange, routing_key=RETRY_KEY, body=msgspec.json.encode(body), created_at=wall)


def result_message(context: Context, succeeded: int, failed: int, wall: float) -> OutboxMessage | None:
    """What whoever ordered the crawl is told; None for a dry run, which nobody ordered."""
    if not context.project_id:
        return None
    body = {
        "project_id": context.project_id,
        "job_id": context.job_id,
        "task_type": "analyze_result",
        "batch_size": succeeded + failed,
        "success_count": succeeded,
        "error_count": failed,
    }
    return OutboxMessage(
        exchange=RESULTS_EXCHANGE, routing_key=RESULT_KEY, body=msgspec.json.encode(body), created_at=wall
    )
