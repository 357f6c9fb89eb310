"""A job of pages as a person runs it: tried, run, proved; and the files that are none."""

import json
from pathlib import Path

import pytest
from command_line import QUICK, called, here, run
from scripted_server import ScriptedServer, Step, answer

EXAMPLE = Path(__file__).parents[3] / "examples" / "shop.py"
LISTS, EACH = 3, 4
JOB = "from sanderling import Job\njob = Job('a', start='http://a.example/')"


def shop() -> dict[str, list[bytes | list[Step]]]:
    """A small shop, one item of which robots.txt forbids."""
    found: dict[str, list[bytes | list[Step]]] = {"/robots.txt": [answer(200, b"User-agent: *\nDisallow: /item/7")]}
    for page in range(1, LISTS + 1):
        numbers = range((page - 1) * EACH + 1, page * EACH + 1)
        following = f"/list/{page + 1}" if page < LISTS else "/about"
        links = "".join(f'<a class="item" href="/item/{number}">x</a>' for number in numbers)
        links += f'<a class="next" href="{following}">x</a>'
        found[f"/list/{page}"] = [answer(200, links.encode(), Content_Type="text/html")]
        for number in numbers:
            body = f"<h1>Item {number}</h1><b class=price>{number}</b>".encode()
            found[f"/item/{number}"] = [answer(200, body, Content_Type="text/html")]
    return found


def test_it_is_tried_run_and_proved(tmp_path: Path) -> None:
    job, out, kept, over = (tmp_path / name for name in ("shop.py", "out", "kept", "over"))

    async def main() -> None:
        async with ScriptedServer(shop()) as server:
            example = EXAMPLE.read_text().replace("https://shop.example", server.url("").rstrip("/"))
            job.write_text(example.replace('list/1")', 'list/1", rps=1000)'))
            tried = await here("run", str(job), "--try", "5", "--private")
            pages = [each.path for each in server.requests if each.path != "/robots.txt"]
            cached = ("run", str(job), "--private", "--cache", str(tmp_path / "cache"))
            await here(*cached, "--out", str(tmp_path / "first"))
            from_cache = await here(*cached, "--try", "5")
            done = await here("run", str(job), "--out", str(out), "--private")
            proved = await here("verify", str(out))
            crawled = await here("pages", "crawl", server.url("/list/1"), "--out", str(kept), "--keep", "warc", *QUICK)
        again = await here("run", str(job), "--out", str(over), "--from", str(kept))
        assert tried.code == 0, tried
        assert (len(pages), 0 < len(tried.out.splitlines()) < 5) == (5, True)
        assert from_cache.code == 0, from_cache
        assert 0 < len(from_cache.out.splitlines()) < 5
        assert done.code == 0, done
        assert "1 link to no page of the job passed over." in done.out
        assert "1 request refused by robots.txt:" in done.out
        assert f"What was not asked for, one line each, and why:\n\n    {out}/failed.jsonl" in done.out
        assert proved.code == 0, proved
        assert (crawled.code, again.code) == (1, 1), (crawled, again)  # neither has the item

    run(main)

    for folder in (out, over):
        records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
        assert sorted(each["number"] for each in records) == [number for number in range(1, 13) if number != 7]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_this_name", "job.py:1: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def (", "job.py:1: SyntaxError: invalid syntax"),
        (
            "from sanderling import Job\njob = Job('a', start='x')\njob.page('a')",
            "expected one that begins with a slash",
        ),
        (
            "from sanderling import Job\njob = Job('a', start='http://a.example/')",
            "expected a function with @job.page(…)",
        ),
    ],
)
def test_a_file_that_is_no_job_is_said(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "job.py").write_text(text)

    done = called("run", str(tmp_path / "job.py"), "--out", str(tmp_path / "out"))

    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
