"""A job runs over pages that were kept, and nothing is sent."""

import gzip
import zlib
from pathlib import Path
from textwrap import dedent

import pytest
from command_line import Done, called, rows
from small_web import crawl
from test_archive import A, site

from sanderling.crawls.archive import segments
from sanderling.crawls.kept import Keep
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.fetch.guard import Refused
from sanderling.formats.warc import SAME, make_record
from sanderling.stores.durable import FolderError
from sanderling.task import Reply, Task
from sanderling.testing import run_virtual

JOB = """
from sanderling import Job, Request

job = Job("titles", start="http://a.example/")

@job.read
def first(reply):
    for path in ("/x", "/y", "/old", "/etag", "/never"):
        yield Request(path, read="title")

@job.read
def title(reply):
    yield {"url": reply.url, "title": reply.text().partition("<title>")[2].partition("<")[0]}
"""

PAGES = """
from sanderling import Job

job = Job("titles", start="http://a.example/")

@job.page("/{name}")
def titled(page, name):
    yield {"url": page.url, "title": page.css("h1").text}

@job.page("/**")
def first(page):
    yield from page.follow_all("a")
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same site, crawled twice, as WARC and as files."""
    folder = tmp_path_factory.mktemp("kept")
    keeps: tuple[Keep, ...] = ("warc", "html")
    for keep in keeps:
        pages = site()
        for epoch in (1_800_000_000.0, 1_800_100_000.0):
            crawl(folder / keep, pages, f"{A}/", keep=keep, epoch=epoch)
    return {"warc": folder / "warc", "html": folder / "html", "segments": folder / "warc/warc"}


def run_job(tmp_path: Path, source: Path, text: str = JOB) -> Done:
    job = tmp_path / "job.py"
    job.write_text(dedent(text))
    return called("run", str(job), "--out", str(tmp_path / "out"), "--from", str(source))


def answer(stored: StoredReplies, url: str) -> Reply:
    return run_virtual(stored.send(Task(url)))


@pytest.mark.parametrize("what", ["warc", "html", "segments"])
def test_a_job_runs_over_what_was_kept(tmp_path: Path, kept: dict[str, Path], what: str) -> None:
    done = run_job(tmp_path, kept[what])

    titles = sorted((row["url"].removeprefix(A), row["title"]) for row in rows(tmp_path / "out", "records.jsonl"))
    assert titles == [("/etag", "Tagged"), ("/x", "Same"), ("/x", "Same"), ("/y", "Same")]
    assert done.code == 1
    assert f"1 x not kept in {kept[what]}" in done.out


@pytest.mark.parametrize("what", ["warc", "html"])
def test_a_job_of_pages_runs_over_what_was_kept(tmp_path: Path, kept: dict[str, Path], what: str) -> None:
    done = run_job(tmp_path, kept[what], PAGES)

    titles = {(row["url"].removeprefix(A), row["title"]) for row in rows(tmp_path / "out", "records.jsonl")}
    assert titles >= {("/etag", "Tagged"), ("/x", "Same"), ("/y", "Same")}, done


def test_a_cut_file_is_said_to_be_cut_and_read_up_to_there(tmp_path: Path, kept: dict[str, Path]) -> None:
    (whole,) = segments(kept["warc"], "pages-0001")
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(whole.read_bytes()[:-100])

    done = run_job(tmp_path, cut)

    assert f"{cut} is cut: the record at byte" in done.err
    assert rows(tmp_path / "out", "records.jsonl")


def test_a_file_without_a_whole_page_is_refused(tmp_path: Path, kept: dict[str, Path]) -> None:
    (whole,) = segments(kept["warc"], "pages-0001")
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(whole.read_bytes()[:200])

    done = run_job(tmp_path, cut)

    assert done.code == 2
    assert "no page is kept" in done.err


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_what_holds_no_pages_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(FolderError, match=r"there is no file or folder|no page is kept"):
        StoredReplies(tmp_path / name)


def test_cache_and_from_exclude_each_other(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(dedent(JOB))

    done = called("run", str(job), "--try", "1", "--from", str(tmp_path), "--cache", str(tmp_path / "cache"))

    assert (done.code, "expected one of them" in done.err) == (2, True)


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    """Chunked and packed bodies, records that are not packed, a revisit without a digest."""
    packed = gzip.compress(b"<p>packed</p>")
    chunked = b"%x\r\n%b\r\n%x;x=1\r\n%b\r\n0\r\n\r\n" % (5, packed[:5], len(packed) - 5, packed[5:])
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    about = [("Content-Type", "application/http; msgtype=response")]
    day = "2026-01-01T00:00:00Z"
    records = [
        make_record(
            "response",
            day,
            head + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
            [("WARC-Target-URI", f"<{A}/packed>"), *about],
        ),
        make_record("response", day, head + b"\r\n<p>plain</p>", [("WARC-Target-URI", f"{A}/plain"), *about]),
        make_record(
            "revisit",
            day,
            b"HTTP/1.1 203 OK\r\n\r\n",
            [
                ("WARC-Target-URI", f"{A}/same"),
                ("WARC-Refers-To-Target-URI", f"{A}/plain"),
                ("WARC-Profile", SAME),
                *about,
            ],
        ),
        make_record("revisit", day, b"HTTP/1.1 304 Not Modified\r\n\r\n", [("WARC-Target-URI", f"{A}/plain"), *about]),
        make_record("response", day, b"HTTP/1.1 404 Not Found\r\n\r\n", [("WARC-Target-URI", f"{A}/gone"), *about]),
    ]
    (tmp_path / "of-others.warc").write_bytes(b"".join(zlib.decompress(each, 31) for each in records))

    stored = StoredReplies(tmp_path)

    assert answer(stored, f"{A}/packed").body == b"<p>packed</p>"
    assert answer(stored, f"{A}/plain#part").body == b"<p>plain</p>"
    assert (answer(stored, f"{A}/same").status, answer(stored, f"{A}/same").body) == (203, b"<p>plain</p>")
    assert answer(stored, f"{A}/gone").status == 404
    assert answer(stored, f"{A}/robots.txt").status == 404
    with pytest.raises(Refused, match="not kept in"):
        answer(stored, f"{A}/other")
    with pytest.raises(Refused, match="a POST"):
        run_virtual(stored.send(Task(f"{A}/plain", "POST", body=b"x")))
