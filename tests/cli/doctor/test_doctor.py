"""What the installation is made of."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sanitized
from command_line import called

from sanderling.cli.doctor import doctor
from sanderling.cli.doctor.machine import PURE, c_part

# The C parts, and the module that takes one if it is there.
C_PARTS = {
    "parser of repos": ("sanderling.formats._repo", "sanderling.formats.repo"),
    "reader of pages": ("sanderling.pages._reader", "sanderling.pages.reader"),
    "guard of parsers": ("sanderling.pages._complexity", "sanderling.pages.complexity"),
    "scan of texts": ("sanderling.events.analysis._scan", "sanderling.events.analysis.scan"),
}


def c_parts(said: str) -> dict[str, dict[str, Any]]:
    return {each["what"]: each for each in json.loads(said) if each["what"] in C_PARTS}


@pytest.mark.parametrize("what", C_PARTS)
def test_it_says_what_is_really_used(what: str) -> None:
    found = c_parts(called("doctor", "--json").out)[what]

    assert found["found"].startswith("C") is (import_module(C_PARTS[what][1]).ACTIVE == "c")


@pytest.mark.parametrize("what", C_PARTS)
@pytest.mark.parametrize("hidden", [(), ("libipld",)], ids=["wheels", "no-wheels"])
def test_a_c_part_that_was_not_built_is_named_with_what_it_costs_and_how_to_get_it(
    what: str, hidden: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PURE, raising=False)
    for module in (C_PARTS[what][0], *hidden):
        monkeypatch.setitem(sys.modules, module, None)

    done = called("doctor", "--json")

    found = c_parts(done.out)[what]
    assert (done.code, found["state"]) == (0, "warn")
    assert found["found"].startswith("not built, Python instead: ")
    assert "compiler" in found["advice"]
    assert ("sanderling[repos]" in found["advice"]) is (what == "parser of repos" and hidden != ())


def test_c_parts_that_are_switched_off_or_broken_are_no_matter_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_part.py").write_text("raise ImportError('undefined symbol: x')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(PURE, raising=False)
    broken = c_part("a part", "broken_part", "it is slow")
    monkeypatch.setenv(PURE, "1")
    off = c_part("a part", "broken_part", "it is slow")

    assert broken.found == "cannot be loaded (undefined symbol: x), Python instead: it is slow"
    assert (off.found, off.advice) == (f"switched off by {PURE}, Python instead: it is slow", f"unset {PURE}")


def test_all_c_parts_are_looked_at() -> None:
    assert {module for module, _ in C_PARTS.values()} == {each.name for each in sanitized.extensions()}


def test_an_extra_that_is_not_installed_comes_with_advice_and_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in doctor.EXTRAS:
        monkeypatch.setitem(doctor.EXTRAS, extra, ("no_such_module", "Something"))

    done = called("doctor")

    assert done.code == 0, done.out
    assert "pip install 'sanderling[parquet]'" in done.out
    assert done.out.endswith("All is well.\n")


def test_machines_get_json() -> None:
    found = json.loads(called("doctor", "--json").out)

    assert [each["what"] for each in found][: len(C_PARTS) + 1] == ["Python", *C_PARTS]
