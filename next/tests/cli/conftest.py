import io
from pathlib import Path

import pytest
from toy_program import Call, Ended
from toy_system import TOYS

from sanderling.cli.context import Context
from sanderling.cli.main import run_words


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command of the toy system in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, toml: str = "", **environment: str) -> Ended:
        if toml:
            (tmp_path / "sanderling.toml").write_text(toml)
        out, err = io.StringIO(), io.StringIO()
        context = Context(words, environment, folder=tmp_path, systems=(TOYS,), out=out, err=err)
        code = run_words(context)
        return Ended(code, out.getvalue(), err.getvalue())

    return run
