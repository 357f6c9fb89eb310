"""A batch of any crawler, for code that is not ours: its posts, and what is an error among its items."""

from typing import NamedTuple

from sanderling.events.batches import decode
from sanderling.events.items import read_item
from sanderling.events.posts import Context, CrawlError, Post


class ReadBatch(NamedTuple):
    """The items of a batch, each in one of these."""

    posts: list[Post]
    errors: list[CrawlError]  # items that were not fetched, or cannot be read


def read_batch(body: bytes, *, platform: str = "", name: str = "batch.json") -> ReadBatch:
    """What an object of a batch says: JSON, or JSON packed with zstd, of any generation of crawlers.

    `platform` is that of items which do not say; `name` stands in messages. Raises ValueError for what is no batch.
    """
    context, found = Context(event_id=name, platform=platform), ReadBatch([], [])
    for place, raw in enumerate(decode(body, metadata={}, key=name).items):
        item = read_item(raw, context, place)
        if isinstance(item, Post):
            found.posts.append(item)
        else:
            found.errors.append(item)
    return found
