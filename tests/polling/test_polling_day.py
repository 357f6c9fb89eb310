"""Whole race days, polled under virtual time into a real database."""

import itertools
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from race_polling import Polling, everything, play, replayed, stored

from sanderling.apis.polled import Wanted
from sanderling.stores.polling import Query
from sanderling.task import Reply
from sanderling.worlds.race import RaceRules, RaceWeather, demo, hostile
from sanderling.worlds.race_day import DayRules

SHORT = DayRules(pilots=8, late=1, removed=1, rounds=2, aborted=1, first=20.0, heat=30.0, pause=25.0, lap=5.0)


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


async def is_what_the_upstream_says(polling: Polling) -> None:
    """Every document, read now, is in the database, and what belongs to it is nothing else."""
    day, source = polling.day, polling.source
    now = polling.clock.now()
    rows = await stored(polling)
    for target in await polling.store.list(Query(most=1000)):
        wanted = Wanted(target.kind, target.source_id, target.event, target.only)
        path = source.task(wanted).url.removeprefix("http://race.example")
        body = day.document(path, now)
        if body is None:
            continue
        document = source.read(wanted, Reply(200, (), body, f"http://race.example{path}", 0.0))
        for row in document.rows:
            assert rows[row.table][row.key] == dict(row.values), (target.kind, row)
        for whole in document.whole:
            found = {key for key, values in rows.get(whole.table, {}).items() if values[whole.column] == whole.parent}
            assert found <= whole.keys, (target.kind, whole.table)


def whole_day(folder: Path, rules: RaceRules, seed: int) -> Polling:
    """Poll all of it: it ends in the rows it has, and in changes that add up to them."""
    polling = Polling(folder, rules, seed=seed)

    async def script() -> None:
        await polling.open()
        await polling.during(lambda: polling.clock.sleep(polling.day.over + 70.0))
        await is_what_the_upstream_says(polling)
        changes = await everything(polling.store)
        assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
        assert replayed(changes) == await stored(polling)
        await polling.store.close()

    play(script())
    assert polling.network.most_of_one == 1, "a target was run twice at a time"
    assert polling.network.most_at_once <= 4  # two, one in reserve, and discovery
    return polling


@pytest.mark.parametrize(
    ("rules", "seed"),
    [(RaceRules(SHORT), 2), (RaceRules(SHORT, RaceWeather(half_written=0.06), etag=True), 3)],
    ids=["short", "etags"],
)
def test_a_whole_day_ends_in_the_rows_it_has_and_in_changes_that_add_up_to_them(
    tmp_path: Path, rules: RaceRules, seed: int
) -> None:
    whole_day(tmp_path, rules, seed)


@pytest.fixture(scope="module")
def demo_day(tmp_path_factory: pytest.TempPathFactory) -> Polling:
    """The same of the demo: a day that is over, and when what was asked for on it."""
    return whole_day(tmp_path_factory.mktemp("demo"), demo(), 1)


def test_a_race_is_asked_for_five_times_a_second_while_it_is_flown_and_not_otherwise(demo_day: Polling) -> None:
    polling, day = demo_day, demo_day.day

    for heat in day.heats:
        start, end = heat.start / 1000, heat.end / 1000
        asked = polling.asked(day.race_path(heat.id))
        # It takes up to an interval to see that it began, and one poll to see that it ended.
        flown = [at for at in asked if start + 10.3 < at <= end]
        assert len(flown) >= (end - start - 10.3) / 0.2 - 2
        assert median(gaps(flown)) == pytest.approx(0.2, abs=0.002)
        assert max(gaps(flown)) < 0.25
        idle = [at for at in asked if at < start or at > end + 0.5]
        assert len(idle) <= (day.over + 70 - end + start) / 10 + 5
        later = [at for at in asked if at > end + 30]
        assert all(gap > 9.5 for gap in gaps(later)), "the last completed race is not live"


def test_a_race_that_starts_is_seen_through_its_own_document_at_once(demo_day: Polling) -> None:
    """What the row says decides, in the same moment it is stored, and not a loop that comes by later."""
    heat = demo_day.day.heats[0]
    asked = demo_day.asked(demo_day.day.race_path(heat.id))
    first = next(at for at in asked if at > heat.start / 1000)
    assert next(at for at in asked if at > first) - first < 0.3


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Polling, list[int]]:
    """The minutes before the first race; and the newest change after 25 and after 55 seconds."""
    polling = Polling(tmp_path_factory.mktemp("quiet"), RaceRules(DayRules(first=300.0)))
    newest: list[int] = []

    async def watch() -> None:
        for seconds in (25.0, 30.0, 195.0):
            await polling.clock.sleep(seconds)
            newest.append((await polling.store.span()).newest)

    async def script() -> None:
        await polling.open()
        await polling.during(watch)
        await polling.store.close()

    play(script())
    return polling, newest[:2]


def test_everything_else_is_refreshed_every_ten_seconds_without_a_crowd(quiet: tuple[Polling, list[int]]) -> None:
    polling, _ = quiet
    day = polling.day

    for path in (day.path("Pilots"), day.path("Rounds"), *(day.race_path(heat.id) for heat in day.heats[:4])):
        asked = [at for at in polling.asked(path) if at < 59.0]
        assert 5 <= len(asked) <= 9
        assert all(9.4 < gap < 10.6 for gap in gaps(asked)[2:])
    everything_asked = sorted(at for times in polling.network.times.values() for at in times if at > 20)
    most = max(sum(1 for at in everything_asked if tenth <= at < tenth + 0.5) for tenth in range(20, 59))
    assert most <= 10, "spread by their phases"


def test_what_is_refreshed_each_minute_has_its_turn_though_discovery_looks_every_ten_seconds(
    quiet: tuple[Polling, list[int]],
) -> None:
    """A discovery that planned its targets anew each time would put off five of six of them for ever."""
    polling, _ = quiet

    (channels,) = [times for path, times in polling.network.times.items() if path.endswith("Channels.json")]
    assert 4 <= len(channels) <= 6
    assert all(56.0 < gap < 64.0 for gap in gaps(channels)[2:])


def test_what_is_unchanged_writes_nothing(quiet: tuple[Polling, list[int]]) -> None:
    _, (early, later) = quiet

    assert early == later > 0


def test_a_hostile_day_ends_right_all_the_same(tmp_path: Path) -> None:
    """Errors, hangs, half-written and empty files, wrong types, 500 MB, resets, a quota."""
    rules = hostile()
    calm = replace(rules, day=replace(rules.day, pilots=8, late=1, removed=1, rounds=2, aborted=1))
    polling = Polling(tmp_path, calm, seed=1)

    async def script() -> None:
        await polling.open()
        await polling.during(lambda: polling.clock.sleep(polling.day.over + 120.0))
        await is_what_the_upstream_says(polling)
        changes = await everything(polling.store)
        assert replayed(changes) == await stored(polling)
        await polling.store.close()

    play(script())
    assert polling.network.most_of_one == 1
    assert polling.day.tally.statuses[500] > 5


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_in_the_middle_of_races_no_change_is_lost_and_no_number_is_there_twice(
    tmp_path: Path, seed: int
) -> None:
    polling = Polling(tmp_path, RaceRules(SHORT), seed=seed)

    async def script() -> None:
        numbers: list[int] = []
        while polling.clock.now() < polling.day.over + 20:
            await polling.killed_after(7.3 + seed)
            store = await polling.reopened()
            changes = await everything(store)
            assert [change.seq for change in changes[: len(numbers)]] == numbers
            numbers = [change.seq for change in changes]
            await store.close()
        await polling.open()
        await polling.during(lambda: polling.clock.sleep(30.0))
        await is_what_the_upstream_says(polling)
        changes = await everything(polling.store)
        assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
        assert replayed(changes) == await stored(polling)
        await polling.store.close()

    play(script())


def test_after_a_restart_a_race_is_live_at_once(tmp_path: Path) -> None:
    polling = Polling(tmp_path, demo())
    heat = polling.day.heats[0]

    async def script() -> None:
        await polling.killed_after(heat.start / 1000 + 20)
        began = polling.clock.now()
        await polling.open()
        await polling.during(lambda: polling.clock.sleep(10.0))
        await polling.store.close()
        asked = [at for at in polling.asked(polling.day.race_path(heat.id)) if at >= began]
        assert len(asked) >= 45

    play(script())
