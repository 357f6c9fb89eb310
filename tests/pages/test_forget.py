"""What is forgotten is gone from rows, ledger, files and exports, whenever it is killed, and never asked for again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from small_web import Web, crawl, page, reply, web

from sanderling.ids import host_of
from sanderling.pages import forget
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import UrlError
from sanderling.pages.verify import verify
from sanderling.records.export import export
from sanderling.records.folders import open_records
from sanderling.records.known_exports import KnownExport, known_exports, note_export, remake
from sanderling.records.open_target import TargetOptions, open_target
from sanderling.records.postgres_table import PostgresTables
from sanderling.records.selection import Selection
from sanderling.redact import redact_url
from sanderling.stores import durable
from sanderling.stores.durable import FolderError
from sanderling.stores.forgotten import Forgotten

A, B = "http://a.example", "http://b.example"


def site() -> Web:
    """Two hosts; ann has pages on one of them."""
    return web(
        **{
            f"{A}/": page("/ann/1", "/ann/2", "/bob", "/doc.pdf", "/gone", f"{B}/", ETag='"1"'),
            f"{A}/ann/1": page("/", title="Ann's secret"),
            f"{A}/ann/2": page("/ann/1", title="Ann again"),
            f"{A}/bob": page("/ann/1", "/ann/2", title="Bob"),
            f"{A}/doc.pdf": reply(200, b"%PDF-1.4 secret", Content_Type="application/pdf"),
            f"{B}/": page("/x"),
            f"{B}/x": page("/"),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl of it, twice."""
    for _ in range(2):
        crawl(tmp_path / "out", site(), f"{A}/", allow=["b.example"])
    return tmp_path / "out"


def files_with(folder: Path, word: str) -> list[str]:
    """Which files speak of something."""
    every = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in every if word.encode() in path.read_bytes())


def everything(folder: Path) -> Iterator[Path]:
    """The crawl, and that before it."""
    yield folder
    yield folder / "earlier" / "0001"


def test_the_pages_of_a_person_are_gone_from_every_file(folder: Path) -> None:
    assert files_with(folder, "secret")

    forget.begin(folder, [f"{A}/ann/*"], [])
    removed = forget.finish(folder)

    assert (removed.rows, removed.urls) == (4, 4)
    assert files_with(folder, "Ann") == []
    # Others' pages lead there, and go on saying so.
    assert files_with(folder, "/ann/1") == ["earlier/0001/pages.jsonl", "pages.jsonl"]
    for each in everything(folder):
        assert verify(each).problems == []


def test_what_was_forgotten_is_never_asked_for_again(folder: Path) -> None:
    forget.begin(folder, [f"{A}/ann/*", "b.example"], [])
    forget.finish(folder)
    again = site()

    done = crawl(folder, again, f"{A}/", allow=["b.example"])

    assert [url for url in again.urls if "/ann/" in url or host_of(url) == "b.example"] == []
    assert done.complete
    assert files_with(folder, "b.example/x") == []
    assert verify(folder).ok


def test_a_file_goes_with_the_last_row_that_speaks_of_it(folder: Path) -> None:
    assert len(list(folder.rglob("*.pdf"))) == 1

    forget.begin(folder, [f"{A}/doc.pdf"], [])

    assert forget.finish(folder).files == 1
    assert list(folder.rglob("*.pdf")) == []
    assert verify(folder).ok


@pytest.mark.parametrize("thing", ["b.example", "*.example", f"{A}/gone", f"{A}/bob", "https://a.example/bob"])
def test_any_form_of_a_line_is_understood(folder: Path, thing: str) -> None:
    forget.begin(folder, [thing], [])

    assert forget.finish(folder).urls >= 1
    for each in everything(folder):
        assert verify(each).problems == []


def test_where_a_crawl_begins_may_be_forgotten(folder: Path) -> None:
    forget.begin(folder, ["a.example"], [])
    forget.finish(folder)

    with pytest.raises(FolderError, match="forgotten all"):
        crawl(folder, site(), f"{A}/", allow=["b.example"])
    assert [path for path in files_with(folder, "http://a.example/") if "pages.jsonl" not in path] == []


def test_what_is_no_url_is_refused_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(UrlError, match="expected"):
        forget.begin(folder, ["https://"], [])

    assert not (folder / "forgotten.json").exists()


class KilledError(BaseException):
    """Nobody catches it."""


def test_killed_before_any_write_it_is_gone_on_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write, rename and commit in turn is the last that is made."""
    left = 0

    def dying() -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        return True

    real = durable.sync_folder, Path.replace, Path.unlink

    def patched(at: int) -> None:
        nonlocal left
        left = at
        for module in (durable, forget, "sanderling.stores.forgotten"):
            name = module if isinstance(module, str) else module.__name__
            monkeypatch.setattr(f"{name}.sync_folder", lambda path: dying() and real[0](path))
        monkeypatch.setattr(Path, "replace", lambda self, to: dying() and real[1](self, to))
        monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: dying() and real[2](self, missing_ok))

    for at in range(100):
        patched(at)
        try:
            forget.begin(folder, [f"{A}/ann/*", f"{A}/doc.pdf"], [])
            forget.finish(folder)
        except KilledError:
            monkeypatch.undo()
            continue
        break
    monkeypatch.undo()

    assert at > 4
    assert files_with(folder, "secret") == []
    for each in everything(folder):
        assert verify(each).problems == []


def test_what_was_cut_short_is_said_and_the_next_crawl_ends_it(folder: Path) -> None:
    forget.begin(folder, [f"{A}/ann/*"], [])
    assert "cut short" in verify(folder).problems[0]

    again = site()
    crawl(folder, again, f"{A}/", allow=["b.example"])

    assert not any("/ann/" in url for url in again.urls)
    assert files_with(folder, "Ann") == []
    assert verify(folder).ok
    assert Forgotten.of(folder).says.removing == ()


def test_a_page_with_many_versions_goes_with_all_of_them(tmp_path: Path) -> None:
    answers = {f"{A}/": page("/x"), f"{A}/x": [page(title=f"secret {each}") for each in range(9)]}
    rules = CrawlRules(visits=VisitRules(600, 600))
    crawl(tmp_path, web(**answers), f"{A}/", rules=rules, stop_after=3.5 * 600)

    forget.begin(tmp_path, [f"{A}/x"], [])

    assert forget.finish(tmp_path).rows == 4
    assert verify(tmp_path).problems == []


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "sqlite"])
def test_exports_on_this_machine_are_written_anew(folder: Path, tmp_path: Path, kind: str) -> None:
    place, selection = tmp_path / "exported", Selection.parse("status = 200", ())
    wanted = TargetOptions(f"{kind}:{place}")
    with closing(open_records(folder)) as source, closing(open_target(wanted, "out")) as target:
        export(source, target, selection, new=False, watch=lambda *_: None)
    note_export(folder, KnownExport.of(wanted, selection, "out"))
    forget.begin(folder, [f"{A}/ann/*"], [])
    forget.finish(folder)

    (known,) = known_exports(folder)
    assert [remake(folder, known).why for _ in range(2)] == ["", ""]

    held = [place] if place.is_file() else list(place.iterdir())
    assert not any(b"secret" in path.read_bytes() for path in held)
    with closing(open_records(folder)) as source, closing(open_target(wanted, "out")) as target:
        assert export(source, target, selection, new=True, watch=lambda *_: None).written == 0


def test_an_export_that_cannot_be_reached_is_named(folder: Path) -> None:
    assert "not written anew" in remake(folder, KnownExport("s3://bucket/x")).why
    assert "not there any more" in remake(folder, KnownExport("jsonl:/nowhere/at/all.jsonl")).why
    secret = remake(folder, KnownExport(redact_url("postgresql://me:secret@127.0.0.1:1/x"), "records"))
    assert secret.later
    assert "--export" in secret.why


def test_an_export_to_postgresql_is_written_anew(folder: Path, postgres: str) -> None:
    wanted, selection = TargetOptions(postgres, "forgotten_here"), Selection.parse("", ())
    with closing(open_records(folder)) as source, closing(open_target(wanted, "out")) as target:
        before = export(source, target, selection, new=False, watch=lambda *_: None).written
    known = KnownExport.of(wanted, selection, "out")
    forget.begin(folder, [f"{A}/ann/*"], [])
    forget.finish(folder)

    assert remake(folder, known, [postgres]).why == ""

    tables = PostgresTables(postgres)
    tables.open()
    with closing(tables):
        ((kept, ours),) = tables.run("SELECT count(*), count(*) FILTER (WHERE title LIKE 'Ann%') FROM forgotten_here")
        tables.run("DROP TABLE forgotten_here")
        tables.run("DELETE FROM sanderling_export WHERE name = 'forgotten_here'")
    assert (kept, ours) == (before - 4, 0)


def test_what_would_go_is_counted_and_stays(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    counted = forget.survey(folder, [f"{A}/ann/*", f"{A}/doc.pdf"])

    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    forget.begin(folder, [f"{A}/ann/*", f"{A}/doc.pdf"], [])
    assert forget.finish(folder) == counted
