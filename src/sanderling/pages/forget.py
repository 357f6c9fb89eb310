"""Remove pages from a folder as if they had never been fetched, and know them again without their names.

The order makes it safe to be killed at any moment: the wish is on disk first (`stores/forgotten.py`); then each file of
rows is written anew beside the old one and takes its name, with new segments of WARC if there are any
(`crawls/archive_forget.py`); then the ledger lets go of the URLs, and of the watermark that the old rows had. Each step
does nothing where it was done before.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.crawls.archive_forget import CaptureRemoval, cut_archive, sweep
from sanderling.crawls.errands import PageMail
from sanderling.crawls.exchange import INBOX
from sanderling.crawls.folder import FAILED
from sanderling.crawls.part_forget import add_removed, forget_in_parts
from sanderling.crawls.parts import folders_of
from sanderling.ids import HostError, host_of
from sanderling.pages import earlier, parquet
from sanderling.pages.earlier import LEDGER
from sanderling.pages.files import FOLDER as PARTIAL
from sanderling.pages.files import PartialFile
from sanderling.pages.leave_out import ExcludedUrls, behind_scheme, read_thing
from sanderling.pages.output import PAGES
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, Lock, plainly, sync_folder, write_new
from sanderling.stores.forgotten import Forgotten, Wish
from sanderling.stores.frontier_rows import SCREENSHOTS
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.host_traces import remove_traces
from sanderling.stores.mailbox import blank_lines
from sanderling.stores.rows_file import reaches, read_rows


class ForgottenUrls:
    """URLs that are never asked for, by their hashes."""

    def __init__(self, forgotten: Forgotten) -> None:
        self._forgotten = forgotten

    def __bool__(self) -> bool:
        return bool(self._forgotten)

    def has(self, url: str, host: str) -> bool:
        """Whether a URL, which is normal, was forgotten."""
        if not self._forgotten:
            return False
        rest = behind_scheme(url)
        labels = host.split(".")
        above = (".".join(labels[at:]) for at in range(len(labels)))
        return (
            self._forgotten.has("host", host)
            or self._forgotten.has("url", rest)
            or self._forgotten.begins("beginning", rest)
            or any(self._forgotten.has("below", each) for each in above)
        )


class PagesRemoved(NamedTuple):
    """How much was removed."""

    rows: int = 0
    urls: int = 0
    files: int = 0  # documents, pages as they came, screenshots
    captures: int = 0  # in WARC


class _Row(msgspec.Struct):
    url: str
    body_path: str | None = None
    screenshot: str | None = None
    warc_file: str | None = None


_decode = msgspec.json.Decoder(_Row).decode
_found = msgspec.json.Decoder(PageMail).decode


def wishes(lines: Sequence[str]) -> list[Wish]:
    """What lines mean, as they are compared. Raises UrlError."""
    found: list[Wish] = []
    for line in lines:
        kind, thing = read_thing(line)
        below = kind == "host" and thing.startswith("*.")
        found.append(("below", thing[2:].lower()) if below else (kind, thing.lower() if kind == "host" else thing))
    return found


def begin(folder: Path, lines: Sequence[str], exports: Sequence[str]) -> None:
    """Decide to forget what these lines mean. Raises FolderError, UrlError."""
    parts = folders_of(folder)
    if parts != [folder]:
        for part in parts:
            _check_whole(part)
        Forgotten.of(folder).begin(wishes(lines), lines, exports)
        return
    wanted = wishes(lines)
    with plainly(folder):
        lock = Lock(folder / "lock")
        try:
            for _ in earlier.go_on(folder):
                pass
            if not Forgotten.of(folder).says.removing:
                _check_whole(folder)
            Forgotten.of(folder).begin(wanted, lines, exports)
        finally:
            lock.release()


def _check_whole(folder: Path) -> None:
    """Raise FolderError where rows are missing, which would look as if they had been removed."""
    for crawl in crawls(folder):
        ledger = VisitedFrontier(crawl / LEDGER)
        watermark = ledger.meta.watermark
        ledger.close()
        if not reaches(crawl / PAGES, watermark):
            raise FolderError(f"{crawl / PAGES} lacks rows. Go on with the crawl first: it fetches them again.")


def crawls(folder: Path) -> list[Path]:
    """The folders of a crawl and of those before it."""
    before = sorted(each for each in (folder / "earlier").glob("[0-9]*") if (each / LEDGER).exists())
    return [folder, *before] if (folder / LEDGER).exists() else before


def survey(folder: Path, lines: Sequence[str]) -> PagesRemoved:
    """How much there is to be removed, with what was cut short. Changes nothing. Raises FolderError, UrlError."""
    parts = folders_of(folder)
    if parts != [folder]:
        return add_removed(survey(part, lines) for part in parts)
    meant = MeantUrls((*Forgotten.of(folder).says.removing, *lines))
    with plainly(folder):
        rows = [(crawl, row) for crawl in crawls(folder) for row in _rows(crawl / PAGES) if meant(row.url)]
        gone = set[Path]().union(*(_files(folder, crawl, row) for crawl, row in rows))
        kept = ((crawl, row) for crawl in crawls(folder) for row in _rows(crawl / PAGES) if not meant(row.url))
        for crawl, row in kept if gone else ():
            gone -= _files(folder, crawl, row)
        urls = sum(_count_urls(crawl / LEDGER, meant) for crawl in crawls(folder))
    return PagesRemoved(len(rows), urls, len(gone), sum(row.warc_file is not None for _, row in rows))


def _count_urls(ledger: Path, meant: "MeantUrls") -> int:
    with closing(frontier_file.connect_to_read(ledger)) as db:
        return sum(bool(meant(url)) for url in frontier_reading.urls(db))


def go_on(folder: Path, say: Callable[[str], object] = lambda _: None) -> PagesRemoved:
    """Remove what is to be removed, for whoever holds the folder; what of it was left. Raises FolderError.

    Tells `say` what it is at.
    """
    forgotten = Forgotten.of(folder)
    if not forgotten.says.removing:
        return PagesRemoved()
    meant = MeantUrls(forgotten.says.removing)
    counts = [_forget_in(folder, crawl, meant, say) for crawl in crawls(folder)]
    rows, urls, captures = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0, 0)
    say("files that no row speaks of")
    files = _remove_files(folder) + _remove_partial(folder, meant)
    blank_lines(folder / INBOX, lambda line: meant(_found(line).url))
    remove_traces(folder, meant.host)
    forgotten.removed()
    return PagesRemoved(rows, urls, files, captures)


def finish(folder: Path, say: Callable[[str], object] = lambda _: None) -> PagesRemoved:
    """The same for whoever does not hold it yet."""
    parts = folders_of(folder)
    if parts != [folder]:
        removed = forget_in_parts(
            folder, parts, lambda part, lines: begin(part, lines, ()), lambda part: finish(part, say)
        )
        return removed or PagesRemoved()
    with plainly(folder):
        lock = Lock(folder / "lock")
        try:
            return go_on(folder, say)
        finally:
            lock.release()


class MeantUrls:
    """Which URLs are meant by some lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._listed = ExcludedUrls.of(*lines)

    def __call__(self, url: str) -> str:
        """Whether a URL is meant."""
        try:
            return self._listed.why(url, host_of(url))
        except HostError:
            return ""

    def host(self, name: str) -> str:
        """Whether a host is meant, with all of it."""
        return self._listed.why("", name)

    def of(self, url: str, host: str) -> str:
        """Whether a URL of a host is meant."""
        return self._listed.why(url, host)


def _forget_in(folder: Path, crawl: Path, meant: MeantUrls, say: Callable[[str], object]) -> tuple[int, int, int]:
    """Remove rows, URLs and captures of one crawl."""
    ledger, path = VisitedFrontier(crawl / LEDGER), crawl / PAGES
    try:
        end = min(ledger.meta.watermark, _size(path))
        archived = msgspec.json.decode(ledger.meta.plan).get("keep") == "warc"
        if archived:
            cut_archive(folder, ledger.meta.crawl, path, end)
        say(f"rows of {crawl}")
        removed = [row for row in _rows(path, end) if meant(row.url)]
        if removed:
            write_new(path, CaptureRemoval(folder, path, end, meant).rows())
            sync_folder(crawl)
        elif end < _size(path):
            os.truncate(path, end)
        if archived:
            sweep(folder, ledger.meta.crawl, path, _size(path))
        rewrite_failures(crawl / FAILED, meant)
        had_parquet = bool(parquet.files(crawl))
        say(f"ledger of {crawl}")
        urls = ledger.forget(meant.of, lambda _: True, watermark=_size(path))
        _forget_plan(ledger, meant)
    finally:
        ledger.close()
    if had_parquet:
        _rewrite_parquet(crawl)
    return len(removed), urls, sum(row.warc_file is not None for row in removed)


def rewrite_failures(path: Path, meant: Callable[[str], object]) -> None:
    """Write failed.jsonl anew without what is meant."""
    if any(meant(row.url) for row in _rows(path)):
        lines = (line for line, _ in read_rows(path, 0, _size(path)))
        write_new(path, (line + b"\n" for line in lines if not meant(_decode(line).url)))
        sync_folder(path.parent)


def _rewrite_parquet(crawl: Path) -> None:
    if parquet.have_parquet():
        parquet.write_in_child(crawl)
    else:
        parquet.remove(crawl)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _rows(path: Path, end: int | None = None) -> Iterator[_Row]:
    for line, _ in read_rows(path, 0, _size(path) if end is None else end):
        yield _decode(line)


def _files(folder: Path, crawl: Path, row: _Row) -> set[Path]:
    """The files that a row speaks of: screenshots are beside it, all else is in the folder."""
    found = set() if row.body_path is None else {folder / row.body_path}
    return found if row.screenshot is None else found | {crawl / row.screenshot}


def _forget_plan(ledger: VisitedFrontier, meant: MeantUrls) -> None:
    """The plan without first addresses that are meant, and hosts that they had moved to."""
    plan = msgspec.json.decode(ledger.meta.plan)
    seeds = [seed for seed in plan["seeds"] if not meant(seed)]
    moved = msgspec.json.decode(ledger.meta.moved_hosts, type=list[str])
    hosts = [host for host in moved if not meant.host(host)]
    if seeds != plan["seeds"] or hosts != moved:
        ledger.note(
            plan=msgspec.json.encode(plan | {"seeds": seeds}).decode(), moved_hosts=msgspec.json.encode(hosts).decode()
        )


def _remove_files(folder: Path) -> int:
    """Remove the files that no row of any crawl speaks of; how many."""
    spoken, there = set[Path](), set((folder / "bodies").glob("[0-9a-f][0-9a-f]/[0-9a-f]*"))
    for crawl in crawls(folder):
        there.update((crawl / SCREENSHOTS).glob("*"))
        for row in _rows(crawl / PAGES):
            spoken |= _files(folder, crawl, row)
    for path in there - spoken:
        path.unlink()
    return len(there - spoken)


def _remove_partial(folder: Path, meant: MeantUrls) -> int:
    """Remove what has come of files that are meant, and of those of which nothing more is known; how many."""
    removed = 0
    for part in (folder / PARTIAL).glob("*.part"):
        known = part.with_suffix(".json")
        try:
            url = msgspec.json.decode(known.read_bytes(), type=PartialFile).url
        except (FileNotFoundError, msgspec.MsgspecError):
            url = ""
        if not url or meant(url):
            known.unlink(missing_ok=True)
            part.unlink()
            removed += 1
    return removed
