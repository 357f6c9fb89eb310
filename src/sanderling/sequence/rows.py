"""A letter of the queue as rows of the store: pure, and strict, since what no table can hold would come back for ever.

Ids are texts in a letter, and numbers of 63 bits in a table. Names are whatever strangers call themselves: the one
character that PostgreSQL cannot hold, NUL, is replaced.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain
from operator import attrgetter

from sanderling.formats.instance import Character, Instance, Message, MessageError, Player, decode
from sanderling.stores.instances import (
    CharacterRow,
    InstancePlayerRow,
    InstanceRow,
    InstanceRows,
    PlayerRow,
    RawRow,
    WeaponRow,
)

MOST_ID = 2**63 - 1
MOST_HASH = 2**32 - 1
MOST_COUNT = 2**31 - 1
LAST_TIME = 2.0**32  # in 2106: up to there PostgreSQL makes the same microseconds of a float as we do
LONGEST_QUOTE = 40


class RowsError(ValueError):
    """A letter that no table can hold. The message says what was found and what was expected."""


def rows_in(key: str, body: bytes) -> InstanceRows:
    """The rows of a letter. Raises RowsError."""
    try:
        message = decode(body)
    except MessageError as error:
        raise RowsError(str(error)) from None
    return rows_of(key, message)


def rows_of(key: str, message: Message) -> InstanceRows:
    """The rows of a message that came under this key. Raises RowsError."""
    instance = message.instance
    if not key == message.id == instance.instance_id:
        ids = ", ".join(_quoted(text) for text in (key, message.id, instance.instance_id))
        raise RowsError(f"letter, message and instance have the ids {ids}; expected the same three times")
    number = _id("instance", key)
    crawled = _time("crawled", message.crawled)
    players = tuple(_player(player) for player in instance.players)
    taken_part: list[InstancePlayerRow] = []
    characters: list[CharacterRow] = []
    weapons: list[WeaponRow] = []
    for row, player in zip(players, instance.players, strict=True):
        member = row.membership_id
        taken_part.append(InstancePlayerRow(number, member, player.finished, player.time_played_seconds))
        for character in player.characters:
            one = _character(number, member, character)
            who = one.character_id
            characters.append(one)
            weapons += [
                WeaponRow(number, member, who, w.weapon_hash, w.kills, w.precision_kills) for w in character.weapons
            ]
    rows = InstanceRows(
        instance=_instance(number, message.api, instance, crawled),
        players=players,
        taken_part=tuple(taken_part),
        characters=tuple(characters),
        weapons=tuple(weapons),
        raw=RawRow(number, memoryview(message.raw), crawled),
    )
    _check(rows)
    return rows


def _instance(number: int, api: str, instance: Instance, crawled: float) -> InstanceRow:
    return InstanceRow(
        instance_id=number,
        api=_text(api),
        activity_hash=instance.activity_hash,
        completed=instance.completed,
        fresh=instance.fresh,
        flawless=instance.flawless,
        player_count=instance.player_count,
        date_started=_date(instance.date_started),
        date_completed=_date(instance.date_completed),
        duration_seconds=instance.duration_seconds,
        membership_type=instance.membership_type,
        score=instance.score,
        skull_hashes=instance.skull_hashes,
        crawled=crawled,
    )


def _player(player: Player) -> PlayerRow:
    return PlayerRow(
        _id("player", player.membership_id),
        _time("lastSeen", player.last_seen),
        player.membership_type,
        _text(player.icon_path),
        _text(player.display_name),
        _text(player.global_display_name),
        _text(player.global_display_name_code),
    )


_OF_CHARACTER = attrgetter(*CharacterRow._fields[3:])


def _character(number: int, member: int, of: Character) -> CharacterRow:
    return CharacterRow(number, member, _id("character", of.character_id), *_OF_CHARACTER(of))


def _check(rows: InstanceRows) -> None:
    """Raise RowsError for what is out of range or there twice. Scores may be below 0; others are not told from them."""
    one = rows.instance
    known = (one.player_count, one.duration_seconds, one.membership_type, one.score)
    _counts("instance", [number for number in known if number is not None])
    _hashes("instance", one.skull_hashes if one.activity_hash is None else (one.activity_hash, *one.skull_hashes))
    if rows.players:
        _counts("player", [row.membership_type for row in rows.players])
        _counts("player", [row.time_played_seconds for row in rows.taken_part])
        _once("player", [row.membership_id for row in rows.players])
    if rows.characters:
        columns = list(zip(*rows.characters, strict=True))
        _hashes("character", columns[3] + columns[4])
        _counts("character", list(chain(*columns[6:])))
        _once("character", list(zip(columns[1], columns[2], strict=True)))
    if rows.weapons:
        _, members, characters, hashes, kills, precision_kills = zip(*rows.weapons, strict=True)
        _hashes("weapon", hashes)
        _counts("weapon", kills + precision_kills)
        _once("weapon", list(zip(members, characters, hashes, strict=True)))


def _hashes(what: str, numbers: Sequence[int]) -> None:
    _within(f"hash of {what}", numbers, 0, MOST_HASH)


def _counts(what: str, numbers: Sequence[int]) -> None:
    _within(f"number of {what}", numbers, -MOST_COUNT, MOST_COUNT)


def _within(what: str, numbers: Sequence[int], least: int, most: int) -> None:
    if numbers and not (least <= min(numbers) and max(numbers) <= most):
        found = next(number for number in numbers if not least <= number <= most)
        shown = f"{found}" if found.bit_length() <= 128 else f"one of {found.bit_length()} bits"
        raise RowsError(f"a {what} is {shown}, expected {least} to {most}")


def _once(what: str, keys: Sequence[Hashable]) -> None:
    if len(set(keys)) < len(keys):
        raise RowsError(f"a {what} is there twice, expected once: {Counter(keys).most_common(1)[0][0]}")


def _id(what: str, text: str) -> int:
    try:
        number = int(text) if len(text) <= LONGEST_QUOTE else -1
    except ValueError:
        number = -1
    # As one writes it, and no other way: "007" would be another letter about the same instance.
    if 0 <= number <= MOST_ID and str(number) == text:
        return number
    raise RowsError(f"the id of a {what} is {_quoted(text)}, expected a number from 0 to {MOST_ID}")


def _date(seconds: float | None) -> float | None:
    """A date that the tables can hold. Any other (some write the year 9999 for never) is in the raw record alone."""
    return None if seconds is None or not 0 <= seconds <= LAST_TIME else round(seconds, 6)


def _time(what: str, seconds: float) -> float:
    if not 0 <= seconds <= LAST_TIME:
        raise RowsError(f"{what} is {seconds}, expected Unix seconds from 0 to {LAST_TIME:.0f}")
    return round(seconds, 6)  # as PostgreSQL has it


def _text(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text


def _quoted(text: str) -> str:
    return repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…")
