import json
from pathlib import Path

import pytest
import toy_system
from toy_program import Call
from toy_system import TOYS, ToyOptions

from sanderling.files import Exit, FolderError
from sanderling.options import option
from sanderling.systems import system_of


def test_a_field_is_found_in_help_variable_file_and_config_show(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class WiderOptions(ToyOptions, table="toys"):
        width: int = option(3, "How wide a toy is.", low=1)

    monkeypatch.setattr(toy_system, "ToyOptions", WiderOptions)

    assert "--width N" in call("toys", "count", "--help").out
    assert "# width = 3" in call("config", "show").out
    assert "SANDERLING_TOYS_WIDTH" in call("config", "show", SANDERLING_TOYS_WIDTH="4").out
    by_file = json.loads(call("config", "show", "toys", "count", "--json", toml="[toys]\nwidth = 5\n").out)
    assert {"table": "toys", "key": "width", "value": 5, "origin": "sanderling.toml [toys] width"} in by_file
    assert call("status", "nofolder", toml="[toys]\nwidht = 5\n").code is Exit.WRONG
    assert "--width" in call("--complete", "toys", "count", "--wi", toml="[toys]\nwidth = 5\n").out


def test_what_config_show_prints_is_a_file_that_says_the_same(call: Call) -> None:
    toml = 'rps = 1\n[toys]\nitems = 7\npause = "2s"\nheader = {A = "1"}\ntoken = "env:TOKEN"\n'.removeprefix(
        "rps = 1\n"
    )
    first = call("config", "show", toml=toml).out

    assert call("config", "show", toml=first).out == first
    assert "items = 7" in first
    assert 'token = "env:TOKEN"' in first


def test_config_show_names_where_each_value_is_from(call: Call) -> None:
    rows = json.loads(
        call("config", "show", "--json", toml="verbose = true\n[toys]\nitems = 7\n", SANDERLING_TOYS_PAUSE="2s").out
    )
    origins = {row["key"]: row["origin"] for row in rows}

    assert origins["verbose"] == "sanderling.toml verbose"
    assert origins["items"] == "sanderling.toml [toys] items"
    assert origins["pause"] == "SANDERLING_TOYS_PAUSE"
    assert origins["workers"] == "default"


@pytest.mark.parametrize(
    "toml", ["[toys]\nitmes = 3\n", "tosy = 3\n", "[toys]\nitems = 'x'\n", "[toys\n", "[toys]\nitems = 1\nitems = 2\n"]
)
@pytest.mark.parametrize("words", [("status", "x"), ("doctor",), ("config", "show"), ("toys", "count", "--out", "x")])
def test_a_wrong_file_is_found_whichever_command_runs(call: Call, toml: str, words: tuple[str, ...]) -> None:
    ended = call(*words, toml=toml)

    assert ended.code in (Exit.WRONG, Exit.FAILED)
    assert "sanderling.toml" in ended.out + ended.err


def test_a_file_that_cannot_be_read_is_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()

    for name in ("odd.toml", "folder.toml", "missing.toml"):
        ended = call("status", "x", "--config", name)
        assert (ended.code, name in ended.err) == (Exit.WRONG, True)
        assert call("status", "x", SANDERLING_CONFIG=name).code is Exit.WRONG


def test_a_variable_with_a_typo_is_said(call: Call) -> None:
    ended = call("config", "show", SANDERLING_TOYS_ITMES="3", SANDERLING_SOMETHING_OF_MINE="x")

    assert "SANDERLING_TOYS_ITEMS" in ended.err
    assert "MINE" not in ended.err


def test_doctor_finds_what_a_run_would_refuse(call: Call, tmp_path: Path) -> None:
    assert call("doctor").code is Exit.DONE
    assert call("doctor", SANDERLING_TOYS_ITEMS="many").code is Exit.FAILED
    missing = call("doctor", toml='[toys]\ntoken = "env:NO_SUCH_TOKEN"\n')
    assert (missing.code, "NO_SUCH_TOKEN" in missing.out) == (Exit.FAILED, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_a_script_for_each_shell(call: Call, shell: str) -> None:
    assert "sanderling --complete" in call("--completion", shell).out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("co",), {"control", "config"}),
        (("to",), {"toys"}),
        (("toys", ""), {"count"}),
        (("toys", "count", "--w"), {"--workers"}),
        (("toys", "count", "--log", ""), {"text", "json"}),
        (("toys", "count", "--log", "j"), {"json"}),
        (("control", "x", "p"), {"pause"}),
        (("nosuch", ""), set()),
    ],
)
def test_completion_offers_what_can_follow(call: Call, words: tuple[str, ...], found: set[str]) -> None:
    out = call("--complete", *words).out

    assert {line.split("\t")[0] for line in out.splitlines()} == found


def test_a_folder_is_known_by_its_marks(tmp_path: Path) -> None:
    (tmp_path / "toys.jsonl").touch()
    assert system_of(tmp_path, (TOYS,)) is TOYS

    (tmp_path / "ledger.db").touch()
    with pytest.raises(FolderError, match=r"0\.2"):
        system_of(tmp_path, (TOYS,))
