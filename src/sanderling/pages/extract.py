"""From the bytes of a page to what is worth keeping of it. Any bytes will do: pages come from strangers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from sanderling.pages import language as languages
from sanderling.pages.charset import decode, named
from sanderling.pages.kinds import ContentKind, kind_of
from sanderling.pages.links import Links, found_links
from sanderling.pages.markup import MOST_TAGS, attributes, names
from sanderling.pages.reader import Reading, read
from sanderling.pages.robots import AGENT, NOINDEX, directives

LONGEST_TITLE = 500
LONGEST_VALUE = 10_000
LONGEST_REFRESH = 2_000
LONGEST_NAME = 100
MOST_METADATA = 64


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How much of one HTML page is read; text and JSON, which are kept as they are, are not cut."""

    html_bytes: int = 4 * 2**20
    tags: int = MOST_TAGS
    links: int = 50_000  # as many as the largest sitemap may list
    keep_noindex: bool = False  # what asks not to be indexed is kept all the same


READ_RULES = ReadRules()


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """What a page says, and where it leads."""

    title: str | None
    description: str | None
    metadata: dict[str, str]  # names in lower case
    language: str | None  # BCP 47 in lower case, such as `en` or `pt-br`
    text: str  # as Markdown if the page was HTML, else as it came
    links: tuple[str, ...]  # absolute, each once, in the order of the page; none if it says nofollow
    charset: str
    cut: str = ""  # what was not read, and by which limit
    noindex: bool = False  # whether the page or the server asks that nobody keep its text


# Names by which pages are known; what else they tell browsers (viewports, colours, tokens) says nothing about them.
_KEPT = names(
    "author keywords description robots sanderling generator date language content-language copyright publisher"
    " news_keywords datepublished datemodified last-modified pubdate publishdate published parsely-pub-date"
)
_KEPT_PREFIXES = ("og:", "twitter:", "article:", "book:", "profile:", "dc.", "dcterms.", "citation_")
# "5; url=/next" and its variants, by the HTML Standard; without an address it is the page itself.
_REFRESH = re.compile(
    r"\s*+(?:[0-9]++[0-9.]*+|\.[0-9.]*+)\s*+(?:[;,]\s*+|(?<=\s))"
    r"(?:url\s*+=\s*+)?(?:\"([^\"]++)|'([^']++)|([^\"'].*+))",
    re.IGNORECASE | re.DOTALL,
)
_CANONICAL = re.compile(r"<([^<>]++)>[^,<]*?;\s*+rel\s*+=\s*+\"?(?:[^\",;]*\s)?canonical(?=[\s\",;]|\Z)", re.IGNORECASE)
# Of UTF-8. Cut in two, it would make the page look as if it were in something else.
_LAST_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")
_HEADERS = frozenset(("x-robots-tag", "link", "refresh"))
TO_US = frozenset(("robots", AGENT))
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]{1,40})", re.IGNORECASE)


def extract(
    body: bytes,
    *,
    content_type: str,
    url: str,
    language: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    rules: ReadRules = READ_RULES,
) -> ExtractedPage:
    """Read a page that was fetched from `url`; `language` is what Content-Language says, `headers` what else does.

    Of these X-Robots-Tag, Link and Refresh count as the page's own meta and link tags do.
    """
    sent = [(name.lower(), value) for name, value in headers if name.lower() in _HEADERS]
    charset = charset_in(content_type)
    kind = kind_of(content_type, body)
    if kind is ContentKind.HTML:
        return _extract_html(body, charset, Links(url), _HeaderLines(language, sent), rules)
    if kind is ContentKind.OTHER:
        return ExtractedPage(None, None, {}, languages.tag(language), "", (), named(charset) or "binary")
    text, charset = decode(body, charset)
    spoken = languages.tag(language) or (languages.detect(text) if kind is ContentKind.TEXT else None)
    return ExtractedPage(None, None, {}, spoken, text, (), charset)


def charset_in(content_type: str) -> str | None:
    """The charset that a Content-Type names."""
    hint = _CHARSET.search(content_type)
    return hint[1] if hint else None


class _HeaderLines(NamedTuple):
    """What the server says of a page."""

    language: str | None
    lines: list[tuple[str, str]]


def _extract_html(
    body: bytes, charset: str | None, links: Links, sent: _HeaderLines, rules: ReadRules
) -> ExtractedPage:
    cut = []
    if len(body) > rules.html_bytes:
        cut.append(f"{len(body) - rules.html_bytes:,} bytes behind the first {rules.html_bytes:,} (max-html-bytes)")
        body = _LAST_CHARACTER.sub(b"", body[: rules.html_bytes])
    html, charset = decode(body, charset)
    links.charset = charset
    page = Reading._make(read(html.replace("\0", "") if "\0" in html else html, links.starting_at, rules.tags))
    if page.cut:
        cut.append(f"what is behind the first {rules.tags:,} tags (max-tags)")
    said = [(tag, attributes(raw)) for tag, raw in page.heads]
    leads = [(name, url) for name, href in _leads(said, sent.lines) if (url := links.absolute(href))]
    metadata = _metadata(said, leads)
    asked = _asked(said, sent.lines)
    follow = "nofollow" not in asked and "none" not in asked
    found = found_links(page.links, (url for _, url in leads), links) if follow else ()
    if len(found) > rules.links:
        cut.append(f"{len(found) - rules.links:,} links behind the first {rules.links:,} (max-links)")
    title = page.title or metadata.get("og:title", "")
    if len(title) > LONGEST_TITLE:
        cut.append(f"{len(title) - LONGEST_TITLE:,} characters of the title behind the first {LONGEST_TITLE:,}")
    if long := [name for name, value in metadata.items() if len(value) > LONGEST_VALUE]:
        metadata |= {name: metadata[name][:LONGEST_VALUE] for name in long}
        cut.append(f"{', '.join(long[:3])} behind the first {LONGEST_VALUE:,} characters")
    whole = ExtractedPage(
        title=title[:LONGEST_TITLE].rstrip() or None,
        description=metadata.get("description") or metadata.get("og:description"),
        metadata=metadata,
        language=_language(said, metadata, sent.language) or languages.detect(page.text),
        text=page.text,
        links=found[: rules.links],
        charset=charset,
        cut=f"cut: {'; '.join(cut)}" if cut else "",
    )
    if rules.keep_noindex or asked.isdisjoint(NOINDEX):
        return whole
    # As Nutch does: the URL has its row and its links are followed, but what the page says is not kept.
    return replace(whole, title=None, description=None, metadata={}, text="", noindex=True)


def _asked(said: "_Said", sent: list[tuple[str, str]]) -> frozenset[str]:
    """What the page and its server ask of robots in general and of us; both count, so the stricter does."""
    own = (meta.get("content", "") for tag, meta in said if tag == "meta" and meta.get("name", "").lower() in TO_US)
    lines = [value for name, value in sent if name == "x-robots-tag"]
    return directives([*own, *lines]) if lines or said else frozenset()


_Said = list[tuple[str, Mapping[str, str]]]  # tags and their attributes


def _metadata(said: _Said, leads: list[tuple[str, str]]) -> dict[str, str]:
    """What the page says about itself; of two values the first counts, and languages are the first to be left out."""
    found: dict[str, str] = {}
    others = [lead for lead in leads if lead[0].startswith("hreflang:")]
    for name, value in chain((lead for lead in leads if lead not in others), _named_values(said), others):
        if len(found) == MOST_METADATA:
            break
        if value and len(name) <= LONGEST_NAME:
            found.setdefault(name, value)
    return found


def _named_values(said: _Said) -> Iterator[tuple[str, str]]:
    for tag, meta in said:
        if tag == "meta":
            name = meta.get("name") or meta.get("property") or meta.get("itemprop") or meta.get("http-equiv") or ""
            if (name := name.lower()) in _KEPT or name.startswith(_KEPT_PREFIXES):
                yield name, " ".join(meta.get("content", "").split())


def _leads(said: _Said, sent: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Where a page leads beside its links, and why: its canonical, other languages, a refresh."""
    for tag, each in said:
        rels = each.get("rel", "").lower().split() if tag == "link" else ()
        if "canonical" in rels:
            yield "canonical", each.get("href", "")
        elif "alternate" in rels and each.get("hreflang"):
            yield f"hreflang:{each['hreflang'].strip().lower()}", each.get("href", "")
        elif tag == "meta" and each.get("http-equiv", "").lower() == "refresh":
            yield "refresh", _refresh(each.get("content", ""))
    for name, value in sent:
        if name == "link" and (found := _CANONICAL.search(value[:LONGEST_REFRESH])):
            yield "canonical", found[1]
        elif name == "refresh":
            yield "refresh", _refresh(value)


def _refresh(value: str) -> str:
    """Where a refresh leads; empty for the page itself."""
    found = _REFRESH.match(value[:LONGEST_REFRESH])
    return (found[1] or found[2] or found[3]) if found else ""


def _language(said: _Said, metadata: dict[str, str], header: str | None) -> str | None:
    """What the page says its language is, else the server."""
    page = next((found for tag, found in said if tag == "html"), {})
    for value in (
        page.get("lang") or page.get("xml:lang"),
        header,
        metadata.get("content-language"),
        metadata.get("language"),
        metadata.get("og:locale"),
    ):
        # Several languages are a list of who it is for, not what it is in.
        known = languages.tag(value)
        if known:
            return known
    return None
