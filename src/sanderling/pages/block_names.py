"""What a block of a page calls itself: the main text, a sidebar, nothing at all. Names are those that people use."""

import re
from functools import lru_cache

from sanderling.pages.markup import LOWER, attributes, names

NAME = 25  # what a good name is worth, and what a bad one costs

_ROLES = names("navigation banner contentinfo complementary search menu menubar alert alertdialog dialog")
_EDGE_ROLES = names("navigation banner contentinfo")
_UNLIKELY = re.compile(
    "-ad-|ad-break|advert|agegate|ai2html|banner|breadcrumb|byline|comment|community|cookie|cover-wrap|disqus|"
    "extra|footer|gdpr|header|legends|menu|modal|most-?(?:popular|read)|newsletter|outbrain|pager|pagination|"
    "paywall|popup|promo|read-?next|recirc|related|remark|replies|rss|share|shoutbox|sidebar|sign-?up|skyscraper|"
    "social|sponsor|subscribe|supplemental|taboola|toolbar|tooltip|trending|widget",
    re.IGNORECASE | re.ASCII,
)
# Whole words, for blocks that are a small part of their page. Larger ones are often named by what is in them too.
_SMALL = names(
    "actions author authors bio copyright disclaimer filter filters footer form links menu newsletter related search"
    " sidebar tags"
)
_WORD = re.compile("[a-z]+|[A-Z][a-z]*")
_LIKELY = re.compile("and|article|body|column|content|entry|main|post|shadow|story", re.IGNORECASE | re.ASCII)
_GOOD_NAME = re.compile("article|blog|body|content|entry|main|page|post|story|text", re.IGNORECASE | re.ASCII)
_BAD_NAME = re.compile(
    "-ad-|banner|byline|caption|com-|comment|contact|credit|footer|gdpr|hidden|masthead|media|meta|newsletter|"
    "outbrain|promo|recommend|related|scroll|share|shopping|shoutbox|sidebar|skyscraper|sponsor|subscribe|tags|"
    r"widget|\Ahid\Z",
    re.IGNORECASE | re.ASCII,
)
_MAIN_NAMES = names(
    "content main main-content maincontent page-content site-content post-content entry-content article-content"
    " article-body articlebody post-body story-body post entry article hentry body-content markdown-body"
    " mw-content-text bodycontent blog-post"
)
_SHARING = re.compile(r"(?:\b|_)share(?:daddy)?(?:\b|_)", re.IGNORECASE | re.ASCII)
_STYLED_AWAY = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE | re.ASCII)


def is_article(raw: str) -> bool:
    """Whether a `meta` says that its page is an article."""
    if "og:type" not in raw:
        return False
    found = attributes(raw)
    return found.get("property") == "og:type" and found.get("content") == "article"


def is_main(tag: str, raw: str) -> bool:
    """Whether a block calls itself the main part of its page."""
    if tag in ("main", "article"):
        return True
    found = attributes(raw) if raw and tag != "a" else {}
    called = f"{found.get('id', '')} {found.get('class', '')}".split()
    return found.get("role") == "main" or any(each.translate(LOWER) in _MAIN_NAMES for each in called)


@lru_cache(maxsize=4096)  # the pages of a site have the same names
def furniture_name(raw: str, *, small: bool, fenced: bool) -> str:
    """The role or word that gives a block away as furniture; names inside of tables and code (`fenced`) say less."""
    found = attributes(raw)
    called = f"{found.get('class', '')}\n{found.get('id', '')}"
    words = (word.lower() for word in _WORD.findall(called)) if small else ()
    if word := next((word for word in words if word in _SMALL), ""):
        return word
    if (role := found.get("role", "")) in _ROLES:
        return role
    match = None if fenced else _UNLIKELY.search(called)
    return match[0].lower() if match and not _LIKELY.search(called) else ""


@lru_cache(maxsize=4096)
def edge_role(raw: str) -> str:
    """The role that says that a block is an edge of its page, if one does."""
    role = attributes(raw).get("role", "")
    return role if role in _EDGE_ROLES else ""


@lru_cache(maxsize=4096)
def weight_of(raw: str) -> int:
    """What the names of a block speak for: text, or something else."""
    found = attributes(raw)
    called = [found[each] for each in ("class", "id", "itemprop") if found.get(each)]
    return NAME * sum(bool(_GOOD_NAME.search(each)) - bool(_BAD_NAME.search(each)) for each in called)


@lru_cache(maxsize=4096)
def is_for_sharing(raw: str) -> bool:
    """Whether a block holds the buttons for sharing the page."""
    found = attributes(raw)
    return bool(_SHARING.search(f"{found.get('class', '')}\n{found.get('id', '')}"))


def is_hidden(raw: str) -> bool:
    """Whether a tag says that it is not shown."""
    found = attributes(raw)
    if found.get("id", "")[:2] == "S:":  # a part of the page that React sends late and shows then
        return False
    return "hidden" in found or found.get("aria-hidden") == "true" or bool(_STYLED_AWAY.search(found.get("style", "")))
