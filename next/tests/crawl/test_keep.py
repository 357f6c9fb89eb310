"""What is kept of responses: bodies, files, web archives that others read, and how they go on after a kill."""

import gzip
import io
from pathlib import Path

import pytest
from crawl.sites import HTML, Site, crawl, job_options, lines, page, pages_options, rows, served
from warcio.archiveiterator import ArchiveIterator

from sanderling.crawl.system import verify
from sanderling.crawl.warc import read_block, read_records, sort_key
from sanderling.files import Exit, FolderError

PDF = {"Content-Type": "application/pdf"}


def archived(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Status and body by address, as another program reads them."""
    found = {}
    for path in sorted((folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                if record.rec_type == "response":
                    status = record.http_headers.get_statuscode()
                    found[record.rec_headers.get_header("WARC-Target-URI")] = status, record.content_stream().read()
    return found


@pytest.mark.real
async def test_a_web_archive_that_was_torn_goes_on_and_others_read_it(tmp_path: Path) -> None:
    pages = {f"/{n}": page(f"Page {n}", links=[f"/{n + 1}"]) for n in range(6)}
    secret = {**HTML, "Set-Cookie": "session=marked"}
    site = Site({**pages, "/6": (301, {"Location": "/7"}, ""), "/7": (200, secret, page("Last", links=["/gone"]))})
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/0", keep="warc", max_pages=3))
        segment = tmp_path / "warc" / "pages-00001.warc.gz"
        with segment.open("ab") as file:  # as a kill leaves it
            file.write(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n" * 9)[:40])
        await crawl(pages_options(tmp_path, max_pages=100))

    found = archived(tmp_path)
    assert {url.removeprefix(site.base): status for url, (status, _) in found.items()} == {
        **{f"/{n}": "200" for n in range(6)}, "/6": "301", "/7": "200", "/gone": "404",
    }  # fmt: skip
    assert found[site.base + "/3"][1].decode() == pages["/3"]
    assert b"marked" not in gzip.decompress(segment.read_bytes())
    index = (tmp_path / "warc" / "index.cdxj").read_bytes().splitlines()
    assert index == sorted(index)
    assert len(index) == 9
    assert not (await verify(tmp_path)).faults
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    assert (await verify(tmp_path)).faults


@pytest.mark.real
async def test_bodies_and_files_are_kept_once_each(tmp_path: Path) -> None:
    big = b"%PDF" + bytes(3000)
    site = Site(
        {
            "/": page("Front", links=["/a.pdf", "/b.pdf", "/big.pdf", "/c.png"]),
            "/a.pdf": (200, PDF, b"%PDF one"), "/b.pdf": (200, PDF, b"%PDF one"), "/big.pdf": (200, PDF, big),
            "/c.png": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
        }
    )  # fmt: skip
    async with served(site):
        await crawl(pages_options(tmp_path / "files", site.base + "/", files=("application/*",), max_file=1000))
        await crawl(pages_options(tmp_path / "all", site.base + "/", keep="html"))

    found = {url.removeprefix(site.base): row for url, row in rows(tmp_path / "files").items()}
    assert found["/a.pdf"]["body_path"] == found["/b.pdf"]["body_path"]
    assert (tmp_path / "files" / found["/a.pdf"]["body_path"]).read_bytes() == b"%PDF one"
    assert "3,004 bytes" in found["/big.pdf"]["not_kept"]
    assert not {"body_path", "not_kept"} & {*found["/"], *found["/c.png"]}
    every = rows(tmp_path / "all")
    assert (tmp_path / "all" / every[site.base + "/"]["body_path"]).read_text() == site.pages["/"]
    assert len([path for path in (tmp_path / "all" / "bodies").rglob("*") if path.is_file()]) == 4


@pytest.mark.real
async def test_a_folder_that_is_full_waits_for_room(tmp_path: Path) -> None:
    site = Site({f"/{n}": page(f"Page {n}", links=[f"/{(n + 1) % 3}"]) for n in range(3)})
    ballast = tmp_path / "ballast"
    ballast.write_bytes(bytes(2 << 20))
    said = []

    async with served(site):
        options = pages_options(tmp_path, site.base + "/0", max_disk=2 << 20)

        def watch(run: object) -> None:
            room = run.parts.room  # type: ignore[attr-defined]
            look = room.look

            async def freed() -> None:
                room._again_at = 0.0
                await look()
                if room.is_full:
                    said.extend(run.report().troubles)  # type: ignore[attr-defined]
                    ballast.unlink()

            room.look = freed

        code, _ = await crawl(options, watch)

    assert code is Exit.DONE
    assert "--max-disk is 2MB" in said[0]
    assert len(rows(tmp_path)) == 3


@pytest.mark.parametrize(
    ("url", "key"),
    [  # as pywb has it
        ("http://www.example.org:8080/a/B/?b=1&a=2", "org,example:8080)/a/b?a=2&b=1"),
        ("http://127.0.0.1:34567/x?", "1,0,0,127:34567)/x"),
        ("https://www2.example.co.uk/A%20b", "uk,co,example)/a%20b"),
        ("http://[::1]:8080/a", "::1:8080)/a"),
        ("https://example.org/", "org,example)/"),
    ],
)
def test_an_address_is_sorted_as_indexes_sort_it(url: str, key: str) -> None:
    assert sort_key(url) == key


def record(body: bytes, *headers: str, url: str = "http://example.org/", kind: str = "response") -> bytes:
    """A record as another writer makes it."""
    block = "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: <{url}>\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n"
    return f"{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


def test_records_of_other_writers(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    chunked = record(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    path.write_bytes(chunked + record(b"abcde", "Transfer-Encoding: chunked") + record(b"end"))
    assert [read_block(each.block)[2] for each in read_records(path)] == [b"abcde", b"abcde", b"end"]

    whole = path.read_bytes()
    path.write_bytes(whole[:-6])  # cut within the last body
    assert len(list(read_records(path))) == 2
    second = list(read_records(path))[1]
    assert next(read_records(path, second.offset)).block == second.block

    packed = tmp_path / "b.warc.gz"
    packed.write_bytes(b"".join(gzip.compress(record(b"%d" % n)) for n in range(3)))
    found = list(read_records(packed))
    assert [read_block(each.block)[2] for each in found] == [b"0", b"1", b"2"]
    assert read_block(next(read_records(packed, found[2].offset)).block)[2] == b"2"
    packed.write_bytes(gzip.compress(whole))
    with pytest.raises(FolderError, match="several records in a gzip member"):
        list(read_records(packed))
    path.write_bytes(b"no archive at all\n" * 100)
    with pytest.raises(FolderError, match="is no WARC"):
        list(read_records(path))


def test_a_record_with_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.warc.gz"
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        size = 300 << 20
        file.write(f"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(300):
            file.write(bytes(1 << 20))
        file.write(b"\r\n\r\n")
    path.write_bytes(packed.getvalue() + gzip.compress(record(b"after")))
    assert [read_block(each.block)[2] for each in read_records(path)] == [b"after"]


JOB = """
from sanderling.jobs import Job
job = Job("shop", start="{base}/0", hosts="{host}")

@job.page("/**", status=(404,))
def read(page):
    yield {{"url": page.url, "title": page.css("title").text, "n": page.status}}
    yield from page.links()
"""


@pytest.mark.real
@pytest.mark.parametrize("how", ["warc", "html"])
async def test_what_was_kept_gives_the_same_records_without_a_request(tmp_path: Path, how: str) -> None:
    latin = {"Content-Type": "text/html; charset=iso-8859-1"}
    site = Site(
        {
            **{f"/{n}": page(f"Page {n}", links=[f"/{n + 1}"]) for n in range(5)},
            "/5": (302, {"Location": "/6"}, ""), "/6": (200, latin, page("Café", links=["/gone"]).encode("latin-1")),
        }
    )  # fmt: skip
    file = tmp_path / "job.py"
    async with served(site):
        file.write_text(JOB.format(base=site.base, host=site.base.partition("//")[2]))
        await crawl(job_options(tmp_path / "first", file, keep=how))
        number = len(site.requests)
    kept = tmp_path / "first" / "warc" / "records-00001.warc.gz" if how == "warc" else tmp_path / "first"
    await crawl(job_options(tmp_path / "again", file, from_=kept))

    assert len(site.requests) == number == 8
    first = (tmp_path / "first" / "records.jsonl").read_bytes()
    assert b"Caf\xc3\xa9" in first
    assert first.count(b"\n") == 7
    assert (tmp_path / "again" / "records.jsonl").read_bytes() == first


@pytest.mark.real
async def test_archives_of_others_answer_requests(tmp_path: Path) -> None:
    kept, file = tmp_path / "kept", tmp_path / "job.py"
    kept.mkdir()
    base = "http://example.org"
    file.write_text(JOB.format(base=base, host="example.org"))
    front = page("Old", links=["/1"]).encode()
    packed = gzip.compress(page("Packed", links=["/2", "/lost"]).encode())
    html = "Content-Type: text/html"
    (kept / "a.warc").write_bytes(
        record(front, html, "WARC: 1", url=f"{base}/0")
        + record(packed, html, "Content-Encoding: gzip", url=f"{base}/1")
        + record(gzip.compress(bytes(64 << 20)), html, "Content-Encoding: gzip", url=f"{base}/2")
        + record(b"", html, url="no address")
    )
    code, _ = await crawl(job_options(tmp_path / "out", file, from_=kept))

    assert code is Exit.FAILED
    assert [each["title"] for each in lines(tmp_path / "out" / "records.jsonl")] == ["Old", "Packed"]
    failed = {each["url"]: each for each in lines(tmp_path / "out" / "failed.jsonl")}
    assert failed[f"{base}/2"]["outcome"] == "TOO_LARGE"
    assert "not kept in" in failed[f"{base}/lost"]["detail"]
    with pytest.raises(FolderError, match="has no WARC files"):
        await crawl(job_options(tmp_path / "none", file, from_=tmp_path / "out"))
