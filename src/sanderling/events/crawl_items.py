"""What our own crawlers keep, as items of a batch: a page that was crawled, a report that was read. Pure.

| | id | text |
|---|---|---|
| a row of `pages` | made from its URL, the same in every crawl | what the page says |
| a report of `sequence` | the report's | what is known of it, in words |

Neither has anybody who liked it, so the counters are 0. A row of a page that failed is an error with the crawl's own
code; one that only says "moved" or "as before" is no item at all. A page that is a JSON document in the shape of an
item is that item.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from sanderling.events.fields import first_text, members, platform, shown, text
from sanderling.formats.instance import Instance, Message, MessageError, decode
from sanderling.moments import moment
from sanderling.outcome import Code

Item = dict[str, object]

WEB = "WEB"
NOTHING_NEW = frozenset({Code.NOT_MODIFIED, Code.SKIPPED})
_UNTOUCHED = {"views": 0, "likes": 0, "comments_count": 0, "shares": 0, "saves": 0}


class LineError(ValueError):
    """A line is nothing that could be published. It says what was found and what was expected."""


def read_line(line: bytes) -> Item | None:
    """The item in a line of a file: an item as it is, a row of `pages`, or a report; None if it is none of a batch.

    Raises LineError.
    """
    try:
        record = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise LineError(f"found {shown(record)}, expected an object")
    if isinstance(record.get("meta"), dict):
        return record
    if "url" in record and "outcome" in record:
        return from_page(record)
    if "instance" in record and "api" in record:
        return _report(line)
    found = ", ".join(repr(name[:40]) for name in list(record)[:8]) or "nothing"
    raise LineError(f"found {found}; expected meta, or url and outcome, or instance and api")


def _report(line: bytes) -> Item:
    try:
        return from_report(decode(line))
    except MessageError as error:
        raise LineError(str(error)) from None


def from_page(row: Mapping[str, object]) -> Item | None:
    """The item that a row of pages.jsonl or failed.jsonl is; None if it says nothing of what is there."""
    page = dict(row)
    given = page.get("json")
    if isinstance(given, dict) and isinstance(given.get("meta"), dict):
        return dict(given)
    code = text(page.get("outcome"))
    if code in NOTHING_NEW:
        return None
    address = text(page.get("url"))
    said = members(page.get("metadata"))
    meta: Item = {
        "id": f"url-{hashlib.blake2b(address.encode(errors='replace'), digest_size=16).hexdigest()}",
        "platform": WEB,
        "fetch_status": "success",
        "permalink": address,
        "crawled_at": page.get("fetched_at"),
        "published_at": first_text(said, ("article:published_time", "date")) or None,
        "lang": page.get("language"),
        "pipeline_version": "sanderling_pages",
    }
    if code != Code.OK:
        return failed_item(meta, code, text(page.get("detail")))
    return {
        "meta": meta,
        "content": {"text": first_text(page, ("text", "description", "title")), "title": page.get("title")},
        "interaction": _UNTOUCHED,
        "author": {"name": text(said.get("author"))},
        "comments": [],
    }


def failed_item(meta: Item, code: str, why: str) -> Item:
    """The item of something that was not fetched."""
    told = {"fetch_status": "error", "error_code": code, "error_message": why, "error_details": {}}
    return {"meta": {**meta, **told}, "content": None, "author": None, "comments": []}


def platform_of(api: str) -> str:
    """The platform that reports of an API are of: its name, or one made from it where that is none of a platform."""
    if name := platform(api):
        return name
    digest = hashlib.blake2b(api.encode(errors="replace"), digest_size=4).hexdigest()
    return f"{re.sub('[^a-z0-9]+', '-', api.lower())[:11].strip('-') or 'api'}-{digest}"


def from_report(message: Message) -> Item:
    """The item that a report is."""
    found = message.instance
    return {
        "meta": {
            "id": message.id,
            "platform": platform_of(message.api).upper(),
            "fetch_status": "success",
            "crawled_at": _iso(message.crawled),
            "published_at": _iso(found.date_completed),
            "pipeline_version": f"sanderling_{message.api}",
        },
        "content": {"text": _describe(found), "duration": found.duration_seconds, "hashtags": []},
        "interaction": _UNTOUCHED,
        "author": None,
        "comments": [],
    }


def _iso(seconds: float | None) -> str | None:
    # As it will be read: what is no moment there is none here.
    return None if moment(seconds) is None else datetime.fromtimestamp(seconds or 0.0, UTC).isoformat()


def _describe(found: Instance) -> str:
    said = [f"report {found.instance_id}"]
    if found.activity_hash is not None:
        said.append(f"activity {found.activity_hash}")
    if found.player_count is not None:
        said.append(f"{found.player_count} players")
    marks = {"completed": found.completed, "fresh": found.fresh, "flawless": found.flawless}
    return ", ".join([*said, *(name for name, so in marks.items() if so)])
