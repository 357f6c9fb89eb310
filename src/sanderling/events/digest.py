"""A batch as it came becomes a batch of rows, without any I/O: so it can be done in any thread."""

from collections.abc import Sequence
from typing import NamedTuple

from sanderling.clock import Clock
from sanderling.events.analysis.analyse import Analyser, Analysis
from sanderling.events.envelopes import Envelope
from sanderling.events.items import read_item
from sanderling.events.posts import Context, CrawlError, Post
from sanderling.events.rows import (
    EVENTS_EXCHANGE,
    Numbered,
    Times,
    comment_rows,
    error_rows,
    post_rows,
    result_message,
    retry_messages,
)
from sanderling.outcome import Category, Code
from sanderling.stores.analytics import AnalyticsBatch

# What a mistake of ours can raise on a text that nobody thought of. It is the item's error then, with its message: it
# must not take 49 others along, or come back for ever.
BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Arrival(NamedTuple):
    """A message as it came, when that was, and the exchange that those hear who sent it."""

    at: float  # Unix seconds
    message: bytes = b""
    exchange: str = EVENTS_EXCHANGE
    last: bool = False  # whether it is not tried again


class Sorted(NamedTuple):
    """The items of a batch: posts, and the others with their places."""

    posts: list[Post]
    errors: list[Numbered]


class Digested(NamedTuple):
    """What is to be written, and what was seen on the way."""

    batch: AnalyticsBatch
    posts: list[Post]
    analyses: list[Analysis]
    errors: list[Numbered]


def sort_items(items: Sequence[object], context: Context, default_status: str) -> Sorted:
    """Read each item by itself: one that cannot be read is an error, and the others are none the worse."""
    posts: list[Post] = []
    errors: list[Numbered] = []
    for index, item in enumerate(items):
        read = read_item(item, context, index, default_status)
        if isinstance(read, Post):
            posts.append(read)
        else:
            errors.append(Numbered(index, read))
    return Sorted(posts, errors)


def analyse(found: Sorted, analyser: Analyser) -> tuple[list[Post], list[Analysis], list[Numbered]]:
    """Analyse the posts together; if that fails, one by one, and one that fails alone is an error."""
    try:
        return found.posts, analyser.analyse_all(found.posts), found.errors
    except BUGS:
        return _one_by_one(found, analyser)


def _one_by_one(found: Sorted, analyser: Analyser) -> tuple[list[Post], list[Analysis], list[Numbered]]:
    posts: list[Post] = []
    analyses: list[Analysis] = []
    errors = list(found.errors)
    taken = {index for index, _ in found.errors}
    places = (place for place in range(len(found.posts) + len(taken)) if place not in taken)
    for place, post in zip(places, found.posts, strict=True):
        try:
            analyses.append(analyser.analyse(post))
        except BUGS as error:
            errors.append(Numbered(place, _broken(post, error)))
        else:
            posts.append(post)
    return posts, analyses, errors


def _broken(post: Post, error: Exception) -> CrawlError:
    return CrawlError(
        content_id=post.id,
        platform=post.platform,
        code=Code.INTERNAL_ERROR.value,
        category=Category.GENERIC,
        message=f"the analysis failed: {type(error).__name__}: {error}"[:500],
        permalink=post.permalink,
    )


def digest(envelope: Envelope, items: Sequence[object], analyser: Analyser, arrival: Arrival, clock: Clock) -> Digested:
    """The rows of a batch. The clock says when, and how long it took."""
    context, began, wall = envelope.context, clock.now(), clock.wall()
    posts, analyses, errors = analyse(sort_items(items, context, envelope.default_status), analyser)
    times = Times(arrival.at, wall, round((clock.now() - began) * 1000 / max(1, len(items))))
    result = result_message(context, len(posts), len(errors), wall)
    told = retry_messages(errors, context, wall, arrival.exchange)
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
        outbox=(*told, *((result,) if result else ())),
        message=arrival.message,
    )
    return Digested(batch, posts, analyses, errors)
