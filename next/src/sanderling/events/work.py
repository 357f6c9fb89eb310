"""What readers do: read messages, and make the rows of batches. Nothing here trusts a byte.

`pipeline = "module:function"` names what judges posts: it gets the posts of a batch as objects, and returns for each
the columns that it knows. Where it raises, it is called for each post alone, and those for which it raises are errors.
"""

import hashlib
import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sanderling.events.batches import BatchError, bounded, items_in, items_of, size_notes, unpack
from sanderling.events.items import ItemError, Post, place_id, read_item
from sanderling.events.job_ids import project_of
from sanderling.events.tables import ERRORS, POSTS
from sanderling.formats import loose
from sanderling.formats.envelope import Envelope, EnvelopeError, read_envelope
from sanderling.outcome import Code

Pipeline = Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]]
BUILT_IN = "sanderling.events.analysis:analyse"
_JSON = frozenset({"aspects_breakdown", "keywords", "sentiment_probabilities", "impact_breakdown"})
# Of a post that nobody judged; also what an error's NOT NULL columns hold.
_NEUTRAL: dict[str, Any] = {
    "overall_sentiment": "NEUTRAL", "overall_sentiment_score": 0.0, "overall_confidence": 0.0,
    "primary_intent": "DISCUSSION", "intent_confidence": 0.0, "impact_score": 0.0, "risk_level": "LOW",
    "is_viral": False, "is_kol": False, "aspects_breakdown": {}, "keywords": [], "sentiment_probabilities": {},
    "impact_breakdown": {}, "processing_time_ms": 0, "model_version": "",
}  # fmt: skip


class WorkOptions(msgspec.Struct):
    """What a reader has to know once."""

    pipeline: str
    folder: str  # where its module may lie
    seed_job_ids: bool


class WorkTask(msgspec.Struct):
    """What is to be read: a message, or with an `envelope` the batch that it names. `wall` is the time."""

    wall: float
    envelope: Envelope | None = None
    is_file: bool = False  # that was named on the command line: a message, or a batch


class Rows(msgspec.Struct):
    """What a batch becomes; or why it is refused, and whether it may only not be complete yet."""

    envelope: Envelope | None = None
    posts: list[list[Any]] = []
    comments: list[list[Any]] = []
    errors: list[list[Any]] = []
    counts: dict[str, list[int]] = {}  # by platform: items that are posts, and those that failed
    unknown_projects: int = 0
    refused: str = ""
    early: bool = False


def open_work(argument: bytes) -> Callable[[bytes, bytes], bytes]:
    """The work function of a reader."""
    options = msgspec.msgpack.decode(argument, type=WorkOptions)
    pipeline = load_pipeline(options.pipeline, options.folder)
    decoder, encode = msgspec.msgpack.Decoder(WorkTask), msgspec.msgpack.Encoder().encode

    def work(head: bytes, body: bytes) -> bytes:
        task = decoder.decode(head)
        try:
            return encode(_work(task, body, pipeline, options))
        except (EnvelopeError, BatchError) as error:
            return encode(Rows(refused=str(error), early=getattr(error, "early", False)))

    return work


def load_pipeline(name: str, folder: str) -> Pipeline:
    """The function that "module:function" names. Raises ValueError."""
    module_name, _, function = name.partition(":")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found = getattr(importlib.import_module(module_name), function, None)
    except ImportError as error:
        raise ValueError(f"pipeline is {name!r}: {error}; expected module:function") from None
    if not callable(found):
        raise ValueError(f"pipeline is {name!r}, and {module_name} has no function {function!r}")  # noqa: TRY004
    return found  # type: ignore[no-any-return]


def _work(task: WorkTask, body: bytes, pipeline: Pipeline, options: WorkOptions) -> Rows:
    envelope, message = task.envelope, None
    if task.is_file:
        body = unpack(body)
        try:
            envelope, message = read_envelope(body)
        except EnvelopeError:  # a list, or too large for a message
            digest = hashlib.blake2b(body, digest_size=12).hexdigest()
            envelope = Envelope(mode="inline", event_id=f"file-{digest}", identity=f"file-{digest}")
        if envelope.mode != "inline":
            raise BatchError("the file is a message that names a batch; publish it with: sanderling events publish")
        items, notes = items_in(message) if message is not None else items_of(body)
    elif envelope is None:
        return Rows(envelope=read_envelope(body)[0])
    elif envelope.mode == "inline":
        items, notes = items_in(read_envelope(body)[1])
    else:
        items, notes = items_of(unpack(body))
    envelope.notes = [*envelope.notes, *notes, *size_notes(len(items), envelope)]
    return _rows(items, envelope, task.wall, pipeline, options)


def _rows(items: list[Any], envelope: Envelope, wall: float, pipeline: Pipeline, options: WorkOptions) -> Rows:
    rows = Rows(envelope=envelope)
    posts: dict[tuple[str, str, str], tuple[Post, int, Any]] = {}
    failed: list[tuple[int, Any, ItemError, str, str | None]] = []
    projects: dict[tuple[str, str], str | None] = {}

    def project(job: str, told: str) -> str | None:
        if (job, told) not in projects:
            projects[job, told] = project_of(job, told, seed=options.seed_job_ids)
        return projects[job, told]

    for index, (raw, fault) in enumerate(bounded(items)):
        post, error = read_item(raw, envelope, index)
        if fault and error is None:
            error = _broken(post, envelope, index, Code.INVALID_RESPONSE, fault)
            post = None
        meta = loose.members(raw.get("meta")) if isinstance(raw, dict) else {}
        told = envelope.project_id or loose.name(meta.get("project_id"), 256)
        job = post.job_id if post else envelope.job_id or loose.name(meta.get("job_id"), 256)
        owner = project(job, told)
        rows.unknown_projects += owner is None
        network = (post or error).platform  # type: ignore[union-attr]
        counts = rows.counts.setdefault(network, [0, 0])
        counts[error is not None] += 1
        if error is not None:
            failed.append((index, raw, error, job, owner))
        if post is not None:
            post.project_id = owner
            key = (owner or "", post.platform, post.id)
            known = posts.get(key)
            if known is None or _age(post, wall) >= _age(known[0], wall):
                posts[key] = (post, index, raw)
    good = {key: found for key, found in posts.items() if not found[0].failed}
    columns, faults = _judge([found[0] for found in good.values()], pipeline)
    judged = dict(zip(good, columns, strict=True))
    for key, fault in zip(good, faults, strict=True):
        if fault:
            post, index, raw = posts.pop(key)
            error = _broken(post, envelope, index, Code.INTERNAL_ERROR, fault)
            rows.counts[post.platform][0] -= 1
            rows.counts[post.platform][1] += 1
            failed.append((index, raw, error, post.job_id, post.project_id))
    # In the order of keys, so that nobody waits in a ring.
    for key, (post, _, _) in sorted(posts.items()):
        found = judged.get(key, {})
        rows.posts.append(_post_row(post, found, wall))
        moods = found.get("comments", {})
        rows.comments += [
            [post.project_id, post.platform, post.id, each.id, each.text, each.author_name, each.likes,
             *moods.get(each.id, (None, None)), each.created_at, wall if post.crawled_at is None else post.crawled_at]
            for each in post.comments
        ]  # fmt: skip
    for index, raw, error, job, owner in sorted(failed, key=lambda each: each[0]):
        rows.errors.append(_error_row(index, raw, error, job, owner, envelope, wall))
    return rows


def _age(post: Post, wall: float) -> tuple[bool, float]:
    return not post.failed, wall if post.crawled_at is None else post.crawled_at


def _judge(posts: list[Post], pipeline: Pipeline) -> tuple[list[dict[str, Any]], list[str]]:
    """What the pipeline says of each post, and why it failed."""
    given = [msgspec.to_builtins(post) for post in posts]
    if not given:
        return [], []
    try:
        return _checked(pipeline(given), len(given)), [""] * len(given)
    except Exception:  # noqa: BLE001 - whatever a user's function does is the item's error
        traceback.format_exc()  # it is called again for each
    columns: list[dict[str, Any]] = []
    faults = []
    for post in given:
        fault, found = "", list[dict[str, Any]]([{}])
        try:
            found = _checked(pipeline([post]), 1)
        except Exception:  # noqa: BLE001 - the same
            fault = traceback.format_exc(limit=-2)
        columns.append(found[0])
        faults.append(" ".join(fault.split())[-2000:])
    return columns, faults


_KINDS: dict[str, tuple[type, ...]] = {
    each.name: {"VARCHAR": (str,), "TEXT": (str,), "BOOLEAN": (bool,), "DOUBLE": (int, float)}.get(
        each.postgres.partition("(")[0].partition(" ")[0], (int,)
    )
    for each in POSTS
    if each.name in _NEUTRAL and each.name not in _JSON
}


def _checked(found: Any, number: int) -> list[dict[str, Any]]:  # noqa: ANN401 - a user's function gave it
    """What a pipeline gave, if it can be stored. Raises TypeError."""
    if not isinstance(found, list | tuple) or len(found) != number:
        raise TypeError(f"the pipeline gave {loose.shown(found)}, expected a list of {number} objects")
    for each in found:
        if not isinstance(each, dict):
            raise TypeError(f"the pipeline gave {loose.shown(each)} for a post, expected an object")
        for name, value in each.items():
            if name in _KINDS and not (value is None or isinstance(value, _KINDS[name])):
                raise TypeError(f"the pipeline gave {name} = {loose.shown(value)}, expected {_KINDS[name][0].__name__}")
            if name not in _NEUTRAL and name != "comments":
                raise TypeError(f"the pipeline gave {name!r}; expected one of {', '.join(_NEUTRAL)}")
    return list(found)


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _post_row(post: Post, judged: dict[str, Any], wall: float) -> list[Any]:
    values = {**_NEUTRAL, **judged}
    for name in _JSON:
        values[name] = _json(values[name])
    values["primary_intent"], values["overall_sentiment"] = (
        values["primary_intent"][:20],
        values["overall_sentiment"][:10],
    )
    values["risk_level"], values["model_version"] = values["risk_level"][:10], values["model_version"][:50]
    fallback = wall if post.crawled_at is None else post.crawled_at
    values |= {
        "id": post.id, "project_id": post.project_id, "platform": post.platform,
        "published_at": fallback if post.published_at is None else post.published_at, "analyzed_at": wall,
        "view_count": post.views, "like_count": post.likes, "comment_count": post.comment_count,
        "share_count": post.shares, "save_count": post.saves, "follower_count": post.followers,
        "job_id": post.job_id, "batch_index": post.batch_index, "task_type": post.task_type or None,
        "keyword_source": post.keyword_source or None, "crawled_at": post.crawled_at,
        "pipeline_version": post.pipeline_version or None, "fetch_status": "error" if post.failed else "success",
        "fetch_error": post.fetch_error, "error_code": post.error_code, "error_details": _json(post.error_details),
        "content_text": post.text, "permalink": post.permalink or None, "author_name": post.author_name or None,
        "brand_name": post.brand_name or None,
    }  # fmt: skip
    return [values[each.name] for each in POSTS]


def _broken(post: Post | None, envelope: Envelope, index: int, code: Code, fault: str) -> ItemError:
    return ItemError(
        content_id=post.id if post else place_id(envelope, index),
        platform=post.platform if post else envelope.platform,
        code=code.value,
        category=code.category.value if code.category else "generic",
        retryable=False,
        message=fault,
        details=None,
        permalink=post.permalink if post else "",
    )


def _error_row(
    index: int,
    raw: object,
    error: ItemError,
    job: str,
    owner: str | None,
    envelope: Envelope,
    wall: float,
) -> list[Any]:
    # Items that our crawls hand over have ids of their own, and are the same however they are grouped.
    own = loose.name(loose.members(raw.get("meta")).get("item_id"), 128) if isinstance(raw, dict) else ""
    values = {
        "content_id": error.content_id, "project_id": owner, "job_id": job, "platform": error.platform,
        "error_code": error.code, "error_category": error.category, "error_message": error.message,
        "error_details": _json(error.details), "permalink": error.permalink or None, "created_at": wall,
        "event_id": envelope.event_id, "item_index": index,
        "item_key": f"{job}#{own}" if own else f"{envelope.identity}#{index}", "retryable": error.retryable,
    }  # fmt: skip
    return [values[each.name] for each in ERRORS]
