"""What a page says: title, links, metadata, language and main text, from its bytes.

The bytes are a stranger's, so everything here is linear, or bounded by the constants below and by the reader process
that runs it. What a bound cut off is named in `PageFacts.cut`.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from resiliparse.parse.lang import detect_fast
from selectolax.lexbor import LexborHTMLParser

from sanderling.extract.charset import charset_of, decode
from sanderling.extract.content import main_content
from sanderling.extract.markdown import to_markdown
from sanderling.extract.robots import directives, is_for_us
from sanderling.ids import MAX_URL, UrlError, normalise_url, origin_of

TextMode = Literal["fast", "best", "none"]

MAX_HTML = 4 * 2**20  # bytes of a page that are read
MAX_LINKS = 50_000  # as many as the largest sitemap may list
MAX_TITLE = 500  # characters
MAX_VALUE = 10_000  # characters of one value of metadata
MAX_METADATA = 64
MAX_JSON_LD = 256 * 1024  # characters of a page's scripts of JSON-LD together
MAX_JSON_LD_DEPTH = 32

# Names by which pages are known; what else they tell browsers (viewports, colours, tokens) says nothing about them.
_METADATA_NAMES = (
    "author keywords description generator date language content-language copyright publisher news_keywords"
    " datepublished datemodified last-modified pubdate publishdate published parsely-pub-date"
)
_METADATA = frozenset(_METADATA_NAMES.split())
_METADATA_PREFIXES = ("og:", "twitter:", "article:", "book:", "profile:", "dc.", "dcterms.", "citation_")
# The first of these that holds a date says when a page was published.
_PUBLISHED = (
    "article:published_time datepublished article:published parsely-pub-date og:published_time"
    " citation_publication_date dcterms.created dc.date.issued dc.date pubdate publishdate published date"
)
_LINKS = "a[href],area[href],frame[src],iframe[src],link[href]"
_LED_TO = frozenset({"next", "prev"})  # of <link>: where people would go on reading
_CACHED_HREF = 200  # characters; longer links are not repeated from page to page
_SAMPLE = 2_000  # characters that a language is detected by
_FEWEST_LETTERS = 40  # fewer are a menu or a heading, and names say nothing about a language
_FARTHEST = 1_100  # of detect_fast, whose own bound is 1,200: the distance to the nearest language


class MissingExtraError(ImportError):
    """An optional library is needed and not installed. The message names the extra."""


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a page leads, and what it says about that (`nofollow`, `next`, …)."""

    url: str
    rel: str = ""


class PageFacts(msgspec.Struct, omit_defaults=True):
    """What a page says of itself, and where it leads. Links are absolute, normal, each once, in the page's order."""

    charset: str
    title: str | None = None
    description: str | None = None
    language: str | None = None  # BCP 47 in lower case: en, pt-br
    published: str | None = None  # ISO 8601
    canonical: str | None = None
    alternates: dict[str, str] = {}  # this page in other languages: hreflang in lower case, URL
    refresh: str | None = None  # where a meta refresh leads
    robots: tuple[str, ...] = ()  # directives for all and for us: noindex, nofollow, …
    links: tuple[Link, ...] = ()
    metadata: dict[str, str] = {}
    json_ld: tuple[Any, ...] = ()
    text: str | None = None  # the main text as Markdown
    all_text: str = ""  # what stands anywhere in the page, where no main text is wanted
    cut: tuple[str, ...] = ()  # what was not read, and which bound cut it


def read_page(body: bytes, content_type: str | None, url: str, *, text: TextMode = "fast") -> PageFacts:
    """Read the page that was fetched from the normal URL `url`."""
    cut = []
    if len(body) > MAX_HTML:
        cut.append(f"{len(body) - MAX_HTML:,} bytes after the first {MAX_HTML:,} bytes")
        # Not within a character: that would make the page look as if it were not UTF-8.
        body = body[: max(body.rfind(b" ", 0, MAX_HTML), body.rfind(b"<", 0, MAX_HTML), 0) or MAX_HTML]
    html, charset = decode(body, charset_of(content_type))
    tree = LexborHTMLParser(html)
    metas = [meta.attributes for meta in tree.css("meta")]
    resolve = _Resolver(tree, url, charset)
    metadata = _metadata(metas, cut)
    json_ld = _json_ld(tree, cut)
    links, canonical, alternates = _links(tree, resolve, cut)
    title = _title(tree) or metadata.get("og:title", "")
    if len(title) > MAX_TITLE:
        cut.append(f"{len(title) - MAX_TITLE:,} characters of the title after the first {MAX_TITLE:,}")
    said = [meta.get("content") or "" for meta in metas if is_for_us(meta.get("name") or "")]
    refreshes = (meta.get("content") or "" for meta in metas if (meta.get("http-equiv") or "").lower() == "refresh")
    main_text = None
    if text == "best":
        main_text = _best_text(html)
    elif text == "fast" and tree.body is not None:
        content = main_content(tree.body, is_article=metadata.get("og:type") == "article")
        main_text = to_markdown(content, resolve)
    return PageFacts(
        charset=charset,
        title=title[:MAX_TITLE].rstrip() or None,
        description=metadata.get("description") or metadata.get("og:description"),
        language=_declared_language(tree, metadata) or _detected_language(tree, main_text),
        published=_published(metadata, json_ld),
        canonical=canonical,
        alternates=alternates,
        refresh=next((target for content in refreshes if (target := resolve(refresh_target(content)))), None),
        robots=tuple(sorted(directives(said))),
        links=links,
        metadata=metadata,
        json_ld=json_ld,
        text=main_text,
        all_text=tree.body.text(separator=" ") if text == "none" and tree.body is not None else "",
        cut=tuple(cut),
    )


def check_text_mode(text: TextMode) -> None:
    """Raise MissingExtraError now and not with the first page."""
    if text == "best" and find_spec("trafilatura") is None:
        raise MissingExtraError(
            "text = best needs trafilatura, which is not installed; type: pip install 'sanderling[text]'"
        )


def _best_text(html: str) -> str:
    check_text_mode("best")
    # Imported here because it takes 0.3 s and 40 MB, and is an extra.
    import trafilatura  # noqa: PLC0415

    return trafilatura.extract(html, output_format="markdown", include_comments=False, include_links=True) or ""


class _Resolver:
    """Makes normal URLs of the hrefs of one page."""

    def __init__(self, tree: LexborHTMLParser, url: str, charset: str) -> None:
        self.base = url
        base = tree.css_first("base[href]")
        if base is not None:
            self.base = _normalise(base.attributes.get("href") or "", url) or url
        self._root = origin_of(self.base) + "/"
        self._known: dict[str, str | None] = {}
        self._charset = "utf-8" if charset.startswith("utf-16") else charset

    def __call__(self, href: str | None) -> str | None:
        """The normal URL that `href` means; None for mail, scripts, data and what is no URL."""
        if not href:
            return None
        if self._charset != "utf-8" and not href.isascii():
            href = self._encode_query(href)
        if len(href) <= _CACHED_HREF and href.startswith(("/", "https://", "http://")):
            return _normalise_again(href, self._root)
        if href not in self._known:
            self._known[href] = _normalise(href, self.base)
        return self._known[href]

    def _encode_query(self, href: str) -> str:
        """Browsers send a query in the charset of its page, and what that cannot express as `&#1078;`."""
        front, mark, query = href.partition("?")
        query, sharp, fragment = query.partition("#")
        if "#" in front or query.isascii():
            return href
        encoded = "".join(
            sign if sign.isascii() else quote(sign.encode(self._charset, "xmlcharrefreplace"), safe="")
            for sign in query[: 10 * MAX_URL]
        )
        return front + mark + encoded + sharp + fragment


def _normalise(href: str, base: str) -> str | None:
    try:
        return normalise_url(href, base)
    except UrlError:
        return None


# The pages of a site repeat the links of its menus; these mean the same on all of them.
_normalise_again = lru_cache(maxsize=8192)(_normalise)


def _links(
    tree: LexborHTMLParser, resolve: _Resolver, cut: list[str]
) -> tuple[tuple[Link, ...], str | None, dict[str, str]]:
    """Every link once, the canonical URL, and the page in other languages."""
    found: dict[str, Link] = {}
    alternates: dict[str, str] = {}
    canonical = None
    skipped = 0
    for node in tree.css(_LINKS):
        said = node.attributes
        rel = said.get("rel") or ""
        if node.tag == "link":
            rels = rel.lower().split()
            if "canonical" in rels:
                canonical = canonical or resolve(said.get("href"))
            language = (said.get("hreflang") or "").strip().lower()[:35]
            if language and "alternate" in rels and len(alternates) < MAX_METADATA:
                other = resolve(said.get("href"))
                if other is not None:
                    alternates.setdefault(language, other)
            if _LED_TO.isdisjoint(rels):
                continue
        url = resolve(said.get("href") or said.get("src"))
        if url is None:
            continue
        known = found.get(url)
        if known is None:
            if len(found) == MAX_LINKS:
                skipped += 1
                continue
            found[url] = Link(url, " ".join(rel.lower().split())[:100])
        elif known.rel and not rel:
            # One plain link is enough to follow it.
            found[url] = Link(url)
    if skipped:
        cut.append(f"{skipped:,} links after the first {MAX_LINKS:,} links")
    return tuple(found.values()), canonical, alternates


def _title(tree: LexborHTMLParser) -> str:
    # Not any <title>: pictures (SVG) have titles too.
    title = tree.css_first("head > title,body > title")
    return " ".join(title.text().split()) if title is not None else ""


def _metadata(metas: list[dict[str, str | None]], cut: list[str]) -> dict[str, str]:
    """What the page says about itself by its meta tags; of two values the first counts."""
    found: dict[str, str] = {}
    for meta in metas:
        name = (
            meta.get("name") or meta.get("property") or meta.get("itemprop") or meta.get("http-equiv") or ""
        ).lower()
        if name in found or not (name in _METADATA or name.startswith(_METADATA_PREFIXES)) or len(name) > 100:
            continue
        value = meta.get("content") or ""
        if len(value) > MAX_VALUE:
            cut.append(f"{len(value) - MAX_VALUE:,} characters of {name} after the first {MAX_VALUE:,}")
        value = " ".join(value[:MAX_VALUE].split())
        if not value:
            continue
        if len(found) == MAX_METADATA:
            cut.append(f"meta tags after the first {MAX_METADATA} with a value")
            break
        found[name] = value
    return found


def _json_ld(tree: LexborHTMLParser, cut: list[str]) -> tuple[Any, ...]:
    found = []
    room = MAX_JSON_LD
    for script in tree.css('script[type="application/ld+json" i]'):
        text = script.text().strip()
        if len(text) > room:
            cut.append(f"JSON-LD after the first {MAX_JSON_LD - room:,} of at most {MAX_JSON_LD:,} characters")
            break
        room -= len(text)
        try:
            document = msgspec.json.decode(text)
            msgspec.msgpack.encode(document)  # refuses integers that no other format can hold
        except (msgspec.DecodeError, OverflowError, RecursionError) as error:
            cut.append(f"JSON-LD that cannot be read: {error}"[:200])
            continue
        if any(depth > MAX_JSON_LD_DEPTH for _, _, depth in _values(document)):
            cut.append(f"JSON-LD nested deeper than {MAX_JSON_LD_DEPTH}")
            continue
        found.append(document)
    return tuple(found)


def _values(document: object) -> Iterator[tuple[str, object, int]]:
    """Key, value and depth of everything in a JSON document, without recursion, in document order."""
    waiting: list[tuple[str, object, int]] = [("", document, 0)]
    while waiting:
        key, value, depth = waiting.pop()
        yield key, value, depth
        if isinstance(value, dict):
            waiting += [(name, inner, depth + 1) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(key, inner, depth + 1) for inner in reversed(value)]


def _published(metadata: dict[str, str], json_ld: tuple[Any, ...]) -> str | None:
    """When the page says that it was published. What is no date by ISO 8601 is not guessed at."""
    said = [metadata[name] for name in _PUBLISHED.split() if name in metadata]
    for document in json_ld:
        said += [value for key, value, _ in _values(document) if key == "datePublished" and isinstance(value, str)]
    for value in said:
        try:
            moment = datetime.fromisoformat(value.strip()[:40])
        except ValueError:
            continue
        # A date alone stays one.
        return value.strip() if len(value.strip()) == 10 else moment.isoformat()
    return None


def refresh_target(content: str) -> str | None:
    """Where `5; url=/next` leads; None for the page itself."""
    _, mark, target = content[: 2 * MAX_URL].replace(",", ";", 1).partition(";")
    target = target.strip()
    if not mark or not target:
        return None
    if target[:3].lower() == "url" and target[3:].lstrip().startswith("="):
        target = target[3:].lstrip()[1:].lstrip()
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0]
    return target


def _declared_language(tree: LexborHTMLParser, metadata: dict[str, str]) -> str | None:
    root = tree.root
    said = root.attributes if root is not None else {}
    names = ("content-language", "language", "og:locale", "dc.language")
    for value in (said.get("lang"), said.get("xml:lang"), *(metadata.get(name) for name in names)):
        tag = (value or "").strip().lower().replace("_", "-")
        primary = tag.split("-")[0]
        # Several languages are a list of readers, and say nothing about the text.
        if 2 <= len(primary) <= 3 and len(tag) <= 35 and tag.replace("-", "").isalnum() and tag.isascii():
            return tag
    return None


def _detected_language(tree: LexborHTMLParser, main_text: str | None) -> str | None:
    sample = main_text or ""
    if main_text is None:
        for paragraph in tree.css("p"):
            sample += paragraph.text()[:_SAMPLE] + "\n"
            if len(sample) > _SAMPLE:
                break
    sample = sample[:_SAMPLE]
    if sum(map(str.isalpha, sample)) < _FEWEST_LETTERS:
        return None
    language, distance = detect_fast(sample)
    return language if distance < _FARTHEST and language != "unknown" else None
