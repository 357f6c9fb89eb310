"""The records of a folder of pages: the rows of its crawls, the earliest first, each with the number of its crawl."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sanderling.crawls.records import explain_end, nearest_urls, open_ledger, rows_behind
from sanderling.ids import HostError, host_of
from sanderling.pages.earlier import LEDGER, NEXT, place
from sanderling.pages.forget import ForgottenUrls
from sanderling.pages.output import PAGES
from sanderling.pages.record import PageRow
from sanderling.pages.urls import UrlError, normalise
from sanderling.stores import frontier_reading
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.frontier_file import FrontierMeta, key_of
from sanderling.stores.frontier_reading import VisitCounts
from sanderling.stores.frontier_rows import KEPT
from sanderling.stores.frontier_visits import NEVER
from sanderling.stores.record_source import (
    MOST_HISTORY,
    Record,
    RecordLookup,
    RecordsError,
    SourceDescription,
    read_position,
)
from sanderling.words import count


class PagePosition(msgspec.Struct, frozen=True):
    """A byte of the rows of a crawl."""

    crawl: int
    byte: int


class PageRecords:
    """The rows of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._ledger() as (_, meta):
            there = (each for each in range(1, meta.crawl) if place(folder, each).is_dir())
            first = next(there, meta.crawl)  # whose rows are there
            self.about = SourceDescription("pages", f"pages {meta.plan}", ("crawl", *PageRow.__struct_fields__))
        if first > 1:
            self.about.notes.append(f"crawls 1 to {first - 1} were removed from {folder / 'earlier'} and are left out")

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The rows behind a position, in the order in which they were fetched."""
        start = PagePosition(0, 0) if after is None else read_position(after, PagePosition, self._folder)
        crawl, byte = max(start.crawl, 1), start.byte
        while True:
            with self._ledger() as (_, meta):
                last, end = meta.crawl, meta.watermark
            if crawl > last:
                raise RecordsError(
                    f"{self._folder} holds {last} crawls, and crawl {crawl} was read before: it is another folder"
                )
            if crawl < last:
                yield from self._rows(place(self._folder, crawl), crawl, byte, None)
                crawl, byte = crawl + 1, 0
                continue
            yield from self._rows(self._folder, crawl, byte, end)
            with self._ledger() as (_, meta):
                if meta.crawl == crawl:
                    return
            byte = end  # it was finished and crawled again while we read

    def _rows(self, folder: Path, crawl: int, start: int, end: int | None) -> Iterator[Record]:
        path = folder / PAGES
        if end is None:  # of an earlier crawl, which grows no more
            if not path.exists():
                return
            end = path.stat().st_size
        head = b'{"crawl":%d,' % crawl
        for line, at in rows_behind(path, start, end):
            yield Record(head + line[1:], f'{{"crawl":{crawl},"byte":{at}}}')

    def show(self, key: str) -> RecordLookup:
        """The rows of a URL, those of earlier crawls before; or why it has none."""
        try:
            url = normalise(key)
            host = host_of(url)
        except (UrlError, HostError) as error:
            return RecordLookup(why=f"it is no URL: {error}", nearest=self._some_hosts())
        rows = [record.json for record in self.read() if url.encode() in record.json and _url_of(record.json) == url]
        with self._ledger() as (db, _):
            known = frontier_reading.known_url(db, host, key_of(url))
            if rows and (known is None or known.end in KEPT):
                about = "" if known is None else _visits(frontier_reading.visits_of(db, known.id))
                return RecordLookup(rows[-1], rows[:-1][-MOST_HISTORY:], about=about)
            near = nearest_urls(db, url) or self._some_hosts()
        if known is None and ForgottenUrls(Forgotten.of(self._folder)).has(url, host):
            return RecordLookup(None, rows, "it was forgotten: it is not asked for again", near)
        if known is None:
            return RecordLookup(
                None, rows, "no page linked to it, or the limits of the crawl (hosts, depth) leave it out", near
            )
        return RecordLookup(None, rows, explain_end(known), near)

    def _some_hosts(self) -> list[str]:
        with self._ledger() as (db, _):
            return [f"https://{name}/" for name in frontier_reading.host_names(db, 5)]

    def _ledger(self) -> AbstractContextManager[tuple[sqlite3.Connection, FrontierMeta]]:
        # While a folder is crawled again there is a moment in which the new ledger has not its name yet.
        path = self._folder / LEDGER
        return open_ledger(path if path.exists() else self._folder / NEXT)

    def close(self) -> None:
        """Nothing is held open."""


def _visits(counts: VisitCounts | None) -> str:
    if counts is None:
        return ""
    due = (
        f"; due again on {datetime.fromtimestamp(counts.due, UTC):%Y-%m-%dT%H:%M:%SZ}"
        if counts.due < NEVER
        else "; being visited"
    )
    return f"visited {count(counts.visits, 'time')}, {counts.changes:,} with a change{due}"


class _Url(msgspec.Struct):
    url: str


def _url_of(row: bytes) -> str:
    return msgspec.json.decode(row, type=_Url).url
