"""kill -9 of the real commands while they keep what they fetch: archives are whole, and nothing is there twice."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from command_line import here, run, start
from scripted_server import ScriptedServer, Step, answer
from warc_files import captured

from sanderling.crawls.kept import Keep

KILLS, LISTS, EACH = 3, 3, 6
JOB = """
from sanderling import Job

job = Job("shop", start="{url}/list/1", rps=400)


@job.page("/list/*")
def listing(page):
    yield from page.follow_all("a")


@job.page("/item/{{number}}")
def item(page, number):
    yield {{"number": int(number), "name": page.css("h1").text}}
"""


def shop() -> dict[str, list[bytes | list[Step]]]:
    """Lists that lead to items and to the next list; of each item there is another page."""
    found: dict[str, list[bytes | list[Step]]] = {"/robots.txt": [answer(404)]}
    for page in range(1, LISTS + 1):
        numbers = range((page - 1) * EACH + 1, page * EACH + 1)
        links = "".join(f"<a href=/item/{number}>{number}</a>" for number in numbers)
        links += f"<a href=/list/{page + 1}>next</a>" if page < LISTS else ""
        found[f"/list/{page}"] = [answer(200, links.encode(), Content_Type="text/html")]
        for number in numbers:
            found[f"/item/{number}"] = [answer(200, f"<h1>Item {number}</h1>".encode(), Content_Type="text/html")]
    return found


def captures(folder: Path) -> Counter[str]:
    """How often each path is in the archives."""
    return Counter("/" + url.split("/", 3)[3] for url in captured(folder))


def kill_again_and_again(folder: Path, keep: Keep, *, job: bool) -> Counter[str]:
    """Kill the command some times, let it come to its end, prove it; how often the server was asked for each path."""
    rng = Random(7)

    async def main() -> Counter[str]:
        async with ScriptedServer(shop()) as server:
            url, common = server.url("").rstrip("/"), ("--out", str(folder), "--keep", keep, "--private")
            (folder.parent / "shop.py").write_text(JOB.format(url=url))
            words: tuple[str, ...] = ("run", str(folder.parent / "shop.py"), *common)
            if not job:
                words = ("pages", "crawl", f"{url}/list/1", *common, "--no-parquet", "--rps", "400")
            killed = 0
            for _ in range(KILLS):
                process = await start(*words)
                asked = len(server.requests) + rng.randint(3, 7)
                while len(server.requests) < asked and process.returncode is None:  # noqa: ASYNC110 - a number
                    await asyncio.sleep(0.01)  # by what the server sees, not by the clock
                if process.returncode is None:
                    process.kill()
                    killed += 1
                await process.communicate()
                proved = await here("verify", str(folder))
                assert proved.code == 0, proved
            done = await here(*words)
            proved = await here("verify", str(folder))
            assert (done.code, proved.code) == (0, 0), (done, proved)
            assert killed >= KILLS - 1, "hardly any run was killed while it worked"
            return Counter(request.path for request in server.requests)

    return run(main)


@pytest.mark.parametrize("keep", ["warc", "html"])
def test_a_job_that_is_killed_has_each_record_once_and_each_answer(tmp_path: Path, keep: Keep) -> None:
    out = tmp_path / "out"

    asked = kill_again_and_again(out, keep, job=True)

    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert sorted(each["number"] for each in records) == list(range(1, LISTS * EACH + 1))
    kept = [json.loads(line) for line in (out / "kept.jsonl").read_text().splitlines()]
    found = Counter("/" + each["url"].split("/", 3)[3] for each in kept)
    assert found.keys() == asked.keys() == shop().keys()
    assert all(found[path] <= asked[path] for path in asked)  # no answer is there twice
    if keep == "warc":
        assert captures(out) == found
    run_over(tmp_path, records)


def run_over(folder: Path, records: list[object]) -> None:
    """The same job over what was kept finds the same."""

    async def main() -> None:
        done = await here("run", str(folder / "shop.py"), "--out", str(folder / "over"), "--from", str(folder / "out"))
        assert done.code == 0, done

    run(main)
    again = [json.loads(line) for line in (folder / "over" / "records.jsonl").read_text().splitlines()]
    assert sorted(map(str, again)) == sorted(map(str, records))


def test_a_crawl_that_is_killed_has_each_page_once_in_its_archive(tmp_path: Path) -> None:
    out = tmp_path / "out"

    kill_again_and_again(out, "warc", job=False)

    pages = shop().keys() - {"/robots.txt"}
    assert captures(out) == dict.fromkeys(pages, 1)
    rows = [json.loads(line) for line in (out / "pages.jsonl").read_text().splitlines()]
    assert Counter("/" + each["url"].split("/", 3)[3] for each in rows) == dict.fromkeys(pages, 1)
