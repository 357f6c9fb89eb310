"""Read a sitemap: XML, an index of more of them, a feed, or a text with a URL on each line; packed or not.

Whatever the bytes, what could be read comes back, with the problem in words. The limits are those of the protocol
(sitemaps.org), and beyond them what keeps an attacker's XML from costing more than its size: no DTD, so no entities;
bounds on depth, on the length of a tag and on how many names there are, since expat keeps each of them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from xml.parsers import expat

from sanderling.fetch.decode import BROKEN, DECODERS
from sanderling.pages.urls import LONGEST_INPUT, UrlError, normalise

MOST_BYTES = 50 * 1024 * 1024  # unpacked; the protocol's limit
MOST_ENTRIES = 50_000  # the protocol's limit; entries that are no URL count, as they take as long
# An entry has four elements; with pictures and translations, some dozens. A feed may hold XHTML.
MOST_ELEMENTS = 40 * MOST_ENTRIES
MOST_DEPTH = 200
MOST_NAMES = 2_000
# One tag or comment. Expat before 2.6 begins it again with each piece that arrives.
LONGEST_TAG = 1024 * 1024
PIECE = 65536
# Packed bytes at a time. Less, because thousands of empty gzip streams fit into it, and each has the rest copied.
PACKED_PIECE = 8192

ROOTS = frozenset({"urlset", "sitemapindex", "rss", "feed", "RDF"})
# Names without their prefix: namespaces are forgotten, misspelled and left undeclared. The parent tells a page from the
# image on it, which is an `image:loc` within an `image:image`.
PAGES = frozenset({("url", "loc"), ("item", "link")})
SITEMAPS = frozenset({("sitemap", "loc")})
# Expat would look up any other as a codec of Python's, of which some are no encodings and some cannot be tabled.
_ENCODING = re.compile(
    r"utf-?8|utf-16(?:le|be)?|us-ascii|iso-8859-(?:[1-9]|1[013456])|windows-125[0-8]|koi8-[ru]", re.IGNORECASE
)
_MISSPELLED_UTF8 = re.compile(rb"""<\?xml[^>]{1,100}encoding=["']utf8["']""", re.IGNORECASE)
# One that begins no reference of XML. In CDATA it is one anyway, which is taken as a whole.
_AMPERSAND = re.compile(
    rb"(<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+)|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)"
)
_NAME = re.compile(r"/[^/?]*sitemap[^/?]*\.(?:xml|txt)(?:\.gz)?(?:\?|\Z)")
_SPACE = b" \t\r\n\xef\xbb\xbf"  # a byte order mark, of UTF-8, is space as well


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What was listed, each URL once and in order, without the sitemap itself."""

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...]
    problem: str  # in words; empty if there was none


def is_sitemap(url: str) -> bool:
    """Whether `url` is called as sitemaps usually are; such are followed from the deepest pages too."""
    return "sitemap" in url and _NAME.search(url) is not None


def read(body: bytes, url: str) -> Sitemap:
    """What the sitemap at `url`, which is normal, lists. Never raises for anything in `body`."""
    reading = _Reading(url)
    try:
        reading.take(body)
    except _BrokenXml as stop:
        whole = b"".join(_Reading(url).unpacked(body))
        # An ampersand as it is, which is the usual fault. What is in UTF-16 is not looked at.
        mended = whole if b"\0" in whole[:64] else _AMPERSAND.sub(lambda found: found[1] or b"&amp;", whole)
        if mended != whole:
            return read(mended, url)
        reading.problems.append(str(stop))
    except _Stop as stop:
        reading.problems.append(str(stop))
    return reading.sitemap()


class _Stop(Exception):  # noqa: N818 - it ends the reading, and is no error of ours
    """No more of this is read. The message says why."""


class _BrokenXml(_Stop):
    """The XML is none."""


class _Reading:
    """One sitemap on its way in."""

    def __init__(self, url: str) -> None:
        self.problems: list[str] = []
        self._url = url
        self._pages: dict[str, None] = {}
        self._sitemaps: dict[str, None] = {}
        self._entries = 0
        self._skipped = 0
        self._fault = ""  # of the first that was skipped
        self._elements = 0
        self._open: list[str] = [""]  # the names of the elements that we are in
        self._text = ""  # since the last element that is wanted began

    def sitemap(self) -> Sitemap:
        for listed in (self._pages, self._sitemaps):
            listed.pop(self._url, None)
        if self._skipped:
            # Most are alike: the first is enough to find the fault.
            self.problems.append(f"entries skipped: {self._skipped:,}, the first for this: {self._fault}")
        return Sitemap(tuple(self._pages), tuple(self._sitemaps), "; ".join(self.problems))

    def take(self, body: bytes) -> None:
        pieces = _stripped(self.unpacked(body))
        first = next(pieces, b"")
        if not first:
            self.problems.append("nothing in it")
        elif first.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):  # the latter are UTF-16
            self._take_xml(first, pieces)
        else:
            self._take_text(first + b"".join(pieces))

    def unpacked(self, body: bytes) -> Iterator[bytes]:
        """The body in pieces, as far as it can be unpacked and is not too large."""
        packed = body.startswith(b"\x1f\x8b")
        size = 0
        try:
            for piece in _gunzipped(body) if packed else _cut(body, PIECE):
                yield piece
                size += len(piece)
                if size > MOST_BYTES:
                    self.problems.append(f"more than {MOST_BYTES:,} bytes: the rest was left")
                    return
        except BROKEN as error:
            self.problems.append(f"gzip broken after {size:,} bytes: {error}")
        except EOFError:
            self.problems.append(f"gzip ends early, after {size:,} bytes")

    def _take_text(self, text: bytes) -> None:
        for line in re.finditer(rb"[^\r\n]+", text):
            # Without a base: any prose would be a list of relative links.
            self._entry(line[0][: 2 * LONGEST_INPUT].decode("utf-8", "replace"), self._pages, None)

    def _take_xml(self, first: bytes, rest: Iterable[bytes]) -> None:
        names: dict[str, str] = {}
        parser = self._parser("utf-8" if _MISSPELLED_UTF8.match(first) else None, names)
        fed = 0
        try:
            for piece in chain([first], rest):
                parser.Parse(piece, False)  # noqa: FBT003 - expat takes no names of arguments
                fed += len(piece)
                if fed - parser.CurrentByteIndex > LONGEST_TAG:
                    raise _Stop(f"a tag or comment of more than {LONGEST_TAG:,} bytes at {_place(parser)}")
                if len(names) > MOST_NAMES:
                    raise _Stop(f"more than {MOST_NAMES:,} different names by {_place(parser)}")
            if not self.problems:  # what we have cut short has no end
                parser.Parse(b"", True)  # noqa: FBT003 - the same
        except expat.ExpatError as error:
            raise _BrokenXml(f"XML broken: {error}") from None

    def _parser(self, encoding: str | None, names: dict[str, str]) -> expat.XMLParserType:
        """A parser that calls us back, and collects all names of elements and attributes in `names`."""
        parser = expat.ParserCreate(encoding, intern=names)
        parser.buffer_text = True
        parser.XmlDeclHandler = _check_encoding
        parser.StartDoctypeDeclHandler = _refuse_dtd
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return parser

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        place = self._open[-1], name
        if not place[0] and name not in ROOTS:
            raise _Stop(f"root element is <{name[:40]}>, expected one of {', '.join(sorted(ROOTS))}")
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            raise _Stop(f"more than {MOST_ELEMENTS:,} elements: the rest was left")
        if len(self._open) > MOST_DEPTH:
            raise _Stop(f"elements nested more than {MOST_DEPTH} deep: the rest was left")
        self._open.append(name)
        if place in PAGES or place in SITEMAPS:
            self._text = ""
        elif place == ("entry", "link") and attributes.get("rel", "alternate") == "alternate":
            self._entry(attributes.get("href", ""), self._pages, self._url)

    def _characters(self, text: str) -> None:
        # More than this is no URL, and is kept just so far that it can be said to be too long.
        if len(self._text) <= LONGEST_INPUT:
            self._text += text

    def _end(self, _: str) -> None:
        name = self._open.pop()
        place = self._open[-1], name
        if place in PAGES or place in SITEMAPS:
            self._entry(self._text, self._pages if place in PAGES else self._sitemaps, self._url)

    def _entry(self, text: str, listed: dict[str, None], base: str | None) -> None:
        if not text.strip():
            return
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise _Stop(f"more than {MOST_ENTRIES:,} entries: the rest was left")
        try:
            listed[normalise(text, base)] = None
        except UrlError as error:
            self._skipped += 1
            self._fault = self._fault or str(error)


def _check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding and not _ENCODING.fullmatch(encoding):
        raise _Stop(f"encoding is {encoding[:40]!r}, expected utf-8")


def _refuse_dtd(name: str, *_: object) -> None:
    # Entities could be declared there that unpack to gigabytes. Most often it is a page that says "not found".
    raise _Stop(f"it has a DOCTYPE ({name[:40]}), which no sitemap needs and none may have here")


def _place(parser: expat.XMLParserType) -> str:
    return f"line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber}"


def _stripped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces without the space before the first character, which XML would mind."""
    for piece in pieces:
        if begins := piece.lstrip(_SPACE):
            yield begins
            break
    yield from pieces


def _gunzipped(body: bytes) -> Iterator[bytes]:
    gzip = DECODERS["gzip"]()
    for packed in _cut(body, PACKED_PIECE):
        yield from gzip.feed(packed)
    if not gzip.finished():
        raise EOFError


def _cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))
