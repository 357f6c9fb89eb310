"""An item of a batch, in whatever form its crawler wrote it, read as a post or as an error.

| what | the names it goes by |
|---|---|
| id | `meta.id`, `content.external_id`, `content.video_id` |
| counters | in `interaction`, `interactions` or `content`: `views` or `view_count`, and so on |
| text | `content.text`, `content.description` |
| author's followers, verified | `followers` or `follower_count`, `is_verified` or `verified` |
| comments | likes in `likes` or `like_count`, the author in `author_name`, `author_display_name`, `author_username` |
| why it failed | `fetch_error` or `error_message` |

Unknown and missing `fetch_status` are errors, as the seed says; items of the legacy form are older than the field.
"""

import hashlib
from typing import Any

import msgspec

from sanderling.events.batches import items_of, unpack
from sanderling.formats import loose
from sanderling.formats.envelope import Envelope
from sanderling.formats.loose import Members, first, members, shown
from sanderling.outcome import Category, Code, Retry, code_named

MOST_DETAILS = 64 << 10  # bytes, as JSON
DEEPEST_DETAILS = 50  # whoever reads them later may have less patience with nesting than we
LONGEST_CODE = 50
MOST_TAGS = 500
# Codes of whole tasks, and those of items to which they come closest.
_ALIASES = {
    "BLOCKED": Code.ACCESS_DENIED,
    "INVALID_KEYWORD": Code.INVALID_URL,
    "SEARCH_FAILED": Code.UNKNOWN_ERROR,
    "CRAWL_PARTIAL": Code.UNKNOWN_ERROR,
}


class Comment(msgspec.Struct):
    """One comment."""

    id: str
    text: str
    author_name: str
    likes: int
    created_at: float | None


class Post(msgspec.Struct, kw_only=True):
    """What was said of a post. `failed`: it could not be fetched, and all but its meta is empty."""

    id: str
    platform: str
    failed: bool = False
    text: str = ""
    transcription: str = ""
    hashtags: list[str] = []
    permalink: str = ""
    published_at: float | None = None
    crawled_at: float | None = None
    job_id: str = ""
    project_id: str | None = None
    batch_index: int | None = None
    task_type: str = ""
    keyword_source: str = ""
    brand_name: str = ""
    pipeline_version: str = ""
    author_name: str = ""
    followers: int = 0
    verified: bool = False
    views: int = 0
    likes: int = 0
    comment_count: int = 0
    shares: int = 0
    saves: int = 0
    comments: list[Comment] = []
    fetch_error: str | None = None
    error_code: str | None = None
    error_details: Any = None


class ItemError(msgspec.Struct):
    """Why an item is no post."""

    content_id: str
    platform: str
    code: str
    category: str
    retryable: bool
    message: str
    details: Any
    permalink: str


class ReadBatch(msgspec.Struct):
    """The items of a batch, each in one of these; one that failed and has an id is in both."""

    posts: list[Post]
    errors: list[ItemError]


def read_batch(body: bytes, *, job_id: str = "", platform: str = "") -> ReadBatch:
    """The posts and errors of a batch as crawlers write it: JSON, packed or not. Raises ValueError if it is none.

    It reads here, in your process: what strangers sent belongs into `sanderling events consume`, which reads it apart.
    """
    envelope = Envelope(mode="new", event_id="", identity="", job_id=job_id, platform=platform)
    items, _ = items_of(unpack(body))
    found = [read_item(raw, envelope, index) for index, raw in enumerate(items)]
    return ReadBatch([post for post, _ in found if post], [error for _, error in found if error])


def classify(code: str) -> tuple[Category, bool]:
    """Category and whether to try again, of a code however it is spelled; generic if nobody knows it."""
    plain = code.strip().upper().replace("-", "_").replace(" ", "_")
    if plain == "RATE_LIMITED_PERMANENT":  # a limit that time does not lift
        return Category.RATE_LIMITING, False
    known = _ALIASES.get(plain) or code_named(plain)
    return known.category or Category.GENERIC, known.category is not None and known.retry is Retry.YES


def read_item(raw: object, envelope: Envelope, index: int) -> tuple[Post | None, ItemError | None]:
    """The post that an item is; with an error also why it could not be fetched, or why it is none. Never raises."""
    if not isinstance(raw, dict):
        fault = f"item {index} is {shown(raw)}, expected an object"
        return None, _error({}, {}, place_id(envelope, index), envelope, fault)
    meta, content = members(raw.get("meta")), members(raw.get("content"))
    try:
        post_id = loose.read_id(first((meta,), "id") or first((content,), "external_id", "video_id"))
    except ValueError as error:
        fault = f"meta.id of item {index}: {error}, expected an id of up to {loose.LONGEST_ID} characters"
        return None, _error(meta, content, place_id(envelope, index), envelope, fault)
    status = meta.get("fetch_status")
    if status is None and envelope.mode != "new":
        status = "success"
    said = loose.text(status).strip().lower()
    if said == "success":
        return _post(raw, meta, content, post_id, envelope), None
    fault = "" if said == "error" else f"meta.fetch_status of item {index}: found {shown(status)}"
    failure = _error(meta, content, post_id, envelope, fault and f"{fault}, expected success or error")
    post = _about(meta, content, post_id, envelope)
    post.failed, post.fetch_error = True, failure.message
    post.error_code, post.error_details = failure.code, failure.details
    return post, failure


def _about(meta: Members, content: Members, post_id: str, envelope: Envelope) -> Post:
    """What an item says besides its content. Where it does not, the message does."""
    network = loose.platform(meta.get("platform")) or envelope.platform
    crawled_at = loose.moment(meta.get("crawled_at"))
    index = loose.count(meta.get("batch_index"))
    job = first((meta,), "job_id")
    return Post(
        id=post_id,
        platform=network,
        permalink=loose.link(meta.get("permalink")) or loose.link(content.get("url")),
        published_at=loose.moment(meta.get("published_at")),
        crawled_at=envelope.sent_at if crawled_at is None else crawled_at,
        job_id=envelope.job_id or loose.name(job, 256),
        batch_index=index if envelope.batch_index is None and index is not None else envelope.batch_index,
        task_type=envelope.task_type or loose.name(meta.get("task_type")),
        keyword_source=loose.name(meta.get("keyword_source")) or envelope.keyword,
        brand_name=envelope.brand_name or loose.name(meta.get("brand_name")),
        pipeline_version=loose.name(meta.get("pipeline_version"), 100) or (f"crawler_{network}_v3" if network else ""),
    )


def _post(raw: Members, meta: Members, content: Members, post_id: str, envelope: Envelope) -> Post:
    post = _about(meta, content, post_id, envelope)
    author = members(raw.get("author"))
    places = [members(raw.get("interaction")), members(raw.get("interactions")), content]
    tags = first((content,), "hashtags", "tags")
    names = (loose.name(tag).lstrip("#") for tag in tags[:MOST_TAGS]) if isinstance(tags, list) else ()
    post.text = loose.text(content.get("text")) or loose.text(content.get("description"))
    post.transcription = loose.text(content.get("transcription"))
    post.hashtags = [tag for tag in names if tag]
    post.author_name = loose.name(first((author,), "name", "display_name", "username"))
    post.followers = loose.first_count((author,), "followers", "follower_count")
    post.verified = loose.flag(first((author,), "is_verified", "verified"))
    post.views = loose.first_count(places, "views", "view_count")
    post.likes = loose.first_count(places, "likes", "like_count")
    post.comment_count = loose.first_count(places, "comments_count", "comment_count", "comments")
    post.shares = loose.first_count(places, "shares", "share_count")
    post.saves = loose.first_count(places, "saves", "save_count")
    post.comments = _comments(raw.get("comments"), post_id)
    # A success may have lost its pictures (MEDIA_*): its text is kept, and why.
    if first((meta,), "error_code", "fetch_error", "error_message", "error_details") is not None:
        post.error_code = loose.name(meta.get("error_code"), LONGEST_CODE) or None
        post.fetch_error = loose.text(first((meta,), "fetch_error", "error_message")) or None
        post.error_details = _details(meta.get("error_details"))
    return post


def _comments(raw: object, post_id: str) -> list[Comment]:
    """Each comment once. One that has the id of another, and says something else, has its place behind that id."""
    known: dict[str, Comment] = {}
    for place, each in enumerate(raw if isinstance(raw, list) else ()):
        if not isinstance(each, dict):
            continue
        said, own = loose.text(each.get("text")), loose.id_or(first((each,), "id", "external_id"), "")
        if not said and not own:
            continue
        comment = Comment(
            own or f"{post_id}#{place}",
            said,
            loose.name(first((each,), "author_name", "author_display_name", "author_username")),
            loose.first_count((each,), "likes", "like_count"),
            loose.moment(each.get("created_at")),
        )
        if (other := known.setdefault(comment.id, comment)) != comment:
            comment.id = f"{comment.id}~{place}"
            if other.text != comment.text:
                known[comment.id] = comment
    return list(known.values())


def place_id(envelope: Envelope, index: int) -> str:
    """An id for an item that has none: whenever the message comes again, the same."""
    batch = f"{envelope.job_id}\0{envelope.platform}\0{envelope.batch_index}"
    source = batch if envelope.job_id and envelope.batch_index is not None else envelope.identity
    return f"item-{hashlib.blake2b(source.encode('utf-8', 'replace'), digest_size=12).hexdigest()}-{index}"


def _error(meta: Members, content: Members, content_id: str, envelope: Envelope, fault: str) -> ItemError:
    """The error that an item is; `fault` says what is wrong with the item itself, if something is."""
    given = loose.name(meta.get("error_code"), LONGEST_CODE)
    code = given or (Code.INVALID_RESPONSE if fault else Code.UNKNOWN_ERROR).value
    category, retryable = classify(code)
    told = loose.text(first((meta,), "error_message", "fetch_error"), 10_000)
    return ItemError(
        content_id=content_id,
        platform=loose.platform(meta.get("platform")) or envelope.platform,
        code=code,
        category=category.value,
        retryable=retryable,
        message="; ".join(filter(None, (fault, told))),
        details=_details(meta.get("error_details")),
        permalink=loose.link(meta.get("permalink")) or loose.link(content.get("url")),
    )


def _details(raw: object) -> Any:  # noqa: ANN401 - what JSON can hold
    """Details that can be stored: neither large nor deep, without zero bytes."""
    if raw is None:
        return None
    level, depth = [raw], 0
    while level:
        depth += 1
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [value for each in inner for value in each]
        if depth > DEEPEST_DETAILS:
            return {"left_out": f"nested more than {DEEPEST_DETAILS} deep"}
    try:
        written = msgspec.json.encode(raw)
    except (OverflowError, UnicodeEncodeError, ValueError):
        return {"left_out": "it cannot be written again"}
    if len(written) > MOST_DETAILS:
        return {"left_out": f"{len(written):,} bytes, expected at most {MOST_DETAILS:,}"}
    return _without_zeros(raw) if rb"\u0000" in written else raw


def _without_zeros(value: Any) -> Any:  # noqa: ANN401 - the same
    match value:
        case str():
            return value.replace("\0", "")
        case dict():
            return {name.replace("\0", ""): _without_zeros(each) for name, each in value.items()}
        case list():
            return [_without_zeros(each) for each in value]
    return value
