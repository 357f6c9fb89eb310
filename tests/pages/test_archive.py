"""What was fetched is kept as WARC: each capture once, whatever happens, and readable by others."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from small_web import crawl, lines, page, reply, web

from sanderling.crawls.archive import PageArchive, segments
from sanderling.formats.cdxj import find_captures
from sanderling.formats.warc import WarcRecord, read_message, read_records
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier import Frontier

A = "http://a.example"


def site() -> Any:  # noqa: ANN401 - the web of the tests
    """Pages, two of them the same, a redirect, one with an ETag, a file."""
    return web(
        **{
            f"{A}/": page("/x", "/y", "/old", "/etag", "/doc.pdf", title="Start"),
            f"{A}/x": page(title="Same", Set_Cookie="session=secret"),
            f"{A}/y": page(title="Same"),
            f"{A}/old": reply(301, Location="/x"),
            f"{A}/etag": [page(title="Tagged", ETag='"1"'), reply(304, ETag='"1"')],
            f"{A}/doc.pdf": reply(200, b"%PDF-1.4 \x00\xff", Content_Type="application/pdf", Content_Encoding="gzip"),
        }
    )


def records(folder: Path, crawl_number: int = 1) -> list[WarcRecord]:
    """All records of a crawl."""
    return [each for path in segments(folder, f"pages-{crawl_number:04}") for each in read_records(path)]


def captures(folder: Path, crawl_number: int = 1) -> list[tuple[str, str]]:
    """Types and URLs of what answers."""
    found = records(folder, crawl_number)
    return sorted((each.kind, each.url) for each in found if each.kind not in ("request", "warcinfo"))


KEPT = [
    ("response", f"{A}/"),
    ("response", f"{A}/doc.pdf"),
    ("response", f"{A}/etag"),
    ("response", f"{A}/old"),
    ("response", f"{A}/x"),
    ("revisit", f"{A}/y"),
]


@pytest.fixture(scope="module")
def twice_crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was crawled twice."""
    out, pages = tmp_path_factory.mktemp("kept") / "out", site()
    crawl(out, pages, f"{A}/", keep="warc")
    crawl(out, pages, f"{A}/", keep="warc", epoch=1_800_100_000.0)
    return out


def test_every_page_is_kept_once_and_equal_ones_are_revisits(twice_crawled: Path) -> None:
    assert captures(twice_crawled) == KEPT
    first, *rest = records(twice_crawled)
    assert first.kind == "warcinfo"
    assert [each.kind for each in rest[::2]] == ["request"] * 6
    assert verify(twice_crawled).problems == []
    assert verify(twice_crawled / "earlier/0001").problems == []


def test_a_304_is_a_revisit_of_the_earlier_capture(twice_crawled: Path) -> None:
    (revisit,) = [each for each in records(twice_crawled, 2) if each.url == f"{A}/etag" and each.kind == "revisit"]
    ((date, earlier),) = find_captures(twice_crawled / "warc/pages-0001.cdxj", f"{A}/etag")

    assert revisit.headers["warc-profile"].endswith("/server-not-modified")
    assert revisit.headers["warc-refers-to-date"] == date
    assert revisit.headers["warc-payload-digest"] == earlier.digest
    assert read_message(revisit.block).status == 304


def test_secrets_are_not_kept_and_headers_fit_what_is(twice_crawled: Path) -> None:
    kept = {each.url: read_message(each.block) for each in records(twice_crawled) if each.kind == "response"}

    assert not any(b"secret" in each.block for each in records(twice_crawled))
    headers = dict(kept[f"{A}/doc.pdf"].headers)
    assert headers["X-Archive-Orig-Content-Encoding"] == "gzip"
    assert headers["Content-Length"] == "11"
    assert kept[f"{A}/doc.pdf"].body == b"%PDF-1.4 \x00\xff"


def test_the_index_is_sorted_and_leads_to_each_capture(twice_crawled: Path) -> None:
    index = (twice_crawled / "warc/pages-0001.cdxj").read_bytes().splitlines()

    assert index == sorted(index)
    assert len(index) == len(KEPT)
    for line in index:
        entry = json.loads(line.split(b" ", 2)[2])
        found = next(read_records(twice_crawled / "warc" / entry["filename"], int(entry["offset"])))
        assert (found.url, found.end - found.offset) == (entry["url"], int(entry["length"]))
        assert all(isinstance(value, str) for value in entry.values())


def test_warcio_reads_it_and_finds_all_digests_right(twice_crawled: Path) -> None:
    warcio = pytest.importorskip("warcio", reason="warcio is not installed: pip install warcio")

    for path in (twice_crawled / "warc").glob("*.warc.gz"):
        with path.open("rb") as file:
            found = [
                (each.rec_type, each.content_stream().read(), each.digest_checker.passed)
                for each in warcio.ArchiveIterator(file, check_digests="raise")
            ]
        ours = list(read_records(path))
        assert [kind for kind, _, _ in found] == [each.kind for each in ours]
        assert all(passed is not False for _, _, passed in found)
        bodies = [read_message(each.block).body for each in ours if each.kind == "response"]
        assert [body for kind, body, _ in found if kind == "response"] == bodies


REPLAYED = {f"{A}/": "Start", f"{A}/etag": "Tagged", f"{A}/x": "Same", f"{A}/y": "Same"}


def test_pywb_replays_it(twice_crawled: Path) -> None:
    """pywb is heavy, with gevent and Redis, and no dependency: SANDERLING_TEST_PYWB names a Python that has it."""
    python = os.environ.get("SANDERLING_TEST_PYWB")
    if not python:
        pytest.skip("SANDERLING_TEST_PYWB names no Python with pywb")

    done = subprocess.run(  # noqa: S603 - the one that was named
        [python, str(Path(__file__).with_name("replayed_by_pywb.py")), str(twice_crawled), *REPLAYED],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == REPLAYED


def test_segments_stay_below_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PageArchive.__init__, "__kwdefaults__", {"segment": 2_500})
    out = tmp_path / "out"

    crawl(out, site(), f"{A}/", keep="warc")

    found = segments(out, "pages-0001")
    assert len(found) > 1
    assert all(path.stat().st_size <= 2_500 for path in found)
    assert [next(read_records(path)).kind for path in found] == ["warcinfo"] * len(found)
    assert captures(out) == KEPT
    assert verify(out).problems == []


def test_what_rows_do_not_speak_of_is_cut_off(tmp_path: Path) -> None:
    out, pages = tmp_path / "out", site()
    crawl(out, pages, f"{A}/", keep="warc", stop_after=0.5)
    (segment,) = segments(out, "pages-0001")
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[:300])  # torn
    (out / "warc" / segment.name.replace("00001.", "00002.")).write_bytes(whole)  # begun, and never vouched for

    crawl(out, pages, f"{A}/", keep="warc", resume=True)

    assert captures(out) == KEPT
    assert verify(out).problems == []


@pytest.mark.parametrize("torn", [b"", b"\x1f\x8btorn"])
def test_what_no_row_vouches_for_yet_is_wrong_only_after_the_end(tmp_path: Path, torn: bytes) -> None:
    """Killed between a capture and its row, a crawl is well: it cuts off the capture when it goes on."""
    crawl(tmp_path, site(), f"{A}/", keep="warc")
    (path,) = segments(tmp_path, "pages-0001")
    path.write_bytes(path.read_bytes() * 2 + torn)

    assert not verify(tmp_path).ok
    with closing(Frontier(tmp_path / "ledger.db")) as ledger:
        ledger.note(closed=False, finished=False)
    assert verify(tmp_path).problems == []


def test_an_archive_that_is_shorter_than_the_rows_say_is_refused(tmp_path: Path) -> None:
    out, pages = tmp_path / "out", site()
    crawl(out, pages, f"{A}/", keep="warc", stop_after=0.5)
    (segment,) = segments(out, "pages-0001")
    os.truncate(segment, segment.stat().st_size - 1)

    assert "is cut" in verify(out).problems[0]
    with pytest.raises(FolderError, match="cut short or removed"):
        crawl(out, pages, f"{A}/", keep="warc", resume=True)


def test_lost_rows_take_their_captures_with_them(tmp_path: Path) -> None:
    out, pages = tmp_path / "out", site()
    crawl(out, pages, f"{A}/", keep="warc", stop_after=0.5)
    rows = (out / "pages.jsonl").read_bytes().splitlines(keepends=True)
    (out / "pages.jsonl").write_bytes(b"".join(rows[:-1]))

    crawl(out, pages, f"{A}/", keep="warc", resume=True)

    assert [url for _, url in captures(out)] == sorted(url for _, url in KEPT)
    assert verify(out).problems == []


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_what_was_committed(tmp_path: Path) -> None:
    out, big = tmp_path / "out", os.urandom(400_000).hex().encode()
    pages = web(**{f"{A}/": page("/big"), f"{A}/big": reply(200, big, Content_Type="text/html")})

    with small_disk(200_000), pytest.raises((FolderError, ExceptionGroup)):
        crawl(out, pages, f"{A}/", keep="warc")
    crawl(out, pages, f"{A}/", keep="warc", resume=True)

    assert captures(out) == [("response", f"{A}/"), ("response", f"{A}/big")]
    assert verify(out).problems == []


KILLED = """
import os, sys
from pathlib import Path
sys.path[:0] = {path!r}
from small_web import crawl
from test_archive import A, site
from sanderling.stores.frontier import Frontier
commit, left = Frontier.commit, [int(sys.argv[2])]
def die(self, ended, *more):
    left[0] -= bool(ended)
    if left[0] < 0:
        os.kill(os.getpid(), 9)  # rows and captures are on disk, and the ledger does not know
    return commit(self, ended, *more)
Frontier.commit = die
crawl(Path(sys.argv[1]), site(), A + "/", keep="warc", resume=False)
"""


@pytest.mark.parametrize("commits", [0, 2])
def test_killed_between_captures_and_ledger_each_is_there_once(tmp_path: Path, commits: int) -> None:
    out, script = tmp_path / "out", KILLED.format(path=[str(Path(__file__).parent), str(Path(__file__).parents[1])])
    command = [sys.executable, "-c", script, str(out), str(commits)]
    killed = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - ourselves
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]

    crawl(out, site(), f"{A}/", keep="warc", resume=True)

    assert [url for _, url in captures(out)] == sorted(url for _, url in KEPT)
    assert verify(out).problems == []


def test_pages_are_kept_as_files(tmp_path: Path) -> None:
    out = tmp_path / "out"

    crawl(out, site(), f"{A}/", keep="html")

    kept: dict[str, Any] = {row["url"]: row.get("body_path") for row in lines(out / "pages.jsonl")}
    assert kept[f"{A}/x"] == kept[f"{A}/y"]
    assert b"<title>Start</title>" in (out / kept[f"{A}/"]).read_bytes()
    assert kept[f"{A}/old"] is None
    assert verify(out).problems == []


def test_a_folder_keeps_what_it_began_to_keep(tmp_path: Path) -> None:
    with CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 16), resume=False, wall=0):
        pass

    with pytest.raises(FolderError, match="keep was nothing, not warc"):
        CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 16, "warc"), resume=False, wall=0)


def test_nothing_is_asked_for_conditionally_that_the_archive_does_not_hold(tmp_path: Path) -> None:
    out, pages = tmp_path / "out", site()
    crawl(out, pages, f"{A}/", keep="warc")
    (out / "warc/pages-0001.cdxj").unlink()

    pages.tasks.clear()
    crawl(out, pages, f"{A}/", keep="warc", epoch=1_800_100_000.0)

    assert not [task for task in pages.tasks if any(name == "If-None-Match" for name, _ in task.headers)]
