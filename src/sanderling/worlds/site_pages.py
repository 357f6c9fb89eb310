"""The documents of a simulated host, written anew each time they are asked for: same seed, same bytes, nothing stored.

Terms. *Tree*: the numbered pages of a host; page 0 is the front page, and each links to its children, its parent and a
few others. *Extra*: something at a path of its own besides the tree.
"""

import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from random import Random

from sanderling.stores.frontier_rows import End
from sanderling.task import Headers
from sanderling.worlds.weather import Sky, TransportFault, WorldAnswer

BRANCHES = 6  # children of a page: two thousand pages lie within five clicks
VALIDATED = 3  # one page in so many has neither ETag nor Last-Modified
PACKED = 4  # one page in so many is sent gzipped to whoever reads that
WRITTEN = 1_700_000_000  # when page 0 was last changed; page n was n hours later
MOST_DIGITS = 9  # of a number in a path

# The small words make it look like English to whoever tells languages apart.
SMALL = "the of and to in is that for it was on are as with they at be this from have or by one had not but what all"
LARGE = (
    "beach tide wader foam shell gravel dune marsh harbour current flock shore island lagoon estuary pebble reed sand "
    "gull heron plover curlew channel ferry rope anchor lantern pier jetty basin storm breeze horizon morning winter "
    "runs feeds follows gathers turns returns carries crosses measures counts rests waits leaves reaches covers grows "
    "grey pale narrow shallow northern early quiet broad distant salt wet steady low slow bright coastal"
)
WORDS = (SMALL.split() * 3) + LARGE.split()
SENTENCES = ((0, 9), (9, 22), (22, 28), (28, 44))  # of a paragraph: from which word to which
SECTIONS = ("coast", "birds", "tides", "boats", "harbour", "weather", "maps", "notes")
SLUGS = tuple(word for word in LARGE.split()[:36] if len(word) > 3)


@dataclass(frozen=True, slots=True)
class SitePage:
    """What lies at a path: a status, headers and a body, before anything happens to them on the way."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The value under that name."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The numbered pages of a host, and where it and its neighbours are found."""

    seed: int
    name: str
    size: int
    origin: str  # as in http://ordinary-1.example, or with an address and a port
    elsewhere: tuple[str, ...] = ()  # front pages of other hosts that the front page links to
    extras: tuple[str, ...] = ()  # paths besides the tree that the front page links to
    bare: bool = False  # whether its pages link to nothing but the front page

    def path(self, number: int) -> str:
        """Where a page is."""
        if number == 0:
            return "/"
        return f"/{SECTIONS[number % len(SECTIONS)]}/{SLUGS[number * 7 % len(SLUGS)]}-{number}"

    def number(self, path: str) -> int | None:
        """Which page that is; None if it is none of them."""
        if path == "/":
            return 0
        digits = path.rpartition("-")[2]
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
            return None
        number = int(digits)
        return number if number < self.size and self.path(number) == path else None

    def page(self, number: int) -> SitePage:
        """The page of that number."""
        rng = self.chance(self.path(number))
        title = f"{' '.join(rng.choices(WORDS, k=3)).capitalize()} {number}"
        parts = [_paragraph(rng) for _ in range(2 + number % 4)]
        if number % 5 == 0:
            parts.insert(1, _table(rng))
        if number % 7 == 0:
            parts.append(f"<pre><code>for wave in {_slug(rng)}:\n    if wave &lt; 3:\n        wait(wave)</code></pre>")
        body = html(title, "\n".join(parts), self._links(number, rng), home=self.name)
        return SitePage(200, self._headers(number), body)

    def chance(self, what: str) -> Random:
        """Dice of its own for each thing, so that what is asked before changes nothing."""
        return Random(f"{self.seed} {self.name} {what}")

    def _headers(self, number: int) -> Headers:
        headers = [("Content-Type", "text/html; charset=utf-8")]
        if number % VALIDATED != VALIDATED - 1:
            headers += validators(f"{self.seed} {self.name} {number}", WRITTEN + 3600 * number)
        if number % PACKED == 1:
            headers.append(("Vary", "Accept-Encoding"))
        return tuple(headers)

    def _links(self, number: int, rng: Random) -> list[str]:
        if self.bare and number > 0:
            return ["/"]
        first = BRANCHES * number + 1
        children = [] if self.bare else [self.path(child) for child in range(first, min(first + BRANCHES, self.size))]
        if number == 0:
            return [*children, *self.extras, *self.elsewhere]
        others = [self.path(int(rng.random() * self.size)) for _ in range(3)]
        links = [*children, self.path((number - 1) // BRANCHES), others[0], f"{others[1]}#notes", f"..{others[2]}"]
        if number % 10 == 0 and self.elsewhere:
            links.append(self.elsewhere[number // 10 % len(self.elsewhere)])
        return links


@dataclass(frozen=True, slots=True)
class ExtraPage:
    """Something at a path of its own."""

    make: Callable[[Tree], SitePage]
    end: End | None = End.FETCHED  # in a polite crawl; None: no URL of the crawl, as robots.txt is none
    linked: bool = True  # from the front page; else it is found by a redirect or a sitemap


def html(title: str, content: str, links: list[str], *, home: str) -> bytes:
    """A page as a small site would serve it: a head, a line of navigation, what it says, where it leads."""
    listed = "\n".join(f'<li><a href="{link}">{_label(link)}</a></li>' for link in links)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="description" content="{title}, from {home}">
<style>body {{ max-width: 40em; margin: auto }}</style>
</head>
<body>
<nav><a href="/">Home &amp; front page</a> <a href="#notes">Notes</a> <a href="mailto:nobody@{home}">Write</a></nav>
<main>
<h1>{title}</h1>
{content}
<h2 id="notes">Further on</h2>
<ul>
{listed}
</ul>
</main>
<footer>Served by {home}, which does not exist.</footer>
</body>
</html>
""".encode()


def validators(what: str, written: int) -> list[tuple[str, str]]:
    """The ETag and Last-Modified of a document: what a later question may be compared by."""
    # Weak, because the packed and the plain form share it.
    return [("ETag", f'W/"{zlib.crc32(what.encode()):08x}"'), ("Last-Modified", formatdate(written, usegmt=True))]


def deliver(sky: Sky, page: SitePage, *, listens: bool) -> WorldAnswer:
    """The page as it arrives in that weather."""
    if not listens or sky.fault is TransportFault.RESET:
        return WorldAnswer(0, (), b"", sky.latency, sky.fault if listens else TransportFault.REFUSED)
    # Of a body that is empty nothing can be cut.
    fault = sky.fault if page.body else TransportFault.NONE
    length = () if page.status == 304 else (("Content-Length", str(len(page.body))),)
    return WorldAnswer(page.status, (*page.headers, *sky.headers, *length), page.body, sky.latency, fault, sky.pause)


def negotiate(page: SitePage, headers: Mapping[str, str]) -> SitePage:
    """The page as it is sent to whoever asks with these headers, whose names are in lower case: 304 or packed."""
    if _unchanged(page, headers):
        kept = tuple(pair for pair in page.headers if pair[0] in ("ETag", "Last-Modified", "Vary"))
        return SitePage(304, kept)
    if page.header("Vary") == "Accept-Encoding" and "gzip" in headers.get("accept-encoding", ""):
        packed = gzip.compress(page.body, compresslevel=1, mtime=0)
        return SitePage(page.status, (*page.headers, ("Content-Encoding", "gzip")), packed)
    return page


def _unchanged(page: SitePage, headers: Mapping[str, str]) -> bool:
    """RFC 9110, 13.2.2: a list of ETags goes before a date."""
    etag, modified = page.header("ETag"), page.header("Last-Modified")
    if page.status != 200 or etag is None or modified is None:
        return False
    if (asked := headers.get("if-none-match")) is not None:
        return asked.strip() == "*" or etag in (each.strip() for each in asked.split(","))
    try:
        return parsedate_to_datetime(headers["if-modified-since"]) >= parsedate_to_datetime(modified)
    except (KeyError, ValueError, TypeError):  # none, no date, or one without a time zone
        return False


def _paragraph(rng: Random) -> str:
    words = rng.choices(WORDS, k=SENTENCES[-1][1])
    return f"<p>{' '.join(_sentence(words[first:last]) for first, last in SENTENCES)}</p>"


def _sentence(words: list[str]) -> str:
    return " ".join(words).capitalize() + "."


def _slug(rng: Random) -> str:
    return rng.choices(SLUGS)[0]


def _table(rng: Random) -> str:
    rows = "".join(f"<tr><td>{_slug(rng)}</td><td>{int(rng.random() * 100)}</td></tr>\n" for _ in range(4))
    return f"<table>\n<tr><th>what</th><th>how many</th></tr>\n{rows}</table>"


def _label(link: str) -> str:
    return link.partition("#")[0].rstrip("/").rpartition("/")[2].replace("-", " ").capitalize() or "Home"
