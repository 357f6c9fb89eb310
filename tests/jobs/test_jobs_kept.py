"""Jobs that keep what they fetched: once and whole, without secrets, and read back by a later run."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from small_api import API, answer, api, lines, run
from small_shop import EACH, LISTS, SHOP, html, items, shop, shop_job

from sanderling import Job, Page
from sanderling.apis.auth import ApiKey
from sanderling.crawls.archive import segments
from sanderling.crawls.kept import Keep
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.jobs.verify import verify_job
from sanderling.stores.durable import FolderError

KEEPS: list[Keep] = ["html", "warc"]


def captures(folder: Path) -> list[tuple[str, str, str]]:
    """Type, URL and status of all answers in the archive, as warcio reads them."""
    warcio = pytest.importorskip("warcio", reason="warcio is not installed: pip install warcio")
    found = []
    for path in segments(folder, "pages-0001"):
        with path.open("rb") as file:
            for record in warcio.ArchiveIterator(file, check_digests="raise"):
                if record.rec_type in ("response", "revisit"):
                    url, status = record.rec_headers.get_header("WARC-Target-URI"), record.http_headers.get_statuscode()
                    record.content_stream().read()
                    found.append((record.rec_type, url, status))
    return found


@pytest.mark.parametrize("keep", KEEPS)
def test_what_a_job_keeps_a_later_run_reads_without_a_request(tmp_path: Path, keep: Keep) -> None:
    world = api(shop())
    first = run(shop_job(), tmp_path / "kept", world, rps=100, keep=keep)

    again = run(shop_job(), tmp_path / "again", StoredReplies(tmp_path / "kept"), rps=1000)

    by_number = sorted(again.records, key=lambda each: each["number"])
    assert by_number == sorted(first.records, key=lambda each: each["number"]) == items(without=13)
    proof = verify_job(tmp_path / "kept")
    assert (proof.problems, proof.kept) == ([], len(world.urls))


def test_every_answer_is_in_the_archive_robots_txt_redirects_and_failures_too(tmp_path: Path) -> None:
    job = Job("pages", start=[f"{SHOP}/", f"{SHOP}/gone", f"{SHOP}/bad"])
    job.page("/**")(lambda page: [{"title": page.css("h1").text}])
    pages = {f"{SHOP}/": answer(301, body=b"", status=301, Location="/home"), f"{SHOP}/home": html("<h1>a</h1>")}
    bad = [answer("later", 503), answer("later", 503), html("<h1>b</h1>")]

    ran = run(job, tmp_path / "out", api({**pages, f"{SHOP}/bad": bad}), keep="warc")

    assert sorted(each["title"] for each in ran.records) == ["a", "b"]
    assert sorted(captures(tmp_path / "out")) == sorted(
        [
            ("response", f"{SHOP}/robots.txt", "404"),
            ("response", f"{SHOP}/", "301"),
            ("response", f"{SHOP}/home", "200"),
            ("revisit", f"{SHOP}/gone", "404"),  # as robots.txt: the same bytes
            ("response", f"{SHOP}/bad", "503"),
            ("revisit", f"{SHOP}/bad", "503"),
            ("response", f"{SHOP}/bad", "200"),
        ]
    )
    index = (tmp_path / "out" / "warc" / "pages-0001.cdxj").read_bytes().splitlines()
    assert (len(index), index) == (7, sorted(index))
    over = run(job, tmp_path / "over", StoredReplies(tmp_path / "out"))
    assert sorted(each["title"] for each in over.records) == ["a", "b"]  # a failure is no answer
    assert over.seconds < 5


@pytest.mark.parametrize("keep", KEEPS)
def test_no_secret_is_kept(tmp_path: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2")
    job = Job("posts", start=f"{API}/posts?page=1", auth=ApiKey("apiKey", "env:KEY", in_="query"))
    job.read(lambda reply: reply.json())
    world = api({f"{API}/posts?page=1&apiKey=hunter2": [{"id": 1}]})

    ran = run(job, tmp_path / "out", world, keep=keep)

    assert ran.records == [{"id": 1}]
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"hunter2" not in written
    assert all("hunter2" not in url for _, url, _ in captures(tmp_path / "out"))
    assert run(job, tmp_path / "over", StoredReplies(tmp_path / "out")).records == [{"id": 1}]


def test_what_is_damaged_is_said_and_found(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(shop_job(), out, api(shop()), rps=100, keep="warc")
    (segment,) = segments(out, "pages-0001")
    whole = segment.read_bytes()

    segment.write_bytes(whole[: len(whole) // 2])

    assert any("no capture at byte" in each for each in verify_job(out).problems)
    with pytest.raises(FolderError, match=r"bytes, and the rows speak of \d+: it was cut short or removed"):
        run(shop_job(), out, api({}), keep="warc")
    segment.write_bytes(whole)
    os.truncate(out / "kept.jsonl", 100)
    with pytest.raises(FolderError, match=r"kept\.jsonl has 100 bytes, expected \d+"):
        run(shop_job(), out, api({}))


class Killed(BaseException):
    """As kill -9, between two steps."""


def test_what_no_commit_vouches_for_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sanderling.stores.frontier_requests import RequestFrontier  # noqa: PLC0415 - what dies

    out, commits = tmp_path / "out", iter(range(1000))
    commit = RequestFrontier.commit_requests

    def die(self: RequestFrontier, *args: Any) -> Any:  # noqa: ANN401 - as the method
        if next(commits) == 4:
            raise Killed
        return commit(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(RequestFrontier, "commit_requests", die)
        with pytest.raises((Killed, BaseExceptionGroup)):
            run(shop_job(), out, api(shop()), rps=100, keep="warc")

    ran = run(shop_job(), out, api(shop()), rps=100, keep="warc")

    assert len(ran.records) == LISTS * EACH - 1
    proof = verify_job(out)
    assert proof.problems == []
    urls = [url for _, url, _ in captures(out)]
    assert len(urls) == len(set(urls)) == proof.kept == len(lines(out / "kept.jsonl"))


def test_a_folder_may_begin_to_keep_and_go_on_without(tmp_path: Path) -> None:
    job = Job("pages", start=f"{SHOP}/1", max_requests=1)

    @job.page("/{number}")
    def number(_page: Page, number: str) -> Any:  # noqa: ANN401 - a record and a link
        return [{"number": int(number)}, f"/{int(number) + 1}"]

    world = api({f"{SHOP}/{each}": html(f"{each}") for each in range(1, 5)})
    keeps: list[Keep | None] = [None, "warc", None, "html"]
    for most, keep in enumerate(keeps, 1):
        job.max_requests = most
        run(job, tmp_path / "out", world, keep=keep)

    kept = [json.loads(line)["url"] for line in (tmp_path / "out" / "kept.jsonl").read_text().splitlines()]
    assert kept == [f"{SHOP}/2", f"{SHOP}/4"]
    assert verify_job(tmp_path / "out").problems == []
