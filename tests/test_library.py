"""The library is what `docs/library.md` says: these names, typed, documented, and loaded only when they are used."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sanderling
from sanderling.formats import repo_python

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "library.md").read_text()
NAMES = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)


def test_the_page_lists_every_name_and_no_other() -> None:
    assert sorted(name for name, _ in NAMES) == sanderling.__all__
    assert sanderling.__all__ == sorted(sanderling.__all__)
    assert all(len(what) > 10 for _, what in NAMES)


@pytest.mark.parametrize("name", sanderling.__all__)
def test_every_name_is_documented_and_typed(name: str) -> None:
    found = getattr(sanderling, name)

    assert found.__name__ == name
    assert len(inspect.getdoc(found) or "") > 20
    if inspect.isbuiltin(found):
        found = repo_python.parse_repo  # the other is written in C: its twin has the types
    called = found.__init__ if inspect.isclass(found) and "__init__" in vars(found) else found
    if inspect.isfunction(called):
        arguments = [each for each in inspect.signature(called).parameters.values() if each.name != "self"]
        assert [each.name for each in arguments if each.annotation is each.empty] == []
        assert inspect.signature(called).return_annotation is not inspect.Signature.empty


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Orchestrator'"):
        _ = sanderling.Orchestrator  # type: ignore[attr-defined]
    assert set(sanderling.__all__) <= set(dir(sanderling))


def loaded_by(code: str) -> set[str]:
    """The modules that are there after some code has run."""
    asked = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.run(asked, capture_output=True, text=True, timeout=300, check=True).stdout.split())  # noqa: S603


def test_the_package_alone_loads_nothing() -> None:
    loaded = loaded_by("import sanderling")

    assert {name for name in loaded if name.startswith("sanderling")} == {"sanderling"}
    assert not loaded & {"asyncio", "aiohttp", "msgspec"}


def test_the_limiter_loads_no_client_and_no_database() -> None:
    loaded = loaded_by("from sanderling import Limiter, host_of")

    assert "sanderling.limit.limiter" in loaded
    assert not loaded & {"aiohttp", "sqlite3", "cyclopts", "rich", "sqlalchemy"}


@pytest.mark.parametrize("name", ["only_the_limiter", "my_own_api", "read_an_archive"])
def test_the_page_shows_the_examples_as_they_are(name: str) -> None:
    shown = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    assert (ROOT / "examples" / f"{name}.py").read_text() in shown
