"""Collect every record from APIs you do not own: as fast as each host allows, never faster, and losing nothing.

The map, from the ground up; imports only point down (`tests/test_floors.py` sees to it):

- `ids`, `outcome`, `task`, `clock`: the words everyone speaks.
- `limit`: may we call this host now?  `formats`, `stores`, `observe`: bytes, disks, metrics.
- `fetch`: ask the network, safely, and say in one word how it went.  `apis`: what answers mean.
- `pages`, `sequence`, `repos`, `polling`, `events`, `jobs`: a system each.
- `records`: what a system collected, read back and written elsewhere.
- `web`, `cli`: what people touch.
- aside: `worlds` are simulated upstreams, `testing` holds fakes and virtual time.

The names below are the library: `docs/library.md` says what each is for, and they stay as they are.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sanderling.crawls.session import HostSettings
    from sanderling.events.batches import read_batch
    from sanderling.events.handover import hand_to_events
    from sanderling.fetch.client import Client
    from sanderling.formats.rca_reader import RcaReader
    from sanderling.formats.repo import parse_repo
    from sanderling.ids import host_of
    from sanderling.jobs.job import Job
    from sanderling.jobs.page import Page
    from sanderling.jobs.reply import JobReply
    from sanderling.jobs.request import Request
    from sanderling.jobs.running import run_job
    from sanderling.limit import CircuitOpen, Limiter, LimiterRules, PaceRules
    from sanderling.outcome import Code, Outcome
    from sanderling.pages.crawling import crawl_pages
    from sanderling.records.reading import open  # noqa: A004 - as in `sanderling.open(folder)`
    from sanderling.sequence.following import following
    from sanderling.stores.record_source import RecordsError
    from sanderling.task import Reply, Task

__all__ = [
    "CircuitOpen",
    "Client",
    "Code",
    "HostSettings",
    "Job",
    "JobReply",
    "Limiter",
    "LimiterRules",
    "Outcome",
    "PaceRules",
    "Page",
    "RcaReader",
    "RecordsError",
    "Reply",
    "Request",
    "Task",
    "crawl_pages",
    "following",
    "hand_to_events",
    "host_of",
    "open",
    "parse_repo",
    "read_batch",
    "run_job",
]

_HOMES = {
    "CircuitOpen": "limit",
    "Client": "fetch.client",
    "Code": "outcome",
    "HostSettings": "crawls.session",
    "Job": "jobs.job",
    "JobReply": "jobs.reply",
    "Limiter": "limit",
    "LimiterRules": "limit",
    "Outcome": "outcome",
    "PaceRules": "limit",
    "Page": "jobs.page",
    "RcaReader": "formats.rca_reader",
    "RecordsError": "stores.record_source",
    "Reply": "task",
    "Request": "jobs.request",
    "Task": "task",
    "crawl_pages": "pages.crawling",
    "following": "sequence.following",
    "hand_to_events": "events.handover",
    "host_of": "ids",
    "open": "records.reading",
    "parse_repo": "formats.repo",
    "read_batch": "events.batches",
    "run_job": "jobs.running",
}


if not TYPE_CHECKING:  # which would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Fetch a public name when it is first used: `sanderling --help` must not load an event loop."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found  # so that it is looked up once
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
