"""`forget`: nothing is left of a page or a host, whenever the process is killed."""

import asyncio
import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crawl.sites import HTML, Answer, Site, crawl, lines, page, pages_options, served

from sanderling.cli.context import Context
from sanderling.cli.forget import ForgetOptions, forget
from sanderling.crawl import system
from sanderling.crawl.run import CrawlRun
from sanderling.files import Exit, FolderError
from sanderling.observe.control import ControlRequest
from sanderling.options import OptionError
from sanderling.records.export import export
from sanderling.records.selection import Selection

pytestmark = pytest.mark.real


def left(folder: Path, *marks: bytes) -> list[str]:
    """The files of a folder that still tell of something."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            raw += gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else b""
            found += [path.name for mark in marks if mark in raw]
    return found


def people() -> dict[str, Any]:
    hidden = page("Ann", "All about the lone walrus.")
    listed = page("List", links=["/people/ann", "/c"])
    return {"/": page("Front", links=["/list?b=1&a=2", "/b"]), "/list?b=1&a=2": listed, "/people/ann": hidden,
            "/b": page("B"), "/c": page("C")}  # fmt: skip


@pytest.mark.parametrize("how", ["warc", "html"])
async def test_nothing_is_left_and_nothing_else_is_gone(tmp_path: Path, how: str) -> None:
    site = Site({})
    out = tmp_path / "out"
    async with served(site):
        site.pages = people()
        await crawl(pages_options(out, site.base + "/", keep=how))
        marks = b"/people/ann", b"walrus"
        assert len(left(out, *marks)) > 4
        said = await system.forget(out, (f"{site.base}/people/ann", f"{site.base}/list?b=1&a=2"))
        assert said == "addresses forgotten: 2"
        assert not left(out, *marks)
        assert [row["url"].removeprefix(site.base) for row in lines(out / "pages.jsonl")] == ["/", "/b", "/c"]
        assert not (await system.verify(out)).faults
        before = len(site.requests)
        await crawl(pages_options(out, site.base + "/people/ann"))

    assert "/people/ann" not in site.requests[before:]
    assert "/list?b=1&a=2" not in site.requests[before:]
    assert {"/", "/b"} <= {*site.requests[before:]}
    with pytest.raises(OptionError, match="THING"):
        await system.forget(out, ())
    with pytest.raises(OptionError, match="not a URL"):
        await system.forget(out, ("http://[",))


async def test_a_host_is_forgotten_whole(tmp_path: Path) -> None:
    site, other = Site({"*": page("Other")}), Site({"*": page("Gone")})
    async with served(site, other):
        site.pages = {"/": page("Front", links=["/a"]), "/a": page("A")}
        host = other.base.partition("//")[2]
        await crawl(pages_options(tmp_path, site.base + "/", other.base + "/people"))
        assert left(tmp_path, host.encode())
        await system.forget(tmp_path, (host,))
        assert not left(tmp_path, host.encode())
        site.pages = {"/": page("Front", links=["/a", other.base + "/new"]), "/a": page("A")}
        await crawl(pages_options(tmp_path, allow=()))

    assert other.requests == ["/people"]
    assert not (await system.verify(tmp_path)).faults


# Forgets in a copy of a folder, and is killed before its first write, of a file or of the ledger; in the next copy
# before its second, until one ends.
KILLED = """
import asyncio, itertools, os, shutil, signal, sqlite3, sys
from pathlib import Path
from sanderling.crawl import system

connect, left, folder = sqlite3.connect, 0, Path(sys.argv[1])

def tick(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

def counted(real):
    return lambda *given, **more: (tick(), real(*given, **more))[1]

def connected(*given, **more):
    made = connect(*given, **more)
    made.set_trace_callback(lambda sql: sql[:6] in ("SELECT", "PRAGMA") or tick())
    return made

for name in ("replace", "fsync", "write", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
sqlite3.connect = connected
for number in itertools.count(1):
    out = folder.with_name(str(number))
    shutil.copytree(folder, out)
    left = number
    if not (child := os.fork()):
        asyncio.run(system.forget(out, sys.argv[2:]))
        os._exit(0)
    left = 0
    if not os.waitpid(child, 0)[1]:
        break
"""


async def test_a_kill_at_any_write_is_gone_on_with(tmp_path: Path) -> None:
    site = Site({})
    async with served(site):
        site.pages = people()
        await crawl(pages_options(tmp_path / "0", site.base + "/", keep="warc"))
    await system.forget(tmp_path / "0", (f"{site.base}/list?b=1&a=2",))
    url = f"{site.base}/people/ann"
    words = [sys.executable, "-c", KILLED, str(tmp_path / "0"), url]
    await asyncio.to_thread(subprocess.run, words, check=True, timeout=200)

    outs = sorted(path for path in tmp_path.iterdir() if path.name.isdecimal() and path.name != "0")
    assert len(outs) > 40
    for out in outs:
        if (out / "forget.json").exists():
            with pytest.raises(FolderError, match="did not end"):
                await system.verify(out)
            await system.forget(out, ())
        else:  # before anything was noted, or after all was done
            await system.forget(out, (url,))
        assert not left(out, b"/people/ann", b"walrus"), out
        assert not (await system.verify(out)).faults, out
        assert [row["url"].removeprefix(site.base) for row in lines(out / "pages.jsonl")] == ["/", "/b", "/c"]


async def test_a_crawl_that_runs_forgets_too(tmp_path: Path) -> None:
    site = Site({f"/{n}": page(f"Page {n}", f"walrus {n}.", [f"/{n + 1}"]) for n in range(12)})
    runs: list[CrawlRun] = []
    said: list[str] = []
    fifth = str(site.pages["/5"])

    async with served(site):

        async def ask() -> None:
            words = (f"{site.base}/2", f"{site.base}/9")
            said.append(await runs[0].carry_out(ControlRequest("1", "forget", words)))

        def middle(request: object) -> Answer:
            tasks.append(asyncio.create_task(ask()))
            return 200, HTML, fifth

        site.pages["/5"] = middle
        tasks: list[asyncio.Task[None]] = []
        await crawl(pages_options(tmp_path, site.base + "/0", keep="warc", depth=100), runs.append)

    assert said == ["addresses forgotten: 1"]
    assert site.requests == [f"/{n}" for n in range(9)]
    assert [row["title"] for row in lines(tmp_path / "pages.jsonl")] == [f"Page {n}" for n in range(9) if n != 2]
    assert left(tmp_path, b"walrus 3.")
    assert not left(tmp_path, b"walrus 2.", b"forget.json")
    assert not (await system.verify(tmp_path)).faults


async def test_exports_are_written_anew_or_refused_before_anything_is_removed(tmp_path: Path) -> None:
    site = Site({})
    out = tmp_path / "out"
    async with served(site):
        site.pages = people()
        await crawl(pages_options(out, site.base + "/"))
    targets = [tmp_path / name for name in ("a.jsonl", "b.csv", "c.sqlite", "d.parquet")]
    for target in targets:
        with system.records(out) as rows:
            export(rows, Selection(fields=["url", "text"]), target)
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_text("{}\n")
    things = (f"{site.base}/people/ann",)
    context = Context((), {}, tmp_path)

    with pytest.raises(FolderError, match="no export"):
        await asyncio.to_thread(
            forget, ForgetOptions(folder=out, things=things, export=(str(targets[0]), str(foreign))), context
        )
    assert left(out, b"walrus")
    code = await asyncio.to_thread(
        forget, ForgetOptions(folder=out, things=things, export=tuple(map(str, targets))), context
    )

    assert code is Exit.DONE
    assert not left(tmp_path, b"walrus")
