"""A home is read whatever is in it: which folders are looked at, what is read again, and what a broken file becomes."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from known_reports import ALL, EVENTS, PAGES, POLLING, WALL, changed, put

from sanderling.stores.control_file import Control, write_control
from sanderling.stores.status_file import SILENT
from sanderling.web import house
from sanderling.web.house import LARGEST, MOST_FOLDERS, HouseReader, contents, folders


def names(home: Path) -> list[str]:
    return [each.name for each in HouseReader(home).read()]


def test_systems_are_found_in_the_home_its_folders_and_theirs(tmp_path: Path) -> None:
    for folder in (".", "pages", "data/rca", "a/b"):
        put(tmp_path / folder, PAGES)
    put(tmp_path / "a/b/too-deep", PAGES)
    put(tmp_path / ".hidden", PAGES)

    assert names(tmp_path) == [".", "a/b", "data/rca", "pages"]


def test_every_system_is_read_as_what_it_is(tmp_path: Path) -> None:
    for name, status in ALL.items():
        put(tmp_path / name, status)

    read = {each.name: (each.system, each.report) for each in HouseReader(tmp_path).read()}

    assert read == {name: (name, status) for name, status in ALL.items()}


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere", PAGES)
    home = tmp_path / "home"
    (home / "system").mkdir(parents=True)
    (home / "link").symlink_to(elsewhere)
    (home / "system" / "status.json").symlink_to(elsewhere / "status.json")

    read = HouseReader(home).read()

    assert [(each.name, each.report) for each in read] == [("system", None)]
    assert "makes no sense" in read[0].trouble


def test_a_home_with_very_many_folders_is_looked_at_in_part_and_systems_come_before_what_they_keep(
    tmp_path: Path,
) -> None:
    put(tmp_path / "a", PAGES)
    for number in range(MOST_FOLDERS + 50):
        (tmp_path / "a" / f"bodies-{number:03}").mkdir()
    put(tmp_path / "z" / "rca", PAGES)

    looked = list(folders(tmp_path))

    assert len(looked) == MOST_FOLDERS
    assert names(tmp_path) == ["a", "z/rca"]


def test_a_file_is_read_again_only_when_it_was_written_again(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES, at=WALL)
    reader = HouseReader(tmp_path)

    first, second = reader.read()[0], reader.read()[0]
    put(tmp_path / "pages", changed(PAGES, waiting=31), at=WALL + 1)
    third = reader.read()[0]

    assert first is second
    assert [each.report and each.report.work.waiting for each in (first, third)] == [30, 31]


def test_what_people_want_of_a_system_is_read_as_well_and_again_when_it_changes(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", PAGES)
    reader = HouseReader(tmp_path)

    before = reader.read()[0].control
    write_control(folder, Control(paused=True, hosts=frozenset({"a.example"})))
    wanted = reader.read()[0].control
    (folder / "control.json").write_text("[" * 100_000)
    broken = reader.read()[0]
    (folder / "control.json").unlink()
    gone = reader.read()[0]

    assert (before.paused, wanted.paused, wanted.hosts) == (False, True, frozenset({"a.example"}))
    assert broken.control_trouble
    assert (gone.control.paused, gone.control_trouble) == (False, "")


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", PAGES)
    os.mkfifo(folder / "control.json")
    (tmp_path / "other").mkdir()
    os.mkfifo(tmp_path / "other" / "status.json")

    other, pages = HouseReader(tmp_path).read()

    assert "it is no file" in other.trouble
    assert pages.report == PAGES
    assert "is no file" in pages.control_trouble


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)

    found = HouseReader(tmp_path).read()[0]

    assert f"expected at most {LARGEST:,}" in found.trouble
    with pytest.raises(OSError, match="expected at most 10"):
        contents(path, 10)


BROKEN = {
    "empty": b"",
    "half": msgspec.json.encode(PAGES)[:200],
    "no JSON": b"\x00\xff\xfe",
    "another system": b'{"system": "weather", "wall": 1}',
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "no text": b'{"system": "\xff", "wall": 1}',
    "a lone surrogate": b'{"system": "\\ud800", "wall": 1}',
    "infinite": b'{"system": "pages", "wall": 1e999}',
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_status_is_a_system_with_a_trouble(tmp_path: Path, what: str) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "status.json").write_bytes(BROKEN[what])
    put(tmp_path / "pages", PAGES)

    broken, pages = HouseReader(tmp_path).read()

    assert broken.report is None
    assert broken.trouble
    assert len(broken.trouble) <= house.LONGEST
    assert pages.report == PAGES


def test_a_report_with_other_facts_is_known_by_its_system(tmp_path: Path) -> None:
    document = msgspec.to_builtins(POLLING) | {"facts": {"of": "another version"}}
    (tmp_path / "status.json").write_text(json.dumps(document))

    found = HouseReader(tmp_path).read()[0]

    assert (found.name, found.system, found.report) == (".", "polling", None)
    assert found.process == POLLING.process
    assert "missing required field" in found.trouble


def test_each_process_of_a_folder_is_found(tmp_path: Path) -> None:
    put(tmp_path / "events", changed(EVENTS, pid=1))
    put(tmp_path / "events", changed(EVENTS, pid=2), name="status-2.json")
    reader = HouseReader(tmp_path)

    first, second = reader.read()

    assert [(each.name, each.process and each.process.pid) for each in (first, second)] == [
        ("events", 1),
        ("events:2", 2),
    ]
    assert all(one is other for one, other in zip(reader.read(), (first, second), strict=True)), "nothing is read twice"


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.just(msgspec.json.encode(POLLING)))
def test_whatever_a_file_holds_it_is_a_system(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "status.json").write_bytes(data)

    assert len(HouseReader(tmp_path).read()) == 1


def test_a_folder_whose_name_is_no_text_can_be_named(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")), PAGES)

    assert msgspec.json.encode(names(tmp_path)) == rb'["\\udcff\\udcfe"]'


def test_a_home_that_is_not_there_has_no_systems(tmp_path: Path) -> None:
    assert HouseReader(tmp_path / "nowhere").read() == []


@pytest.mark.parametrize(
    ("said", "written", "age", "running"),
    [
        (WALL, WALL, 0.0, True),
        (WALL - 9.5, WALL - 9, 9.5, True),
        (WALL - SILENT, WALL, SILENT, False),  # a copy of an old one
        (WALL + 5000, WALL - SILENT, SILENT, False),  # killed, and by its clock it was ahead of us
        (WALL + 5000, WALL + 5000, 0.0, True),  # our clock was set back
    ],
)
def test_a_system_runs_that_said_something_lately(
    tmp_path: Path, said: float, written: float, age: float, *, running: bool
) -> None:
    put(tmp_path, changed(PAGES, wall=said))
    os.utime(tmp_path / "status.json", (written, written))

    found = HouseReader(tmp_path).read()[0]

    assert found.age(WALL) == pytest.approx(age)
    assert found.running(WALL) is running


def test_a_system_that_says_that_it_ended_does_not_run(tmp_path: Path) -> None:
    put(tmp_path, changed(PAGES, running=False), at=WALL)

    assert HouseReader(tmp_path).read()[0].running(WALL) is False
