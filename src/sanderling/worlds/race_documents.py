"""The documents of a simulated race day, as its upstream writes them: JSON arrays, local times, many nulls."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from random import Random

import msgspec

from sanderling.worlds.race_day import EVENT_LAG, ROUNDS_LAG, DayRules, Heat, Pass, RacePlan, Seat

ZERO_DATE = "0001/01/01 0:00:00"
CHANNELS = "/httpfiles/Channels.json"
# The six channels that disturb each other least, as rows of the list of all.
USED = (32, 33, 25, 27, 38, 39)
FIRST_NAMES = ("Ada", "Bo", "Cleo", "Dag", "Edda", "Finn", "Gro", "Hal", "Ines", "Jip", "Kaya", "Lars")
LAST_NAMES = ("Acre", "Birk", "Cove", "Dune", "Elm", "Fjord", "Glen", "Holm")
CALLS = ("Sparrow", "Kestrel", "Swift", "Plover", "Merlin", "Wren", "Dunlin", "Osprey", "Heron", "Knot", "Tern", "Gull")

Fields = dict[str, object]


class _Templates(msgspec.Struct):
    """What the documents say that never changes; null is what is filled in. All channels there are, whoever uses them.

    The event has more colours than channels in use: whoever pairs the two by position must not mind.
    """

    event: Fields
    round: Fields
    pilot: Fields
    race: Fields
    result: Fields
    detection: Fields
    channels: list[Fields]


TEMPLATES = msgspec.json.decode((files(__package__) / "race_templates.json").read_bytes(), type=_Templates)


def date(began: datetime, at: int) -> str:
    """A local time: the hour is not padded, and the fraction has no more digits than it needs."""
    when = began + timedelta(milliseconds=at)
    fraction = f".{when.microsecond // 1000:03}".rstrip("0").rstrip(".")
    return f"{when:%Y/%m/%d} {when.hour}:{when:%M:%S}{fraction}"


def span(seconds: float) -> str:
    """A length of time: whole seconds have no fraction, others have seven digits of it."""
    ticks = round(seconds * 10_000_000)
    whole, rest = divmod(ticks, 10_000_000)
    clock = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{clock}.{rest:07}" if rest else clock


def channel_id(row: int) -> str:
    """The GUID of a row of the list of channels."""
    return f"{row + 1:08x}-0000-0000-0000-000000000000"


def front_page(event: str) -> bytes:
    """What is at `/`: a page whose script names the event that is open."""
    return (
        "<!DOCTYPE html>\n<html>\n<head><title>Race day</title></head>\n<body>\n<script>\n"
        f'    var eventManager = new EventManager("events/{event}");\n'
        "</script>\n</body>\n</html>\n"
    ).encode()


class RaceDocuments:
    """What each document says at an instant, in milliseconds. `began` is the local time at which the day began."""

    def __init__(self, plan: RacePlan, rules: DayRules, began: datetime, seed: int) -> None:
        self._plan = plan
        self._rules = rules
        self._began = began
        self._pilots = tuple(_pilots(plan.pilots, Random(f"race pilots {seed}")))
        self._channels = msgspec.json.encode(TEMPLATES.channels)
        self._heats = {self.race_path(heat): heat for heat in plan.heats}

    def path(self, name: str) -> str:
        """Where a document of the event is."""
        return f"/events/{self._plan.event}/{name}.json"

    def race_path(self, heat: Heat) -> str:
        """Where the document of a heat is."""
        return f"/events/{self._plan.event}/{heat.id}/Race.json"

    def changes(self) -> Mapping[str, frozenset[int]]:
        """All documents that there will ever be, each with the instants at which it changes."""
        plan = self._plan
        return {
            CHANNELS: frozenset(),
            self.path("Event"): frozenset(plan.event_changes()),
            self.path("Pilots"): frozenset(plan.joins),
            self.path("Rounds"): frozenset(plan.round_changes()),
            self.path("Results"): frozenset(heat.results for heat in plan.heats),
            **{path: frozenset(heat.changes()) for path, heat in self._heats.items()},
        }

    def body(self, path: str, now: int) -> bytes | None:
        """The document at a path; None if there is none, or not yet."""
        if path == CHANNELS:
            return self._channels
        if (heat := self._heats.get(path)) is not None:
            return None if now < heat.made else msgspec.json.encode([self._race(heat, now)])
        rows = {
            self.path("Event"): self._event,
            self.path("Pilots"): self._present_pilots,
            self.path("Rounds"): self._rounds,
            self.path("Results"): self._results,
        }.get(path)
        if rows is None:
            return None
        listed = list(rows(now))
        # No results are no bytes, instead of an empty list.
        return msgspec.json.encode(listed) if listed else b""

    def _event(self, now: int) -> Iterator[Fields]:
        plan, rules, seen = self._plan, self._rules, now - EVENT_LAG
        here = [seat for joined, seat in zip(plan.joins, plan.seats, strict=True) if joined <= seen < seat.gone]
        yield TEMPLATES.event | {
            "ID": plan.event,
            "Start": date(self._began, 0),
            "RaceLength": span(rules.heat),
            "MinLapTime": span(rules.lap / 2),
            "LastOpened": date(self._began, -61_570),
            "PilotChannels": [self._seat(seat) for seat in here],
            "RemovedPilots": [plan.pilots[seat.pilot] for seat in plan.seats if seat.gone <= seen],
            "Rounds": [each.id for each in plan.rounds if each.made <= seen],
            "Races": [heat.id for heat in plan.heats if heat.made <= seen],
            "PilotsRegistered": len(here),
        }

    def _present_pilots(self, now: int) -> Iterator[Fields]:
        return (fields for joined, fields in zip(self._plan.joins, self._pilots, strict=True) if joined <= now)

    def _rounds(self, now: int) -> Iterator[Fields]:
        # The practice is in this list and in no other.
        yield _round(self._plan.practice, 1, "Practice", order=50, valid=False)
        for number, each in enumerate(self._plan.rounds, start=1):
            if each.made <= now - ROUNDS_LAG:
                yield _round(each.id, number, "Race", order=100 * number, valid=True)

    def _race(self, heat: Heat, now: int) -> Fields:
        passes = [each for each in heat.passes if each.at <= now]
        return TEMPLATES.race | {
            "ID": heat.id,
            "Laps": [self._lap(each) for each in passes if each.lap_id],
            "Detections": [self._detection(each, now) for each in passes],
            "Start": self._once(heat.start, now),
            "End": self._once(heat.end, now),
            "PilotChannels": [self._seat(seat) for seat in heat.seats if now < seat.gone],
            "RaceNumber": heat.number,
            "Round": self._plan.rounds[heat.round].id,
            "Valid": not heat.aborted or now < heat.end,
            "Event": self._plan.event,
        }

    def _results(self, now: int) -> Iterator[Fields]:
        for heat in self._plan.heats:
            if heat.results <= now:
                yield from self._places(heat)

    def _places(self, heat: Heat) -> Iterator[Fields]:
        """Most laps first; of those with as many, who was there first."""
        laps: dict[Seat, list[int]] = {seat: [] for seat in heat.flyers}
        for each in heat.passes:
            if each.lap and each.valid(heat.end):
                laps[each.seat].append(each.at)
        ranked = sorted(laps.items(), key=lambda item: (-len(item[1]), item[1][-1:]))
        for position, (seat, done) in enumerate(ranked, start=1):
            yield TEMPLATES.result | {
                "ID": _sibling(seat.id),
                "Points": max(0, 12 - 2 * position) if done else 0,
                "Position": position,
                "Event": self._plan.event,
                "Pilot": self._plan.pilots[seat.pilot],
                "Race": heat.id,
                "Round": self._plan.rounds[heat.round].id,
                "DNF": not done,
            }

    def _once(self, at: int, now: int) -> str:
        return date(self._began, at) if at <= now else ZERO_DATE

    def _seat(self, seat: Seat) -> Fields:
        return {
            **_known(seat.id),
            "Pilot": self._plan.pilots[seat.pilot],
            "Channel": channel_id(USED[seat.channel]),
        }

    def _detection(self, each: Pass, now: int) -> Fields:
        return TEMPLATES.detection | {
            "ID": each.id,
            "Channel": channel_id(USED[each.seat.channel]),
            "Time": date(self._began, each.at),
            "Peak": each.peak,
            "Pilot": self._plan.pilots[each.seat.pilot],
            "LapNumber": each.lap,
            "Valid": each.valid(now),
            "ValidityType": "ManualOverride" if each.struck <= now else "Auto",
            "IsHoleshot": each.lap == 0,
        }

    def _lap(self, each: Pass) -> Fields:
        return {
            **_known(each.lap_id),
            "Detection": each.id,
            "LengthSeconds": (each.at - each.since) / 1000,
            "LapNumber": each.lap,
            "StartTime": date(self._began, each.since),
            "EndTime": date(self._began, each.at),
        }


def _known(identity: str) -> Fields:
    """What every object has."""
    return {"ID": identity, "ExternalID": 0}


def _sibling(identity: str) -> str:
    """Another id that follows from an id."""
    return f"{identity[:-1]}{(int(identity[-1], 16) + 1) % 16:x}"


def _round(identity: str, number: int, kind: str, *, order: int, valid: bool) -> Fields:
    return TEMPLATES.round | {
        "ID": identity,
        "RoundNumber": number,
        "EventType": kind,
        "Valid": valid,
        "Order": order,
    }


def _pilots(ids: tuple[str, ...], chance: Random) -> Iterator[Fields]:
    """Invented ones: what they are called is put together by chance."""
    for number, identity in enumerate(ids):
        call = f"{CALLS[number % len(CALLS)]}{'' if number < len(CALLS) else number // len(CALLS) + 1}"
        yield TEMPLATES.pilot | {
            "ID": identity,
            "Name": call,
            "Phonetic": call,
            "FirstName": chance.choice(FIRST_NAMES),
            "LastName": chance.choice(LAST_NAMES),
        }
