"""Pages: the job that is written already. What a row says of a page, and where a page leads."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import Any

import msgspec

from sanderling.crawl.paging import link_of
from sanderling.crawl.render import needs_scripts
from sanderling.crawl.request import Stored
from sanderling.crawl.scope import CrawlScope
from sanderling.crawl.work import SITEMAP, FoundRequest, Head, PageRules, ReadAnswer
from sanderling.extract.charset import charset_of, decode
from sanderling.extract.html import PageFacts, read_page, refresh_target
from sanderling.extract.robots import directives
from sanderling.extract.sitemaps import is_sitemap, read_sitemap
from sanderling.fetch.messages import in_utf8
from sanderling.ids import UrlError, normalise_url

DEEPEST_SITEMAP = 5  # so many of them one inside the other
MAX_TEXT = 4 << 20  # bytes of a text that is no page

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNSAID = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*"})
_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<script", b"<h1", b"<div", b"<p>")
_TARGETS = re.compile(r"\]\([^()\n]*\)")
_NO_WORDS = "".join(chr(code) for code in range(128) if not chr(code).isalnum() and chr(code) != "_").encode()
_PARTED = bytes.maketrans(_NO_WORDS, b" " * len(_NO_WORDS))  # one pass of bytes is cheaper than an expression
# Days, months and years, as texts name them.
_DATES = frozenset(b"%0*d" % (width, number) for number in range(32) for width in range(1, 5)).union(
    b"%d" % year for year in range(1900, 2200)
)
# Bytes that no text has, by the MIME Sniffing Standard.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


class PageRow(msgspec.Struct, omit_defaults=True):
    """A line of `pages.jsonl`; what does not apply is left out."""

    id: int
    url: str
    outcome: str
    status: int
    depth: int
    fetched_at: str
    detail: str = ""
    seconds: float = -1.0
    bytes: int = -1
    content_type: str = ""
    charset: str | None = None
    etag: str = ""
    last_modified: str = ""
    moved_to: str = ""
    title: str | None = None
    description: str | None = None
    language: str | None = None
    published: str | None = None
    text: str | None = None
    links: tuple[str, ...] = ()
    nofollow: tuple[str, ...] = ()  # of those
    metadata: dict[str, str] = {}
    json_ld: tuple[Any, ...] = ()
    json: msgspec.Raw | None = None
    run: int = 0
    stored: str = ""


def when(wall: float) -> str:
    """A time as rows have it."""
    return f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def row_of(head: Head, outcome: str, **fields: Any) -> PageRow:  # noqa: ANN401 - those of a row
    """The row of a response; `fields` are what its body says."""
    said = {name.lower(): value for name, value in reversed(head.headers)}
    return PageRow(
        id=head.id, url=head.url, outcome=outcome, status=head.status, depth=head.depth, fetched_at=head.stored,
        seconds=round(head.seconds, 3), content_type=said.get("content-type", "")[:200],
        etag=said.get("etag", "")[:500],
        last_modified=said.get("last-modified", "")[:100], run=head.run, stored=head.stored, **fields,
    )  # fmt: skip


class PageReader:
    """Reads what came: pages, sitemaps, JSON, texts."""

    def __init__(self, rules: PageRules, scope: CrawlScope) -> None:
        self._rules = rules
        self._scope = scope

    def read(self, head: Head, body: bytes) -> ReadAnswer:
        """What came of a response with a good status."""
        self._scope.hosts.update(head.hosts)
        if head.status == 304:
            return self._unchanged(head, body)
        if head.function == SITEMAP:
            return read_listed(head, body, self._scope)
        kind = _content_type(head)
        media = kind.partition(";")[0].strip().lower()
        if media in _HTML or (media in _UNSAID and _looks_like_html(body)):
            return self._page(head, body, kind)
        return read_document(head, body, keep_noindex=self._rules.keep_noindex)

    def _page(self, head: Head, body: bytes, kind: str) -> ReadAnswer:
        said = _said_by_headers(head)
        facts = read_page(body, kind or None, head.url, text=self._rules.text)
        said |= frozenset(facts.robots)
        _put_headers(facts, head)
        every = [link.url for link in facts.links]
        others = [facts.canonical, *facts.alternates.values(), facts.refresh]
        every += dict.fromkeys(url for url in others if url is not None and url not in set(every))
        cut = "cut: " + "; ".join(facts.cut) if facts.cut else ""
        row = row_of(head, "OK", bytes=len(body), charset=facts.charset, detail=cut)
        nofollow = tuple(link.url for link in facts.links if "nofollow" in link.rel.split())
        is_shown = self._rules.keep_noindex or not ("noindex" in said or _is_past(said, head.at))
        if is_shown:
            _put_facts(row, facts, tuple(every))
            row.nofollow = nofollow
            if said:
                row.metadata = {**row.metadata, "robots": ", ".join(sorted(said))}
        answer = ReadAnswer(lines=(msgspec.json.encode(row),), text=text_digest(facts, head.url), is_whole=is_shown)
        said_now = (facts.title, facts.description, facts.published, facts.text or facts.all_text, facts.json_ld)
        answer.version = blake2b(msgspec.json.encode(said_now), digest_size=8).digest()
        answer.is_bare = self._rules.finds_bare and needs_scripts(facts.all_text or facts.text or "", body)
        return self._lead_on(head, every, nofollow, answer, said)

    def _unchanged(self, head: Head, line: bytes) -> ReadAnswer:
        """The same links as in the row of an earlier run."""
        old = msgspec.json.decode(line, type=PageRow)
        row = row_of(head, "NOT_MODIFIED")
        answer = ReadAnswer(lines=(msgspec.json.encode(row),), end="unchanged", code="NOT_MODIFIED")
        said = frozenset(old.metadata.get("robots", "").split(", "))
        return self._lead_on(head, list(old.links), old.nofollow, answer, said)

    def _lead_on(
        self, head: Head, links: list[str], nofollow: tuple[str, ...], answer: ReadAnswer, said: frozenset[str]
    ) -> ReadAnswer:
        """Add to the answer which of the links are followed."""
        passed = set(nofollow)
        urls = [url for url in links if url not in passed] if "nofollow" not in said and self._rules.depth else []
        wanted = [url for url in urls if self._scope.wants(url)]
        has_host = self._scope.has_host
        named = (url for url in urls if url.endswith((".xml", ".txt", ".gz")) and is_sitemap(url))
        maps = {url for url in named if has_host(url.split("/", 3)[2])}
        if maps:
            wanted = [url for url in wanted if url not in maps]
            answer.requests = tuple(FoundRequest(url, SITEMAP) for url in maps)
        if head.depth < self._rules.depth:
            answer.links = tuple(wanted)
        else:
            answer.deep = len(wanted)
        return answer


def read_listed(
    head: Head, body: bytes, scope: CrawlScope, function_for: Callable[[str], str | None] = lambda _: ""
) -> ReadAnswer:
    """What a sitemap lists: pages, each for the function that `function_for` names, and further sitemaps.

    A sitemap costs no depth: what it lists is one link from the beginning.
    """
    facts, stored = read_sitemap(body, head.url), Stored.unpack(head.data)
    named = [(url, function_for(url) if scope.wants(url) else None) for url in facts.pages]
    at = facts.modified
    found = [FoundRequest(url, name, modified=at.get(url, 0.0)) for url, name in named if name is not None]
    if stored.level < DEEPEST_SITEMAP:
        data = msgspec.structs.replace(Stored(), level=stored.level + 1).pack()
        inner = [url for url in facts.sitemaps if scope.has_host(url.split("/", 3)[2])]
        found += [FoundRequest(url, SITEMAP, data=data) for url in inner]
    return ReadAnswer(end="sitemap", detail="; ".join(facts.cut), requests=tuple(found))


def read_document(head: Head, body: bytes, *, keep_noindex: bool) -> ReadAnswer:
    """What came of a response that is no page."""
    kind = _content_type(head)
    media = kind.partition(";")[0].strip().lower()
    row = row_of(head, "OK", bytes=len(body))
    said = _said_by_headers(head)
    if ("noindex" in said or _is_past(said, head.at)) and not keep_noindex:
        return ReadAnswer(lines=(msgspec.json.encode(row),))
    is_json = media.endswith(("/json", "+json"))
    if is_json:
        try:
            row.json = msgspec.Raw(msgspec.json.format(in_utf8(body, kind), indent=-1))
        except (ValueError, RecursionError) as error:
            row.detail = f"it is no JSON: {error}"[:200]
    is_text = is_json or media.startswith("text/") or media.endswith(("/xml", "+xml"))
    if row.json is None and (is_text or (not media and not _BINARY.search(body[:1445]))):
        row.text, row.charset = decode(body[:MAX_TEXT], charset_of(kind))
        if len(body) > MAX_TEXT:
            row.detail = f"cut: {len(body) - MAX_TEXT:,} bytes after the first {MAX_TEXT:,}"
    return ReadAnswer(lines=(msgspec.json.encode(row),))


def _said_by_headers(head: Head) -> frozenset[str]:
    return directives(value for name, value in head.headers if name.lower() == "x-robots-tag")


def _put_facts(row: PageRow, facts: PageFacts, links: tuple[str, ...]) -> None:
    row.title, row.description, row.language = facts.title, facts.description, facts.language
    row.published, row.text, row.links, row.json_ld = facts.published, facts.text, links, facts.json_ld
    named = {"canonical": facts.canonical, "refresh": facts.refresh}
    named |= {f"hreflang:{language}": url for language, url in facts.alternates.items()}
    row.metadata = facts.metadata | {name: url for name, url in named.items() if url is not None}


def _put_headers(facts: PageFacts, head: Head) -> None:
    """What headers say instead of tags."""
    links = [value for name, value in head.headers if name.lower() == "link"]
    refresh = next((value for name, value in head.headers if name.lower() == "refresh"), "")
    for field, target in (("canonical", link_of(links, "canonical")), ("refresh", refresh_target(refresh))):
        if target and getattr(facts, field) is None:
            with suppress(UrlError):
                setattr(facts, field, normalise_url(target, head.url))


def _is_past(said: frozenset[str], wall: float) -> bool:
    """Whether a page is not to be shown since a time that it names."""
    for each in said:
        if each.startswith("unavailable_after:"):
            with suppress(ValueError, IndexError):
                return parsedate_to_datetime(each.partition(":")[2].strip()).timestamp() < wall
    return False


def _content_type(head: Head) -> str:
    """The last Content-Type that is one; without a slash it says nothing."""
    said = [value for name, value in head.headers if name.lower() == "content-type" and "/" in value.partition(";")[0]]
    return said[-1] if said else ""


def _looks_like_html(body: bytes) -> bool:
    """Whether a body of no said type begins as pages do, behind comments."""
    start = body[:4096].lstrip(b"\xef\xbb\xbf \t\r\n\f")
    while start.startswith(b"<!--"):
        end = start.find(b"-->", 4)
        if end < 0:
            return False
        start = start[end + 3 :].lstrip()
    return start.lower().startswith(_STARTS)


def text_digest(facts: PageFacts, url: str) -> bytes:
    """What is the same for two pages that say the same: without words of the address, dates, and where links lead."""
    if facts.all_text:  # as it is: its words would cost more than all else of the page
        return blake2b(f"{facts.title or ''}\n{facts.all_text}".encode(), digest_size=8).digest()
    text = _TARGETS.sub("]", f"{facts.title or ''}\n{facts.text or ''}")
    left_out = _DATES.union(_words(url))
    return blake2b(b" ".join([word for word in _words(text) if word not in left_out]), digest_size=8).digest()


def _words(text: str) -> list[bytes]:
    return text.lower().encode().translate(_PARTED).split()
