"""Raids to store, of made-up players; and by the plainest means what should become of them."""

from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import strategies as st

from sanderling.formats.instance import Character, Instance, Message, Player, Weapon, encode
from sanderling.sequence.rows import rows_of
from sanderling.stores.instance_stats import StatsRow
from sanderling.stores.instances import InstanceRows, PlayerRow
from sanderling.stores.queue import Letter

EPOCH = 1_800_000_000.0
ACTIVITY = 2_122_313_384


def weapon(number: int = 1) -> Weapon:
    return Weapon(weapon_hash=3_000_000_000 + number, kills=number, precision_kills=0)


def character(number: int = 1, weapons: int = 2) -> Character:
    return Character(
        character_id=str(2_305_843_009_300_000_000 + number), class_hash=3_655_393_761, emblem_hash=number % 2**32,
        completed=True, score=-1, kills=10, deaths=1, assists=2, precision_kills=3, super_kills=4, grenade_kills=5,
        melee_kills=6, start_seconds=0, time_played_seconds=600, weapons=tuple(weapon(each) for each in range(weapons)),
    )  # fmt: skip


def member(number: int, *, finished: bool = True, seconds: int = 600, seen: float = EPOCH, name: str = "") -> Player:
    return Player(
        membership_id=str(4_611_686_018_400_000_000 + number), membership_type=3, icon_path="/icon.jpg",
        display_name=name or f"player {number}", global_display_name="", global_display_name_code="0042",
        finished=finished, time_played_seconds=seconds, last_seen=seen, characters=(character(number),),
    )  # fmt: skip


def raid(
    number: int,
    players: Sequence[Player] = (),
    *,
    at: float = EPOCH,
    fresh: bool | None = True,
    seconds: int | None = 1800,
    activity: int | None = ACTIVITY,
    api: str = "bungie",
) -> Message:
    """Completed `at` so many seconds."""
    instance = Instance(
        instance_id=str(number), date_completed=at, date_started=at - 1800, activity_hash=activity, completed=True,
        fresh=fresh, flawless=None, player_count=len(players), duration_seconds=seconds, membership_type=254, score=0,
        skull_hashes=(1, 4_294_967_295), players=tuple(players),
    )  # fmt: skip
    raw = msgspec.Raw(b'{"period": "as it was", "n": %d, "e":"\xc3\xa9"}' % number)
    return Message(id=str(number), api=api, crawled=at + 30.25, instance=instance, raw=raw)


def letter(message: Message) -> Letter:
    return Letter(message.id, encode(message))


def rows(*messages: Message) -> list[InstanceRows]:
    return [rows_of(message.id, message) for message in messages]


def usual(count: int, first: int = 1) -> list[Message]:
    """So many raids of six out of nine players, one after the other."""
    return [
        raid(number, [member((number + each) % 9, seen=EPOCH + number) for each in range(6)], at=EPOCH + number)
        for number in range(first, first + count)
    ]


def stats_of(kept: Iterable[InstanceRows]) -> list[StatsRow]:
    """What the statistics should be, by looking at everything for each of them."""
    runs = [each for each in kept if each.instance.activity_hash is not None]
    keys = {(part.membership_id, run.instance.activity_hash or 0) for run in runs for part in run.taken_part}
    clears = {key: sorted(_order(run) for run in runs if key in _finishers(run)) for key in keys}
    return [_stats(key, runs, clears) for key in sorted(keys)]


def _stats(
    key: tuple[int, int], runs: list[InstanceRows], clears: dict[tuple[int, int], list[tuple[float, int]]]
) -> StatsRow:
    cleared = [run for run in runs if key in _finishers(run)]
    fresh = [run for run in cleared if run.instance.fresh]
    times = sorted(
        (run.instance.duration_seconds, run.instance.instance_id)
        for run in fresh
        if run.instance.duration_seconds is not None
    )
    first = clears[key][0] if clears[key] else (None, None)
    led = [
        other
        for run in cleared
        for other in _finishers(run)
        if _order(run) != clears[key][0] and _order(run) == clears[other][0]
    ]
    played = [
        part.time_played_seconds
        for run in runs
        for part in run.taken_part
        if (part.membership_id, run.instance.activity_hash) == key
    ]
    fastest = times[0] if times else (None, None)
    return StatsRow(*key, len(cleared), len(fresh), len(led), sum(played), *fastest, *first)


def _order(run: InstanceRows) -> tuple[float, int]:
    return run.instance.date_completed or 0, run.instance.instance_id


def _finishers(run: InstanceRows) -> list[tuple[int, int]]:
    return [(part.membership_id, run.instance.activity_hash or 0) for part in run.taken_part if part.finished]


def players_of(kept: Iterable[InstanceRows]) -> list[PlayerRow]:
    """Everybody as last seen."""
    everybody = sorted(player for each in kept for player in each.players)
    return sorted({player.membership_id: player for player in everybody}.values())


_MEMBERS = st.builds(
    lambda number, finished, seconds, seen, name: member(
        number, finished=finished, seconds=seconds, seen=EPOCH + seen, name=name
    ),
    st.integers(1, 5), st.booleans(), st.integers(0, 3), st.integers(0, 2), st.sampled_from("abé"),
)  # fmt: skip
_RAIDS = st.builds(
    lambda number, players, at, fresh, seconds, activity: raid(
        number, players, at=EPOCH + at, fresh=fresh, seconds=seconds, activity=activity
    ),
    st.integers(1, 99),
    st.lists(_MEMBERS, max_size=4, unique_by=lambda player: player.membership_id),
    st.integers(0, 3),
    st.sampled_from([True, False, None]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([7, 7, 8, None]),
)
# Few players, times and activities, so that much happens between them.
SOME_RAIDS = st.lists(_RAIDS, max_size=7, unique_by=lambda message: message.id)
