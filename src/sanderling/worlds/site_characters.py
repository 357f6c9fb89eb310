"""The characters of simulated hosts, one row each: what it is like, what is there besides its tree, and its weather."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from sanderling.worlds import site_documents as documents
from sanderling.worlds.hosts import BucketQuota, SlidingWindowQuota, steady, steps
from sanderling.worlds.site_pages import ExtraPage, SitePage, Tree
from sanderling.worlds.weather import Weather, fair, lying_quota, queueing, weather, with_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCharacter:
    """What a kind of host is like."""

    word: str
    sentence: str
    size: int = 40  # pages of its tree; those of ordinary hosts are as many as the world says
    extras: Mapping[str, ExtraPage] = field(default_factory=dict)
    weather: Callable[[Random], Weather] = fair
    listens: bool = True  # whether anyone is there to connect to
    shut: bool = False  # whether its robots.txt cannot be had, so that nothing may be asked
    bare: bool = False  # whether its pages can only be found through its sitemaps
    begins: tuple[str, ...] = ()  # where what never ends begins; empty: it ends
    beyond: Callable[[Tree, str], SitePage | None] = lambda _tree, _path: None  # pages that are neither tree nor extra


ORDINARY = SiteCharacter(
    word="ordinary", sentence="pages that link to each other, two broken links", extras=documents.BROKEN_LINKS
)

OTHERS = (
    SiteCharacter(word="slow", sentence="serves 5 a second; who asks faster waits in its queue", weather=queueing),
    SiteCharacter(
        word="quota",
        sentence="allows 5 a second; then 429, and a Retry-After",
        size=120,
        weather=weather(lambda: BucketQuota(steady(5.0), depth=10.0), retry_after=4.0),
    ),
    SiteCharacter(
        word="silent",
        sentence="allows 40 in 10 s; then 429 and not a word",
        size=120,
        weather=weather(lambda: SlidingWindowQuota(40, 10.0)),
    ),
    SiteCharacter(word="lying", sentence="allows 20 in 10 s; its headers promise 200", size=120, weather=lying_quota),
    SiteCharacter(
        word="failing",
        sentence="from its 10th to its 70th second every answer is 500",
        size=120,
        weather=weather(failing=steps([(0.0, 0.0), (10.0, 1.0), (70.0, 0.0)])),
    ),
    SiteCharacter(
        word="resets",
        sentence="cuts one connection in five, some in mid-body",
        weather=with_faults(reset=0.1, cut=0.1),
    ),
    SiteCharacter(
        word="truncating",
        sentence="one body in five ends before it should",
        weather=with_faults(truncated=0.2),
    ),
    SiteCharacter(
        word="stalling",
        sentence="its bodies come in pieces, one in eight too slowly",
        size=20,
        weather=with_faults(stall=1.0),
    ),
    SiteCharacter(
        word="redirecting",
        sentence="chains, loops, redirects elsewhere and to 10.0.0.1",
        size=10,
        extras=documents.REDIRECTS,
    ),
    SiteCharacter(
        word="trap",
        sentence="a calendar, a path and a redirect without an end",
        size=10,
        begins=documents.TRAPS,
        beyond=documents.bottomless,
    ),
    SiteCharacter(
        word="robots",
        sentence="robots.txt with Allow, wildcards and a delay of 2 s",
        size=10,
        extras=documents.ROBOTS,
    ),
    SiteCharacter(
        word="robots-huge",
        sentence="a robots.txt of 10 MB, whose rules are at its start",
        size=10,
        extras=documents.HUGE_ROBOTS,
    ),
    SiteCharacter(
        word="robots-binary", sentence="a robots.txt of random bytes", size=10, extras=documents.BINARY_ROBOTS
    ),
    SiteCharacter(
        word="robots-failing",
        sentence="robots.txt is always 500, so nothing may be asked",
        size=10,
        extras=documents.FAILING_ROBOTS,
        shut=True,
    ),
    SiteCharacter(
        word="sitemap",
        sentence="pages only its sitemaps list, some of them gzip",
        size=250,
        extras=documents.SITEMAPS,
        bare=True,
        beyond=documents.sitemap_part,
    ),
    SiteCharacter(
        word="documents", sentence="JSON, text, PDF, wrong charsets, 304, gzip", size=20, extras=documents.KINDS
    ),
    SiteCharacter(word="dead", sentence="nobody listens", size=1, listens=False),
)
