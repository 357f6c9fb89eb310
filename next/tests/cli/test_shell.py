"""A run in the shell: its report, its control file, its end. On virtual time."""

import asyncio
import io
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from toy_system import TOYS, ToyOptions

from sanderling.cli.context import Context
from sanderling.cli.shell import run_in_shell
from sanderling.clock import Clock, LoopClock, run_virtual
from sanderling.files import Exit, FolderError
from sanderling.observe.control import change_control, leave_request, read_control
from sanderling.observe.report import Report, RunState, read_status


class Play:
    """One run on virtual time, and what happens beside it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder / "out"
        self.options = ToyOptions(urls=("https://a.example/",), out=self.folder, **options)
        self.clock: Clock = LoopClock()
        self.out, self.err = io.StringIO(), io.StringIO()
        self.context = Context(("toys", "count"), {}, out=self.out, err=self.err, systems=(TOYS,))

    def run(self, beside: Coroutine[object, object, None] | None = None) -> Exit:
        async def both() -> Exit:
            async with asyncio.TaskGroup() as group:
                ended = group.create_task(run_in_shell(TOYS, self.options, self.context, self.clock))
                if beside is not None:
                    group.create_task(beside)
            return ended.result()

        return run_virtual(both())

    def status(self) -> Report:
        report = read_status(self.folder)
        assert report is not None
        return report

    def fact(self, name: str) -> object:
        return next(fact.value for fact in self.status().facts if fact.name == name)


def test_a_run_reports_each_second_and_at_the_end(tmp_path: Path) -> None:
    play = Play(tmp_path, items=30, pause=0.35)
    seen: list[tuple[object, RunState]] = []

    async def beside() -> None:
        for _ in range(3):
            await play.clock.sleep(3 if seen else 3.55)
            seen.append((play.fact("stored"), play.status().state))

    assert play.run(beside()) is Exit.DONE
    assert seen == [(8, RunState.RUNNING), (17, RunState.RUNNING), (26, RunState.RUNNING)]
    assert (play.fact("stored"), play.status().state, play.status().exit) == (30, RunState.ENDED, 0)
    rate = next(fact.rate for fact in play.status().facts if fact.name == "stored")
    assert rate == pytest.approx(1 / 0.35, rel=0.2)
    assert "30 of 30" in play.out.getvalue()
    assert "sanderling export" in play.out.getvalue()


def test_without_a_terminal_a_line_tells_of_progress_every_half_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sanderling")

    Play(tmp_path, items=100, pause=1.0).run()

    told = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [each["stored"] for each in told if each["event"] == "progress"] == [30, 60, 90]


def test_the_report_is_one_line_of_json_and_has_no_secret(tmp_path: Path) -> None:
    play = Play(tmp_path, json=True)

    play.run()

    report = json.loads(play.out.getvalue())
    assert report["facts"][0]["value"] == 20
    assert "hush" not in play.out.getvalue()
    assert "\\u001b" not in play.out.getvalue()
    assert msgspec.json.decode(play.out.getvalue(), type=Report) == play.status()


def test_pausing_lasts_over_a_restart(tmp_path: Path) -> None:
    play = Play(tmp_path, items=1000)

    async def pause() -> None:
        await play.clock.sleep(5)
        leave_request(play.folder, "pause")
        await play.clock.sleep(2)
        assert play.status().state is RunState.PAUSED
        before = play.fact("stored")
        await play.clock.sleep(5)
        assert play.fact("stored") == before
        leave_request(play.folder, "stop")

    assert play.run(pause()) is Exit.WAITING

    again = Play(tmp_path, items=30)

    async def resume() -> None:
        await again.clock.sleep(5)
        assert (again.status().state, again.fact("stored")) == (RunState.PAUSED, 0)
        leave_request(again.folder, "resume")

    assert again.run(resume()) is Exit.DONE


def test_requests_are_carried_out_once_and_answered(tmp_path: Path) -> None:
    play = Play(tmp_path, items=100)

    async def forget() -> None:
        await play.clock.sleep(1.5)
        one, two = leave_request(play.folder, "forget", ("a", "b")), leave_request(play.folder, "block", ("c.example",))
        await play.clock.sleep(2)
        answers = read_control(play.folder).answers
        assert (answers[one.id], set(answers)) == ("2 forgotten", {one.id, two.id})
        assert read_control(play.folder).blocked == {"c.example"}
        assert play.fact("forgotten") == 2

    play.run(forget())

    assert play.fact("forgotten") == 2
    assert read_control(play.folder).requests == ()


def test_what_was_meant_for_the_last_process_does_not_end_this_one(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.folder.mkdir()
    leave_request(play.folder, "stop")
    leave_request(play.folder, "drain")
    leave_request(play.folder, "forget", ("a",))

    assert play.run() is Exit.DONE
    assert play.fact("forgotten") == 1, "what the killed process had not done is done now"


def test_a_damaged_control_file_changes_nothing_and_is_said(tmp_path: Path) -> None:
    play = Play(tmp_path, items=100)

    async def damage() -> None:
        await play.clock.sleep(1.5)
        (play.folder / "control.json").write_text("{")
        await play.clock.sleep(2)
        assert "control.json" in play.status().troubles[0]
        (play.folder / "control.json").unlink()
        await play.clock.sleep(2)
        assert play.status().troubles == ()

    assert play.run(damage()) is Exit.DONE

    (play.folder / "control.json").write_text('{"paused": 3}')
    with pytest.raises(ExceptionGroup) as raised:
        Play(tmp_path).run()
    assert raised.group_contains(FolderError)


def test_an_error_of_the_run_is_its_sentence_and_stands_in_the_status(tmp_path: Path) -> None:
    play = Play(tmp_path, breaks="disk")

    with pytest.raises(ExceptionGroup) as raised:
        play.run()

    assert raised.group_contains(FolderError)
    assert play.status().exit == Exit.LATER
    assert "full" in play.status().troubles[0]


def test_two_clients_lose_no_request(tmp_path: Path) -> None:
    for number in range(20):
        leave_request(tmp_path, "block", (f"h{number}.example",))
    change_control(tmp_path, lambda wanted: wanted.answered(wanted.requests[0], "done"))

    assert len(read_control(tmp_path).requests) == 19
