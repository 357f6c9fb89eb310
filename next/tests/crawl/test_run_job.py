"""Jobs as people write them, from their file to their records."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from crawl.sites import Site, crawl, job_options, lines, page, rows, served

from sanderling.crawl.job import JobError
from sanderling.crawl.system import retry, verify
from sanderling.files import Exit

pytestmark = pytest.mark.real

SHOP = """
from sanderling import Job

job = Job("shop", start="BASE/list/1")


@job.page("/list/*")
def listing(page):
    yield from page.follow_all("a.item, a.next")


@job.page("/item/{number}")
def item(page, number):
    if number == "3":
        1 / 0
    yield {"number": int(number), "name": page.css("h1").text}
    if number == "4":
        yield {"number": float("nan")}
"""


def shop() -> Site:
    pages: dict[str, Any] = {
        f"/list/{n}": "".join(
            f'<a class=item href="/item/{i}?utm_source={i}">x</a>' for i in range(5 * n - 4, 5 * n + 1)
        )
        + f'<a class=next href="/list/{n + 1}">next</a>'
        for n in (1, 2)
    }
    return Site(pages | {f"/item/{i}": f"<h1>Item {i}</h1>" for i in range(1, 11)} | {"/x": page("x")})


def written(folder: Path, text: str, site: Site) -> Path:
    file = folder / "shop.py"
    file.write_text(text.replace("BASE", site.base))
    return file


async def test_a_shop_in_nine_lines(tmp_path: Path) -> None:
    site, out = shop(), tmp_path / "out"
    async with served(site):
        code, _ = await crawl(job_options(out, written(tmp_path, SHOP, site)))
        records, failed = lines(out / "records.jsonl"), rows(out, "failed.jsonl")

        assert code == Exit.FAILED
        assert sorted(each["number"] for each in records) == [1, 2, 4, 5, 6, 7, 8, 9, 10]
        assert {url.removeprefix(site.base): row["outcome"] for url, row in failed.items()} == {
            "/item/3": "PARSE_ERROR", "/item/4": "PARSE_ERROR", "/list/3": "CONTENT_NOT_FOUND",
        }  # fmt: skip
        assert failed[site.base + "/item/3"]["detail"] == "ZeroDivisionError: division by zero (shop.py:15)"
        assert failed[site.base + "/item/4"]["detail"].startswith("record 2: it is no JSON")
        assert not (await verify(out)).faults

        # Mended, what failed is tried again and nothing else is.
        before = len(site.requests)
        mended = SHOP.replace("1 / 0", "pass").replace('float("nan")', "404")
        file = written(tmp_path, mended, site)
        await retry(out, "failed", None, "PARSE_ERROR")
        await crawl(job_options(out, file))

    assert sorted(site.requests[before:]) == ["/item/3", "/item/4"]
    assert sorted(each["number"] for each in lines(out / "records.jsonl")) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 404]
    assert not (await verify(out)).faults


SLOW = """
import time
from sanderling import Job

job = Job("slow", start=["BASE/bad", "BASE/good"])

def hold(url):
    while url.endswith("bad"):
        time.sleep(0.01)

"""
HOLDS = {
    "async": '@job.read\nasync def read(reply):\n    hold(reply.url)\n    yield {"at": reply.url}\n',
    "before": "@job.before\ndef sign(request):\n    hold(request.url)\n\n"
    '@job.read\ndef read(reply):\n    yield {"at": reply.url}\n',
}
QUICK = """
import sys
from sanderling.cli.main import main
from sanderling.crawl import source, watchdog
watchdog.TURN, source.AFTER = 0.02, 0.3
sys.exit(main())
"""


@pytest.mark.parametrize("kind", HOLDS)
async def test_a_function_that_holds_the_loop_fails_the_second_time(tmp_path: Path, kind: str) -> None:
    site = Site({"*": (200, {"Content-Type": "application/json"}, "{}")})
    out = tmp_path / "out"
    codes = []
    async with served(site):
        file = written(tmp_path, SLOW + HOLDS[kind], site)
        for _ in range(3):
            words = ("-c", QUICK, "run", str(file), "--private", "--policy", "none", "--out", str(out))
            ran = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.PIPE)
            codes.append((await asyncio.wait_for(ran.communicate(), 60), ran.returncode)[1])
            assert ran.stderr is not None
    assert codes == [75, 75, 1]
    (failed,) = rows(out, "failed.jsonl").values()
    assert "shop.py" in failed["detail"]
    assert (out / "held.json").read_text() == "{}"  # it has ended
    assert [row["at"] for row in lines(out / "records.jsonl")] == [site.base + "/good"]


async def test_a_file_that_reads_the_environment_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs here and not in a reader, which is given no variables."""
    file = tmp_path / "job.py"
    file.write_text(
        'import os\nfrom sanderling import Job\njob = Job("a", start=os.environ["SITE"])\njob.read(print)\n'
    )
    monkeypatch.setenv("SITE", "http://127.0.0.1:1/")

    with pytest.raises(JobError, match=r"KeyError: 'SITE' \(job.py:3\), in a reader"):
        await crawl(job_options(tmp_path / "out", file, readers=1))
