"""A simulated game whose reports have ever-growing ids, as arithmetic: asked at a time, it says what is answered.

Deterministic: the same seed and the same questions at the same times give the same answers. `GameServer` puts it
behind real HTTP. Nothing is kept for an id: a report is made when it is asked for, and millions of ids take no
more memory than one.

Times are Unix seconds, except in the rules: there they count from when the game began.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Self

from sanderling.clock import Clock
from sanderling.worlds import game_answers as answers
from sanderling.worlds.chance import scatter
from sanderling.worlds.game_answers import GameAnswer, GameKind, answer_with
from sanderling.worlds.game_reports import Form, Reports
from sanderling.worlds.game_schedule import GameSchedule, ScheduleRules
from sanderling.worlds.game_weather import GameWeather, Trip, WeatherRules
from sanderling.worlds.server import PATIENCE, OneHost, OneHostServer

NAME = "game.example"
ORIGIN = f"http://{NAME}"
REPORT = "/Platform/Destiny2/Stats/PostGameCarnageReport/"
SETTINGS = "/Platform/Settings/"
LARGEST_ID = 2**63 - 1
BEGAN = 1_800_000_000.0  # when a game began, unless told otherwise; clocks of tests begin there too

_REPORT = re.compile(re.escape(REPORT) + r"([0-9]{1,19})/?(?:\?.*)?")


@dataclass(frozen=True, slots=True)
class GameRules:
    """What a game is like."""

    schedule: ScheduleRules = field(default_factory=ScheduleRules)
    weather: WeatherRules = field(default_factory=WeatherRules)
    raids: float = 0.04  # share of the reports
    late: float = 0.0  # share of the reports that are not whole at first
    late_seconds: float = 60.0  # from being visible to being whole
    changed: float = 0.0  # share of the ids that have the report of another activity later
    changed_seconds: float = 600.0  # from being visible to that

    def __post_init__(self) -> None:
        for name in ("raids", "late", "changed"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a share from 0 to 1")

    def faster(self, speed: float) -> Self:
        """The same game, with everything happening in a fraction of the time; activities are as long as ever."""
        if not speed > 0:
            raise ValueError(f"speed is {speed}, expected more than 0")
        return replace(
            self,
            schedule=self.schedule.faster(speed),
            weather=self.weather.faster(speed),
            late_seconds=self.late_seconds / speed,
            changed_seconds=self.changed_seconds / speed,
        )


@dataclass(slots=True)
class GameTally:
    """What a game was asked."""

    asked: int = 0
    kinds: Counter[GameKind] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)  # 0 where there was no answer
    codes: Counter[int] = field(default_factory=Counter)  # the API's own; 0 where the answer had none
    ids: Counter[int] | None = None  # how often each was asked for; None, as it begins, takes no memory

    def note(self, answer: GameAnswer) -> None:
        """Count one answer."""
        self.asked += 1
        self.kinds[answer.kind] += 1
        self.statuses[answer.status] += 1
        self.codes[answer.code] += 1
        if self.ids is not None and answer.number is not None:
            self.ids[answer.number] += 1


class Game(GameSchedule):
    """The ids, and what is answered for each. `tally` says what it was asked so far."""

    def __init__(self, rules: GameRules, seed: int, began: float = BEGAN) -> None:
        super().__init__(rules.schedule, seed, began)
        self.rules = rules
        self.tally = GameTally()
        self._weather = GameWeather(rules.weather, Random(f"weather {seed}"), began)
        self._reports = Reports(Random(f"reports {seed}"), rules.raids)
        self._refusals = answers.refusals(rules.weather)
        chance = Random(f"game {seed}")
        self._report_salt, self._other_salt, self._fate_salt = (chance.getrandbits(64) for _ in range(3))

    def __repr__(self) -> str:
        return f"<Game from {self.first}, asked {self.tally.asked} times>"

    def raid(self, number: int) -> bool:
        """Whether the first report under an id is of a raid, if there is one."""
        return self._reports.raid(scatter(number, self._report_salt))

    def whole(self, number: int) -> float:
        """When its report has all that it will ever have, if it exists."""
        return self.visible(number) + (0.0 if self._at_first(number) is Form.WHOLE else self.rules.late_seconds)

    def changes(self, number: int) -> float:
        """When it is replaced by another activity's, if it exists; infinity if never."""
        replaced = self._chance(number, 20) < self.rules.changed
        return self.visible(number) + self.rules.changed_seconds if replaced else inf

    def hidden(self, number: int, now: float) -> bool:
        """Whether it is shown to nobody at `now`, though it may exist."""
        return self.raid(number) and self._weather.hidden(self.born(number), now)

    def ask(self, path: str, now: float) -> GameAnswer:
        """What a GET for the path gets that is sent at `now`."""
        trip = self._weather.meet(now)
        asked = _REPORT.fullmatch(path)
        number = None if asked is None else int(asked[1])
        answer = self._turned_away(path, trip) or self._answer(path, number, now)
        answer = answer.after(self._weather.latency(now, trip), number)
        self.tally.note(answer)
        return answer

    def _turned_away(self, path: str, trip: Trip) -> GameAnswer | None:
        if trip is Trip.REFUSED:
            return self._refusals[self._weather.refusal()]
        if trip is Trip.DISABLED:
            # Whether the API is switched on can be asked while it is not.
            return None if path == SETTINGS else answers.DISABLED
        return {Trip.BAD_GATEWAY: answers.BAD_GATEWAY, Trip.RESET: answers.RESET}.get(trip)

    def _answer(self, path: str, number: int | None, now: float) -> GameAnswer:
        if path == SETTINGS:
            return answers.SETTINGS[not self._weather.disabled(now)]
        if number is None or number > LARGEST_ID:
            return answers.INVALID if path.startswith(REPORT) else answers.NOWHERE
        return self._found(number, now)

    def _found(self, number: int, now: float) -> GameAnswer:
        if not self.exists(number) or self.visible(number) > now:
            return answers.MISSING
        if self._chance(number, 40) < self._weather.troubled(now):
            return answers.TROUBLED
        if self.hidden(number, now):
            return answers.HIDDEN
        return answer_with(GameKind.REPORT, self._report(number, now))

    def _report(self, number: int, now: float) -> bytes:
        if self.rules.changed and self.changes(number) <= now:
            return self._reports.body(number, scatter(number, self._other_salt), self.born(number))
        form = self._at_first(number) if self.rules.late and now < self.whole(number) else Form.WHOLE
        return self._reports.body(number, scatter(number, self._report_salt), self.born(number), form)

    def _at_first(self, number: int) -> Form:
        if self._chance(number, 0) >= self.rules.late:
            return Form.WHOLE
        return Form.BARE if self._chance(number, 44) < 0.5 else Form.THIN

    def _chance(self, number: int, shift: int) -> float:
        """From 0 to below 1, always the same for an id; other bits of it for another shift."""
        return (scatter(number, self._fate_salt) >> shift & 0xFFFFF) / 2**20


def game_upstream(game: Game, clock: Clock) -> OneHost:
    """The game at ORIGIN. Reports say when they were made, so it goes by the clock on the wall."""
    return OneHost(NAME, ORIGIN, lambda path, _headers: game.ask(path, clock.wall()))


class GameServer(OneHostServer):
    """`async with GameServer(game, clock) as server`: the game, at `server.url()`."""

    def __init__(self, game: Game, clock: Clock, *, port: int = 0, patience: float = PATIENCE) -> None:
        super().__init__(game_upstream(game, clock), clock, first_port=port, patience=patience)
        self.game = game

    @property
    def tally(self) -> GameTally:
        """What was asked, also by others who ask the same game."""
        return self.game.tally
