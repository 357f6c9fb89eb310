"""Where a page leads: its links as whole URLs."""

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from sanderling.pages.markup import Markup, attributes

MOST_LINKS = 10_000
# Browsers and servers stop at 2,000 to 8,000 characters.
LONGEST_URL = 8_192

# What may be put behind the base as it is, without looking for dots to resolve.
_PLAIN = re.compile(r"[\w%~-][\w%~./?&=+,;@!-]*", re.ASCII)
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_ATTRIBUTE = {"a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src"}
_LED_TO = frozenset(("next", "prev", "canonical"))
_NOISE, _NOISE_INSIDE = re.compile(r"[\0-\x20]"), re.compile(r"[\t\n\r]")
_CONTROLS = "".join(map(chr, range(33)))


@dataclass(slots=True)
class Links:
    """What `href` means on one page."""

    base: str
    _origin: str
    _folder: str
    _known: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, markup: Markup, url: str) -> "Links":
        """The links of a page that was fetched from `url`, and may say that they start elsewhere."""
        for at in markup.opens.get("base", ())[:1]:
            url = _joined(url, markup.attributes(at).get("href", "").strip(_CONTROLS)) or url
        url = url.partition("#")[0]
        path = url.partition("?")[0]
        origin = "/".join(path.split("/", 3)[:3])
        return cls(url, origin, path[: path.rfind("/") + 1] if path.count("/") > 2 else origin + "/")

    def absolute(self, href: str) -> str | None:
        """`href` as a URL that can be asked for; None for mail, scripts, data and what is no URL."""
        if href not in self._known:
            clean = href if not _NOISE.search(href) else _NOISE_INSIDE.sub("", href.strip(_CONTROLS))
            self._known[href] = self._resolved(clean)
        return self._known[href]

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


def found_links(markup: Markup, links: Links) -> tuple[str, ...]:
    """Every link of the page that it does not ask us to leave alone, once, in order."""
    found: dict[str, None] = {}
    for at in markup.outside("template", _ATTRIBUTE):
        tag, said = markup.events[at][0], attributes(markup.events[at][1])
        rel = said["rel"].lower() if "rel" in said else ""
        if (rel and "nofollow" in rel) or (tag == "link" and _LED_TO.isdisjoint(rel.split())):
            continue
        url = links.absolute(said.get(_ATTRIBUTE[tag], ""))
        if url:
            found[url] = None
            if len(found) == MOST_LINKS:
                break
    return tuple(found)


def _joined(base: str, href: str) -> str | None:
    try:
        url = urljoin(base, href)
        return url if urlsplit(url).scheme in ("http", "https") else None
    except ValueError:  # a bad address in brackets, say
        return None
