"""What is forgotten is gone from WARC, too; what is left can still be read, whenever it was killed."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_web import crawl, page, reply, web

from sanderling.crawls.archive import PageArchive, segments
from sanderling.crawls.stored_replies import StoredReplies
from sanderling.formats.warc import read_record, read_records
from sanderling.pages import forget
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError

A = "http://a.example"
TWINS = [f"{A}/{name}" for name in ("ann", "bob", "cid", "dan")]  # the same page at four addresses


def site() -> Any:  # noqa: ANN401 - the web of the tests
    """Pages, four of them the same, one that has not changed the second time, a file."""
    return web(
        **{
            f"{A}/": page("/ann", "/bob", "/cid", "/dan", "/etag", "/doc.pdf", title="Start"),
            **{each: page(title="The same secret") for each in TWINS},
            f"{A}/etag": [page(title="Tagged", ETag='"1"'), reply(304, ETag='"1"')],
            f"{A}/doc.pdf": reply(200, b"%PDF-1.4 secret", Content_Type="application/pdf"),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crawl of it, twice, in small segments."""
    monkeypatch.setattr(PageArchive.__init__, "__kwdefaults__", {"segment": 2_500})
    pages = site()
    for epoch in (1_800_000_000.0, 1_800_100_000.0):
        crawl(tmp_path / "out", pages, f"{A}/", keep="warc", epoch=epoch)
    return tmp_path / "out"


def unpacked(folder: Path) -> bytes:
    """All that is in WARC files and their indexes."""
    read = (gzip.decompress(path.read_bytes()) for path in sorted((folder / "warc").glob("*.gz")))
    return b"".join([*read, *(path.read_bytes() for path in (folder / "warc").glob("*.cdxj"))])


def check(folder: Path) -> None:
    """Both crawls are whole, and so are their indexes."""
    for number, each in enumerate((folder / "earlier" / "0001", folder), 1):
        assert verify(each).problems == []
        lines = (folder / "warc" / f"pages-{number:04}.cdxj").read_bytes().splitlines()
        assert len(lines) == (each / "pages.jsonl").read_bytes().count(b"\n")
        for line in lines:
            entry = json.loads(line.split(b" ", 2)[2])
            assert read_record(folder / "warc" / entry["filename"], int(entry["offset"])).url == entry["url"]


def body(folder: Path, url: str) -> bytes:
    """What was kept of a URL, read as a job does."""
    found = StoredReplies(folder)._find(url)
    assert found is not None
    return found[2]


def test_captures_go_and_all_others_can_be_read(folder: Path) -> None:
    forget.begin(folder, [f"{A}/doc.pdf", f"{A}/etag"], [])

    removed = forget.finish(folder)

    assert (removed.rows, removed.captures) == (4, 4)
    assert b"GET /etag" not in unpacked(folder)
    assert b"a.example/etag" not in unpacked(folder)
    assert b"%PDF" not in unpacked(folder)
    assert b"Start" in body(folder, f"{A}/")
    check(folder)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(gone=st.permutations(TWINS).flatmap(lambda each: st.integers(1, 3).map(lambda number: each[:number])))
def test_a_page_outlives_the_one_that_it_was_the_same_as(
    tmp_path_factory: pytest.TempPathFactory, gone: list[str]
) -> None:
    out = tmp_path_factory.mktemp("twins") / "out"
    for epoch in (1_800_000_000.0, 1_800_100_000.0):
        crawl(out, site(), f"{A}/", keep="warc", epoch=epoch)

    for each in gone:  # one at a time, so that what has become another's payload is forgotten in its turn
        forget.begin(out, [each], [])
        forget.finish(out)

    check(out)
    for each in TWINS:
        told = [record.headers for path in (out / "warc").glob("*.gz") for record in read_records(path)]
        assert (each in gone) != any(
            each in (said.get("warc-refers-to-target-uri"), said.get("warc-target-uri")) for said in told
        )
        if each not in gone:
            assert b"The same secret" in body(out, each)


def test_the_last_copy_goes_with_the_last_page(folder: Path) -> None:
    forget.begin(folder, TWINS, [])
    forget.finish(folder)
    forget.begin(folder, [f"{A}/doc.pdf"], [])
    forget.finish(folder)

    assert b"secret" not in unpacked(folder)
    assert not any(b"secret" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    check(folder)


def test_a_crawl_goes_on_behind_what_was_forgotten(folder: Path) -> None:
    forget.begin(folder, [f"{A}/doc.pdf", *TWINS], [])
    forget.finish(folder)

    crawl(folder, site(), f"{A}/", keep="warc", epoch=1_800_200_000.0)

    assert verify(folder).problems == []
    assert b"/ann HTTP" not in unpacked(folder)


def test_what_a_killed_crawl_left_behind_its_rows_goes_too(folder: Path) -> None:
    last = segments(folder, "pages-0002")[-1]
    with last.open("ab") as file:
        file.write(gzip.compress(b"secret of ann"))
    forget.begin(folder, TWINS, [])

    forget.finish(folder)

    assert b"secret of ann" not in unpacked(folder)
    check(folder)


class KilledError(BaseException):
    """Nobody catches it."""


def test_killed_before_any_step_it_is_gone_on_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write, rename, truncation and removal in turn is the last that is made."""
    real = {name: getattr(os, name) for name in ("fsync", "truncate")}
    real_path = {name: getattr(Path, name) for name in ("replace", "unlink")}
    left = 0

    def dying(step: Any) -> Any:  # noqa: ANN401 - a function
        def last(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - the same
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return step(*given, **more)

        return last

    for at in range(400):
        with monkeypatch.context() as patched:
            left = at
            for name, step in real.items():
                patched.setattr(os, name, dying(step))
            for name, step in real_path.items():
                patched.setattr(Path, name, dying(step))
            try:
                forget.begin(folder, [TWINS[0], f"{A}/doc.pdf"], [])
                forget.finish(folder)
            except KilledError:
                continue
        break

    assert at > 20
    check(folder)
    assert b"%PDF" not in unpacked(folder)
    assert b"/ann HTTP" not in unpacked(folder)
    assert b"The same secret" in body(folder, TWINS[1])


def test_a_damaged_segment_is_left_as_it_is(folder: Path) -> None:
    path = segments(folder, "pages-0001")[0]
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    before = sorted((each.name, each.read_bytes()) for each in (folder / "warc").iterdir() if each.match("pages-0001*"))
    forget.begin(folder, [f"{A}/"], [])

    with pytest.raises(FolderError, match="Restore it"):
        forget.finish(folder)

    after = {each.name: each.read_bytes() for each in (folder / "warc").iterdir()}
    assert all(after[name] == held for name, held in before)


def test_others_read_it(folder: Path) -> None:
    warcio = pytest.importorskip("warcio", reason="warcio is not installed: pip install warcio")
    forget.begin(folder, [TWINS[0], f"{A}/doc.pdf"], [])
    forget.finish(folder)

    for path in (folder / "warc").glob("*.gz"):
        with path.open("rb") as file:
            found = [
                (each.rec_type, each.content_stream().read() is None, each.digest_checker.passed)
                for each in warcio.ArchiveIterator(file, check_digests="raise")
            ]
        assert [kind for kind, _, _ in found] == [each.kind for each in read_records(path)]
        assert all(passed is not False for _, _, passed in found)
