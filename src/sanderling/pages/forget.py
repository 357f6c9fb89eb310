"""Remove pages from a folder as if they had never been fetched, and know them again without their names.

The order makes it safe to be killed at any moment: the wish is on disk first (`stores/forgotten.py`); then each file of
rows is written anew beside the old one and takes its name; then the ledger lets go of the URLs, and of the watermark
that the old rows had. Each step does nothing where it was done before.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.crawls.archive import FOLDER as WARC
from sanderling.crawls.folder import FAILED
from sanderling.ids import HostError, host_of
from sanderling.pages import earlier, parquet
from sanderling.pages.earlier import LEDGER
from sanderling.pages.leave_out import ExcludedUrls, behind_scheme, read_thing
from sanderling.pages.output import PAGES
from sanderling.stores.durable import FolderError, Lock, plainly, sync_folder, write_new
from sanderling.stores.forgotten import Forgotten, Wish
from sanderling.stores.frontier_rows import SCREENSHOTS
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.rows_file import reaches, read_rows

CACHES = ("limiter.json", "status.json")  # that name hosts, and are made again by the next run


class ForgottenUrls:
    """URLs that are never asked for, by their hashes."""

    def __init__(self, forgotten: Forgotten) -> None:
        self._forgotten = forgotten

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
    bodies: int = 0


class _Row(msgspec.Struct):
    url: str
    body_path: str | None = None
    screenshot: str | None = None


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
    if any((folder / WARC).glob("*")):
        raise FolderError(f"{folder} keeps WARC files, out of which nothing can be removed yet. Nothing was changed.")
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


def go_on(folder: Path) -> PagesRemoved:
    """Remove what is to be removed, for whoever holds the folder; what of it was left. Raises FolderError."""
    forgotten = Forgotten.of(folder)
    lines = forgotten.says.removing
    if not lines:
        return PagesRemoved()
    listed, removed = ExcludedUrls.of(*lines), PagesRemoved()
    for crawl in crawls(folder):
        rows, urls = _forget_in(crawl, listed)
        removed = PagesRemoved(removed.rows + rows, removed.urls + urls)
    removed = removed._replace(bodies=_remove_bodies(folder))
    if any("://" not in line for line in lines):
        for name in CACHES:
            (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
    forgotten.removed()
    return removed


def finish(folder: Path) -> PagesRemoved:
    """The same for whoever does not hold it yet."""
    with plainly(folder):
        lock = Lock(folder / "lock")
        try:
            return go_on(folder)
        finally:
            lock.release()


def _forget_in(crawl: Path, listed: ExcludedUrls) -> tuple[int, int]:
    """Remove rows and URLs of one crawl."""
    ledger = VisitedFrontier(crawl / LEDGER)
    try:
        watermark = ledger.meta.watermark
        had_parquet = bool(parquet.files(crawl))
        rows = _rewrite(crawl / PAGES, listed, watermark)
        _rewrite(crawl / FAILED, listed, None)
        length = (crawl / PAGES).stat().st_size if (crawl / PAGES).exists() else 0
        urls = ledger.forget(listed.why, lambda _: True, length)
        _forget_plan(ledger, listed)
    finally:
        ledger.close()
    if had_parquet:
        if parquet.have_parquet():
            parquet.write_in_child(crawl)
        else:
            parquet.remove(crawl)
    return rows, urls


def _rewrite(path: Path, listed: ExcludedUrls, length: int | None) -> int:
    """Write the rows anew without those that are meant, and without what no ledger vouches for; how many those are."""
    if not path.exists():
        return 0
    end = path.stat().st_size if length is None else min(length, path.stat().st_size)
    removed = 0

    def kept() -> Iterator[bytes]:
        nonlocal removed
        for line, _ in read_rows(path, 0, end):
            if _is_meant(line, listed):
                removed += 1
            else:
                yield line + b"\n"

    if not any(_is_meant(line, listed) for line, _ in read_rows(path, 0, end)):
        if end < path.stat().st_size:
            os.truncate(path, end)
        return 0
    write_new(path, kept())
    sync_folder(path.parent)
    return removed


def _is_meant(line: bytes, listed: ExcludedUrls) -> bool:
    url = msgspec.json.decode(line, type=_Row).url
    try:
        return bool(listed.why(url, host_of(url)))
    except HostError:
        return False


def _forget_plan(ledger: VisitedFrontier, listed: ExcludedUrls) -> None:
    """The plan without first addresses that are meant, and hosts that they had moved to."""
    plan = msgspec.json.decode(ledger.meta.plan)
    seeds = [seed for seed in plan["seeds"] if not listed.why(seed, host_of(seed))]
    moved = msgspec.json.decode(ledger.meta.moved_hosts, type=list[str])
    hosts = [host for host in moved if not listed.why(f"https://{host}/", host)]
    if seeds != plan["seeds"] or hosts != moved:
        ledger.note(
            plan=msgspec.json.encode(plan | {"seeds": seeds}).decode(), moved_hosts=msgspec.json.encode(hosts).decode()
        )


def _remove_bodies(folder: Path) -> int:
    """Remove the files that no row speaks of, of any crawl, and the screenshots of none of their own; how many."""
    spoken: set[str | None] = set()
    gone: list[Path] = []
    for crawl in crawls(folder):
        shown = set()
        path = crawl / PAGES
        for line, _ in read_rows(path, 0, path.stat().st_size if path.exists() else 0):
            row = msgspec.json.decode(line, type=_Row)
            spoken.add(row.body_path)
            shown.add(row.screenshot)
        gone += [each for each in (crawl / SCREENSHOTS).glob("*") if f"{SCREENSHOTS}/{each.name}" not in shown]
    bodies = (folder / "bodies").glob("[0-9a-f][0-9a-f]/[0-9a-f]*")
    gone += [each for each in bodies if str(each.relative_to(folder)) not in spoken]
    for path in gone:
        path.unlink()
    return len(gone)
