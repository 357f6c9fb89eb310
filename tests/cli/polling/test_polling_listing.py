"""What `sanderling polling` says of targets, settings and how it stands, by a database and a folder that were left."""

import asyncio
import json
import os
import pty
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
import pytest
from command_line import Done, called, run
from forked import fork
from known_reports import POLLING, changed

from sanderling.apis.trackside import Trackside
from sanderling.cli.polling.admin import pages
from sanderling.cli.polling.place import PollingFolder, keep_kinds, opened
from sanderling.cli.polling.targets import enough
from sanderling.clock import SystemClock
from sanderling.stores.polling import PollingTarget, Query, Reconciliation, TargetRun, WantedTarget
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.status_file import write_status

EVENT = "faeeb7e2-3668-4436-aa46-8f6710531716"
RACES = ("7bdfa3d4-19ec-41f8-8304-d9519da9a7df", "7bdf0000-0000-4000-8000-000000000000")
SOURCE = Trackside("http://race.example")
WALL = SystemClock().wall()


def found(kind: str, source_id: str = EVENT, seconds: float = 10.0) -> WantedTarget:
    return WantedTarget(kind, source_id, EVENT, None, seconds, 0)


@dataclass(frozen=True)
class House:
    """A folder that was polled."""

    out: Path

    def __call__(self, *arguments: str) -> Done:
        return called("polling", *arguments, "--out", str(self.out))

    def listed(self, *arguments: str) -> list[dict[str, object]]:
        done = self("targets", "--json", *arguments)
        assert done.code == 0, done.err
        return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture
def house(tmp_path: Path) -> House:
    """With two races, one of them live, and results that fail."""

    async def made() -> None:
        (tmp_path / "out").mkdir()
        async with opened(PollingFolder(out=tmp_path / "out"), SOURCE.schema, SOURCE.name) as (store, _):
            await keep_kinds(store, SOURCE.kinds)
            targets = (found("results", seconds=2.0), *(found("race", race) for race in RACES))
            await store.apply(Reconciliation(insert=targets), WALL)
            ids = {known.found.source_id: known.id for known in await store.known()}
            live = TargetRun(ids[RACES[0]], WALL + 1e4, WALL + 1e5, 7, 1, 0, WALL, WALL, "ok", 1.0, 1.0)
            fails = TargetRun(
                ids[EVENT], WALL + 2e4, None, 3, 0, 2, WALL, None, "error: TIMEOUT: no answer, after all", 1.0, 0.0
            )
            await store.write([live, fails])

    run(made)
    return House(tmp_path / "out")


def test_targets_are_listed_those_first_that_are_due_first(house: House) -> None:
    done = house("targets")

    head, *rows, last = done.out.splitlines()
    assert head.split() == ["kind", "id", "every", "due", "runs", "missed", "changed", "status"]
    assert [row.split()[:2] for row in rows] == [["race", RACES[1]], ["race", RACES[0]], ["results", EVENT]]
    assert rows[0].split()[2:] == ["10", "s", *rows[0].split()[4:-2], "never", "new"]
    assert rows[1].split()[2] == "live"
    assert rows[2].rstrip().endswith("error: TIMEOUT: no answer, after all")
    assert last == "3 targets, 1 live, 1 failing"
    assert done.code == 0


@pytest.mark.parametrize(
    ("flags", "kinds"),
    [
        (["--kind", "race"], ["race", "race"]),
        (["--live"], ["race"]),
        (["--due"], ["race"]),
        (["--paused"], []),
        (["--gone"], []),
        (["--event", EVENT, "--limit", "2"], ["race", "race"]),
        (["--event", "another"], []),
    ],
)
def test_some_of_them_can_be_asked_for(house: House, flags: list[str], kinds: list[str]) -> None:
    assert [target["kind"] for target in house.listed(*flags)] == kinds
    said = house("targets", *flags).out.splitlines()[-1]
    assert said.startswith(f"{len(kinds) or 'none'} of these; in all 3 targets")


def test_as_json_a_target_has_all_its_columns_and_what_follows_from_them(house: House) -> None:
    (target,) = house.listed("--live")

    assert set(target) == {field.name for field in msgspec.structs.fields(PollingTarget)} | {"interval", "due_in"}
    assert (target["source_id"], target["interval"], target["runs"], target["digest"]) == (RACES[0], 10.0, 7, "")


def test_on_a_terminal_ids_are_as_short_as_they_may_be(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """And every row on one line, within 80 columns."""
    ours, theirs = pty.openpty()
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)

    async def main() -> None:
        process = await fork("polling", "targets", "--out", str(house.out), stdout=theirs)
        os.close(theirs)
        async with asyncio.timeout(300):
            assert await process.wait() == 0

    run(main)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in seen.splitlines()]
    assert [line.split()[1] for line in lines[1:4]] == ["7bdf0000", "7bdfa3d4", "faeeb7e2"]
    # How much of it there is room for depends on how long it is until it is due.
    assert re.search(r"  error: TIME[A-Z]*:?…$", lines[3])
    assert max(map(len, lines)) <= 80


def target(kind: str, source_id: str) -> PollingTarget:
    return PollingTarget(id=1, kind=kind, source_id=source_id, event="", seconds=1.0, next_due=0.0)


@pytest.mark.parametrize(
    ("names", "length"),
    [
        ([], 8),
        (["race a", "race b"], 8),
        (["race 123456789", "race 123456780"], 9),
        (["race 123456789", "results 123456789"], 8),
        (["race 12345678", "race 123456789"], 9),
    ],
)
def test_as_much_of_an_id_is_shown_as_tells_it_from_others(names: Sequence[str], length: int) -> None:
    assert enough([target(*name.split()) for name in names]) == length


def test_an_id_may_be_given_by_its_beginning(house: House) -> None:
    assert house("set", "race", "7bdfa", "--pause").out == "1 target: paused\n"
    assert [each["source_id"] for each in house.listed("--paused")] == [RACES[0]]

    assert house("set", "race", RACES[0], "--no-pause").out == "1 target: not paused\n"
    assert house.listed("--paused") == []

    several = house("set", "race", "7bdf", "--pause")
    assert several.code == 2
    assert several.err == f"sanderling: 2 ids begin with '7bdf', expected one: {RACES[1]}, {RACES[0]}\n"


class Moving:
    """A store whose targets are moved behind the others as soon as they were listed."""

    def __init__(self) -> None:
        self.ids = list(range(25))

    async def list(self, query: Query) -> list[PollingTarget]:
        page = self.ids[: query.most]
        self.ids = [*self.ids[query.most :], *page]
        return [msgspec.structs.replace(target("race", str(each)), id=each) for each in page]


def test_what_is_moved_while_it_is_listed_is_there_once() -> None:
    async def listed() -> None:
        seen = [each.id async for each in pages(cast("PollingStore", Moving()), Query(most=10))]
        assert sorted(seen) == list(range(25))

    run(listed)


@pytest.mark.parametrize("verb", ["--pause", "--no-pause", "--now"])
def test_what_is_not_there_is_said_with_what_is(house: House, verb: str) -> None:
    for arguments, says in (
        (["rase"], "no target is of the kind 'rase'; did you mean race?"),
        (["pilots", EVENT], "no target is of the kind 'pilots'; there are race, results"),
        (["race", "ffff"], "no race has the id 'ffff'; see: sanderling polling targets --kind race"),
    ):
        done = house("set", *arguments, verb)
        assert (done.code, done.out, done.err) == (1, "", f"sanderling: {says}\n")


def test_where_nothing_was_found_yet_it_is_said_how_that_is_done(house: House) -> None:
    assert house("purge", "--yes", "--json").out.count('"targets": 3') == 1

    done = house("set", "--all", "--pause")

    assert done.code == 1
    assert "there are no targets yet; they are found by: sanderling polling run" in done.err


def test_what_is_paused_is_not_promoted(house: House) -> None:
    house("set", "race", "--pause")

    done = house("set", "race", "--now")

    assert done.code == 1
    assert "all targets of the kind race are paused or gone; see: sanderling polling targets" in done.err
    assert house("set", "--all", "--now").out == "promoted 1 target\n"


def test_an_admin_may_do_the_same_by_hand(house: House) -> None:
    with closing(sqlite3.connect(house.out / "polling.db")) as db, db:
        db.execute("UPDATE polling_targets SET enabled = 0, set_seconds = 0.5 WHERE kind = 'results'")

    (paused,) = house.listed("--paused")
    assert (paused["kind"], paused["interval"]) == ("results", 0.5)


def test_settings_are_listed_with_what_they_mean(house: House) -> None:
    assert house("settings", "raceactivems", "1s").code == 2, "keys are spelled as they are"
    assert house("settings", "scheduler.raceActiveMs", "1s").out == "scheduler.raceActiveMs is 1000\n"

    rows = [line.rstrip().split(maxsplit=3) for line in house("settings").out.splitlines()]
    listed = json.loads(house("settings", "--json").out)

    assert rows[0] == ["setting", "value", "default", "meaning"]
    assert [row[0] for row in rows[1:]] == list(listed)
    shown = {row[0]: row[1:3] for row in rows}
    assert shown["scheduler.raceActiveMs"] == ["1000", "200"]
    assert listed["scheduler.raceActiveMs"]["set"] is True
    assert listed["scheduler.raceIdleMs"]["set"] is False


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("raceActive", "1s", "'scheduler.raceActive' is no setting, did you mean scheduler.raceActiveMs?"),
        ("raceActiveMs", "fast", "scheduler.raceActiveMs is 'fast', expected 0, or milliseconds from 50 to"),
        ("zzz", "1", "'scheduler.zzz' is no setting, expected one of scheduler.enabled, "),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words(house: House, key: str, value: str, says: str) -> None:
    done = house("settings", key, value)

    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_the_status_says_how_it_stands_and_whether_anyone_polls(house: House) -> None:
    now = SystemClock().wall()
    write_status(house.out, changed(POLLING, started=now - 100, wall=now))

    said = called("status", str(house.out)).out

    assert f"Polling in {house.out}, running for 1:40 as process 4711, as of now:" in said
    assert "source  trackside at race.example" in said
    assert "targets  50 targets, 2 failing, 4 paused, 6 gone" in said
    assert "runs  492, " in said
    assert "nobody polls" not in house("targets").out
    whole = json.loads(called("status", str(house.out), "--json").out)
    assert (whole["running"], whole["status"]["process"]["pid"]) == (True, 4711)


@pytest.mark.parametrize(
    ("running", "says"),
    [(True, "which has said nothing for 20 s and is not running"), (False, "which ended 20 s ago")],
)
def test_the_status_of_one_that_is_gone_is_told_as_such(house: House, running: bool, says: str) -> None:  # noqa: FBT001 - a case
    now = SystemClock().wall()
    write_status(house.out, changed(POLLING, started=now - 100, wall=now - 20, running=running))

    assert says in called("status", str(house.out)).out
    assert json.loads(called("status", str(house.out), "--json").out)["running"] is False
    assert house("targets").out.rstrip().endswith("; nobody polls just now")
