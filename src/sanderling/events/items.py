"""An item of a batch as some crawler wrote it, read as a post or as an error.

| what | the names it goes by |
|---|---|
| id | `meta.id`, `content.external_id`, `content.video_id` |
| counters | in `interaction`, `interactions` or `content`: `views` or `view_count`, and so on |
| text | `content.text`, `content.description` |
| author's followers, verified | `followers` or `follower_count`, `is_verified` or `verified` |
| error text | `meta.error_message`, `meta.fetch_error` |
| comment | `id` or `external_id`, `likes` or `like_count`, `author_name`, `author_display_name` or `author_username` |

Of several, the first counts that has something in it. Comments stay in the order in which they came.

An item is a post if its `fetch_status` is `success`, and an error otherwise. Of an error the code is the crawler's; it
is UNKNOWN_ERROR where a failed item has none, INVALID_RESPONSE where the item is not what an item should be (no object,
no id, no status that we know), and PARSE_ERROR where it is not even JSON. What a message says of all its items fills in
what an item does not say. Texts are kept whole. Names are cut; ids never are: an item with a longer one is an error.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from sanderling.events.fields import (
    LONGEST_ID,
    LONGEST_NAME,
    count,
    first,
    first_count,
    first_name,
    first_text,
    flag,
    id_or,
    link,
    members,
    platform,
    read_id,
    seconds,
    shown,
    text,
)
from sanderling.events.posts import Author, Comment, Context, CrawlError, Interaction, Post
from sanderling.events.salvage import Unreadable
from sanderling.events.taxonomy import classify
from sanderling.moments import moment
from sanderling.outcome import Code

LONGEST_CODE = 50
MOST_TAGS = 500
MOST_DETAILS = 64 * 1024  # bytes, as JSON
DEEPEST_DETAILS = 50  # whoever reads them later may have less patience with nesting than we

Object = dict[str, object]

VIEWS = ("views", "view_count")
LIKES = ("likes", "like_count")
COMMENTS = ("comments_count", "comment_count", "comments")
SHARES = ("shares", "share_count")
SAVES = ("saves", "save_count")

_NOBODY = Author()
_UNTOUCHED = Interaction()
# An escaped backslash is matched so that it is passed over.
_ZERO = re.compile(rb"\\\\|(\\u0000)")


class Oversized(msgspec.Struct, frozen=True):
    """An item that is too large to be a post, without what is too much, and why."""

    item: Object
    reason: str


def read_item(raw: object, context: Context, index: int, default_status: str = "") -> Post | CrawlError:
    """The post that an item is, or why it is none; `index` is its place in the batch. Never raises.

    `default_status` is what an item without a `fetch_status` has; none, unless the envelope says otherwise.
    """
    if not isinstance(raw, dict):
        return _oversized(raw, context, index) if isinstance(raw, Oversized) else _misfit(raw, context, index)
    meta, content = members(raw.get("meta")), members(raw.get("content"))
    status = meta.get("fetch_status")
    try:
        post_id = read_id(_own_id(meta, content))
    except ValueError as error:
        expected = f"expected an id of up to {LONGEST_ID} characters"
        return _error(raw, meta, _place_id(context, index), context, f"meta.id of item {index}: {error}, {expected}")
    match default_status if status is None else text(status).strip().lower():
        case "success":
            return _post(raw, meta, content, post_id, context)
        case "error":
            return _error(raw, meta, post_id, context)
    fault = f"meta.fetch_status of item {index}: found {shown(status)}, expected success or error"
    return _error(raw, meta, post_id, context, fault)


def _own_id(meta: Object, content: Object) -> object:
    own = meta.get("id")
    return first(content, ("external_id", "video_id")) if own is None or own == "" else own


def _oversized(raw: Oversized, context: Context, index: int) -> CrawlError:
    meta, content = members(raw.item.get("meta")), members(raw.item.get("content"))
    content_id = id_or(_own_id(meta, content), _place_id(context, index))
    return _error(raw.item, meta, content_id, context, raw.reason)


def _post(raw: Object, meta: Object, content: Object, post_id: str, context: Context) -> Post:
    network = platform(meta.get("platform")) or context.platform
    crawled_at = moment(meta.get("crawled_at"))
    return Post(
        id=post_id,
        platform=network,
        text=first_text(content, ("text", "description")),
        transcription=text(content.get("transcription")),
        duration=seconds(first(content, ("duration", "duration_seconds"))),
        hashtags=_hashtags(first(content, ("hashtags", "tags"))),
        permalink=link(meta.get("permalink")) or link(content.get("url")),
        published_at=moment(meta.get("published_at")),
        crawled_at=context.sent_at if crawled_at is None else crawled_at,
        keyword_source=first_name(meta, ("keyword_source",)) or context.keyword,
        pipeline_version=first_name(meta, ("pipeline_version",)) or (f"crawler_{network}_v3" if network else ""),
        language=first_name(meta, ("lang", "language")),
        author=_author(members(raw.get("author")), content),
        interaction=_interaction(raw, content),
        comments=_comments(raw.get("comments"), post_id),
    )


def _author(author: Object, content: Object) -> Author:
    author_id = id_or(first(author, ("id", "external_id")) or content.get("channel_id"), "")
    if not author and not author_id:
        return _NOBODY
    return Author(
        id=author_id,
        name=first_name(author, ("name", "display_name")),
        username=first_name(author, ("username",)),
        avatar_url=link(author.get("avatar_url")),
        followers=first_count(author, ("followers", "follower_count")) or 0,
        verified=flag(first(author, ("is_verified", "verified"))),
    )


def _interaction(raw: Object, content: Object) -> Interaction:
    named = (raw.get("interaction"), raw.get("interactions"), content)
    places = [place for place in named if place and isinstance(place, dict)]
    if not places:
        return _UNTOUCHED
    return Interaction(
        views=_first_counter(places, VIEWS),
        likes=_first_counter(places, LIKES),
        comments=_first_counter(places, COMMENTS),
        shares=_first_counter(places, SHARES),
        saves=_first_counter(places, SAVES),
    )


def _first_counter(places: list[Object], names: Sequence[str]) -> int:
    for place in places:
        found = first_count(place, names)
        if found is not None:
            return found
    return 0


def _hashtags(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        return ()
    tags = (text(tag).strip().lstrip("#")[:LONGEST_NAME] for tag in raw[:MOST_TAGS])
    return tuple(tag for tag in tags if tag)


def _comments(raw: object, post_id: str) -> tuple[Comment, ...]:
    if not isinstance(raw, list):
        return ()
    read = [_comment(each, post_id, place) for place, each in enumerate(raw) if isinstance(each, dict)]
    found = [comment for comment in read if comment]
    return tuple(found) if len({comment.id for comment in found}) == len(found) else tuple(_distinguish(found))


def _distinguish(comments: Sequence[Comment]) -> Iterator[Comment]:
    """Each comment once. One that has the id of another, and says something else, has its place behind that id."""
    known: dict[str, Comment] = {}
    for place, comment in enumerate(comments):
        known_one = known.setdefault(comment.id, comment)
        if known_one is comment:
            yield comment
        elif known_one != comment:
            yield msgspec.structs.replace(comment, id=f"{comment.id}~{place}")


def _comment(raw: Object, post_id: str, place: int) -> Comment | None:
    """A comment; one without an id is known by its place. None if there is neither text nor id."""
    comment_id = id_or(first(raw, ("id", "external_id")), "")
    said = text(raw.get("text"))
    if not said and not comment_id:
        return None
    return Comment(
        id=comment_id or f"{post_id}#{place}",
        text=said,
        author_name=first_name(raw, ("author_name", "author_display_name", "author_username")),
        likes=first_count(raw, LIKES) or 0,
        created_at=moment(raw.get("created_at")),
    )


def _place_id(context: Context, index: int) -> str:
    """An id for an item that has none: whenever the message comes again, the same."""
    batch = f"{context.job_id}\0{context.platform}\0{context.batch_index}"
    source = batch if context.job_id and context.batch_index is not None else context.event_id
    return f"item-{hashlib.sha256(source.encode('utf-8', 'replace')).hexdigest()[:24]}-{index}"


def _misfit(raw: object, context: Context, index: int) -> CrawlError:
    if isinstance(raw, Unreadable):
        code, message = Code.PARSE_ERROR, f"item {index}: {raw.reason}"
    else:
        code, message = Code.INVALID_RESPONSE, f"item {index}: found {shown(raw)}, expected an object"
    return CrawlError(
        content_id=_place_id(context, index),
        platform=context.platform,
        code=code.value,
        category=classify(code).category,
        message=message,
    )


def _error(raw: Object, meta: Object, content_id: str, context: Context, fault: str = "") -> CrawlError:
    """The error that an item is; `fault` says what is wrong with the item itself, if something is."""
    given = text(meta.get("error_code")).strip()[:LONGEST_CODE]
    code = given or (Code.INVALID_RESPONSE if fault else Code.UNKNOWN_ERROR).value
    told = first_text(meta, ("error_message", "fetch_error"))
    return CrawlError(
        content_id=content_id,
        platform=platform(meta.get("platform")) or context.platform,
        code=code,
        category=classify(code).category,
        message="; ".join(part for part in (fault, told) if part),
        details=_details(meta.get("error_details")),
        permalink=link(meta.get("permalink")) or link(members(raw.get("content")).get("url")),
    )


def _details(raw: object) -> Object:
    """Details that can be stored: an object, neither large nor deep, without zero bytes, which PostgreSQL refuses."""
    if not raw:
        return {}
    details: Object = raw if isinstance(raw, dict) else {"details": raw}
    if _is_deep(details):
        return {"left_out": f"nested more than {DEEPEST_DETAILS} deep"}
    written = msgspec.json.encode(details)
    if len(written) > MOST_DETAILS:
        return {"left_out": f"{len(written):,} bytes, expected at most {MOST_DETAILS:,}"}
    if rb"\u0000" in written:
        cleaned: Object = msgspec.json.decode(_ZERO.sub(_without_zero, written))
        return cleaned
    return details


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST_DETAILS):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _without_zero(escape: re.Match[bytes]) -> bytes:
    return b"" if escape[1] else escape[0]


def read_result(raw: object) -> tuple[list[object], tuple[str, ...]]:
    """The items of what a crawler says about a whole task, and what is odd about it. All else is one item."""
    if not isinstance(raw, dict) or "meta" in raw:
        return [raw], ()
    items = raw.get("payload")
    if items is None and "success" in raw:
        items = []
    if not isinstance(items, list):
        return [raw], ()
    notes = [*_result_notes(raw), *_stats_notes(members(raw.get("stats")), members(raw.get("limit_info")), len(items))]
    return items, tuple(notes)


def _result_notes(raw: Object) -> list[str]:
    failure = members(raw.get("error"))
    notes = []
    if failure:
        code = first_name(failure, ("code",)) or Code.UNKNOWN_ERROR.value
        notes.append(f"the task failed: {code}, {classify(code).category}: {first_text(failure, ('message',))[:200]}")
    if raw.get("success") is True and failure:
        notes.append("the task says success, and has an error")
    if raw.get("success") is False and not failure:
        notes.append("the task says it failed, and has no error")
    return notes


def _stats_notes(stats: Object, limits: Object, found: int) -> list[str]:
    """Where the numbers of a task contradict each other. What is not said contradicts nothing."""
    successful, total, asked = (
        count(value) for value in (stats.get("successful"), limits.get("total_found"), limits.get("requested_limit"))
    )
    notes = []
    if successful is not None and successful != found:
        notes.append(f"stats.successful is {successful}, found {found} items")
    rate = stats.get("completion_rate")
    if isinstance(rate, int | float) and successful is not None and total is not None:
        expected = successful / total if total else 0.0
        # Some round to two places. Compared and not subtracted, which a very long number does not take.
        if not expected - 0.0051 <= rate <= expected + 0.0051:
            notes.append(f"stats.completion_rate is {shown(rate)}, expected {successful} of {total}")
    limited = limits.get("platform_limited")
    if isinstance(limited, bool) and total is not None and asked is not None and limited != (total < asked):
        notes.append(f"limit_info.platform_limited is {limited}, expected found ({total}) < requested ({asked})")
    return notes
