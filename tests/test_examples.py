"""Every example runs as it is written, by itself, and does what its first lines say."""

import ast
import asyncio
import json
import re
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest
from scripted_server import ScriptedServer, Step, answer

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import encode_block
from sanderling.formats.rca_writer import RcaWriter
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import PRESETS
from sanderling.worlds.social_truth import BatchFate

Script = dict[str, list[bytes | list[Step]]]

FOLDER = Path(__file__).parents[1] / "examples"
PUBLIC = {"sanderling", "sanderling.jobs"}
EXAMPLES = sorted(FOLDER.glob("*.py"))


async def ran(folder: Path, name: str, *arguments: str) -> tuple[str, str]:
    """What an example says, in a folder of its own, with warnings as errors."""
    command = (sys.executable, "-W", "error", str(FOLDER / name), *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, cwd=folder)
    async with asyncio.timeout(300):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode(), err.decode()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_is_short_says_what_it_shows_and_how_to_run_it(path: Path) -> None:
    text = path.read_text()
    said = ast.get_docstring(ast.parse(text)) or ""

    assert len(text.splitlines()) <= 40
    assert f"python examples/{path.name}" in said or f"sanderling run examples/{path.name}" in said
    assert "sys.path" not in text
    # What is imported of ours is public.
    imported = set(re.findall(r"^(?:from|import) (sanderling\S*)", text, re.MULTILINE))
    assert imported
    assert imported <= PUBLIC


def test_each_that_python_runs_is_run_here() -> None:
    text, scripts = Path(__file__).read_text(), [path for path in EXAMPLES if "python examples/" in path.read_text()]
    assert len(scripts) >= 6
    assert [path.name for path in scripts if f'"{path.name}"' not in text] == []


def test_only_the_limiter(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer({"/1": [answer(200)], "/2": [answer(404)]}) as server:
            here = f"127.0.0.1:{server.port}"
            out, err = await ran(tmp_path, "only_the_limiter.py", f"http://{here}/1", f"http://{here}/2")
        lines = out.splitlines()
        assert sorted(lines[:2]) == [f"200 http://{here}/1", f"404 http://{here}/2"]
        assert lines[2].startswith(f"{here}: 2 requests, ")
        assert err == ""

    asyncio.run(main())


def test_my_own_api_goes_on_where_it_was(tmp_path: Path) -> None:
    orders: Script = {f"/orders/{number}": [order(number)] for number in range(1, 8)}

    async def main() -> None:
        async with ScriptedServer(orders) as server:
            first, _ = await ran(tmp_path, "my_own_api.py", server.url("/orders"), "1", "4")
            second, _ = await ran(tmp_path, "my_own_api.py", server.url("/orders"), "1", "6")
        assert sorted(first.splitlines()) == ["1 1.5", "2 3.0", "3 4.5", "4 6.0"]
        assert sorted(second.splitlines()) == ["5 7.5", "6 9.0"]

    asyncio.run(main())


def order(number: int) -> bytes:
    return answer(200, json.dumps({"id": number, "total": number * 1.5, "note": "not wanted"}).encode())


def test_read_an_archive(tmp_path: Path) -> None:
    post = b'{"text":"tide"}'
    record = (1).to_bytes(2, "little") + b"a" + len(post).to_bytes(4, "little") + post
    collections = [Collection("app.bsky.feed.like", 1, record), Collection("app.bsky.feed.post", 1, record)]
    path = tmp_path / "segment_0001.rca"
    with path.open("wb+") as file:
        writer = RcaWriter(file, created_at=0)
        writer.append("did:plc:a", encode_block("did:plc:a", "https://a.example", "3k", 0, collections, 1))
        writer.finalise()

    out, err = asyncio.run(ran(tmp_path, "read_an_archive.py", str(path), "app.bsky.feed.post"))

    assert out == "did:plc:a a {'text': 'tide'}\n"
    assert err.splitlines() == [
        "       1 records of 1 repos in app.bsky.feed.like",
        "       1 records of 1 repos in app.bsky.feed.post",
    ]


def test_crawl_a_site(tmp_path: Path) -> None:
    body = b"<html><head><title>Shore</title></head><body><main><p>sanderlings follow sanderlings</p>%s</main></body>"
    script: Script = {
        "/": [answer(200, body % b'<a href="/gone">gone</a>', Content_Type="text/html")],
        "/gone": [answer(410)],
    }

    async def main() -> None:
        async with ScriptedServer(script) as server:
            url = server.url()
            out, err = await ran(tmp_path, "crawl_a_site.py", url)
        lines = out.splitlines()
        assert lines[0] == f"{url} - Shore"
        assert lines[1].startswith("1 pages, 1 failed; mostly about sanderlings")
        assert err == ""
        assert (tmp_path / "site" / "status.json").is_file()

    asyncio.run(main())


def test_crawl_into_events(tmp_path: Path) -> None:
    """What was handed over is in the rows, once, also if it was handed over twice."""
    body = b"<html><body><main><p>sanderlings follow the waves</p><a href='/gone'>gone</a></main></body>"
    script: Script = {"/": [answer(200, body, Content_Type="text/html")] * 2, "/gone": [answer(410)] * 2}

    async def main() -> None:
        async with ScriptedServer(script) as server:
            for _ in range(2):
                out, err = await ran(tmp_path, "crawl_into_events.py", server.url())
                assert out.splitlines() == ["1 pages, 1 failed; 2 handed over"]
                assert err == ""
                for name in ("site", "site.1"):  # as if it had been killed before it took note
                    rmtree(tmp_path / name, ignore_errors=True)
        consume = (sys.executable, "-m", "sanderling", "events", "consume", "--drain", "--json", "--metrics-port", "0")
        process = await asyncio.create_subprocess_exec(*consume, cwd=tmp_path, stdout=PIPE, stderr=PIPE)
        async with asyncio.timeout(300):
            await process.communicate()
        assert process.returncode == 0
        with sqlite3.connect(tmp_path / "events" / "events.db") as db:
            ((brand, text),) = db.execute("SELECT brand_name, content_text FROM post_analytics").fetchall()
        assert brand == "Sanderling"
        assert text.startswith("sanderlings follow the waves")

    asyncio.run(main())


def test_read_batches(tmp_path: Path) -> None:
    social = Social(1, PRESETS["demo"]())
    read = [number for number in range(12) if social.truth(number).fate is BatchFate.READ][:3]
    items = sum(len(social.truth(number).items) for number in read)
    names = []
    for number in read:
        names.append(f"batch_{number}.json")
        (tmp_path / names[-1]).write_bytes(social.batch(number).body or b"")
    (tmp_path / "odd.json").write_bytes(Random(1).randbytes(50))

    out, err = asyncio.run(ran(tmp_path, "read_batches.py", *names, "odd.json"))

    *liked, last = out.splitlines()
    likes = [int(line.split()[0]) for line in liked]
    posts, *missing = map(int, re.findall(r"(?:^|': )(\d+)", last))
    assert likes == sorted(likes, reverse=True)
    assert (len(likes), posts + sum(missing)) == (5, items)
    assert posts > 0.8 * items
    assert err.startswith("odd.json: ")
