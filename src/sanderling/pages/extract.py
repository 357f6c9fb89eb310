"""From the bytes of a page to what is worth keeping of it. Any bytes will do: pages come from strangers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sanderling.pages import language as languages
from sanderling.pages.charset import decode, named
from sanderling.pages.kinds import ContentKind, kind_of
from sanderling.pages.links import Links, found_links
from sanderling.pages.markup import attributes, names
from sanderling.pages.reader import Reading, read

# Of HTML no more than this is read; text and JSON, which are kept as they are, are not cut.
LONGEST_HTML = 4 * 2**20
LONGEST_TITLE = 500
LONGEST_VALUE = 2_000
LONGEST_NAME = 100
MOST_METADATA = 64


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


# Names by which pages are known; what else they tell browsers (viewports, colours, tokens) says nothing about them.
_KEPT = names(
    "author keywords description robots generator date language content-language copyright publisher news_keywords"
    " datepublished datemodified last-modified pubdate publishdate published parsely-pub-date"
)
_KEPT_PREFIXES = ("og:", "twitter:", "article:", "book:", "profile:", "dc.", "dcterms.", "citation_")
_NOFOLLOW = re.compile(r"(?<![\w:-])(?:nofollow|none)(?![\w:-])", re.IGNORECASE)
# Of UTF-8. Cut in two, it would make the page look as if it were in something else.
_LAST_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]{1,40})", re.IGNORECASE)


def extract(body: bytes, *, content_type: str, url: str, language: str | None = None) -> ExtractedPage:
    """Read a page that was fetched from `url`; `language` is what Content-Language says."""
    charset = charset_in(content_type)
    kind = kind_of(content_type, body)
    if kind is ContentKind.HTML:
        return _extract_html(body, charset, url, language)
    if kind is ContentKind.OTHER:
        return ExtractedPage(None, None, {}, languages.tag(language), "", (), named(charset) or "binary")
    text, charset = decode(body, charset)
    spoken = languages.tag(language) or (languages.detect(text) if kind is ContentKind.TEXT else None)
    return ExtractedPage(None, None, {}, spoken, text, (), charset)


def charset_in(content_type: str) -> str | None:
    """The charset that a Content-Type names."""
    hint = _CHARSET.search(content_type)
    return hint[1] if hint else None


def _extract_html(body: bytes, charset: str | None, url: str, language: str | None) -> ExtractedPage:
    if len(body) > LONGEST_HTML:
        body = _LAST_CHARACTER.sub(b"", body[:LONGEST_HTML])
    html, charset = decode(body, charset)
    links = Links(url)
    page = Reading._make(read(html.replace("\0", "") if "\0" in html else html, links.starting_at))
    said = [(tag, attributes(raw)) for tag, raw in page.heads]
    metadata = _metadata(said, links)
    nofollow = "robots" in metadata and _NOFOLLOW.search(metadata["robots"])
    return ExtractedPage(
        title=(page.title or metadata.get("og:title", ""))[:LONGEST_TITLE].rstrip() or None,
        description=metadata.get("description") or metadata.get("og:description"),
        metadata=metadata,
        language=_language(said, metadata, language) or languages.detect(page.text),
        text=page.text,
        links=() if nofollow else found_links(page.links, links),
        charset=charset,
    )


_Said = list[tuple[str, Mapping[str, str]]]  # tags and their attributes


def _metadata(said: _Said, links: Links) -> dict[str, str]:
    """What the page says about itself; of two values the first counts."""
    found: dict[str, str] = {}
    for name, value in _named_values(said, links):
        if len(found) == MOST_METADATA:
            break
        if value and len(name) <= LONGEST_NAME:
            found.setdefault(name, value[:LONGEST_VALUE])
    return found


def _named_values(said: _Said, links: Links) -> Iterator[tuple[str, str]]:
    for tag, link in said:
        if tag == "link" and "canonical" in link.get("rel", "").lower().split():
            yield "canonical", links.absolute(link.get("href", "")) or ""
    for tag, meta in said:
        if tag == "meta":
            name = meta.get("name") or meta.get("property") or meta.get("itemprop") or meta.get("http-equiv") or ""
            if (name := name.lower()) in _KEPT or name.startswith(_KEPT_PREFIXES):
                yield name, " ".join(meta.get("content", "").split())


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
