"""What newcomers type wrong: one sentence each, with what to type, and nothing is requested or written."""

import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sanderling.cli.context import Context
from sanderling.cli.main import run_words
from sanderling.files import Exit

URL = "http://127.0.0.1:9/"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with what people have lying around."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-file").write_text("hello")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "frontier.db").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pages.json").write_text("{torn")
    (tmp_path / "no-python.py").write_text("x =")
    (tmp_path / "no-job.py").write_text("x = 1")
    (tmp_path / "raises.py").write_text("1 / 0")
    (tmp_path / "lambda.py").write_text(
        "from sanderling import Job\njob = Job('a', start='https://a.example/')\njob.page('/*')(lambda page: [])\n"
    )
    (tmp_path / "twice.py").write_text(
        "from sanderling import Job\njob = Job('a', start='https://a.example/')\n"
        "@job.page('/a')\ndef one(page): yield {}\n@job.page('/b')\ndef one(page): yield {}\n"
    )
    (tmp_path / "bad.toml").write_text("[pages\n")
    (tmp_path / "typo.toml").write_text("[pages]\ndeph = 3\n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (tmp_path / "port").write_text(str(taken.getsockname()[1]))
        yield tmp_path


WRONG = [
    # words; what the sentence names
    ("nosuch", "sanderling --help"),
    ("page crawl", "pages crawl"),
    ("pages", "pages crawl"),
    ("--versoin", "--version"),
    ("pages crawl", "--out is missing"),
    (f"pages crawl {URL}", "--out is missing"),
    (f"pages crawl {URL} --out", "--out needs a value"),
    (f"pages crawl {URL} --outt x", "did you mean --out?"),
    ("pages crawl example.org --out x", "https://example.org/"),
    ("pages crawl ftp://example.org/ --out x", "https://"),
    ("pages crawl http:// --out x", "URL"),
    ("pages crawl https://example.org/ --out x --readers many", "expected a whole number or auto"),
    ("pages crawl http://127.0.0.1:9/ --out x", "--private"),
    (f"pages crawl {URL} --out x --rps fast", "--rps"),
    (f"pages crawl {URL} --out x --rps 0", "--rps"),
    (f"pages crawl {URL} --out x --rps nan", "--rps"),
    (f"pages crawl {URL} --out x --depth -1", "--depth"),
    (f"pages crawl {URL} --out x --depth 1 --depth 2", "--depth"),
    (f"pages crawl {URL} --out x --timeout 5x", "--timeout"),
    (f"pages crawl {URL} --out x --policy fast", "governor"),
    (f"pages crawl {URL} --out x --only [", "--only"),
    (f"pages crawl {URL} --out x --metrics-port 70000", "--metrics-port"),
    (f"pages crawl {URL} --out x --metrics-port PORT", "--metrics-port"),
    (f"pages crawl {URL} --out x --seeds nosuch.txt", "nosuch.txt"),
    (f"pages crawl {URL} --out a-file", "choose another folder"),
    (f"pages crawl {URL} --out old", "0.2"),
    (f"pages crawl {URL} --out other", "damaged"),
    (f"pages crawl {URL} --out x --config nosuch.toml", "nosuch.toml"),
    (f"pages crawl {URL} --out x --config bad.toml", "bad.toml"),
    (f"pages crawl {URL} --out x --config typo.toml", "did you mean depth?"),
    (f"pages crawl {URL} --out x --config binary.toml", "binary.toml"),
    ("run", "FILE is missing"),
    ("run nosuch.py --out x", "nosuch.py"),
    ("run no-python.py --out x", "no-python.py:1"),
    ("run no-job.py --out x", "no-job.py has no job"),
    ("run raises.py --out x", "raises.py:1"),
    ("run lambda.py --out x", "lambda"),
    ("run twice.py --out x", "one"),
    ("run no-job.py", "--out is missing"),
    ("status nosuch", "nosuch does not exist"),
    ("status a-file", "a-file is a file"),
    ("status empty", "empty is no folder of Sanderling"),
    ("export empty --to x.csv", "empty is no folder of Sanderling"),
    ("export other", "--to is missing"),
    ("tasks empty failed", "empty is no folder of Sanderling"),
    ("control empty pause", "empty is no folder of Sanderling"),
    ("control other explode", "pause"),
    ("why empty", "empty is no folder of Sanderling"),
    ("try", "URL is missing"),
    ("try example.org", "https://example.org/"),
    (f"try {URL} --css [", "--css"),
    ("dashboard nosuch", "nosuch is no folder"),
    ("dashboard --port PORT", "choose another port"),
    ("demo nosuch", "pages"),
    ("demo --serve", "--serve needs a system"),
    ("demo --out other", "other is not empty"),
    ("config show pages", "pages crawl"),
]


@pytest.mark.parametrize(("words", "names"), WRONG)
def test_a_wrong_word_is_answered_in_one_sentence(place: Path, words: str, names: str) -> None:
    before = sorted(place.iterdir())
    typed = tuple(words.replace("PORT", (place / "port").read_text()).split())
    out, err = io.StringIO(), io.StringIO()

    code = run_words(Context(typed, os.environ, folder=place, out=out, err=err))

    assert code is Exit.WRONG
    assert out.getvalue() == ""
    assert err.getvalue().startswith("sanderling: ")
    assert err.getvalue().count("\n") == 1
    assert names in err.getvalue()
    assert sorted(place.iterdir()) == before or words.split(maxsplit=1)[0] == "pages"  # at most its folder was made
