from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raids import EPOCH, character, member, raid, weapon

from sanderling.formats.instance import Instance, Message, Player, encode
from sanderling.sequence.rows import RowsError, rows_in, rows_of
from sanderling.stores.instances import InstancePlayerRow, InstanceRow, RawRow, WeaponRow


def test_a_letter_becomes_rows() -> None:
    message = raid(16_000_000_001, [member(1), member(2, finished=False, seconds=5)])

    rows = rows_in("16000000001", encode(message))

    one, two = 4_611_686_018_400_000_001, 4_611_686_018_400_000_002
    assert rows.instance == InstanceRow(
        16_000_000_001, "bungie", 2_122_313_384, True, True, None, 2, EPOCH - 1800, EPOCH, 1800, 254, 0,  # noqa: FBT003 - columns
        (1, 4_294_967_295), EPOCH + 30.25,
    )  # fmt: skip
    assert [player.membership_id for player in rows.players] == [one, two]
    assert rows.taken_part == (
        InstancePlayerRow(16_000_000_001, one, finished=True, time_played_seconds=600),
        InstancePlayerRow(16_000_000_001, two, finished=False, time_played_seconds=5),
    )
    assert [(row.membership_id, row.character_id) for row in rows.characters] == [
        (one, 2_305_843_009_300_000_001),
        (two, 2_305_843_009_300_000_002),
    ]
    assert rows.weapons[1:3] == (
        WeaponRow(16_000_000_001, one, 2_305_843_009_300_000_001, 3_000_000_001, 1, 0),
        WeaponRow(16_000_000_001, two, 2_305_843_009_300_000_002, 3_000_000_000, 0, 0),
    )
    assert rows.raw == RawRow(16_000_000_001, bytes(message.raw), EPOCH + 30.25)


def test_every_number_of_a_character_has_its_column() -> None:
    names = [name for name in character().__struct_fields__ if name not in ("character_id", "weapons", "completed")]
    numbered = msgspec.structs.replace(character(), **{name: place for place, name in enumerate(names)})

    (row,) = rows_of("1", raid(1, [_with(member(1), characters=(numbered,))])).characters

    assert {name: getattr(row, name) for name in names} == {name: place for place, name in enumerate(names)}


def test_an_api_without_players_has_one_row() -> None:
    message = Message("7", "json_ids", EPOCH, Instance(instance_id="7"), msgspec.Raw(b"{}"))

    rows = rows_of("7", message)

    assert (rows.players, rows.taken_part, rows.characters, rows.weapons) == ((), (), (), ())
    assert rows.instance.date_completed is None


def test_the_one_character_that_postgresql_cannot_hold_is_replaced() -> None:
    (player,) = rows_of("1", raid(1, [member(1, name="a\0b")])).players

    assert player.display_name == "a\N{REPLACEMENT CHARACTER}b"


def test_times_have_microseconds() -> None:
    assert rows_of("1", raid(1, at=EPOCH + 1 / 3)).instance.date_completed == EPOCH + 0.333333


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "-1", "+1", " 1", "1 ", "007", "1.0", "1e3", "0x1", "1_000", "٣", "²", str(2**63), "9" * 5000, "None",
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["instance", "player", "character"])
def test_an_id_is_a_number_of_63_bits_as_one_writes_it(what: str, text: str) -> None:
    message, key = raid(1), "1"
    if what == "instance":
        message, key = msgspec.structs.replace(_with_instance(message, instance_id=text), id=text), text
    elif what == "player":
        message = raid(1, [_with(member(1), membership_id=text)])
    else:
        message = raid(1, [_with(member(1), characters=(msgspec.structs.replace(character(), character_id=text),))])

    with pytest.raises(
        RowsError, match=rf"the id of a {what} is .*, expected a number from 0 to 9223372036854775807"
    ) as told:
        rows_in(key, encode(message))
    assert len(str(told.value)) < 200


@pytest.mark.parametrize(
    ("key", "number", "instance"), [("2", "1", "1"), ("1", "2", "1"), ("1", "1", "2"), ("1" * 999, "1", "1")]
)
def test_letter_message_and_instance_have_one_id(key: str, number: str, instance: str) -> None:
    message = msgspec.structs.replace(_with_instance(raid(1), instance_id=instance), id=number)

    with pytest.raises(RowsError, match=r"letter, message and instance have the ids .*; expected the same three times"):
        rows_in(key, encode(message))


def _with(player: Player, **changes: Any) -> Player:  # noqa: ANN401 - fields of many types
    return msgspec.structs.replace(player, **changes)


def _with_instance(message: Message, **changes: Any) -> Message:  # noqa: ANN401 - fields of many types
    return msgspec.structs.replace(message, instance=msgspec.structs.replace(message.instance, **changes))


def _of_character(**changes: Any) -> Message:  # noqa: ANN401 - fields of many types
    return raid(1, [_with(member(1), characters=(msgspec.structs.replace(character(), **changes),))])


def _of_weapon(**changes: Any) -> Message:  # noqa: ANN401 - fields of many types
    return _of_character(weapons=(weapon(1), msgspec.structs.replace(weapon(2), **changes)))


@pytest.mark.parametrize(
    ("make", "field", "what"),
    [
        (lambda **changes: _with_instance(raid(1), **changes), "activity_hash", "hash of instance"),
        (lambda **changes: _with_instance(raid(1), **changes), "duration_seconds", "number of instance"),
        (lambda **changes: _with_instance(raid(1), **changes), "score", "number of instance"),
        (lambda **changes: raid(1, [_with(member(1), **changes)]), "membership_type", "number of player"),
        (lambda **changes: raid(1, [_with(member(1), **changes)]), "time_played_seconds", "number of player"),
        (_of_character, "class_hash", "hash of character"),
        (_of_character, "score", "number of character"),
        (_of_character, "time_played_seconds", "number of character"),
        (_of_weapon, "weapon_hash", "hash of weapon"),
        (_of_weapon, "kills", "number of weapon"),
        (_of_weapon, "precision_kills", "number of weapon"),
    ],
)
@pytest.mark.parametrize("number", [2**32, -(2**31), 2**64, -(10**300)])
def test_a_number_that_no_column_holds_is_refused(
    make: Callable[..., Message], field: str, what: str, number: int
) -> None:
    # Not by `encode`, which refuses numbers that a stranger may well send.
    body = encode(make(**{field: 11_223_344})).replace(b"11223344", str(number).encode())

    with pytest.raises(RowsError, match=rf"a {what} is .*, expected -?[0-9]+ to [0-9]+") as told:
        rows_in("1", body)
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("seconds", [-1.0, 2.0**32 + 1, 1e300])
@pytest.mark.parametrize("field", ["date_started", "date_completed"])
def test_a_date_that_no_column_holds_is_in_the_raw_record_alone(field: str, seconds: float) -> None:
    rows = rows_of("1", _with_instance(raid(1), **{field: seconds}))

    assert getattr(rows.instance, field) is None


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (raid(1, [member(1), member(1)]), "player"),
        (raid(1, [_with(member(1), characters=(character(1), character(1)))]), "character"),
        (_of_character(weapons=(weapon(), weapon())), "weapon"),
    ],
)
def test_what_is_there_twice_is_refused(message: Message, what: str) -> None:
    with pytest.raises(RowsError, match=f"a {what} is there twice, expected once: .*[0-9]"):
        rows_of("1", message)


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"\xff", b'{"id": 1}', b"{}" * 9, b"[" * 100_000])
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(RowsError, match=r"message of [0-9]+ bytes is not what this version writes"):
        rows_in("1", body)


@given(st.binary(max_size=60), st.integers(0, 2000), st.integers(1, 60))
def test_a_broken_letter_is_rows_or_an_error_and_nothing_else(noise: bytes, place: int, cut: int) -> None:
    body = encode(raid(1, [member(1)]))
    broken = body[:place] + noise + body[place + cut :]

    with suppress(RowsError):
        rows_in("1", broken)
