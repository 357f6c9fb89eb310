"""What the installation is made of."""

import json

import pytest
from command_line import called

from sanderling.cli.doctor import doctor
from sanderling.formats import repo


def test_it_says_which_parser_is_active() -> None:
    found = {each.what: each for each in doctor.findings()}

    assert found["parser of repos"].found.startswith("C" if repo.ACTIVE == "c" else "Python")


def test_an_extra_that_is_not_installed_comes_with_advice_and_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in doctor.EXTRAS:
        monkeypatch.setitem(doctor.EXTRAS, extra, ("no_such_module", "Something"))

    done = called("doctor")

    assert done.code == 0, done.out
    assert "pip install 'sanderling[parquet]'" in done.out
    assert done.out.endswith("All is well.\n")


def test_a_parser_that_was_not_built_is_said_to_be_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repo, "ACTIVE", "python")

    (parser,) = [each for each in doctor.findings() if each.what == "parser of repos"]

    assert (parser.found, parser.ok) == ("Python", False)
    assert "compiler" in parser.advice


def test_machines_get_json() -> None:
    found = json.loads(called("doctor", "--json").out)

    assert [each["what"] for each in found][:2] == ["Python", "parser of repos"]
