"""What people do to systems: it is written where the system looks, or refused in words, and recorded either way."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dashboard_house import NAME, PID, TOKEN, dashboard, polled, queued
from known_reports import EVENTS, HOSTILE, PAGES, POLLING, REPOS, SEQUENCE, changed, many_hosts, put
from looping import in_loop

from sanderling.events.modes import Modes, read_modes
from sanderling.stores.control_file import Control, read_control, write_control
from sanderling.stores.durable import FolderError
from sanderling.stores.polling import Query
from sanderling.web.house_audit import EARLIER, LARGEST, LONGEST, Audit, AuditEntry
from sanderling.web.house_reach import DATABASE, Reach

ALL = [PAGES, REPOS, SEQUENCE, POLLING, EVENTS]


@in_loop
@pytest.mark.parametrize("status", ALL, ids=lambda each: each.system)
async def test_a_system_is_paused_and_goes_on(tmp_path: Path, status: Any) -> None:  # noqa: ANN401 - of any system
    folder = put(tmp_path / "one", status)
    write_control(folder, Control(hosts=frozenset({"left.example"})))
    async with dashboard(tmp_path) as house:
        paused = await house.act("pause", "one")
        wanted = read_control(folder)
        resumed = await house.act("resume", "one")

    assert (paused.status, paused.data) == (200, {"done": "one is paused: nothing new is begun"})
    assert wanted == Control(paused=True, hosts=frozenset({"left.example"}))
    assert resumed.data == {"done": "one goes on"}
    assert read_control(folder) == Control(hosts=frozenset({"left.example"}))


@in_loop
@pytest.mark.parametrize("status", ALL, ids=lambda each: each.system)
async def test_a_system_is_told_to_drain_and_to_stop_and_that_is_recorded(tmp_path: Path, status: Any) -> None:  # noqa: ANN401
    folder = put(tmp_path / "one", changed(status, wall=time.time()))
    write_control(folder, Control(hosts=frozenset({"left.example"})))
    async with dashboard(tmp_path, token=TOKEN) as house:
        drained = await house.act("drain", "one")
        wanted = read_control(folder)
        await house.live.look()
        (shown,) = house.live.seen.systems
        stopped = await house.act("stop", "one")
        recorded = [(each.action, each.who, each.done) for each in house.audited()]

    assert drained.data["done"].startswith("one drains: it takes nothing new")
    assert wanted == Control(hosts=frozenset({"left.example"}), ending="drain")
    assert shown.ending == "drain"
    assert stopped.data == {"done": "one stops: what is in flight comes to its end"}
    assert read_control(folder).ending == "stop"
    assert recorded == [("stop", NAME, True), ("drain", NAME, True)]


@in_loop
async def test_who_has_no_token_drains_nothing(tmp_path: Path) -> None:
    folder = put(tmp_path / "one", PAGES)
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        answers = [
            await house.ask("POST", "/api/actions", {"action": verb, "system": "one"}) for verb in ("stop", "drain")
        ]

    assert [answer.status for answer in answers] == [401, 401]
    assert read_control(folder) == Control()


@in_loop
async def test_a_host_is_left_alone_and_asked_again(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        paused = await house.act("pause_host", "pages", host="a.example")
        wanted = read_control(folder)
        await house.live.look()
        resumed = await house.act("resume_host", "pages", host="a.example")

    assert paused.data == {"done": "a.example is left alone by pages"}
    assert wanted == Control(hosts=frozenset({"a.example"}))
    assert resumed.data == {"done": "a.example is asked again by pages"}
    assert read_control(folder) == Control()


@in_loop
async def test_a_host_that_the_system_does_not_know_is_refused_unless_there_are_more_than_it_says(
    tmp_path: Path,
) -> None:
    put(tmp_path / "few", PAGES)
    put(tmp_path / "many", changed(many_hosts(10), hosts_known=5000))
    async with dashboard(tmp_path) as house:
        unknown = await house.act("pause_host", "few", host="c.example")
        odd = await house.act("pause_host", "few", host=HOSTILE)
        possible = await house.act("pause_host", "many", host="https://C.example:443/path")

    assert unknown.status == 404
    assert unknown.data["detail"] == ("'few' knows no host 'c.example'; it knows 2 hosts, as 'a.example', 'b.example'")
    assert odd.status == 400
    assert possible.data == {"done": "c.example is left alone by many"}


@in_loop
async def test_what_there_is_not_is_answered_with_what_there_is(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        system = await house.act("pause", "Pages")
        verb = await house.act("explode", "pages")
        wrong = await house.act("pause_target", "pages", kind="race", id="1")

    assert (system.status, system.data["detail"]) == (404, "there is no system 'Pages'; there are 'pages'")
    assert (verb.status, wrong.status) == (400, 400)
    assert wrong.data["detail"] == "'pages' is of pages, and pause_target is for polling"


@in_loop
@pytest.mark.parametrize(
    "more",
    [
        {"action": "pause", "host": "a.example"},
        {"action": "pause_host"},
        {"action": "pause_host", "host": 5},
        {"action": "pause_host", "host": ""},
        {"action": "pause_host", "host": "x" * 2000},
        {"action": "set", "key": "k"},
        {"action": "replay_dead"},
        {"action": "replay_dead", "all": False},
        {"action": "replay_dead", "key": "k", "all": True},
        {"action": "modes", "modes": {"new": "yes"}},
        {"action": "modes", "modes": {"canary": 2}},
        {"action": "modes", "modes": {"other": True}},
        {"action": "pause", "and": 1},
        {"action": "dance"},
        {},
    ],
)
async def test_an_action_must_be_what_it_says(tmp_path: Path, more: dict[str, object]) -> None:
    put(tmp_path / "events", EVENTS)
    async with dashboard(tmp_path) as house:
        answer = await house.ask("POST", "/api/actions", {"system": "events", **more}, await house.page())

    assert answer.status == 400
    assert answer.data["detail"].startswith("body: ")
    assert not (tmp_path / "events" / "control.json").exists()


@in_loop
async def test_targets_and_settings_of_polling_are_changed_in_its_database(tmp_path: Path) -> None:
    async with polled(tmp_path / "polling") as store, dashboard(tmp_path) as house:
        paused = await house.act("pause_target", "polling", kind="race", id="r1")
        was = await store.find("race", "r1")
        resumed = await house.act("resume_target", "polling", kind="race", id="r1")
        promoted = await house.act("promote_target", "polling", kind="race", id="r1")
        now = await store.find("race", "r1")
        set_ = await house.act("set", "polling", key="scheduler.raceActiveMs", value="250ms")
        texts = await store.settings()
        back = await house.act("set", "polling", key="scheduler.raceActiveMs", value=None)
        off = await house.act("set", "polling", key="scheduler.enabled", value="off")
        paused_by_setting = read_control(tmp_path / "polling").paused
        await house.act("resume", "polling")
        on = await house.act("set", "polling", key="scheduler.enabled", value=None)
        switched = await store.settings()

    assert (paused.data, resumed.data) == ({"done": "race r1 is polled no more"}, {"done": "race r1 is polled again"})
    assert was is not None
    assert now is not None
    assert (was.enabled, now.enabled, now.promote) == (False, True, 0.0)
    assert promoted.data == {"done": "race r1 is run now"}
    assert set_.data == {"done": "scheduler.raceActiveMs is 250"}
    assert texts["scheduler.raceActiveMs"] == "250"
    assert back.data == {"done": "scheduler.raceActiveMs is 200, as by default"}
    assert off.data == {"done": "scheduler.enabled is false"}
    assert paused_by_setting
    assert on.data == {"done": "scheduler.enabled is true, as by default"}
    assert "scheduler.enabled" not in switched


@in_loop
async def test_what_polling_does_not_have_is_refused_in_words(tmp_path: Path) -> None:
    async with polled(tmp_path / "polling"), dashboard(tmp_path) as house:
        unknown = await house.act("pause_target", "polling", kind="race", id="nobody")
        paused = await house.act("promote_target", "polling", kind="race", id="r2")
        nobody = await house.act("promote_target", "polling", kind="lap", id="r2")
        key = await house.act("set", "polling", key="scheduler.brust", value="1")
        value = await house.act("set", "polling", key="scheduler.burst", value="many")

    assert (unknown.status, paused.status, nobody.status, key.status, value.status) == (404, 409, 404, 422, 422)
    assert unknown.data["detail"].endswith("with the id 'nobody'; there are targets of 'race'")
    assert "did you mean scheduler.burst" in key.data["detail"]


@in_loop
async def test_a_database_that_is_not_in_the_folder_is_left_to_the_process_that_has_it(tmp_path: Path) -> None:
    """Also if one was left there by an earlier run."""
    put(tmp_path / "server", POLLING)
    async with polled(tmp_path / "left") as store:
        put(tmp_path / "left", changed(POLLING, pid=PID + 1))
        async with dashboard(tmp_path) as house:
            answers = [await house.act("set", name, key="scheduler.burst", value="7") for name in ("server", "left")]
        async with dashboard(tmp_path, reach=Reach(polling={tmp_path / "left": store})) as beside:
            done = await beside.act("set", "left", key="scheduler.burst", value="7")
            settings = await store.settings()

    assert [answer.status for answer in answers] == [409, 409]
    assert "use the dashboard of that process: --dashboard PORT" in answers[0].data["detail"]
    assert (done.status, settings["scheduler.burst"]) == (200, "7")


@in_loop
async def test_messages_that_were_given_up_are_ready_again(tmp_path: Path) -> None:
    async with queued(tmp_path / "events", "one", "two", "three") as queue, dashboard(tmp_path) as house:
        one = await house.act("replay_dead", "events", key="two")
        left = [dead.key for dead in await queue.dead(10)]
        unknown = await house.act("replay_dead", "events", key="two")
        rest = await house.act("replay_dead", "events", all=True)
        depth = await queue.depth()

    assert one.data == {"done": "1 message ready again"}
    assert left == ["one", "three"]
    assert (unknown.status, rest.data) == (404, {"done": "2 messages ready again"})
    assert (depth.ready, depth.dead) == (3, 0)


@in_loop
async def test_a_queue_of_a_server_is_left_to_the_process_that_has_it(tmp_path: Path) -> None:
    put(tmp_path / "events", EVENTS)
    async with queued(tmp_path / "elsewhere", "one") as queue:
        async with dashboard(tmp_path) as house:
            refused = await house.act("replay_dead", "events", all=True)
        async with dashboard(tmp_path, reach=Reach(queues={tmp_path / "events": queue})) as beside:
            done = await beside.act("replay_dead", "events", all=True)

    assert refused.status == 409
    assert done.data == {"done": "1 message ready again"}


@in_loop
async def test_modes_are_switched(tmp_path: Path) -> None:
    put(tmp_path / "events", EVENTS)
    modes = {"new": True, "legacy": False, "inline": True, "canary": 0.25}
    async with dashboard(tmp_path) as house:
        done = await house.act("modes", "events", modes=modes)

    assert done.data == {"done": "events processes new, inline, of the new ones 25%"}
    assert read_modes(tmp_path / "events") == Modes(**modes)  # type: ignore[arg-type]


@in_loop
async def test_a_control_file_that_makes_no_sense_is_not_overwritten(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", PAGES)
    (folder / "control.json").write_text("{ by hand")
    async with dashboard(tmp_path) as house:
        answer = await house.act("pause", "pages")

    assert answer.status == 409
    assert "repair the file, or forget what it says: sanderling control " in answer.data["detail"]
    assert (folder / "control.json").read_text() == "{ by hand"


# The record.


@in_loop
async def test_every_action_is_recorded_with_who_when_and_what(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path, token=TOKEN) as house:
        await house.act("pause_host", "pages", host="a.example")
        await house.act("pause", "nobody")
        answer = await house.ask("GET", "/api/audit?limit=10")
        wall = house.live.seen.wall

    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [abs(each.pop("at") - wall) < 60 for each in lines] == [True, True]
    usual = {"who": NAME, "from": "127.0.0.1"}
    assert lines == [
        {**usual, "action": "pause_host", "system": "pages", "what": "a.example", "done": True, "why": ""},
        {
            **usual,
            "action": "pause",
            "system": "nobody",
            "what": "",
            "done": False,
            "why": "there is no system 'nobody'; there are 'pages'",
        },
    ]
    assert [each["system"] for each in answer.data] == ["nobody", "pages"]
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@in_loop
async def test_nothing_is_done_that_cannot_be_recorded(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", PAGES)
    (tmp_path / "audit.jsonl").mkdir()
    async with dashboard(tmp_path) as house:
        answer = await house.act("pause", "pages")

    assert answer.status == 503
    assert answer.data["detail"].startswith("nothing was done, since it could not be recorded")
    assert not (folder / "control.json").exists()


def an_entry(number: int = 0, **changes: Any) -> AuditEntry:  # noqa: ANN401 - fields of it
    entry = AuditEntry(at=float(number), who="w", from_="f", action="pause", system="s", what="", done=True)
    return msgspec.structs.replace(entry, **changes)


def test_an_entry_is_one_short_line_whatever_was_said(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    entry = an_entry(what=HOSTILE, system="x" * 10_000, why="\n" * 10_000)

    audit.write(entry)

    (line,) = audit.path.read_bytes().splitlines()
    assert len(line) < 6 * 2 * LONGEST
    assert audit.newest(10) == [msgspec.structs.replace(entry, system="x" * LONGEST, why="\n" * LONGEST)]


def test_the_newest_come_first_and_broken_lines_are_passed_over(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    for number in range(2000):
        audit.write(an_entry(number)) if number in (0, 1999) else _append(audit.path, an_entry(number))
    with audit.path.open("ab") as file:
        file.write(b"no JSON\n{}\n\xff\n")
    audit.write(an_entry(2000))

    assert [entry.at for entry in audit.newest(3)] == [2000, 1999, 1998]
    assert [entry.at for entry in audit.newest(10_000)] == list(range(2000, -1, -1))


def _append(path: Path, entry: AuditEntry) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")


def test_a_large_record_is_moved_aside_and_one_earlier_is_kept(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    (tmp_path / EARLIER).write_bytes(b"before that\n")
    audit.write(an_entry(1))
    with audit.path.open("r+b") as file:
        file.truncate(LARGEST)

    audit.write(an_entry(2))

    assert [entry.at for entry in audit.newest(10)] == [2, 1]
    assert (tmp_path / EARLIER).stat().st_size == LARGEST
    assert sorted(each.name for each in tmp_path.iterdir()) == [EARLIER, "audit.jsonl"]


def test_there_is_no_record_yet(tmp_path: Path) -> None:
    assert Audit(tmp_path).newest(10) == []


def test_a_record_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FolderError):
        Audit(tmp_path).write(an_entry())
    assert not (tmp_path / "elsewhere").exists()


@in_loop
async def test_two_who_act_at_once_undo_nothing(tmp_path: Path) -> None:
    folder = put(tmp_path / "pages", many_hosts(20))
    async with dashboard(tmp_path) as house, asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(house.act("pause_host", "pages", host=f"host-{number:05}.example"))

    assert len(read_control(folder).hosts) == 20


@in_loop
async def test_a_database_that_fails_is_said_and_recorded(tmp_path: Path) -> None:
    async with polled(tmp_path / "polling") as store:
        assert len(await store.list(Query())) == 2
    (tmp_path / "polling" / DATABASE).write_bytes(os.urandom(8192))
    async with dashboard(tmp_path) as house:
        answer = await house.act("set", "polling", key="scheduler.burst", value="7")
        (entry,) = house.audited()

    assert answer.status == 503
    assert "is damaged, or not one of ours" in answer.data["detail"]
    assert (entry.done, entry.why) == (False, answer.data["detail"])


@in_loop
async def test_what_nobody_thought_of_is_recorded_as_well(tmp_path: Path) -> None:
    class Broken(Reach):
        def open_queue(self, found: object) -> Any:  # noqa: ANN401, ARG002 - as the real one
            raise ZeroDivisionError

    put(tmp_path / "events", EVENTS)
    async with dashboard(tmp_path, reach=Broken()) as house:
        answer = await house.act("replay_dead", "events", all=True)
        (entry,) = house.audited()

    assert (answer.status, entry.done) == (500, False)
    assert entry.why == answer.data["detail"] == "this is a mistake of ours; the log has more"
