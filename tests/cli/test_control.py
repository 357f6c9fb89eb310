"""`sanderling control`: what people want of a system is written into its folder, and said in a sentence."""

import json
from pathlib import Path

import pytest
from known_reports import ALL as REPORTS
from known_reports import changed, host, pages

from sanderling.cli.command_error import CommandError
from sanderling.cli.control import control
from sanderling.clock import SystemClock
from sanderling.stores.control_file import FILE, Control, Wish, read_control, write_control
from sanderling.stores.status_file import write_status

ALL = ("pages", "repos", "sequence", "polling", "events", "jobs")


def running(folder: Path, system: str = "pages", ago: float = 0.0) -> Path:
    """The folder of a system that said so long ago that it runs."""
    folder.mkdir()
    wall = SystemClock().wall() - ago
    if system == "pages":
        write_status(folder, pages(host("a.example"), host("b.example"), process={"wall": wall}))
    else:
        write_status(folder, changed(REPORTS[system], wall=wall))
    return folder


WISHES: dict[Wish, tuple[Control, str]] = {
    "pause": (Control(paused=True), "one is paused: nothing new is begun"),
    "resume": (Control(), "one goes on"),
    "stop": (Control(ending="stop"), "one stops: what is in flight comes to its end"),
    "drain": (
        Control(ending="drain"),
        "one drains: it takes nothing new, and ends when what is known and due has its end",
    ),
}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("system", ALL)
def test_each_wish_is_written_for_every_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str, wish: Wish
) -> None:
    folder = running(tmp_path / "one", system)

    control(folder, wish)

    assert (read_control(folder), capsys.readouterr().out) == (WISHES[wish][0], f"{WISHES[wish][1]}\n")


def test_a_host_is_left_alone_and_let_go_and_nothing_else_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = running(tmp_path / "one")
    write_control(folder, Control(paused=True, hosts=frozenset({"b.example"})))

    control(folder, "leave", "https://A.example/")
    control(folder)
    between = read_control(folder)
    control(folder, "let-go", "a.example")

    assert between == Control(paused=True, hosts=frozenset({"a.example", "b.example"}))
    assert read_control(folder) == Control(paused=True, hosts=frozenset({"b.example"}))
    assert capsys.readouterr().out.splitlines() == [
        "a.example is left alone by one",
        "one is paused, leaves 2 hosts alone: a.example, b.example",
        "a.example is asked again by one",
    ]


def test_machines_get_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = running(tmp_path / "one")

    control(folder, "drain", json=True)

    said = json.loads(capsys.readouterr().out)
    assert said.pop("done").startswith("one drains: ")
    assert said == {
        "folder": str(folder),
        "system": "pages",
        "running": True,
        "paused": False,
        "hosts": [],
        "ending": "drain",
    }


@pytest.mark.parametrize(
    ("before", "ago", "said"),
    [
        (Control(), 60.0, "but nothing seems to run there, and what is started later does not heed it"),
        (Control(paused=True), 0.0, "but it is paused, so resume it to let it end"),
    ],
)
def test_a_drain_that_may_not_come_to_its_end_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: Control,
    ago: float,
    said: str,
) -> None:
    folder = running(tmp_path / "one", ago=ago)
    write_control(folder, before)

    control(folder, "drain")

    assert capsys.readouterr().out.endswith(f"; {said}\n")


@pytest.mark.parametrize(
    ("name", "wish", "host", "said"),
    [
        ("none", "pause", None, "is no folder of a system: it is not there; expected the folder that --out"),
        ("empty", "pause", None, "is no folder of a system: it has no status.json; expected the folder that --out"),
        ("file", "pause", None, "is no folder of a system: status.json cannot be read: Not a directory"),
        ("newer", "pause", None, "status.json is of 'weather', expected one of pages, "),
        ("pages", "leave", None, "leave: found none; expected a host, as in: leave slow.example"),
        ("pages", "stop", "a.example", "stop: found 'a.example', expected none"),
        ("pages", "leave", "c.example", "'pages' knows no host 'c.example'; it knows 2 hosts, as 'a.example', "),
        ("pages", "leave", "a b", "a b"),
        ("events", "leave", "a.example", "events is of events, which asks no hosts; expected pages, "),
    ],
)
def test_what_cannot_be_is_refused_in_words(tmp_path: Path, name: str, wish: Wish, host: str | None, said: str) -> None:
    for system in ALL:
        running(tmp_path / system, system)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "status.json").write_text('{"system": "weather", "wall": 1}')

    with pytest.raises(CommandError) as refused:
        control(tmp_path / name, wish, host)

    assert said in str(refused.value)
    assert refused.value.code == 2
    assert not list(tmp_path.glob(f"*/{FILE}"))


def test_a_file_that_makes_no_sense_is_left_as_it_is(tmp_path: Path) -> None:
    folder = running(tmp_path / "one")
    (folder / FILE).write_text("{")

    with pytest.raises(
        CommandError, match=r"it cannot be changed as it is: .*; repair the file, or forget what it says: "
    ):
        control(folder, "pause")

    assert (folder / FILE).read_text() == "{"


@pytest.mark.parametrize("text", ["{", '{"paused": true, "version": 99}', "\x00"])
@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ("pause", Control(paused=True)),
        ("resume", Control()),
        ("stop", Control(paused=True, ending="stop")),
    ],
)
def test_a_file_that_makes_no_sense_is_replaced_on_purpose(
    tmp_path: Path, text: str, wish: Wish, wanted: Control
) -> None:
    folder = running(tmp_path / "one")
    (folder / FILE).write_text(text)

    control(folder, wish, replace=True)

    assert read_control(folder) == wanted


def test_to_replace_a_file_that_makes_sense_changes_what_was_said_and_nothing_else(tmp_path: Path) -> None:
    folder = running(tmp_path / "one")
    control(folder, "leave", "a.example")

    control(folder, "pause", replace=True)

    assert read_control(folder) == Control(paused=True, hosts=frozenset({"a.example"}))
