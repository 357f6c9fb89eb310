"""The reports of a simulated game: JSON of the size and shape of the real API's, made in microseconds.

A few dozen reports are laid out beforehand with slots in them; one that is asked for is a copy with the slots filled.
Who took part is drawn from a population, so that a player has one name and the same characters in every report.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from random import Random
from typing import NamedTuple

import msgspec

RAID = 4  # the mode; what a report is filed under
OTHER_MODES = (3, 5, 6, 7, 16, 19, 37, 46, 63, 82)
# Raids, so that whoever looks a hash up finds one. The first two are of a raid that is older than the flags.
RAID_HASHES = (548750096, 2812525063, 2122313384, 3458480158, 910380154, 3881495763, 1441982566, 1374392663)
OTHER_HASHES = tuple(range(1_100_000_001, 1_100_000_041))
WITCH_QUEEN = 1_645_549_200  # Unix seconds; from here on a report says whether it was played from the beginning

POPULATION = 3000  # players
APART = 7  # places in the population between two of one report
FIRST_MEMBER, FIRST_CHARACTER = 4_611_686_018_400_000_000, 2_305_843_009_200_000_000
LAYOUTS_OF_RAIDS, LAYOUTS_OF_OTHERS = 12, 36
SIZES_OF_OTHERS = (1, 2, 2, 3, 3, 3, 3, 4, 4, 6, 6, 12)  # entries
SWITCHED, LEFT = 640, 100  # seconds into an activity: to another character, and for good

HUES = ("Amber", "Ashen", "Brine", "Cinder", "Dusk", "Fallow", "Glass", "Hollow", "Ivory", "Marsh", "Pale", "Slate")
BIRDS = ("Avocet", "Curlew", "Dunlin", "Godwit", "Knot", "Plover", "Ruff", "Stint", "Tern", "Turnstone", "Whimbrel")
CLASSES = (("Titan", 3655393761), ("Hunter", 671679327), ("Warlock", 2271682572))
STATS = (
    "assists completed deaths kills opponentsDefeated efficiency killsDeathsRatio killsDeathsAssists score "
    "activityDurationSeconds completionReason fireteamId playerCount startSeconds timePlayedSeconds teamScore "
    "standing team averageScorePerKill averageScorePerLife"
)
EXTENDED = (
    "precisionKills weaponKillsAbility weaponKillsGrenade weaponKillsMelee weaponKillsSuper allMedalsEarned "
    "orbsDropped orbsGathered longestKillSpree longestSingleLife mostPrecisionKills resurrectionsPerformed "
    "resurrectionsReceived suicides totalKillDistance totalDeathDistance averageKillDistance averageDeathDistance "
    "averageLifespan fireTeamActivity"
)
OF_WEAPONS = ("uniqueWeaponKills", "uniqueWeaponPrecisionKills", "uniqueWeaponKillsPrecisionKills")

Json = dict[str, object]
Stay = int | str  # seconds, or a slot for them
Seats = tuple[tuple[int, int], ...]


class Form(StrEnum):
    """How much of a report there is."""

    WHOLE = "whole"
    BARE = "bare"  # without `extended`, as some are when they are young
    THIN = "thin"  # with the first entry only, though it says how many there are


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """A report with slots, in each of its forms, and who sits where: a player's place, and which character."""

    forms: dict[Form, bytes]
    seats: Seats


class Draw(NamedTuple):
    """What chance has decided about one report."""

    layout: ReportLayout
    seconds: int  # how long it took
    activity: int  # the hash
    fresh: bool
    crowd: int  # where in the population its players are


class Reports:
    """Makes the bodies. `bits` are 64 of chance that belong to the id, and decide everything about its report."""

    def __init__(self, rng: Random, raids: float) -> None:
        if not 0 <= raids <= 1:
            raise ValueError(f"raids is {raids}, expected a share from 0 to 1")
        self._threshold = int(raids * 2**20)
        self._raids = [_laid_out(rng, _raid_seats(rng), raid=True) for _ in range(LAYOUTS_OF_RAIDS)]
        sizes = [SIZES_OF_OTHERS[at % len(SIZES_OF_OTHERS)] for at in range(LAYOUTS_OF_OTHERS)]
        self._others = [_laid_out(rng, tuple((at, 0) for at in range(size)), raid=False) for size in sizes]
        self._people: dict[tuple[int, int], bytes] = {}  # at most two characters of each player

    def raid(self, bits: int) -> bool:
        """Whether the report is of a raid."""
        return bits & 0xFFFFF < self._threshold

    def body(self, number: int, bits: int, completed: float, form: Form = Form.WHOLE) -> bytes:
        """The report of an activity that ended at `completed`, in Unix seconds; it says so in whole seconds."""
        draw = self._draw(bits)
        began = int(completed) - draw.seconds
        flag = b'"activityWasStartedFromBeginning":%b' % (b"true" if draw.fresh else b"false")
        slots = {
            b"id": str(number).encode(),
            b"period": _rfc3339(began),
            b"flags": flag if began >= WITCH_QUEEN else b'"startingPhaseIndex":%d' % (not draw.fresh),
            b"hash": str(draw.activity).encode(),
            b"seconds": str(draw.seconds).encode(),
            b"rest": str(draw.seconds - SWITCHED).encode(),
            b"text": b"%dm %ds" % divmod(draw.seconds, 60),
        }
        for at, (place, character) in enumerate(draw.layout.seats):
            slots[b"%d" % at] = self._person((draw.crowd + place * APART) % POPULATION, character)
        return draw.layout.forms[form] % slots

    def _draw(self, bits: int) -> Draw:
        raid, luck = self.raid(bits), bits >> 20
        layouts, hashes = (self._raids, RAID_HASHES) if raid else (self._others, OTHER_HASHES)
        least, most = (1500, 7200) if raid else (180, 1500)
        return Draw(
            layout=layouts[luck % len(layouts)],
            seconds=least + (luck >> 8) % (most - least),
            activity=hashes[(luck >> 20) % len(hashes)],
            fresh=(luck >> 26) % 8 > 0,
            crowd=(luck >> 30) % POPULATION,
        )

    def _person(self, player: int, character: int) -> bytes:
        key = (player, character)
        if key not in self._people:
            self._people[key] = _person(player, character)
        return self._people[key]


def _rfc3339(when: int) -> bytes:
    return datetime.fromtimestamp(when, UTC).isoformat()[:19].encode() + b"Z"


def _person(player: int, character: int) -> bytes:
    """A player with one of the characters, as two fields of an entry."""
    rng = Random(f"{player} {character}")
    name = HUES[player % len(HUES)] + BIRDS[player // len(HUES) % len(BIRDS)]
    word, class_hash = CLASSES[(player + character) % len(CLASSES)]
    info = {
        "iconPath": f"/common/destiny2_content/icons/{rng.getrandbits(128):032x}.png",
        "crossSaveOverride": player % 3 + 1,
        "applicableMembershipTypes": [player % 3 + 1],
        "isPublic": True,
        "membershipType": player % 3 + 1,
        "membershipId": str(FIRST_MEMBER + player * 1013),
        "displayName": name,
        "bungieGlobalDisplayName": name,
        "bungieGlobalDisplayNameCode": player * 37 % 10_000,
    }
    fields = {
        "player": {
            "destinyUserInfo": info,
            "characterClass": word,
            "classHash": class_hash,
            "raceHash": 2803282938,
            "genderHash": 3111576190 - character,
            "characterLevel": 50,
            "lightLevel": 1800 + player % 200,
            "emblemHash": rng.getrandbits(32),
        },
        "characterId": str(FIRST_CHARACTER + player * 2027 + character),
    }
    return msgspec.json.encode(fields)[1:-1]


def _raid_seats(rng: Random) -> Seats:
    """Six players; in every other raid one or two of them came back with another character."""
    twice = rng.sample(range(6), rng.choice((0, 0, 1, 2)))
    return (*((player, 0) for player in range(6)), *((player, 1) for player in twice))


def _laid_out(rng: Random, seats: Seats, *, raid: bool) -> ReportLayout:
    done = rng.random() < 0.75
    switched = {place for place, character in seats if character}
    entries = []
    for at, (place, character) in enumerate(seats):
        stay: Stay = "@seconds@"
        if place in switched:
            stay = "@rest@" if character else SWITCHED - 40
        elif at and rng.random() < 0.1:
            stay = LEFT
        entries.append(_entry(rng, at, len(seats), stay, raid=raid, done=done))
    skulls = rng.choice(([], [2_288_006_931, 0, 2_288_006_931, 871_205_855])) if raid else []
    bare = [{name: value for name, value in entry.items() if name != "extended"} for entry in entries]
    mode = RAID if raid else rng.choice(OTHER_MODES)
    forms = {
        Form.WHOLE: _report(entries, skulls, mode),
        Form.BARE: _report(bare, skulls, mode),
        # Of one that has a single entry there is nothing to leave out but this.
        Form.THIN: _report(entries[:1] if len(entries) > 1 else bare, skulls, mode),
    }
    return ReportLayout(forms, seats)


def _report(entries: list[Json], skulls: list[int], mode: int) -> bytes:
    details = {
        "referenceId": "@hash@",
        "directorActivityHash": "@hash@",
        "instanceId": "@@id@@",
        "mode": mode,
        "modes": [7, mode],
        "isPrivate": False,
        "membershipType": 3,
    }
    response = {"period": "@@period@@", "@flags@": 0, "activityDifficultyTier": 1, "selectedSkullHashes": skulls}
    response |= {"activityDetails": details, "entries": entries, "teams": []}
    return _slotted(msgspec.json.encode(envelope(response)))


def envelope(response: object) -> Json:
    """What the API wraps around a response."""
    return {
        "Response": response,
        "ErrorCode": 1,
        "ThrottleSeconds": 0,
        "ErrorStatus": "Success",
        "Message": "Ok",
        "MessageData": {},
    }


def _slotted(text: bytes) -> bytes:
    """The text with its slots as the % operator wants them; a slot for a number or a field loses its quotes."""
    text = text.replace(b"%", b"%%").replace(b'"@flags@":0', b"%(flags)b")
    for name in (b"seconds", b"rest"):
        text = text.replace(b'"@%b@"' % name, b"%%(%b)b.0" % name)
    text = text.replace(b'"@hash@"', b"%(hash)b")
    for name in (b"id", b"period", b"text"):
        text = text.replace(b"@@%b@@" % name, b"%%(%b)b" % name)
    for seat in range(12):
        text = text.replace(b'"@%d@":0' % seat, b"%%(%d)b" % seat)
    return text


def _entry(rng: Random, at: int, of: int, stay: Stay, *, raid: bool, done: bool) -> Json:
    """One character's part; `stay` is how long it was there."""
    kills, deaths, assists = rng.randrange(5, 400), rng.randrange(12) * (rng.random() < 0.8), rng.randrange(60)
    known: dict[str, object] = {
        "assists": assists,
        "completed": int(done and stay in ("@seconds@", "@rest@")),
        "deaths": deaths,
        "kills": kills,
        "opponentsDefeated": kills + assists,
        "score": kills * 10,
        "activityDurationSeconds": "@seconds@",
        "completionReason": 0 if done else 2,
        "playerCount": of,
        "startSeconds": SWITCHED if stay == "@rest@" else 0,
        "timePlayedSeconds": stay,
        "teamScore": 0 if raid else kills * of * 10,
    }
    return {
        "standing": 0 if done else 1,
        "score": _stat(kills * 10),
        f"@{at}@": 0,
        "values": {name: _stat(known.get(name, rng.randrange(1000))) for name in STATS.split()},
        "extended": {
            "weapons": list(_weapons(rng, rng.randrange(18, 30) if raid else rng.randrange(1, 6))),
            "values": {name: _stat(rng.randrange(500)) for name in EXTENDED.split()},
        },
    }


def _weapons(rng: Random, count: int) -> Iterator[Json]:
    for _ in range(count):
        kills = rng.randrange(1, 120)
        worth = zip(OF_WEAPONS, (kills, rng.randrange(kills), rng.random()), strict=True)
        yield {"referenceId": rng.getrandbits(32), "values": {name: _stat(value) for name, value in worth}}


def _stat(value: object) -> Json:
    shown = "@@text@@" if isinstance(value, str) else str(value)
    return {"basic": {"value": float(value) if isinstance(value, int) else value, "displayValue": shown}}
