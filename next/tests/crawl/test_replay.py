"""Our web archives in the hands of pywb, which replays them in an environment of its own: make pywb."""

import asyncio
import gzip
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from crawl.sites import HTML, Site, crawl, page, pages_options, served
from yarl import URL

WAYBACK = Path(__file__).parents[2] / ".venv-pywb" / "bin" / "wayback"


@asynccontextmanager
async def replayed(folder: Path) -> AsyncIterator[str]:
    """The address below which pywb answers as the archive of a crawl's folder does."""
    home = folder / "replay"
    home.mkdir()
    collection = f"{{index_paths: {folder / 'warc' / 'index.cdxj'}, archive_paths: {folder / 'warc'}/}}"
    (home / "config.yaml").write_text(f"collections: {{all: {collection}}}\n")
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    words = [str(WAYBACK), "--port", str(port), "--bind", "127.0.0.1", "--directory", str(home)]
    with (home / "said.txt").open("wb") as said, subprocess.Popen(words, stdout=said, stderr=said) as program:
        try:
            for _ in range(1200):
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    assert program.poll() is None, (home / "said.txt").read_text()
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    break
            yield f"http://127.0.0.1:{port}/all/2id_/"  # id_: as it was, with no link rewritten
        finally:
            program.kill()


@pytest.mark.real
@pytest.mark.skipif(not WAYBACK.exists(), reason="no pywb; make pywb")
async def test_pywb_replays_what_was_crawled(tmp_path: Path) -> None:
    packed = {**HTML, "Content-Encoding": "gzip"}
    pdf = {"Content-Type": "application/pdf"}
    targets = ["/a?b=2&a=1", "/A%20b/%C3%BC?q=%C3%A4", "/packed", "/file.pdf", "/moved", "/gone", "/empty"]
    site = Site(
        {
            "/": page("Front", links=targets),
            "/a?b=2&a=1": page("Query"),
            "/A%20b/%C3%BC?q=%C3%A4": page("Wörter"),
            "/packed": (200, packed, gzip.compress(page("Packed").encode())),
            "/file.pdf": (200, pdf, b"%PDF-1.7\n" + bytes(range(256)) * 40),
            "/moved": (301, {"Location": "/a?b=2&a=1"}, ""),
            "/gone": (410, HTML, "It is gone."),
            "/empty": "",
        }
    )
    async with served(site):
        await crawl(pages_options(tmp_path, site.base + "/", keep="warc"))
    expected = {target: site.pages[target] for target in site.pages} | {"/packed": page("Packed")}

    async with replayed(tmp_path) as archive, aiohttp.ClientSession() as session:
        for target, answer in expected.items():
            status, headers, body = answer if isinstance(answer, tuple) else (200, HTML, answer)
            url = URL(f"{archive}{site.base}{target}", encoded=True)
            async with session.get(url, allow_redirects=False) as response:
                assert (target, response.status) == (target, status)
                assert await response.read() == (body.encode() if isinstance(body, str) else body)
                assert "Location" not in headers or response.headers["Location"].endswith(headers["Location"])
        async with session.get(URL(f"{archive}{site.base}/never", encoded=True)) as response:
            assert response.status == 404
