"""What a sitemap lists: XML, an index of more of them, a feed, or a text with a URL on each line; gzipped or not.

The limits are those of the protocol (sitemaps.org), and beyond them what keeps a stranger's XML from costing more than
its size: no DTD, so no entities, and bounds on depth, elements and names.
"""

import re
import zlib
from datetime import UTC, datetime
from xml.parsers import expat

import msgspec

from sanderling.extract.charset import decode
from sanderling.ids import MAX_INPUT, UrlError, normalise_url

MAX_SITEMAP = 50 * 2**20  # bytes, unpacked; the protocol's limit
MAX_ENTRIES = 50_000  # the protocol's limit; entries that are no URL count, since they take as long
# An entry has four elements, with pictures and translations some dozens. A million take a second.
MAX_ELEMENTS = 20 * MAX_ENTRIES
MAX_DEPTH = 200
MAX_NAMES = 2_000  # of elements and attributes, which expat keeps

_ROOTS = frozenset({"urlset", "sitemapindex", "rss", "feed", "RDF"})
# Parent and name, without prefixes: namespaces are forgotten, misspelled and left undeclared. The parent tells a page
# from the image on it, which is an `image:loc` within an `image:image`.
_PAGE = frozenset({("url", "loc"), ("item", "link")})
_INDEXED = ("sitemap", "loc")
_DECLARED = re.compile(rb"""\s{0,99}<\?xml[^>]{1,200}?encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._-]{1,40})["']""")
# An ampersand that begins no reference of XML. In CDATA it is one anyway, so that is taken as a whole.
_AMPERSAND = re.compile(
    r"(<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+)|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)"
)


class SitemapFacts(msgspec.Struct, omit_defaults=True):
    """What a sitemap lists: normal URLs, each once, in its order, without its own."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()  # what was not read, and why
    modified: dict[str, float] = {}  # when pages last changed, in seconds since 1970; a day is over by then


def is_sitemap(url: str) -> bool:
    """Whether the normal URL `url` has a name as sitemaps usually have."""
    name = url.partition("?")[0].rpartition("/")[2].lower().removesuffix(".gz")
    return "sitemap" in name and name.endswith((".xml", ".txt"))


def read_sitemap(body: bytes, url: str) -> SitemapFacts:
    """Read the sitemap that was fetched from the normal URL `url`. What cannot be read is named in `cut`."""
    cut: list[str] = []
    unpacked = _gunzip(body, cut) if body.startswith(b"\x1f\x8b") else body
    if len(unpacked) > MAX_SITEMAP:
        cut.append(f"what follows the first {MAX_SITEMAP:,} bytes")
        unpacked = unpacked[:MAX_SITEMAP]
    declared = _DECLARED.match(unpacked)
    text = decode(unpacked, declared and declared[1].decode())[0].lstrip("\ufeff \t\r\n")
    found = _Reading(url)
    try:
        if text.startswith("<"):
            try:
                _parse(text, found)
            except expat.ExpatError:
                # The usual fault is an ampersand that is not escaped; all is read again with those mended.
                found = _Reading(url)
                _parse(_AMPERSAND.sub(lambda sign: sign[1] or "&amp;", text), found)
        else:
            for line in text.splitlines():
                # Without a base: any prose would be a list of relative links.
                found.add(line[: 2 * MAX_INPUT], found.pages, None)
    except expat.ExpatError as error:
        if len(unpacked) < MAX_SITEMAP:
            cut.append(f"what follows line {error.lineno:,} of broken XML: {expat.ErrorString(error.code)}")
    except _Stop as stop:
        cut.append(str(stop))
    if found.skipped:
        cut.append(f"{found.skipped:,} entries that are no URL, the first for this: {found.fault}")
    for listed in (found.pages, found.sitemaps):
        listed.pop(url, None)
    return SitemapFacts(tuple(found.pages), tuple(found.sitemaps), tuple(cut), found.modified)


def _gunzip(body: bytes, cut: list[str]) -> bytes:
    """The content of a gzip file, as far as it can be unpacked and little beyond MAX_SITEMAP."""
    unpacked = bytearray()
    stream = zlib.decompressobj(wbits=31)
    try:
        # In pieces, because thousands of members fit into a file, and each has the rest of its piece copied.
        for at in range(0, len(body), 8192):
            piece = body[at : at + 8192]
            while piece and len(unpacked) <= MAX_SITEMAP:
                if stream.eof:
                    if not piece.startswith(b"\x1f"):  # padding
                        return bytes(unpacked)
                    stream = zlib.decompressobj(wbits=31)
                unpacked += stream.decompress(piece, MAX_SITEMAP + 1 - len(unpacked))
                piece = stream.unused_data
    except zlib.error as error:
        cut.append(f"what follows byte {len(unpacked):,} of a broken gzip file: {error}")
    else:
        if not stream.eof and len(unpacked) <= MAX_SITEMAP:
            cut.append(f"what follows byte {len(unpacked):,} of a gzip file that ends early")
    return bytes(unpacked)


class _Stop(Exception):  # noqa: N818 - it ends the reading, and is nobody's error
    """No more of this is read; the message says what and why."""


class _Reading:
    """What was found of one sitemap so far: the handlers of expat."""

    def __init__(self, url: str) -> None:
        self.pages: dict[str, None] = {}
        self.sitemaps: dict[str, None] = {}
        self.skipped = 0
        self.fault = ""  # of the first that was skipped
        self.names: dict[str, str] = {}  # filled by expat
        self._url = url
        self._entries = 0
        self._elements = 0
        self._open: list[str] = [""]  # the names of the elements that we are in
        self._text = ""  # since the last element began
        self.modified: dict[str, float] = {}
        self._page = ""  # of the <url> that we are in
        self._changed = 0.0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        parent = self._open[-1]
        if not parent and name not in _ROOTS:
            raise _Stop(f"everything: the root element is <{name[:40]}>, expected one of {', '.join(sorted(_ROOTS))}")
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise _Stop(f"what follows the first {MAX_ELEMENTS:,} elements")
        if len(self._open) > MAX_DEPTH:
            raise _Stop(f"what follows elements nested more than {MAX_DEPTH} deep")
        if len(self.names) > MAX_NAMES:
            raise _Stop(f"what follows the first {MAX_NAMES:,} different names")
        self._open.append(name)
        self._text = ""
        if (parent, name) == ("entry", "link") and attributes.get("rel", "alternate") == "alternate":
            self.add(attributes.get("href", ""), self.pages, self._url)

    def end(self, _name: str) -> None:
        name = self._open.pop()
        place = self._open[-1], name
        if place in _PAGE:
            self._page = self.add(self._text, self.pages, self._url)
        elif place == ("url", "lastmod"):
            self._changed = _seconds(self._text.strip())
        elif name == "url":
            if self._page and self._changed:
                self.modified[self._page] = self._changed
            self._page, self._changed = "", 0.0
        elif place == _INDEXED:
            self.add(self._text, self.sitemaps, self._url)

    def hold(self, text: str) -> None:
        # More than this is no URL, and is kept just so far that it can be said to be too long.
        if len(self._text) <= MAX_INPUT:
            self._text += text

    def refuse_doctype(self, name: str, *_: object) -> None:
        # Entities could be declared there that unpack to gigabytes. Most often it is a page that says "not found".
        raise _Stop(f"everything: it has a DOCTYPE ({name[:40]}), which sitemaps have none of")

    def add(self, text: str, listed: dict[str, None], base: str | None) -> str:
        """The normal URL that was added, if it is one."""
        text = text.strip()
        if not text:
            return ""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise _Stop(f"what follows the first {MAX_ENTRIES:,} entries")
        try:
            url = normalise_url(text, base)
        except UrlError as error:
            self.skipped += 1
            self.fault = self.fault or str(error)
            return ""
        listed[url] = None
        return url


def _seconds(text: str) -> float:
    """A time of W3C's in seconds since 1970, of a day its end; 0 for what is none."""
    try:
        at = datetime.fromisoformat(text[:40])
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return at.timestamp() + (86_400 if len(text) == len("2026-01-31") else 0)
    except (ValueError, OverflowError):
        return 0.0


def _parse(text: str, found: _Reading) -> None:
    parser = expat.ParserCreate("utf-8", intern=found.names)
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = found.refuse_doctype
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    parser.CharacterDataHandler = found.hold
    # All at once: some versions of expat begin a tag again with each piece that arrives.
    parser.Parse(text.encode(errors="replace"), True)  # noqa: FBT003 - expat takes no keywords
