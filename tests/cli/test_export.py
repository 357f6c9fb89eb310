"""`sanderling export` and `sanderling show`, as people call them."""

import json
from pathlib import Path

import pytest
from command_line import called
from kept_records import make_job

from sanderling import extras
from sanderling.pages.folder import CrawlFolder, CrawlPlan

RECORDS = [{"id": number, "name": f"n{number}", "big": 2**60 + number} for number in range(5)]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    make_job(tmp_path / "posts", RECORDS)
    return tmp_path / "posts"


def test_a_summary_for_machines_says_what_was_done(job: Path, tmp_path: Path) -> None:
    out = tmp_path / "posts.jsonl"

    done = called("export", str(job), "--to", str(out), "--where", "id >= 3", "--json")

    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["read"], said["written"], said["records"], said["resumed"]) == (5, 2, 2, False)
    assert [json.loads(line) for line in out.read_text().splitlines()] == RECORDS[3:]


def test_new_adds_what_has_come_since(job: Path, tmp_path: Path) -> None:
    words = ["export", str(job), "--to", str(tmp_path / "posts.csv"), "--new"]
    called(*words)
    make_job(job, [*RECORDS, {"id": 9, "more": True}])

    done = called(*words)

    assert "1 record written" in done.out
    assert "written anew, since it got columns: more" in done.out
    header, *rows = (tmp_path / "posts.csv").read_text().splitlines()
    assert header == '"id","name","big","more"'
    assert rows[0] == f'0,"n0",{2**60},'
    assert rows[-1] == "9,,,true"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--to", "xml"], "expected jsonl, csv", id="no such target"),
        pytest.param(["--to", "jsonl", "--where", "id >"], "--where", id="no condition"),
        pytest.param(["--to", "jsonl", "--fields", "a..b"], "--fields", id="no path"),
        pytest.param(["--to", "jsonl", "--out", "x.jsonl"], "--to FILE, as in --to posts.jsonl", id="the old way"),
        pytest.param(["--to", "s3://"], "names no bucket", id="no bucket"),
        pytest.param(["--to", "parquet:-"], "cannot be printed", id="not to be printed"),
    ],
)
def test_what_was_not_called_as_it_should_be_ends_before_anything_begins(
    flags: list[str], said: str, job: Path
) -> None:
    done = called("export", str(job), *flags)

    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    ("field", "said"), [("titel", "did you mean title?"), ("zzz", "expected one of crawl, id, url"), ("metadata.a", "")]
)
def test_a_field_that_no_record_has_is_told_where_that_is_known(tmp_path: Path, field: str, said: str) -> None:
    plan = CrawlPlan(("https://a.example/",), (), 1)
    with CrawlFolder.open(tmp_path / "pages", plan, resume=False, wall=0.0):
        pass

    done = called("export", str(tmp_path / "pages"), "--to", str(tmp_path / "x.jsonl"), "--fields", f"url,{field}")

    assert (done.code, said in done.err) == (2 if said else 0, True), done.err


@pytest.mark.parametrize(
    ("to", "library"),
    [
        ("parquet", "pyarrow"),
        ("duckdb", "duckdb"),
        ("postgresql://127.0.0.1:1/x", "asyncpg"),
        ("s3://bucket/prefix", "obstore"),
    ],
)
def test_a_missing_library_is_told_with_the_command_that_installs_it(
    to: str, library: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_module: str, use: str) -> None:
        raise extras.MissingExtraError(extras.missing(library, use), name=library)

    monkeypatch.setattr(extras, "have", lambda name: name != library)
    monkeypatch.setattr("sanderling.records.open_target.load", load)
    monkeypatch.setattr("sanderling.records.parts.load", load)

    done = called("export", str(job), "--to", to)

    assert done.code == 2
    assert f"pip install 'sanderling[{extras.EXTRAS[library]}]'" in done.err


def test_one_record_is_shown_with_its_numbers_as_they_are(job: Path) -> None:
    there, missing = called("show", str(job), "n3"), called("show", str(job), "n7", "--json")

    assert there.code == 0
    assert json.loads(there.out) == RECORDS[3]
    assert missing.code == 1
    assert "no record has it" in json.loads(missing.out)["why"]
