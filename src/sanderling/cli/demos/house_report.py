"""What came of `sanderling demo house`: what each system did, proof of it, and what to do next."""

import asyncio
import json
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from sanderling.cli.demos.events import ExpectedRows
from sanderling.cli.demos.house_children import LOGS
from sanderling.cli.demos.house_worlds import EVENTS, MOST_BATCHES, ORDER, PAGES, PROJECT, SEQUENCE, HousePublisher
from sanderling.cli.demos.shell import next_steps
from sanderling.cli.events.place import OWN_LETTERS, EventsFolder
from sanderling.cli.report_words import numbers
from sanderling.cli.sequence.place import ROWS
from sanderling.clock import Clock
from sanderling.events.crawl_items import from_page
from sanderling.events.outbox import DATABASE
from sanderling.observe.report import Process
from sanderling.pages import output
from sanderling.stores import status_file
from sanderling.web.house import Found

Key = tuple[object, ...]

# How each is used against a real API.
NEXT = {
    "sanderling pages crawl https://example.org/ --out example": "crawl a site",
    "sanderling sequence crawl --url 'https://example.org/{id}' --id-path id --begin 1": "follow growing ids",
    "sanderling repos directory --relay https://relay.example": "then: repos crawl",
    "sanderling polling run --trackside http://timing.local:8080 --private": "poll what is live",
    "sanderling events consume": "batches into rows",
}
FURTHER = {
    "sanderling init": "write a configuration, to be filled in",
    "sanderling dashboard": "watch all that runs in this folder",
    "sanderling demo house --seconds 300": "have more time to look around",
}


class _Running(msgspec.Struct, frozen=True):
    process: Process


def has_said(folder: Path, *, running: bool = True) -> bool:
    """Whether a system has written down that it runs, or that it has ended."""
    found = status_file.read_status(folder, _Running)
    return found is not None and found.process.running is running


async def waiting(home: Path, clock: Clock) -> int:
    """Messages that events has still to take, or to send."""
    folder = EventsFolder(out=home / EVENTS)
    async with OWN_LETTERS.opened(folder, clock) as queue:
        depth = await queue.depth()
    outbox = await asyncio.to_thread(_rows, folder.out / DATABASE, "outbox", "count(*)")
    return depth.ready + depth.taken + depth.delayed + sum(int(number) for (number,) in outbox)


def _rows(path: Path, table: str, columns: str) -> list[Any]:
    """What a table of ours has; nothing if it was never made."""
    if not path.is_file():
        return []
    with closing(sqlite3.connect(path)) as db:
        made = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall()
        return db.execute(f"SELECT {columns} FROM {table}").fetchall() if made else []  # noqa: S608 - names of ours


@dataclass(frozen=True, slots=True)
class HouseProof:
    """What events has, beside what was found."""

    complete: bool  # whether it had the time to take all; otherwise what is not there may have been to come
    pages: int  # rows that must be there, of the crawl of pages
    reports: int  # the same, of the crawl of ids
    posts: int  # the same, of the batches of others
    lost: int
    strangers: int  # rows that must not be there
    twice: int  # rows that are there more than once

    @property
    def ok(self) -> bool:
        """Whether nothing is lost and nothing is there that should not be."""
        return not (self.strangers or self.twice or (self.complete and self.lost))


def prove(home: Path, publishing: HousePublisher, *, complete: bool) -> HouseProof:
    """Compare the rows of events with what the others kept, key by key. Blocks."""
    truth = ExpectedRows()
    for delivery in islice(publishing.social.deliveries(MOST_BATCHES), publishing.sent):
        truth.add(publishing.social, delivery)
    pages: set[Key] = {(PROJECT, "web", name) for name in _pages(home / PAGES / output.PAGES)}
    ids = _rows(home / SEQUENCE / ROWS, "instance", "instance_id")
    reports: set[Key] = {(PROJECT, "bungie", str(number)) for (number,) in ids}
    found: list[Key] = _rows(home / EVENTS / DATABASE, "post_analytics", "project_id, platform, post_id")
    there, due = set(found), pages | reports | truth.posts
    return HouseProof(
        complete=complete,
        pages=len(pages),
        reports=len(reports),
        posts=len(truth.posts),
        lost=len(due - there),
        strangers=len(there - due),
        twice=len(found) - len(there),
    )


def _pages(path: Path) -> Iterator[str]:
    """What the pages of a crawl are called in events."""
    if not path.is_file():
        return
    with path.open("rb") as rows:
        for line in rows:
            item = from_page(json.loads(line))
            meta = None if item is None else item["meta"]
            if isinstance(meta, dict) and meta["fetch_status"] == "success":
                yield str(meta["id"])


@dataclass(frozen=True, slots=True)
class HouseReport:
    """What happened."""

    home: Path
    found: Mapping[str, Found]
    proof: HouseProof
    died: Mapping[str, Sequence[str]]  # what those said that ended by themselves

    def describe_died(self) -> Iterator[str]:
        """Who died early, and where to read more."""
        for name, words in self.died.items():
            yield f"{name} ended early; it said:"
            yield from (f"    {line}" for line in words or ["nothing"])
            yield f"All of it is in {self.home / LOGS / f'{name}.txt'}"

    def document(self) -> dict[str, Any]:
        """What `--json` prints."""
        systems = {name: each.report for name, each in self.found.items() if each.report is not None}
        return {
            "ok": self.proof.ok and not self.died,
            "systems": {
                name: {"did": numbers(report), "seconds": round(report.process.seconds, 3)}
                for name, report in systems.items()
            },
            "proof": asdict(self.proof),
            "died": {name: list(words) for name, words in self.died.items()},
            "out": str(self.home),
        }

    def lines(self) -> Iterator[str]:
        """The same as lines; those that are indented must not be broken."""
        yield ""
        for name in sorted(ORDER):
            each = self.found.get(name)
            report = None if each is None else each.report
            yield f"  {name:<9} {'said nothing yet' if report is None else numbers(report)}"
        yield ""
        yield self._proven()
        yield f"The files are in {self.home}: a folder for each system, and what each said in {LOGS}."
        again = "The same against real hosts; each goes on where it was, and loses nothing when it is killed:"
        yield from next_steps(again, NEXT)
        became = {f"sanderling status --home {shlex.quote(str(self.home))}": "what became of these five"}
        yield from islice(next_steps("And then:", FURTHER | became), 1, None)  # there is an empty line already
        yield "The manual of each system is in docs/, with docs/library.md for your own code; README.md lists them."

    def _proven(self) -> str:
        proof = self.proof
        found = f"{proof.pages:,} pages, {proof.reports:,} reports and {proof.posts:,} posts of others"
        wrong = f"{proof.twice or 'none'} are there twice, and {proof.strangers or 'no'} others are there"
        if not proof.complete:
            return f"Ended early: of the rows that events has, {wrong}."
        return f"Found were {found}. Events must have each once: {proof.lost or 'none'} are missing, {wrong}."
