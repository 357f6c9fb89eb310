"""What people set and ask for, while a race day is polled under virtual time."""

import itertools
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from race_polling import Polling, play, stored

from sanderling.polling.settings import SettingError
from sanderling.stores.documents import SourceRow
from sanderling.stores.polling import PollingTarget, Query
from sanderling.worlds.race import RaceKind as Weather
from sanderling.worlds.race import RaceRules, RaceWeather, demo
from sanderling.worlds.race_day import DayRules

Script = Callable[[Polling], Awaitable[None]]


def polled(folder: Path, script: Script, rules: RaceRules | None = None) -> Polling:
    """Poll a demo day while the script runs."""
    polling = Polling(folder, rules or demo())

    async def run() -> None:
        await polling.open()
        await polling.during(lambda: script(polling))
        await polling.store.close()

    play(run())
    return polling


async def the(polling: Polling, kind: str, number: int = 0) -> PollingTarget:
    found = await polling.store.list(Query(kind=kind, most=100))
    return sorted(found, key=lambda target: target.id)[number]


def test_a_pause_outlives_discovery_and_restart(tmp_path: Path) -> None:
    """Discovery every ten seconds must not switch on what somebody switched off."""

    async def script(polling: Polling) -> None:
        await polling.clock.sleep(5.0)
        race = await the(polling, "race")
        assert await polling.control.change("race", race.source_id, {"enabled": False})
        await polling.clock.sleep(0.5)
        asked = len(polling.asked(polling.day.race_path(race.source_id)))
        await polling.clock.sleep(60.0)
        assert len(polling.asked(polling.day.race_path(race.source_id))) == asked
        assert not (await the(polling, "race")).enabled
        await polling.control.change("race", race.source_id, {"enabled": True})
        await polling.clock.sleep(1.0)
        assert len(polling.asked(polling.day.race_path(race.source_id))) == asked + 1
        assert (await the(polling, "race")).missed == 0, "that it was paused is not its lateness"
        assert polling.system.measures.late["usual"].p99 < 1.0

    polled(tmp_path, script)


def test_an_interval_and_a_priority_outlive_discovery(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(5.0)
        event = polling.day.event
        await polling.control.change("pilots", event, {"set_seconds": 1.0, "set_priority": 7})
        await polling.clock.sleep(1.0)
        before = len(polling.asked(polling.day.path("Pilots")))
        await polling.clock.sleep(40.0)
        assert 38 <= len(polling.asked(polling.day.path("Pilots"))) - before <= 42
        target = await the(polling, "pilots")
        assert (target.set_seconds, target.set_priority, target.seconds) == (1.0, 7, 10.0)
        await polling.control.change("pilots", event, {"set_seconds": None})
        await polling.clock.sleep(1.0)
        before = len(polling.asked(polling.day.path("Pilots")))
        await polling.clock.sleep(40.0)
        assert len(polling.asked(polling.day.path("Pilots"))) - before <= 5

    polled(tmp_path, script)


def test_discovery_does_not_touch_the_race_that_is_flown(tmp_path: Path) -> None:
    """To set it back to idle and to promote it again would run it twice in a row, every ten seconds."""

    async def script(polling: Polling) -> None:
        heat = polling.day.heats[0]
        await polling.clock.sleep(heat.start / 1000 + 12.0)
        path = polling.day.race_path(heat.id)
        before = len(polling.asked(path))
        await polling.clock.sleep(25.0)
        asked = polling.asked(path)[before:]
        steps = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert min(steps) > 0.15
        assert 123 <= len(asked) <= 127

    polled(tmp_path, script)


def test_settings_are_in_force_within_a_second_whoever_writes_them(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(15.0)
        await polling.store.set("scheduler.fullIntervalMs", "2000")  # as another process does
        await polling.clock.sleep(3.0)
        before = len(polling.asked(polling.day.path("Rounds")))
        await polling.clock.sleep(20.0)
        assert 9 <= len(polling.asked(polling.day.path("Rounds"))) - before <= 11
        await polling.control.set("scheduler.resultsMs", "0")
        await polling.clock.sleep(1.0)
        before = len(polling.asked(polling.day.path("Results")))
        await polling.clock.sleep(20.0)
        assert len(polling.asked(polling.day.path("Results"))) == before
        await polling.control.set("scheduler.resultsMs", None)
        await polling.clock.sleep(5.0)
        assert len(polling.asked(polling.day.path("Results"))) > before

    polled(tmp_path, script)


def test_a_settings_row_with_nonsense_changes_nothing_and_is_told(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.control.set("scheduler.concurrency", "3")
        for key, text in (
            ("concurrency", "many"),
            ("fullIntervalMs", "-7"),
            ("raceActiveMs", "nan"),
            ("nonsense", "1"),
        ):
            await polling.store.set(f"scheduler.{key}", text)
        await polling.clock.sleep(20.0)
        settings = polling.system.live.now
        assert settings is not None
        assert (settings.concurrency, settings.full, settings.active["race"]) == (3, 10.0, 0.2)
        assert len(polling.control.status().facts.problems) == 4
        with pytest.raises(SettingError, match="expected"):
            await polling.control.set("scheduler.concurrency", "0")
        assert len(polling.asked(polling.day.path("Pilots"))) >= 3

    polled(tmp_path, script)


def test_switched_off_nothing_is_asked_and_switched_on_it_goes_on(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(12.0)
        await polling.control.set("scheduler.enabled", "off")
        await polling.clock.sleep(1.0)
        before = polling.day.tally.asked
        await polling.clock.sleep(30.0)
        assert polling.day.tally.asked == before
        found = await polling.control.ingest("pilots", polling.day.event)
        assert found is not None
        assert found.ok
        assert polling.day.tally.asked == before + 1
        await polling.control.set("scheduler.enabled", "on")
        await polling.clock.sleep(12.0)
        assert polling.day.tally.asked > before + 10

    polled(tmp_path, script)


def test_a_promotion_runs_a_target_now_and_accelerates_it_for_as_long_as_asked(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(3.0)
        race = await the(polling, "race")
        path = polling.day.race_path(race.source_id)
        before = len(polling.asked(path))
        assert await polling.control.promote(Query(kind="race", source_id=race.source_id), 4.0) == 1
        await polling.clock.sleep(4.2)
        assert 19 <= len(polling.asked(path)) - before <= 22
        await polling.clock.sleep(0.5)
        before = len(polling.asked(path))
        await polling.clock.sleep(9.0)
        assert len(polling.asked(path)) - before <= 2

    polled(tmp_path, script)


def test_a_thousand_promotions_are_one_run(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(11.0)
        path = polling.day.path("Pilots")
        before = len(polling.asked(path))
        for _ in range(1000):
            await polling.control.promote(Query(kind="pilots"), 0.0)
        await polling.clock.sleep(0.1)
        assert len(polling.asked(path)) - before == 1

    polled(tmp_path, script)


def test_what_is_edited_in_the_database_by_hand_is_heard(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(11.0)
        await polling.store.change("pilots", polling.day.event, {"enabled": False})  # no word to the system
        await polling.clock.sleep(0.5)
        before = len(polling.asked(polling.day.path("Pilots")))
        await polling.clock.sleep(20.0)
        assert len(polling.asked(polling.day.path("Pilots"))) == before

    polled(tmp_path, script)


EDITS = {
    "rounds": "UPDATE rounds SET name = 'edited'",
    "races": "UPDATE races SET end_text = NULL, end_local = NULL",
    "pilots": "UPDATE pilots SET name = NULL",
    "laps": "DELETE FROM laps",
}


def test_rows_that_are_edited_by_hand_are_put_right_within_seconds_and_that_is_told(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(polling.day.over + 70.0)
        before = await stored(polling)
        for table, edit in EDITS.items():
            seq = (await polling.store.span()).newest
            with closing(sqlite3.connect(polling.path)) as db, db:
                edited = db.execute(edit).rowcount
            assert edited > 0, table
            await polling.clock.sleep(3.0)

            assert await stored(polling) == before, table
            told = await polling.store.changes(seq, 1000)
            assert [each.table for each in told] == [table] * edited

    polled(tmp_path, script)


def test_a_full_ingest_has_everything_in_one_go(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.control.set("scheduler.enabled", "off")
        done = await polling.control.full()
        assert {each.kind for each in done} == {"event", "pilots", "rounds", "channels", "race", "results"}
        assert all(each.ok for each in done)
        rows = await stored(polling)
        assert len(rows["races"]) >= 1
        assert await polling.control.ingest("race", "unknown") is None

    polled(tmp_path, script)


def test_a_purge_empties_everything_and_polling_finds_it_again(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(8.0)
        before = await stored(polling)
        counts = await polling.control.purge()
        assert counts["pilots"] == len(before["pilots"])
        assert counts["targets"] > 3
        await polling.clock.sleep(10.0)
        assert await stored(polling) == before

    polled(tmp_path, script, RaceRules(replace(demo().day, removed=0)))


@pytest.mark.parametrize("jump", [-3600.0, 86_400.0 * 365])
def test_a_wall_clock_that_jumps_changes_nothing(tmp_path: Path, jump: float) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(12.0)
        polling.clock.ahead = jump
        await polling.clock.sleep(2.0)
        before = len(polling.asked(polling.day.path("Pilots")))
        await polling.clock.sleep(60.0)
        assert 5 <= len(polling.asked(polling.day.path("Pilots"))) - before <= 7
        target = await the(polling, "pilots")
        assert abs(target.next_due - polling.clock.wall()) <= 11.0
        assert target.missed == 0

    polled(tmp_path, script)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_wall_clock_that_jumps_between_two_runs_changes_nothing(tmp_path: Path, jump: float) -> None:
    polling = Polling(tmp_path, demo())

    async def script() -> None:
        await polling.run(12.0)
        polling.clock.ahead = jump
        before = len(polling.asked(polling.day.path("Pilots")))
        await polling.run(30.0)
        assert 3 <= len(polling.asked(polling.day.path("Pilots"))) - before <= 5

    play(script())


def test_a_wall_clock_that_jumps_teaches_nothing_about_how_often_something_changes(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.control.set("scheduler.adaptiveBudget", "1")
        await polling.clock.sleep(300.0)
        polling.clock.ahead = -3600.0
        await polling.clock.sleep(120.0)

    polling = polled(tmp_path, script, RaceRules(DayRules(pilots=8, late=1, removed=1, rounds=3)))

    for path in map(polling.day.path, ("Results", "Pilots", "Rounds")):
        before, after = (sum(begin < at < begin + 120.0 for at in polling.asked(path)) for begin in (180.0, 300.0))
        assert 0.6 * before < after < 1.6 * before


def test_a_budget_is_shared_by_how_often_something_changes_and_not_by_its_usual_interval(tmp_path: Path) -> None:
    """Before the first race nothing changes. Results are asked for every two seconds as a rule, rounds every ten."""
    rules = RaceRules(DayRules(first=2000.0))

    async def script(polling: Polling) -> None:
        await polling.control.set("scheduler.adaptiveBudget", "1")
        await polling.clock.sleep(500.0)

    polling = polled(tmp_path, script, rules)

    results, rounds = (
        sum(at > 200.0 for at in polling.asked(polling.day.path(name))) for name in ("Results", "Rounds")
    )
    assert 0.7 * rounds < results < 1.4 * rounds


def test_a_target_of_an_unknown_kind_fails_alone(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(5.0)
        insert_by_hand(polling.path, "lottery", "1; DROP TABLE races", polling.day.event)
        await polling.clock.sleep(30.0)
        target = await polling.store.find("lottery", "1; DROP TABLE races")
        assert target is not None
        assert "kind is 'lottery'" in target.status
        assert target.failures > 1
        assert target.gone is None
        assert len(polling.asked(polling.day.path("Pilots"))) >= 3

    polled(tmp_path, script)


def insert_by_hand(path: Path, kind: str, source_id: str, event: str) -> None:
    import sqlite3  # noqa: PLC0415 - as an admin would

    with sqlite3.connect(path, timeout=300) as db:
        db.execute(
            "INSERT INTO polling_targets (kind, source_id, event, seconds, next_due) VALUES (?, ?, ?, 5, 0)",
            (kind, source_id, event),
        )


def test_one_document_that_fails_for_ever_freezes_nothing_that_works(tmp_path: Path) -> None:
    """A race needs its pilots once; if their file breaks later, the live race goes on."""

    async def script(polling: Polling) -> None:
        await polling.clock.sleep(15.0)
        polling.network.broken.add(polling.day.path("Pilots"))
        heat = polling.day.heats[0]
        await polling.clock.sleep(heat.start / 1000 + 12.0 - 15.0)
        before = len(polling.asked(polling.day.race_path(heat.id)))
        await polling.clock.sleep(10.0)
        assert len(polling.asked(polling.day.race_path(heat.id))) - before >= 48
        pilots = await the(polling, "pilots")
        assert pilots.failures >= 1
        assert pilots.status.startswith("error: ")
        race = await the(polling, "race")
        assert race.failures == 0

    polled(tmp_path, script)


def test_a_refusal_of_the_host_is_no_failure_of_the_target(tmp_path: Path) -> None:
    rules = RaceRules(demo().day, RaceWeather(quota=2.0))

    async def script(polling: Polling) -> None:
        await polling.clock.sleep(60.0)
        targets = await polling.store.list(Query(most=100))
        assert polling.day.tally.kinds[Weather.REFUSED] > 0
        assert all(target.failures == 0 for target in targets)
        assert all(target.fetched is not None for target in targets)

    polled(tmp_path, script, rules)


def test_an_upstream_that_hangs_holds_one_slot_per_target_and_no_more(tmp_path: Path) -> None:
    """A fetch slower than the cadence must not be begun again while it is under way."""
    rules = RaceRules(demo().day, RaceWeather(faults={Weather.HANG: 0.3}))

    polling = polled(tmp_path, lambda polling: polling.clock.sleep(120.0), rules)

    assert polling.network.most_of_one == 1
    assert polling.network.most_at_once <= 10  # two slots, and four times as many that hang and hold none


def test_to_allow_fewer_at_once_counts_those_that_are_under_way(tmp_path: Path) -> None:
    """Whoever makes room for new requests must not forget the old ones."""
    rules = RaceRules(demo().day, RaceWeather(latency=0.9, jitter=0.0))

    async def script(polling: Polling) -> None:
        for key, text in (("concurrency", "6"), ("fullIntervalMs", "1000"), ("raceIdleMs", "1000")):
            await polling.control.set(f"scheduler.{key}", text)
        await polling.clock.sleep(20.0)
        assert polling.network.most_at_once > 4
        await polling.control.set("scheduler.concurrency", "1")
        for _ in range(100):
            under_way = polling.system.engine.inflight
            await polling.clock.sleep(0.05)
            assert polling.system.engine.inflight <= max(2, under_way)  # one, and one in reserve for what is live
        assert polling.system.engine.inflight <= 2

    polled(tmp_path, script, rules)


def test_a_target_that_vanishes_for_a_while_keeps_what_was_set(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(5.0)
        race = await the(polling, "race")
        await polling.control.change("race", race.source_id, {"set_priority": 9})
        known = await polling.store.known()
        from sanderling.stores.polling import Reconciliation  # noqa: PLC0415 - what a discovery without it does

        found = next(each for each in known if each.id == race.id)
        await polling.store.apply(Reconciliation(gone=(found.id,)), polling.clock.wall())
        await polling.clock.sleep(1.0)
        assert race.id not in polling.system.schedule.entries
        await polling.clock.sleep(11.0)
        back = await polling.store.find("race", race.source_id)
        assert back is not None
        assert (back.id, back.gone, back.set_priority) == (race.id, None, 9)

    polled(tmp_path, script)


def test_the_status_says_what_goes_on(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        heat = polling.day.heats[0]
        await polling.clock.sleep(heat.start / 1000 + 15.0)
        status = polling.control.status().facts
        assert status.event == polling.day.event
        assert status.current == f"race {heat.id}"
        assert [each.id for each in status.accelerated] == [heat.id]
        assert status.accelerated[0].interval == 0.2
        assert 0 < status.accelerated[0].left <= 30
        assert status.newest == (await polling.store.span()).newest
        assert status.recent[-1].seq == status.newest
        assert len(status.next) > 1
        assert status.late["accelerated"].p99 < 0.05

    polled(tmp_path, script)


def test_rows_of_an_unknown_table_are_an_error_of_their_own(tmp_path: Path) -> None:
    async def script(polling: Polling) -> None:
        await polling.clock.sleep(12.0)
        rows = await polling.control.rows("pilots", event=None, after="", most=3)
        assert len(rows) == 3
        assert isinstance(rows[0], SourceRow)
        with pytest.raises(KeyError):
            await polling.control.rows("polling_targets", event=None, after="", most=3)

    polled(tmp_path, script)
