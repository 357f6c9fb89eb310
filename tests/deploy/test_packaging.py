"""What is built is whole, and runs where pip installed the wheel: an empty environment outside of the checkout.

The wheel is built once, from the source distribution, and installed once, with the versions of constraints.txt. Other
Pythons, a machine without a compiler, and each extra by itself take minutes: test_wheel_matrix.py, by `make wheel`.
"""

import shutil
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from deploy_lines import ROOT
from installed import Built, Installed, build, calls, check_crawls, check_demos, check_helps, install, run
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from wheel_extras import NEEDY, files_for

SOURCE = ROOT / "src" / "sanderling"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
MOST_MEGABYTES = 150  # of an installation without extras

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("packaging"))


@pytest.fixture(scope="module")
def base(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("installed") / "base", built.wheel)


def test_the_wheel_has_every_module_and_every_file_that_one_reads(built: Built) -> None:
    files = built.files()

    modules = {str(path.relative_to(SOURCE.parent)) for path in SOURCE.rglob("*.py")}
    read = {"py.typed", "formats/_repo.pyi"}
    read |= {f"events/analysis/data/{name}.txt" for name in ("aspects", "intents", "lexicon")}
    assert modules - files == set()
    assert {f"sanderling/{name}" for name in read} - files == set()


def test_the_wheel_has_the_parts_in_c(built: Built) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler on this machine")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")

    built_parts = ("events/analysis/_scan", "formats/_repo")
    assert {f"sanderling/{part}{suffix}" for part in built_parts} <= built.files()


def test_the_wheel_has_nothing_but_the_package(built: Built) -> None:
    tops = {name.split("/")[0] for name in built.files()}

    assert tops == {"sanderling", f"sanderling-{PROJECT['version']}.dist-info"}


def test_the_source_distribution_has_all_that_it_takes_to_test_and_deploy_it(built: Built) -> None:
    sources = built.sources()

    folders = [ROOT / name for name in ("bench", "deploy", "docs", "fuzz", "tests")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    kept = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    kept = {name for name in kept if not name.startswith(("deploy/secrets/", "deploy/."))}
    assert {name for name in kept if not name.endswith(".so")} - sources == set()
    assert {"CHANGELOG.md", "LICENSE", "Makefile", "README.md", "constraints.txt", "setup.py"} <= sources
    assert {"src/sanderling/formats/_repo.h", "src/sanderling/events/analysis/_scan.c"} <= sources
    assert [name for name in sources if name.endswith((".so", ".pyc")) or "deploy/secrets" in name] == []


def test_the_version_is_said_in_one_place(built: Built, base: Installed, tmp_path: Path) -> None:
    assert built.metadata()["Version"] == PROJECT["version"]
    assert run([base.command, "--version"], tmp_path).strip() == PROJECT["version"]


def test_the_metadata_says_what_it_is(built: Built) -> None:
    metadata = built.metadata()

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(EXTRAS)
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_readme_is_the_long_description_and_can_be_shown(built: Built) -> None:
    metadata = built.metadata()

    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    html = MarkdownIt("gfm-like", {"linkify": False}).render(str(metadata.get_payload()))
    assert "<h1>Sanderling</h1>" in html
    assert "<table>" in html


def test_it_runs_where_there_is_no_checkout(base: Installed, tmp_path: Path) -> None:
    where = run([base.python, "-c", "import sanderling; print(sanderling.__file__)"], tmp_path)

    assert Path(where.strip()).is_relative_to(base.home)


def test_a_plain_installation_is_small_and_has_no_extra(base: Installed, tmp_path: Path) -> None:
    code = "from sanderling.extras import EXTRAS, have; print([name for name in EXTRAS if have(name)])"

    assert run([base.python, "-c", code], tmp_path) == "[]\n"
    assert base.megabytes() <= MOST_MEGABYTES


@pytest.mark.parametrize(("target", "installed"), [("run", "."), ("setup", ".[dev]")])
def test_a_target_installs_no_more_than_it_needs(target: str, installed: str) -> None:
    done = run(["make", "-C", ROOT, "-n", "VENV=build/no-such-environment", target], ROOT)

    assert [line.split()[-1].strip("'") for line in done.splitlines() if "--editable" in line] == [installed]


def test_every_command_has_its_help_without_any_extra(base: Installed, tmp_path: Path) -> None:
    check_helps(base, tmp_path)


def test_who_needs_an_extra_says_so_before_anything_is_begun(base: Installed, tmp_path: Path) -> None:
    files_for(tmp_path)
    before = sorted(tmp_path.iterdir())

    said = calls(base, tmp_path, list(NEEDY))

    for (call, extra), (code, out, err) in zip(NEEDY.items(), said, strict=True):
        first = err.splitlines()[0]
        assert (code, out) == (2, ""), f"{call}\n{out}{err}"
        assert first.endswith(f"which is not installed: pip install 'sanderling[{extra}]'"), f"{call}\n{err}"
    assert sorted(tmp_path.iterdir()) == before


def test_every_system_crawls_its_simulated_world(base: Installed, tmp_path: Path) -> None:
    check_crawls(base, tmp_path)

    assert "0001  applied" in run([base.command, "events", "migrate", "--out", "events"], tmp_path)


def test_doctor_is_content_with_a_plain_installation(base: Installed, tmp_path: Path) -> None:
    said = run([base.command, "doctor"], tmp_path)

    assert said.endswith("\nAll is well.\n")
    assert "parser of repos  C" in said or not shutil.which("cc")


def test_every_demo_gets_under_way_and_can_be_ended(base: Installed, tmp_path: Path) -> None:
    check_demos(base, tmp_path)


# With the extras.


@pytest.mark.parametrize("extra", EXTRAS)
def test_all_that_an_extra_names_is_installed_here_in_a_version_that_will_do(extra: str) -> None:
    """So that no extra names what does not exist, or is needed in another version than the one we test."""
    wrong = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "sanderling":
            assert requirement.extras <= set(EXTRAS)
            continue
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            found = distribution(requirement.name).version
        except PackageNotFoundError:
            wrong.append(f"{requirement}: not installed")
        else:
            wrong += [] if requirement.specifier.contains(found) else [f"{requirement}: found {found}"]
    assert wrong == []
