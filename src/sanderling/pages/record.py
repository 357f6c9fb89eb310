"""What is asked for a URL, and what the reply becomes: the row that is kept, and the links that lead on. Pure."""

import re
import zlib
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urljoin

import msgspec

from sanderling.crawls.archive import with_fields
from sanderling.crawls.kept import Keep, suffix_of, when
from sanderling.fetch.attempts import location_of, moves
from sanderling.fetch.render import RenderedPage
from sanderling.outcome import Code, Outcome
from sanderling.pages import sitemaps
from sanderling.pages.extract import READ_RULES, ReadRules, extract
from sanderling.pages.files import StoredFile
from sanderling.pages.kinds import ContentKind, kind_of
from sanderling.pages.robots import NOINDEX, directives
from sanderling.pages.same_text import TextMark, mark_text
from sanderling.pages.sitemaps import Sitemap
from sanderling.pages.urls import normalise
from sanderling.stores.frontier_rows import SCREENSHOTS, BodyFile, End, Ended, QueuedUrl
from sanderling.task import Headers, Reply


class PageRow(msgspec.Struct, omit_defaults=True):
    """One line of pages.jsonl or failed.jsonl; what is not there is null. `docs/pages.md` explains each."""

    id: int
    url: str
    outcome: str
    status: int
    depth: int
    fetched_at: str
    detail: str = ""
    seconds: float | None = None
    bytes: int | None = None
    content_type: str | None = None
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    moved_to: str | None = None
    title: str | None = None
    description: str | None = None
    language: str | None = None
    text: str | None = None
    links: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    json: msgspec.Raw | None = None
    body_path: str | None = None
    sha256: str | None = None
    warc_file: str | None = None
    warc_offset: int | None = None
    warc_length: int | None = None
    warc_type: str | None = None
    warc_digest: str | None = None
    rendered: dict[str, int] | None = None  # by a browser: requests that were sent for it, and such as were blocked
    screenshot: str | None = None


class KeptBody(msgspec.Struct, frozen=True):
    """What a row says of a page that is kept as it came, after its other fields."""

    body_path: str
    sha256: str


_encode = msgspec.json.Encoder().encode
# Calls within calls that whoever reads a row may be in. What JSON may nest depends on how many there are: a document at
# the brink would be kept here, and be too much for somebody else.
ROOM = 300
UNINDEXED = "noindex: what it says is not kept"
SITEMAP = Code.SKIPPED  # by which the ledger tells sitemaps, which count as no page, from other rows
FLAT = 200  # brackets in a document that cannot nest deep enough to matter, which is most of them
_SITEMAP = re.compile(rb"<(?:[\w-]+:)?(?:urlset|sitemapindex)[\s>]")
_SITEMAP_ALONE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<[?!][^>]*>\s*)*" + _SITEMAP.pattern)


class _Text(msgspec.Struct):
    text: str | None = None


class ReadPage(NamedTuple):
    """What became of a URL, and where it leads; if it is a sitemap, what that lists."""

    ended: Ended
    links: tuple[str, ...]
    sitemap: Sitemap | None
    text: TextMark | None = None  # by which its text is known again


def respelled(queued: QueuedUrl, reply: Reply, *, itself: bool = False) -> str | None:
    """Where the reply leads, if that is this very URL with a session or the like in it, which we leave out of URLs.

    With `itself`, also if it leads back to the URL as it is.
    """
    if not moves(reply):
        return None
    try:
        target = urljoin(queued.url, location_of(reply)).partition("#")[0]
        return target if (itself or target != queued.url) and normalise(target) == queued.url else None
    except ValueError:  # UrlError is one, and urljoin has its own
        return None


def confirmed(queued: QueuedUrl, outcome: Outcome) -> bool:
    """Whether this is a 304 that we asked for."""
    return outcome.code is Code.NOT_MODIFIED and bool(queued.etag or queued.modified)


def conditions(queued: QueuedUrl) -> Headers:
    """Ask only for what has changed since the earlier crawl."""
    pairs = (("If-None-Match", queued.etag), ("If-Modified-Since", queued.modified))
    return tuple((name, value) for name, value in pairs if value)


# By position, since that is how a thread is handed its work.
def read(
    queued: QueuedUrl,
    outcome: Outcome,
    reply: Reply,
    wall: float,
    announced: bool = False,  # noqa: FBT001, FBT002
    rules: ReadRules = READ_RULES,
) -> ReadPage:
    """A reply that is good: what to keep of it. What is `announced` as a sitemap may be a plain list or a feed."""
    row = _row(queued, outcome, reply, wall)
    row.etag, row.last_modified = reply.header("ETag"), reply.header("Last-Modified")
    kind = kind_of(row.content_type, reply.body)
    # Where a server takes XML for HTML, by its very beginning.
    is_html = kind is ContentKind.HTML
    if _SITEMAP_ALONE.match(reply.body[:1024]) if is_html else announced or _is_sitemap(reply.body):
        listed = sitemaps.read(reply.body, reply.url)
        row.links, row.detail = (*listed.sitemaps, *listed.pages), listed.problem
        # It comes whole each time: of one that has not changed nobody would know what on its list is a sitemap.
        # The ledger counts it under another code than pages.
        ended = _ended(queued, replace(outcome, code=SITEMAP), End.FETCHED, row)
        ended = msgspec.structs.replace(ended, etag=None, modified=None)
        return ReadPage(ended, row.links, listed)
    body, links = _fill(row, reply, kind, rules)
    return ReadPage(_ended(queued, outcome, End.FETCHED, row, body), links, None, mark_text(row.text, queued.url))


def read_file(queued: QueuedUrl, outcome: Outcome, reply: Reply, wall: float, file: StoredFile) -> ReadPage:
    """A file that went to disk as it came, or that is not kept."""
    row = _row(queued, outcome, reply, wall)
    row.etag, row.last_modified = reply.header("ETag"), reply.header("Last-Modified")
    row.bytes, row.detail = file.size, file.why
    if file.body is not None:
        row.sha256, row.body_path = file.body.sha256, file.body.path
    return ReadPage(_ended(queued, outcome, End.FETCHED, row, file.body), (), None)


def keep_raw(ended: Ended, reply: Reply, keep: Keep | None) -> Ended:
    """The same with the page as it came, to be kept as a file or in the archive."""
    if keep == "warc":
        return msgspec.structs.replace(ended, reply=reply)
    is_file = ended.body is not None and not ended.body.name  # and no screenshot
    if keep is None or ended.end is not End.FETCHED or is_file or ended.row is None:
        return ended
    raw = BodyFile.of(reply.body, suffix_of(reply.header("Content-Type")))
    return msgspec.structs.replace(ended, raw=raw, row=with_fields(ended.row, KeptBody(raw.path, raw.sha256)))


def read_rendered(
    queued: QueuedUrl, outcome: Outcome, rendered: RenderedPage, wall: float, rules: ReadRules = READ_RULES
) -> ReadPage:
    """A page that a browser has made: what to keep of it. Where its scripts wanted to go is a link."""
    row = _row(queued, outcome, rendered.reply, wall)
    row.etag, row.last_modified = rendered.reply.header("ETag"), rendered.reply.header("Last-Modified")
    _read_document(row, rendered.reply, rules)
    row.rendered = {"requests": rendered.requests, "blocked": rendered.blocked}
    onward = () if rendered.onward is None else (rendered.onward,)
    row.links = tuple(dict.fromkeys((*onward, *row.links)))
    kept = UNINDEXED not in row.detail
    said = [row.detail, rendered.cut, *(f"a script goes on to {url}"[:200] for url in onward)]
    row.detail = "; ".join(filter(None, said))
    body = None
    if rendered.screenshot is not None and kept:
        body = BodyFile.of(rendered.screenshot, ".png", f"{SCREENSHOTS}/{queued.id}.png")
        row.screenshot = body.path
    return ReadPage(_ended(queued, outcome, End.FETCHED, row, body), row.links, None, mark_text(row.text, queued.url))


def text_of(ended: Ended) -> str:
    """The text in the row of what ended."""
    return "" if ended.row is None else msgspec.json.decode(ended.row, type=_Text).text or ""


def unchanged(queued: QueuedUrl, outcome: Outcome, reply: Reply, wall: float) -> Ended:
    """A 304: the row of the earlier crawl still holds."""
    row = _row(queued, outcome, reply, wall)
    row.etag, row.last_modified = reply.header("ETag") or queued.etag, queued.modified
    return _ended(queued, outcome, End.UNCHANGED, row)


def moved(queued: QueuedUrl, reply: Reply, target: str, detail: str, wall: float) -> Ended:
    """A redirect; its target is a URL of its own."""
    outcome = Outcome(Code.SKIPPED, reply.status, detail)
    row = _row(queued, outcome, reply, wall)
    row.moved_to = target
    return _ended(queued, outcome, End.MOVED, row)


def unfetched(queued: QueuedUrl, outcome: Outcome, end: End, requests: int) -> Ended:
    """A URL that failed, or that was not asked for: no row of its own, the frontier keeps the reason."""
    return Ended(id=queued.id, url=queued.url, end=end, outcome=outcome, depth=queued.depth, requests=requests)


def _row(queued: QueuedUrl, outcome: Outcome, reply: Reply, wall: float) -> PageRow:
    return PageRow(
        id=queued.id,
        url=queued.url,
        outcome=outcome.code,
        status=outcome.status,
        depth=queued.depth,
        fetched_at=when(wall),
        detail=outcome.detail,
        seconds=round(reply.latency, 4),
        bytes=len(reply.body),
        content_type=reply.header("Content-Type"),
    )


def _ended(queued: QueuedUrl, outcome: Outcome, end: End, row: PageRow, body: BodyFile | None = None) -> Ended:
    validators = end is End.FETCHED and (row.etag or row.last_modified)
    return Ended(
        id=queued.id,
        url=queued.url,
        end=end,
        outcome=outcome,
        depth=queued.depth,
        row=_encode(row),
        body=body,
        etag=row.etag if validators else None,
        modified=row.last_modified if validators else None,
        moved_to=row.moved_to,
    )


def _fill(row: PageRow, reply: Reply, kind: ContentKind, rules: ReadRules) -> tuple[BodyFile | None, tuple[str, ...]]:
    """Read the body into the row by its kind; the file to keep beside it, if it is one, and where it leads."""
    if kind is not ContentKind.HTML and not rules.keep_noindex and _is_unwanted(reply):
        row.detail = UNINDEXED
        return None, ()
    if kind is ContentKind.JSON and _is_json(row, reply.body):
        return None, ()
    if kind is ContentKind.OTHER:
        return _file(row, reply.body), ()
    _read_document(row, reply, rules)
    return None, row.links


def _is_unwanted(reply: Reply) -> bool:
    """Whether the server asks that nobody keep a document that cannot say so itself."""
    lines = [value for name, value in reply.headers if name.lower() == "x-robots-tag"]
    return bool(lines) and not NOINDEX.isdisjoint(directives(lines))


def _read_document(row: PageRow, reply: Reply, rules: ReadRules) -> None:
    language, media = reply.header("Content-Language"), row.content_type or ""
    document = extract(
        reply.body, content_type=media, url=reply.url, language=language, headers=reply.headers, rules=rules
    )
    row.detail = "; ".join(filter(None, (row.detail, document.cut, UNINDEXED if document.noindex else "")))
    row.title, row.description, row.language = document.title, document.description, document.language
    row.text, row.charset, row.metadata, row.links = document.text, document.charset, document.metadata, document.links


def _is_sitemap(body: bytes) -> bool:
    """Whether it begins like one, packed or not."""
    head = body[:1024]
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(31).decompress(head, 1024)
        except zlib.error:
            return False
    return _SITEMAP.search(head) is not None


def _is_json(row: PageRow, body: bytes) -> bool:
    """Keep JSON as it is, on one line; False if it is none."""
    try:
        plain = body.decode("utf-8-sig").encode()
        flat = plain.count(b"[") + plain.count(b"{") <= FLAT
        row.json = msgspec.Raw(_on_one_line(plain, 0 if flat else ROOM))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        row.detail = f"said to be JSON and is none: {error}"[:200]
        return False
    return True


def _on_one_line(json: bytes, calls: int) -> bytes:
    """JSON without its line breaks; done within so many calls, so that whoever reads it has as much room. Raises."""
    return _on_one_line(json, calls - 1) if calls else msgspec.json.format(json, indent=-1)


def _file(row: PageRow, data: bytes) -> BodyFile:
    body = BodyFile.of(data, suffix_of(row.content_type))
    row.sha256, row.body_path = body.sha256, body.path
    return body
