"""What goes wrong outside: a disk that fills, log-ins that lead nowhere, a browser that is none."""

import os
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, page, pages_options, rows, served
from crawl.test_keep import archived

from sanderling.crawl.system import verify
from sanderling.fetch.options import HostOptions, LoginOptions
from sanderling.files import Exit, FolderError

pytestmark = pytest.mark.real


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1.5 MB, where there may be one."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1536k", "sanderling-test", str(place)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("keep", ["warc", "html"])
async def test_a_disk_that_fills_in_the_middle_of_a_file_loses_nothing(small_disk: Path, keep: str) -> None:
    noise = [os.urandom(20_000).hex() for _ in range(60)]
    site = Site({f"/{n}": page(f"Page {n}", noise[n], [f"/{n + 1}"] if n < 59 else []) for n in range(60)})
    out = small_disk / "out"
    async with served(site):
        with pytest.raises(BaseExceptionGroup) as full:
            await crawl(pages_options(out, site.base + "/0", keep=keep))
        assert full.group_contains(FolderError, match="(?i)no space|full")
        before = len((out / "pages.jsonl").read_bytes().splitlines())
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        code, _ = await crawl(pages_options(out, keep=keep))

    assert code is Exit.DONE
    assert 0 < before < 60
    found = rows(out)
    assert len(found) == 60
    assert not (await verify(out)).faults
    assert [noise[n] in found[f"{site.base}/{n}"]["text"] for n in range(60)] == [True] * 60
    if keep == "warc":
        assert len(archived(out)) == 60


FORM = '<form method="post" action="/login"><input name="user"><input name="pass" type="password"></form>'
GOOD = page("A page that is shown to everybody")


def to_itself(_: web.Request) -> Answer:
    return 302, {"Location": "/login"}, ""


def round_and_round(request: web.Request) -> Answer:
    return 302, {"Location": "/login2" if request.path == "/login" else "/login"}, ""


def welcome(request: web.Request) -> Answer:
    return 200, HTML, FORM if request.method == "GET" else "welcome"


@pytest.mark.parametrize(
    ("login", "member", "said"),
    [
        (to_itself, GOOD, "no end in sight"),
        (round_and_round, GOOD, "no end in sight"),
        ((404, HTML, "no"), GOOD, "status 404"),
        ("<p>no form here</p>", GOOD, "no form"),
        ((200, {"Content-Type": "image/png"}, b"\x89PNG"), GOOD, "no form"),
        (FORM, GOOD, "it was not accepted"),
        (welcome, to_itself, "does not accept"),  # each page leads to the form again
        (welcome, FORM, "does not accept"),
    ],
)
async def test_a_log_in_that_fails_or_loops_is_said_in_a_sentence(
    tmp_path: Path, login: object, member: object, said: str
) -> None:
    site = Site({"/login": login, "/login2": login, "*": member})  # type: ignore[dict-item] # of many kinds
    async with served(site):
        table = HostOptions(
            login=LoginOptions(url=f"{site.base}/login", fill={"user": "ann", "pass": "x"}), plain_http=True
        )
        options = pages_options(tmp_path, site.base + "/0", hosts={site.base.partition("//")[2]: table})
        try:
            code, _ = await crawl(options)
        except BaseExceptionGroup as group:
            found = "".join(traceback.format_exception(group))
        else:
            assert code is not Exit.DONE
            found = (tmp_path / "failed.jsonl").read_text()

    assert said in found
    assert len(site.requests) < 60
