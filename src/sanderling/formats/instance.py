"""What the queue `instance_store` carries: one kept record, as a JSON document of its own.

    {"id": "16000000001", "api": "bungie", "crawled": 1800000000.25, "instance": {…}, "raw": {…}}

`raw` is what the API said, byte for byte. `instance` is what we read from it. An API that has no players says only
`instanceId` and perhaps `dateCompleted`. Ids are texts: a number of 64 bits does not survive every reader of JSON.
"""

import msgspec

# Booleans that may be unknown are None.


class Weapon(msgspec.Struct, frozen=True, rename="camel"):
    """What a character did with one weapon."""

    weapon_hash: int
    kills: int
    precision_kills: int


class Character(msgspec.Struct, frozen=True, rename="camel"):
    """One character of a player."""

    character_id: str
    class_hash: int
    emblem_hash: int
    completed: bool
    score: int
    kills: int
    deaths: int
    assists: int
    precision_kills: int
    super_kills: int
    grenade_kills: int
    melee_kills: int
    start_seconds: int
    time_played_seconds: int
    weapons: tuple[Weapon, ...] = ()


class Player(msgspec.Struct, frozen=True, rename="camel"):
    """One player, with all characters that took part."""

    membership_id: str
    membership_type: int
    icon_path: str
    display_name: str
    global_display_name: str
    global_display_name_code: str  # four digits, or ""
    finished: bool
    time_played_seconds: int
    last_seen: float  # Unix seconds
    characters: tuple[Character, ...]


class Instance(msgspec.Struct, frozen=True, rename="camel"):
    """One record that is kept. Times are Unix seconds."""

    instance_id: str
    date_completed: float | None = None
    date_started: float | None = None
    activity_hash: int | None = msgspec.field(name="hash", default=None)
    completed: bool | None = None
    fresh: bool | None = None
    flawless: bool | None = None
    player_count: int | None = None
    duration_seconds: int | None = None
    membership_type: int | None = None
    score: int | None = None
    skull_hashes: tuple[int, ...] = ()
    players: tuple[Player, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """The document."""

    id: str
    api: str
    crawled: float
    instance: Instance
    raw: msgspec.Raw


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Message)


class MessageError(ValueError):
    """Bytes are no message of ours. The message says what was found."""


def encode(message: Message) -> bytes:
    """The document's bytes."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The document in these bytes. Raises MessageError."""
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MessageError(f"message of {len(data)} bytes is not what this version writes: {error}") from None
