"""Documents and media: which are kept, and how a download that broke off is gone on with, over real sockets."""

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import called
from scripted_server import Request, ScriptedServer, Step, answer, reset
from small_web import lines
from test_pipeline import FAST, OWN, SOON, html

from sanderling.clock import SystemClock
from sanderling.executor import in_threads
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.pages import files
from sanderling.pages.crawl import Crawl
from sanderling.pages.files import FileDownloads, FileRules
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.verify import verify

FILE = bytes(range(256)) * 40
PDF, TAG = "application/pdf", '"v1"'
Script = dict[str, list[bytes | list[Step]]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as large is small here."""
    monkeypatch.setattr(files, "LARGE", 1000)


def crawl(folder: Path, script: Script, rules: FileRules) -> tuple[dict[str, Any], list[Request]]:
    """Crawl what the script serves; the rows by path, and what was asked."""

    async def main() -> tuple[dict[str, Any], list[Request]]:
        clock, memory = SystemClock(), Memory(2**20)
        with ThreadPoolExecutor(1) as thread:
            async with asyncio.timeout(60), ScriptedServer(script) as server, Http(None, OWN, memory=memory) as http:
                plan, transport = CrawlPlan((server.url("/"),), (), 16), Transport(http, Limiter(FAST), memory)
                with CrawlFolder.open(folder, plan, resume=False, wall=clock.wall()) as opened:
                    one = Crawl(opened, transport, in_threads(thread), rules=replace(SOON, files=rules), clock=clock)
                    assert await one.run()
                    opened.finish(clock.wall(), complete=True)
                rows = [*lines(folder / "pages.jsonl"), *lines(folder / "failed.jsonl")]
                return {row["url"].removeprefix(server.url("")): row for row in rows}, server.requests

    return asyncio.run(main())


def broken_off(sent: int, **headers: str) -> list[Step]:
    """The file, of which only so many bytes come."""
    head = answer(200, b"", Content_Type=PDF, Content_Length=str(len(FILE)), **headers)
    return [head + FILE[:sent], 0.2, reset]


def rest(start: int, **headers: str) -> bytes:
    """The file from a byte on, as a part."""
    part = f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"
    return answer(206, FILE[start:], Content_Type=PDF, Content_Range=part, **headers)


def test_only_wanted_types_and_sizes_are_kept_and_rows_say_why(tmp_path: Path) -> None:
    script: Script = {
        "/": [html("/a.pdf", "/b.png", "/c.pdf", "/d.pdf", "/e.pdf")],
        "/a.pdf": [answer(200, FILE, Content_Type=PDF)],
        "/b.png": [answer(200, b"\x89PNG\r\n" * 9, Content_Type="image/png")],
        "/c.pdf": [answer(200, FILE * 2, Content_Type=PDF)],
        "/d.pdf": [  # of unknown length
            [
                b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nTransfer-Encoding: chunked\r\n\r\n",
                *[b"%x\r\n%b\r\n" % (len(FILE), FILE)] * 2,
                b"0\r\n\r\n",
            ]
        ],
        "/e.pdf": [answer(200, FILE, Content_Type=PDF)],  # the same once more
    }

    rows, _ = crawl(tmp_path / "out", script, FileRules((PDF,), len(FILE)))

    name = hashlib.sha256(FILE).hexdigest()
    assert rows["/a.pdf"]["body_path"] == rows["/e.pdf"]["body_path"] == f"bodies/{name[:2]}/{name}.pdf"
    assert (rows["/a.pdf"]["bytes"], rows["/a.pdf"]["sha256"]) == (len(FILE), name)
    assert rows["/b.png"]["detail"] == "not kept: image/png is not among application/pdf"
    assert rows["/c.pdf"]["detail"] == rows["/d.pdf"]["detail"] == "not kept: more than 10,240 bytes"
    assert not any("body_path" in rows[path] for path in ("/b.png", "/c.pdf", "/d.pdf"))
    assert {row["outcome"] for row in rows.values()} == {"OK"}
    assert list((tmp_path / "out/partial").iterdir()) == []
    assert verify(tmp_path / "out").problems == []


@pytest.mark.parametrize(
    ("answers", "ranges"),
    [
        ([rest(5000, ETag=TAG)], ["", "bytes=5000-"]),
        ([answer(200, FILE, Content_Type=PDF, ETag='"v2"')], ["", "bytes=5000-"]),  # another version, or no parts
        ([answer(416), answer(200, FILE, Content_Type=PDF)], ["", "bytes=5000-", ""]),
        (
            [rest(4000, ETag=TAG), answer(200, FILE, Content_Type=PDF)],
            ["", "bytes=5000-", ""],
        ),
        (
            [rest(5000, ETag='"v2"'), answer(200, FILE, Content_Type=PDF)],
            ["", "bytes=5000-", ""],
        ),
        ([answer(503), rest(5000, ETag=TAG)], ["", "bytes=5000-", "bytes=5000-"]),
    ],
)
def test_what_broke_off_is_gone_on_with(tmp_path: Path, answers: list[bytes], ranges: list[str]) -> None:
    script: Script = {"/": [html("/x.pdf")], "/x.pdf": [broken_off(5000, ETag=TAG), *answers]}

    rows, asked = crawl(tmp_path / "out", script, FileRules())

    requests = [each.headers for each in asked if each.path == "/x.pdf"]
    assert [each.get("range", "") for each in requests] == ranges
    assert requests[1]["if-range"] == TAG
    assert (tmp_path / "out" / rows["/x.pdf"]["body_path"]).read_bytes() == FILE
    assert verify(tmp_path / "out").problems == []


def test_without_a_name_for_its_version_a_file_begins_anew(tmp_path: Path) -> None:
    script: Script = {"/": [html("/x.pdf")], "/x.pdf": [broken_off(5000), answer(200, FILE, Content_Type=PDF)]}

    rows, asked = crawl(tmp_path / "out", script, FileRules())

    assert not any("range" in each.headers for each in asked)
    assert (tmp_path / "out" / rows["/x.pdf"]["body_path"]).read_bytes() == FILE


def test_another_process_goes_on_with_what_was_made_sure(tmp_path: Path) -> None:
    url, head = "https://a.example/x.pdf", (("Content-Type", PDF), ("Last-Modified", "Sun, 01 Mar 2026 12:00:00 GMT"))
    killed = FileDownloads(tmp_path, FileRules()).begin(url)
    assert killed.receive(200, head) is killed
    killed.add(FILE[:1500])
    killed.add(FILE[1500:1600])  # which is not sure yet, and the process is gone

    with FileDownloads(tmp_path, FileRules()).begin(url) as download:
        assert dict(download.headers) == {"Range": "bytes=1500-", "If-Range": head[1][1], "Accept-Encoding": "identity"}
        assert download.receive(206, (*head, ("Content-Range", f"bytes 1500-{len(FILE) - 1}/{len(FILE)}"))) is download
        download.add(FILE[1500:])
        download.finish()

    assert download._stored is not None
    assert download._stored.body is not None
    assert download._stored.body.sha256 == hashlib.sha256(FILE).hexdigest()
    assert FileDownloads(tmp_path, FileRules()).known == set()


@pytest.mark.parametrize(("flag", "value"), [("--files", "pdf"), ("--max-file", "much")])
def test_what_is_no_type_or_size_is_refused(tmp_path: Path, flag: str, value: str) -> None:
    done = called("pages", "crawl", "https://a.example/", "--out", str(tmp_path / "out"), flag, value)

    assert (done.code, flag in done.err) == (2, True)


@pytest.mark.parametrize("said", ["application/octet-stream", "binary/octet-stream", ""])
@pytest.mark.parametrize("begins", [b"PK\x03\x04", b"\0\1\2\3"])
def test_a_large_file_of_no_known_type_goes_to_disk_and_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, begins: bytes
) -> None:
    monkeypatch.setattr(files, "MOST_RAW", 4000)  # of what is read as a page
    typed = {"Content_Type": said} if said else {}
    body = begins + FILE
    head = answer(200, b"", Content_Length=str(len(body)), ETag=TAG, **typed)
    part = answer(206, body[5000:], Content_Range=f"bytes 5000-{len(body) - 1}/{len(body)}", ETag=TAG, **typed)
    script: Script = {"/": [html("/f")], "/f": [[head + body[:300], 0.02, body[300:5000], 0.2, reset], part]}

    rows, requests = crawl(tmp_path / "out", script, FileRules())

    assert rows["/f"]["sha256"] == hashlib.sha256(body).hexdigest()
    assert [each.headers.get("range") for each in requests if each.path == "/f"] == [None, "bytes=5000-"]


@pytest.mark.parametrize("sizes", [(5000,), (100, 4900), (20, 20, 5000)])
def test_a_large_page_of_no_known_type_is_read(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    page = b"<!doctype html><title>t</title><p>" + b"words " * 800
    pieces: list[Step] = [answer(200, b"", Content_Length=str(len(page)), Content_Type="application/octet-stream")]
    at = 0
    for size in sizes:
        pieces += [page[at : at + size], 0.02]
        at += size

    rows, _ = crawl(tmp_path / "out", {"/": [html("/f")], "/f": [pieces]}, FileRules())

    assert (rows["/f"]["title"], rows["/f"]["bytes"]) == ("t", len(page))
