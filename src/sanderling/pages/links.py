"""Where a page leads: its links as whole URLs."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import urljoin, urlsplit

from sanderling.pages.charset import escape_in
from sanderling.pages.markup import attributes
from sanderling.pages.reader_python import Heads

# Browsers and servers stop at 2,000 to 8,000 characters.
LONGEST_URL = 8_192

# What may be put behind the base as it is, without looking for dots to resolve.
_PLAIN = re.compile(r"[\w%~-][\w%~./?&=+,;@!-]*", re.ASCII)
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_LED_TO = frozenset(("next", "prev", "canonical", "sitemap"))
_NOISE, _NOISE_INSIDE = re.compile(r"[\0-\x20]"), re.compile(r"[\t\n\r]")
_FOREIGN = re.compile(r"[^\0-\x7f]+")
_HOST_BEGINS = re.compile(r"\A((?:https?:)?)/{3,}", re.IGNORECASE)
_CONTROLS = "".join(map(chr, range(33)))


class Links:
    """What `href` means on one page, whose text is in `charset`."""

    def __init__(self, url: str) -> None:
        self.charset = "utf-8"
        self._known: dict[str, str | None] = {}
        self._start_at(url)

    def _start_at(self, url: str) -> None:
        self.base = url.partition("#")[0]
        path = self.base.partition("?")[0]
        self._origin = "/".join(path.split("/", 3)[:3])
        self._folder = path[: path.rfind("/") + 1] if path.count("/") > 2 else self._origin + "/"

    def starting_at(self, heads: Heads) -> Callable[[str], str | None]:
        """`absolute`, once the page has been asked whether its links start elsewhere."""
        for tag, raw in heads:
            if tag == "base" and (href := attributes(raw).get("href")) is not None:
                self._start_at(_joined(self.base, self.absolute(href) or "") or self.base)
                self._known.clear()
                break
        return self.absolute

    def absolute(self, href: str) -> str | None:
        """`href` as a URL that can be asked for; None for mail, scripts, data and what is no URL."""
        if href not in self._known:
            clean = href if not _NOISE.search(href) else _NOISE_INSIDE.sub("", href.strip(_CONTROLS))
            if ("\\" in clean or "///" in clean) and len(clean) <= LONGEST_URL:
                clean = _slashed(clean)
            url = self._resolved(clean)
            self._known[href] = url if url is None or url.isascii() else self._encoded(url)
        return self._known[href]

    def _encoded(self, url: str) -> str:
        """Its query in the encoding of the page, as browsers send it; UTF-8, which all else is sent in, is left."""
        front, mark, query = url.partition("?")
        query, hash_, fragment = query.partition("#")
        if self.charset == "utf-8" or "#" in front or query.isascii():
            return url
        return front + mark + _FOREIGN.sub(lambda run: escape_in(run[0], self.charset), query) + hash_ + fragment

    def _resolved(self, href: str) -> str | None:
        if not href or len(href) > LONGEST_URL:
            return None
        # Most links are of these two kinds, and urljoin takes five times as long.
        if href[0] == "/" and href[1:2] != "/" and "/." not in href:
            return self._origin + href
        if href.startswith(("https://", "http://")):
            return href
        scheme = _SCHEME.match(href)
        if scheme and scheme[1].lower() not in ("http", "https"):
            return None
        if not scheme and "/." not in href and _PLAIN.fullmatch(href):
            return self._folder + href
        return _joined(self.base, href)


def _slashed(href: str) -> str:
    """With the slashes that browsers read: a backslash before the query is one, and two are enough before a host."""
    ends = min((at for mark in "?#" if (at := href.find(mark)) >= 0), default=len(href))
    front = href[:ends].replace("\\", "/")
    return _HOST_BEGINS.sub(r"\1//", front) + href[ends:]


def found_links(said: Iterable[tuple[str, str, str]], leads: Iterable[str], links: Links) -> tuple[str, ...]:
    """Every link of a page (tag, address and rel) that it does not ask us to leave alone, once, in order.

    Behind them come `leads`, where it leads in other ways.
    """
    found: dict[str, None] = {}
    for tag, href, rel in said:
        said_of_it = rel.lower()
        if "nofollow" in said_of_it or (tag == "link" and _LED_TO.isdisjoint(said_of_it.split())):
            continue
        if url := links.absolute(href):
            found[url] = None
    return tuple(found | dict.fromkeys(leads))


def _joined(base: str, href: str) -> str | None:
    try:
        url = urljoin(base, href)
        return url if urlsplit(url).scheme in ("http", "https") else None
    except ValueError:  # a bad address in brackets, say
        return None
