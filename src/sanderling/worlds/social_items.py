"""The items of a simulated crawler, as its generations spell them.

| what | guide | contract 1 | contract 2 |
|---|---|---|---|
| counters | in `content`: `view_count` … | in `interactions`: `views` … | in `interaction`: `views` … |
| text | `description` | `text` | `text` |
| followers, verified | `follower_count`, `verified` | `follower_count`, `is_verified` | `followers`, `is_verified` |
| error text | `fetch_error` | `fetch_error` | `error_message` |
| likes of a comment | `like_count` | `like_count` | `likes` |
| platform | `tiktok` | `tiktok` | `TIKTOK` |
"""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from random import Random
from typing import NamedTuple

from sanderling.outcome import Code
from sanderling.worlds.chance import scatter
from sanderling.worlds.social_hostile import Twist
from sanderling.worlds.social_market import Brand
from sanderling.worlds.social_people import Person
from sanderling.worlds.social_texts import Words
from sanderling.worlds.social_truth import NO_COUNTERS, Counters, Mood

SPACE = 64  # numbers of a batch's posts: more than there ever are
STEP = 736_338_717_284_590_017  # has no divisor in common with a power of ten, so that no two numbers share an id
DIGITS = 10**18
FIRST_POST = 7 * DIGITS
MOST_LIKED = 300

MESSAGES = {
    Code.RATE_LIMITED.value: "Too many requests, asked to wait 60 seconds",
    Code.CONTENT_REMOVED.value: "The video was removed by its author",
    Code.TIMEOUT.value: "No answer within 30 seconds",
}

Json = dict[str, object]


class Spelling(StrEnum):
    """Which generation of crawlers wrote an item."""

    GUIDE = "guide"
    CONTRACT_1 = "contract_1"
    CONTRACT_2 = "contract_2"


class ItemDraft(NamedTuple):
    """What chance has decided about an item, before anything is written."""

    number: int
    id: str
    brand: Brand
    author: Person
    published: int  # Unix seconds, a whole minute
    age: int  # minutes, when it could first be found
    mood: Mood | None = None
    counters: Counters = NO_COUNTERS
    code: str = ""
    twist: Twist | None = None
    shared: bool = False


class BatchSetting(NamedTuple):
    """What is the same for all items of a batch."""

    platform: str
    job_id: str
    keyword: str
    task_type: str
    crawled: int  # Unix seconds
    states: bool = True  # whether items say if they were fetched
    signed: bool = False  # whether every item says whose it is: one that comes alone must


class Remark(NamedTuple):
    """A comment."""

    id: str
    text: str
    author: Person
    likes: int
    at: str


@lru_cache(maxsize=10_000)
def stamp(when: int) -> str:
    """Unix seconds as crawlers write them. Remembered, since items have many and the minutes of a day are few."""
    return datetime.fromtimestamp(when, UTC).isoformat()[:19] + "Z"


def post_id(platform: str, number: int, salt: int) -> str:
    """The id of a post: 19 digits, or 11 letters and digits. No two numbers have the same."""
    if platform == "tiktok":
        return str(FIRST_POST + (number * STEP + salt) % DIGITS)
    return base64.urlsafe_b64encode(scatter(number, salt).to_bytes(8))[:11].decode()


def message_of(code: str) -> str:
    """What a crawler says when something fails."""
    return MESSAGES.get(code) or f"{code.replace('_', ' ').capitalize()} while fetching the item"


def remarks(draft: ItemDraft, words: Words, people: tuple[Person, ...], chance: Random) -> list[Remark]:
    """The comments below a post, as of when it could first be found."""
    luck, post, published, age = chance.random, draft.id, draft.published, draft.age
    return [
        Remark(
            f"{post}{place:02d}", text, author, int(MOST_LIKED * luck() ** 4), stamp(published + 60 * int(luck() * age))
        )
        for place, (text, author) in enumerate(
            zip(words.remarks, chance.choices(people, k=len(words.remarks)), strict=True)
        )
    ]


def permalink(draft: ItemDraft, setting: BatchSetting) -> str:
    """Where a post can be seen."""
    if setting.platform == "tiktok":
        return f"https://tiktok.example/@{draft.author.username}/video/{draft.id}"
    return f"https://youtube.example/watch?v={draft.id}"


def _guide(draft: ItemDraft, words: Words, below: list[Remark], setting: BatchSetting) -> Json:
    counters, author = draft.counters, draft.author
    content: Json = {
        "external_id": draft.id,
        "url": permalink(draft, setting),
        "description": words.caption,
        "view_count": counters.views,
        "like_count": counters.likes,
        "comment_count": counters.comments,
        "share_count": counters.shares,
        "save_count": counters.saves,
        "duration_seconds": 15 + draft.number % 45,
        "tags": words.tags,
        "sound_name": "original sound",
        "category": None,
        "media_type": "video",
        "media_path": None,
        "transcription": words.transcription or None,
        "transcription_status": "success" if words.transcription else "skipped",
        "transcription_error": None,
    }
    if setting.platform == "youtube":
        content |= {
            "channel_id": author.id,
            "video_id": draft.id,
            "category_id": "28",
            "definition": "hd",
            "caption": False,
        }
    return {
        "meta": _guide_meta(draft, setting, words.language),
        "content": content,
        "author": {
            "username": author.username,
            "display_name": author.name,
            "avatar_url": author.avatar_url,
            "bio": "",
            "follower_count": author.followers,
            "following_count": 120,
            "total_likes": counters.likes * 9,
            "video_count": 40,
            "verified": author.verified,
        },
        "comments": [
            {
                "external_id": each.id,
                "author_username": each.author.username,
                "author_display_name": each.author.name,
                "text": each.text,
                "like_count": each.likes,
                "reply_count": 0,
                "created_at": each.at,
                "parent_type": "video",
            }
            for each in below
        ],
    }


def _guide_meta(draft: ItemDraft, setting: BatchSetting, language: str) -> Json:
    meta: Json = {
        "id": draft.id,
        "platform": setting.platform,
        "job_id": setting.job_id,
        "task_type": setting.task_type,
        "crawled_at": stamp(setting.crawled),
        "published_at": stamp(draft.published),
        "permalink": permalink(draft, setting),
        "keyword_source": setting.keyword,
        "lang": language,
        "region": "VN",
        "pipeline_version": f"crawler_{setting.platform}_v3",
    }
    if setting.states:
        meta |= {"fetch_status": "success", "fetch_error": None, "error_code": None, "error_details": None}
    return meta


def _contract(draft: ItemDraft, words: Words, below: list[Remark], setting: BatchSetting, *, second: bool) -> Json:
    counters, author = draft.counters, draft.author
    meta: Json = {
        "id": draft.id,
        "platform": setting.platform.upper() if second else setting.platform,
        "published_at": stamp(draft.published),
        "permalink": permalink(draft, setting),
    }
    if setting.states:
        meta["fetch_status"] = "success"
    if setting.signed:
        meta["job_id"] = setting.job_id
    likes = "likes" if second else "like_count"
    return {
        "meta": meta,
        "content": {
            "text": words.caption,
            "transcription": words.transcription,
            "duration": 15 + draft.number % 45,
            "hashtags": words.tags,
        },
        "interaction" if second else "interactions": {
            "views": counters.views,
            "likes": counters.likes,
            "comments_count": counters.comments,
            "shares": counters.shares,
            "saves": counters.saves,
        },
        "author": {
            "id": author.id,
            "name": author.name,
            "username": author.username,
            "avatar_url": author.avatar_url,
            "followers" if second else "follower_count": author.followers,
            "is_verified": author.verified,
        },
        "comments": [
            {
                "id": each.id,
                "text": each.text,
                "author_name": each.author.name,
                likes: each.likes,
                "created_at": each.at,
            }
            for each in below
        ],
    }


def _contract_1(draft: ItemDraft, words: Words, below: list[Remark], setting: BatchSetting) -> Json:
    return _contract(draft, words, below, setting, second=False)


def _contract_2(draft: ItemDraft, words: Words, below: list[Remark], setting: BatchSetting) -> Json:
    return _contract(draft, words, below, setting, second=True)


WRITE: dict[Spelling, Callable[[ItemDraft, Words, list[Remark], BatchSetting], Json]] = {
    Spelling.GUIDE: _guide,
    Spelling.CONTRACT_1: _contract_1,
    Spelling.CONTRACT_2: _contract_2,
}


def failed(draft: ItemDraft, setting: BatchSetting, spelling: Spelling) -> Json:
    """An item that could not be fetched."""
    details = {"attempts": 1 + draft.number % 3, "worker": f"crawler-{draft.number % 7}"}
    message, code = message_of(draft.code), draft.code
    if spelling is Spelling.GUIDE:
        meta = _guide_meta(draft, setting, "vi")
        meta |= {"fetch_status": "error", "fetch_error": message, "error_code": code, "error_details": details}
    else:
        second = spelling is Spelling.CONTRACT_2
        meta = {
            "id": draft.id,
            "platform": setting.platform.upper() if second else setting.platform,
            "fetch_status": "error",
            "published_at": None,
            "permalink": permalink(draft, setting),
            "error_code": code,
            "error_message" if second else "fetch_error": message,
            "error_details": details,
        }
    return {"meta": meta, "content": None, "author": None, "comments": []}
