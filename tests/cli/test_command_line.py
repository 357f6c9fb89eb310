"""The command to copy: what it was called with, quoted, without defaults and without secrets."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling import cli
from sanderling.cli.command_line import again, as_called, flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Flags of every sort."""

    out: Path = Path("usual")
    queue_name: str = ""
    max_rps: float = 8.0
    private: bool = False
    parquet: bool = True
    header: tuple[str, ...] = ()
    database: str | None = None


@pytest.mark.parametrize(
    ("group", "typed"),
    [
        (Given(), ""),
        (Given(out=Path("a b")), " --out 'a b'"),
        (Given(queue_name="x"), " --queue-name x"),
        (Given(max_rps=5.0), " --max-rps 5"),
        (Given(max_rps=1234567.5), " --max-rps 1234567.5"),
        (Given(private=True), " --private"),
        (Given(parquet=False), " --no-parquet"),
        (Given(header=("A: 1", "B: 2")), " --header 'A: 1' --header 'B: 2'"),
        (Given(database="postgresql://me:hush@db/x"), " --database postgresql://me@db/x"),
    ],
)
def test_flags_are_typed_as_they_were_given_and_defaults_are_left_out(group: Given, typed: str) -> None:
    assert again("pages crawl", group) == f"sanderling pages crawl{typed}"


def test_words_stand_where_they_are_given() -> None:
    said = again("events dead replay", "--all", Given(private=True), "--", "-x y")

    assert said == "sanderling events dead replay --all --private -- '-x y'"


def test_nothing_that_could_move_a_cursor_is_in_it() -> None:
    assert "\x1b" not in again("pages verify", Path("a\x1b[2Jb"))


def test_the_first_flag_that_is_not_usual_can_be_told() -> None:
    assert next(flags(Given()), None) is None
    assert next(flags(Given(queue_name="x", private=True))) == "--queue-name"


@pytest.mark.parametrize("help_text", ["Print JSON, and nothing else.", "Print the summary as JSON, and nothing else."])
def test_the_flag_that_most_commands_take_is_written_once(help_text: str) -> None:
    written = [path for path in Path(cli.__file__).parent.rglob("*.py") if f'help="{help_text}"' in path.read_text()]

    assert [path.name for path in written] == ["command_line.py"]


PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)


@given(PRINTABLE, st.lists(PRINTABLE))
def test_a_shell_reads_it_as_it_was_meant(name: str, headers: list[str]) -> None:
    words = shlex.split(again("sequence crawl", Given(queue_name=name, header=tuple(headers))))

    told = [word for each in headers for word in ("--header", each)] if "://" not in "".join(headers) else words[5:]
    assert words[:3] == ["sanderling", "sequence", "crawl"]
    assert words[3:] == ["--queue-name", words[4], *told]


@pytest.mark.parametrize(("called_as", "shown"), [("bin/sanderling", "bin/sanderling"), ("sanderling", "sanderling")])
def test_what_is_suggested_is_what_works_here(
    called_as: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `make run`: where no command of that name is on the PATH, it has the path by which it was called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [called_as, "demo"])
    said = "Of sanderling itself:\n\n    sanderling status x\n\nor see: sanderling --help, `sanderling verify x`"

    there = as_called(said)

    assert f"\n    {shown} status x\n" in there
    assert f"`{shown} verify x`" in there
    assert there.startswith("Of sanderling itself:")
    (tmp_path / "sanderling").touch(0o755)
    assert as_called(said) == said
