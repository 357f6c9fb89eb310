"""Collects every record from sites and APIs: as fast as each host allows, never faster, losing nothing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sanderling.crawl.job import Job
    from sanderling.crawl.library import crawl_pages, run_job
    from sanderling.crawl.page import Page, Reply
    from sanderling.crawl.request import Request
    from sanderling.events.items import read_batch
    from sanderling.formats.rca import RcaReader
    from sanderling.formats.repo import parse_repo
    from sanderling.limit import CircuitOpen, Limiter, LimitOptions, ThreadLimiter
    from sanderling.records.collection import open  # noqa: A004 - said as sanderling.open("posts")
    from sanderling.sequence.following import following

# Imported when they are first used: a program that wants the limiter alone loads no HTTP client.
_WHERE = {
    "CircuitOpen": "sanderling.limit",
    "Job": "sanderling.crawl.job",
    "LimitOptions": "sanderling.limit",
    "Limiter": "sanderling.limit",
    "Page": "sanderling.crawl.page",
    "RcaReader": "sanderling.formats.rca",
    "Reply": "sanderling.crawl.page",
    "Request": "sanderling.crawl.request",
    "ThreadLimiter": "sanderling.limit",
    "crawl_pages": "sanderling.crawl.library",
    "following": "sanderling.sequence.following",
    "open": "sanderling.records.collection",
    "parse_repo": "sanderling.formats.repo",
    "read_batch": "sanderling.events.items",
    "run_job": "sanderling.crawl.library",
}

__all__ = [
    "CircuitOpen",
    "Job",
    "LimitOptions",
    "Limiter",
    "Page",
    "RcaReader",
    "Reply",
    "Request",
    "ThreadLimiter",
    "crawl_pages",
    "following",
    "open",
    "parse_repo",
    "read_batch",
    "run_job",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has that name
    if name not in _WHERE:
        raise AttributeError(f"module 'sanderling' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
