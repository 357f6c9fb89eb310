"""What an item of a batch says, in one spelling: a post, or why there is none.

Crawlers of several generations name the same things differently; `items.py` reads them all. Ids are texts, since those
of 19 digits do not fit into everybody's numbers. Times are Unix seconds.

There are thousands of these at a time, and nothing in them leads back to them: so the collector need not know of them
(`gc=False`, here and in what is made of them).
"""

import msgspec

from sanderling.outcome import Category


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What the message says about all items of its batch; empty or None where it says nothing."""

    event_id: str
    job_id: str = ""
    project_id: str | None = None
    platform: str = ""  # in lower case
    batch_index: int | None = None  # as it was sent: some count from 0, some from 1
    content_count: int | None = None
    total_batches: int | None = None
    task_type: str = ""
    keyword: str = ""
    brand_name: str = ""
    sent_at: float | None = None


class Author(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who wrote it."""

    id: str = ""
    name: str = ""
    username: str = ""
    avatar_url: str = ""
    followers: int = 0
    verified: bool = False


class Interaction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How people took it; never below 0."""

    views: int = 0
    likes: int = 0
    comments: int = 0
    shares: int = 0
    saves: int = 0


class Comment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What somebody wrote below it."""

    id: str
    text: str
    author_name: str = ""
    likes: int = 0
    created_at: float | None = None


class Post(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item that was fetched."""

    id: str
    platform: str  # in lower case
    text: str = ""
    transcription: str = ""
    duration: float | None = None  # seconds
    hashtags: tuple[str, ...] = ()
    permalink: str = ""
    published_at: float | None = None
    crawled_at: float | None = None
    keyword_source: str = ""
    pipeline_version: str = ""
    language: str = ""  # as the crawler says, if it does
    author: Author = Author()
    interaction: Interaction = Interaction()
    comments: tuple[Comment, ...] = ()


class CrawlError(msgspec.Struct, frozen=True, kw_only=True):
    """An item that was not fetched, or cannot be read."""

    content_id: str  # made from its place in the batch, if the item has none
    platform: str
    code: str  # as the crawler says it, also if we do not know it
    category: Category
    message: str = ""
    details: dict[str, object] = {}
    permalink: str = ""
