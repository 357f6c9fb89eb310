"""The testing plan of seed 004, on virtual time."""

from itertools import pairwise

import pytest
from polling.race_day import EVENT, RaceDay, play

from sanderling.polling.cadence import fnv64
from sanderling.polling.store import iso, seconds_of


def test_discovery_makes_each_target_with_its_phase_and_orphans_what_is_gone() -> None:
    async def story(day: RaceDay) -> None:
        await day.until(lambda: len(day.requests("Event.json")), 1)
        await day.clock.sleep(0.1)
        wall = day.clock.wall()
        targets = {each.key: each for each in await day.store.targets()}
        assert set(targets) == {
            *((kind, EVENT) for kind in ("event", "pilots", "channels", "rounds", "results")),
            *(("race", race) for race in day.races),
        }
        for race in day.races:
            due = seconds_of(targets["race", race].next_due_at) - wall
            assert due == pytest.approx(fnv64(race) % 5000 / 1000, abs=0.2)
        assert targets["race", day.races[0]].interval_ms == 5000
        assert targets["rounds", EVENT].interval_ms == 10_000
        assert targets["results", EVENT].interval_ms == 2000

        day.races[:] = [*day.races[1:], "race-new"]
        day.times["race-new"] = [None, None]
        await day.until(lambda: day.requests("race-new"), 11)
        asked = len(day.requests("race-0"))
        await day.clock.sleep(20)
        assert len(day.requests("race-0")) == asked
        gone = await day.store.target(("race", "race-0"))
        assert gone is not None
        assert gone.gone_at
        day.database.by_hand("UPDATE ingest_targets SET goneAt = ? WHERE sourceId = 'race-0'", iso(wall - 86_400))
        day.races.pop()
        await day.clock.sleep(11)
        assert await day.store.target(("race", "race-0")) is None

    play(RaceDay, story)


def test_idle_races_keep_their_cadence_with_jitter() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(600)
        for race in day.races:
            at = day.requests(f"{race}/Race.json")
            gaps = [after - before for before, after in pairwise(at)]
            assert 5.0 <= min(gaps) <= max(gaps) < 5.6

    play(RaceDay, story)


@pytest.mark.parametrize("has_current", [True, False])
def test_a_start_gives_200_ms_and_an_end_the_idle_cadence(has_current: bool) -> None:
    async def story(day: RaceDay) -> None:
        day.has_current = has_current
        await day.clock.sleep(11.37)
        for place in range(2):
            day.start(place)
            took = await day.until(lambda: day.scheduler.active == day.races[place], 1.2)  # noqa: B023
            assert took <= 1.2
            begun = day.clock.now()
            await day.clock.sleep(20)
            assert 4.9 <= day.per_second(day.races[place], begun) <= 5.1
            assert await day.column(place, "intervalMs") == 200
            day.end(place)
            await day.until(lambda: day.scheduler.active is None, 1.0)
            begun = day.clock.now()
            await day.clock.sleep(20)
            assert day.per_second(f"{day.races[place]}/Race.json", begun + 1) <= 0.3
            assert await day.column(place, "intervalMs") == 5000
            assert len(day.requests(f"{day.races[place]}/Result.json")) >= 1
        assert len(await day.store.records("results")) == 2

    play(RaceDay, story)


def test_with_next_race_idle_nothing_but_the_seeds_cadence_is_requested() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(60)
        assert not day.requests("/current")
        assert day.per_second("race-0/", 0) < 0.25
        day.start(0)
        await day.until(lambda: day.scheduler.active, 6)

    play(lambda: RaceDay(next_race="idle"), story)


def test_one_due_target_runs_a_tick_at_concurrency_one_and_burst_one() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(30)
        begun = day.clock.now()
        await day.clock.sleep(30)
        at = day.requests("", begun)
        assert 4.0 <= len(at) / 30 <= 5.4

    day = play(lambda: RaceDay(60, "idle", burst=1, raceIdleMs=1000), story)
    assert day.most_in_flight == 1


def test_a_promotion_runs_next() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(21.5)
        begun = day.clock.now()
        assert await day.scheduler.promote("race", "race-37") == 1
        assert await day.scheduler.promote("race", "nowhere") == 0
        await day.clock.sleep(1.5)
        after = [path for at, path in day.asked if at >= begun]
        assert any("race-37" in path for path in after[:2]), after
        assert await day.scheduler.promote("event_snapshot", EVENT) == 4

    play(lambda: RaceDay(60, "idle", raceIdleMs=1000), story)


def test_never_two_requests_at_concurrency_one_and_two_at_two() -> None:
    async def story(day: RaceDay) -> None:
        day.took = 0.05
        day.start(0)
        await day.clock.sleep(30)

    assert play(lambda: RaceDay(20), story).most_in_flight == 1
    assert play(lambda: RaceDay(20, concurrency=2, burst=8), story).most_in_flight == 2


@pytest.mark.parametrize(("took", "least"), [(0.1, 4.5), (0.15, 4.5), (0.2, 4.5), (0.4, 2.25)])
def test_a_slow_server_gives_the_live_race_nine_tenths(took: float, least: float) -> None:
    async def story(day: RaceDay) -> None:
        day.start(0)
        await day.until(lambda: day.scheduler.active, 3)
        day.took = took
        await day.clock.sleep(5)
        begun = day.clock.now()
        await day.clock.sleep(60)
        live = day.per_second("race-0/", begun)
        assert live >= least
        assert day.per_second("", begun) > live
        assert took == 0.1 or day.scheduler.figures.late

    assert play(lambda: RaceDay(12), story).most_in_flight == 1


def test_failures_back_off_and_are_counted() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        day.broken.add("Pilots.json")
        begun = day.clock.now()
        await day.clock.sleep(400)
        at = day.requests("Pilots.json", begun)
        gaps = [round(after - before) for before, after in pairwise(at)]
        assert gaps[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
        target = await day.store.target(("pilots", EVENT))
        assert target is not None
        assert (target.failures, target.last_status) == (len(at), "error: HOST_UNAVAILABLE 503")
        day.broken.clear()
        await day.clock.sleep(70)
        target = await day.store.target(("pilots", EVENT))
        assert target is not None
        assert (target.failures, target.last_status) == (0, "ok")

    play(RaceDay, story)


@pytest.mark.parametrize("seconds", [3, 30, 300])
def test_after_an_outage_the_live_race_is_requested_within_a_second(seconds: float) -> None:
    async def story(day: RaceDay) -> None:
        day.start(0)
        await day.until(lambda: day.scheduler.active, 3)
        day.down = True
        await day.clock.sleep(seconds)
        assert day.scheduler.away
        day.down = False
        back = day.clock.now()
        await day.until(lambda: day.requests("race-0/", back), 1.0)
        await day.clock.sleep(10)
        assert day.per_second("race-0/", back + 2) >= 4.9

    play(RaceDay, story)


def test_a_slow_disk_delays_no_poll() -> None:
    async def story(day: RaceDay) -> None:
        day.start(0)
        await day.until(lambda: day.scheduler.active, 3)
        day.database.slow = 0.2
        begun = day.clock.now()
        for _ in range(60):
            await day.clock.sleep(0.5)
            day.times["race-1"][1] = f"2026/01/01 9:00:{day.clock.now():.1f}"
        at = day.requests("race-0/", begun)
        assert len(at) >= 149
        assert max(after - before for before, after in pairwise(at)) < 0.25

    play(RaceDay, story)


def test_a_retry_after_is_heeded() -> None:
    async def story(day: RaceDay) -> None:
        day.start(0)
        await day.until(lambda: day.scheduler.active, 3)
        day.silent_until = day.clock.now() + 30
        begun = day.clock.now()
        await day.clock.sleep(40)
        assert not [at for at in day.requests("", begun + 1) if at < begun + 29.8]
        assert day.per_second("race-0/", begun + 31) >= 4.5

    play(RaceDay, story)


def test_edits_by_hand_hold_within_a_second_and_outlive_discovery() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        edit = "UPDATE ingest_targets SET \"{}\" = ? WHERE type = 'race' AND sourceId = ?"
        day.database.by_hand(edit.format("enabled"), 0, "race-1")
        day.database.by_hand(edit.format("intervalMs"), 250, "race-2")
        await day.clock.sleep(1)
        begun = day.clock.now()
        await day.clock.sleep(30)
        assert not day.requests("race-1/", begun)
        assert 3.9 <= day.per_second("race-2/", begun) <= 4.1
        assert await day.column(1, "enabled") == 0
        assert await day.column(2, "intervalMs") == 250

        day.database.by_hand("UPDATE server_settings SET value = 'false' WHERE key = 'scheduler.enabled'")
        await day.clock.sleep(1)
        begun = day.clock.now()
        await day.clock.sleep(10)
        assert not day.requests("", begun)
        day.database.by_hand("DELETE FROM server_settings WHERE key = 'scheduler.enabled'")
        day.database.by_hand("UPDATE server_settings SET value = '2000' WHERE key = 'scheduler.raceIdleMs'")
        await day.clock.sleep(1)
        begun = day.clock.now()
        await day.clock.sleep(10)
        assert 3.9 <= day.per_second("race-2/", begun) <= 4.1
        assert day.per_second("race-3/", begun) >= 0.4
        assert await day.column(3, "intervalMs") == 2000
        assert await day.column(2, "intervalMs") == 250

    play(RaceDay, story)


def test_a_start_by_hand_holds_until_upstream_says_otherwise() -> None:
    async def story(day: RaceDay) -> None:
        day.has_current = False
        await day.clock.sleep(15)
        day.database.by_hand("UPDATE races SET \"start\" = '2026/01/01 10:00:00' WHERE sourceId = 'race-2'")
        await day.until(lambda: day.scheduler.active == "race-2", 1.0)
        begun = day.clock.now()
        await day.clock.sleep(20)
        assert day.per_second("race-2/", begun) >= 4.8
        assert await day.column(2, "intervalMs") == 200
        day.start(2)
        day.end(2)
        await day.until(lambda: day.scheduler.active is None, 1.0)
        assert await day.column(2, "intervalMs") == 5000

    play(RaceDay, story)


def test_a_persons_interval_is_back_after_the_race() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        day.database.by_hand("UPDATE ingest_targets SET intervalMs = 7000 WHERE sourceId = 'race-0'")
        day.start(0)
        await day.until(lambda: day.scheduler.active, 2)
        await day.clock.sleep(1)
        assert await day.column(0, "intervalMs") == 200
        day.end(0)
        await day.clock.sleep(3)
        assert await day.column(0, "intervalMs") == 7000

    play(RaceDay, story)


def test_a_row_of_a_snapshot_stands_for_four_documents() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        day.database.by_hand(
            "INSERT INTO ingest_targets (type, sourceId, intervalMs) VALUES ('event_snapshot', ?, 3000)", EVENT
        )
        begun = day.clock.now()
        await day.clock.sleep(30)
        for name in ("Event", "Pilots", "Rounds", "Channels"):
            assert 9 <= len(day.requests(f"{name}.json", begun)) <= 16

    play(RaceDay, story)


def test_a_run_goes_on_where_another_ended() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        due = iso(day.clock.wall() + 1000)
        day.database.by_hand("UPDATE ingest_targets SET nextDueAt = ?", due)
        await day.scheduler.load()
        await day.clock.sleep(8)
        assert len({each.next_due_at for each in await day.store.targets() if each.type == "race"}) <= 2

    play(RaceDay, story)
