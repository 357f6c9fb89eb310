"""Reading a page in Python: what `_reader` does in C, and the reference for it."""

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from sanderling.pages.content import readable
from sanderling.pages.markdown import render
from sanderling.pages.markup import MOST_TAGS, Markup, parse

HEADS = ("html", "base", "meta", "link")
LEADS = {"a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src"}

Heads = list[tuple[str, str]]
Absolute = Callable[[str], str | None]


class Reading(NamedTuple):
    """What there is in a page."""

    text: str  # the main part as Markdown
    title: str  # else the first heading; empty if there is neither
    heads: Heads  # tag and attributes of html, base, meta and link
    links: list[tuple[str, str, str]]  # tag, where it leads as the page says it, and its rel
    cut: bool  # whether the page has more tags than are read


def read(html: str, resolver: Callable[[Heads], Absolute], most_tags: int = MOST_TAGS, /) -> Reading:
    """Read a page; anything is one. `resolver` makes of the heads what makes a URL of a link, or None."""
    markup = parse(html, most_tags)
    heads = [event for event in markup.events if isinstance(event, tuple) and event[0] in HEADS]
    text = render(readable(markup), resolver(heads))
    return Reading(text, _title(markup), heads, _links(markup), markup.cut)


def _title(markup: Markup) -> str:
    for tag in ("title", "h1"):
        for at in islice(markup.outside("svg", (tag,)), 1):
            inside = markup.events[at + 1 : markup.ends[at]]
            if text := " ".join("".join(event for event in inside if isinstance(event, str)).split()):
                return text
    return ""


def _links(markup: Markup) -> list[tuple[str, str, str]]:
    found = []
    for at in markup.outside("template", LEADS):
        tag, said = markup.events[at][0], markup.attributes(at)
        if href := said.get(LEADS[tag]):
            found.append((tag, href, said.get("rel", "")))
    return found
