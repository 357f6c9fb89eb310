"""What may be set: every flag of every command, in a table that is called as the command is.

    [events]            what commands of `events` share
    [events.consume]    what only this one has, or has otherwise

Which there are is in `settings_known.json`, so that a file can be checked without importing every command;
`tools/settings_write.py` writes it.
"""

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Table = tuple[str, ...]

FILE = Path(__file__).with_name("settings_known.json")
TOP: Table = ()
PREFIX = "SANDERLING"
# What the top of a file has besides `home`: what every command that runs for a while shares.
SHARED = ("log-format", "log-level", "metrics-bind", "metrics-port")
# Commands that are called for one answer: nothing is set for them, but for what all share.
CALLS = frozenset(
    {"completion", "control", "dead", "demo", "doctor", "export", "show", "status", "top", "verify", "why", "world"}
)
# Flags that say what is wanted of this one call: to set them for every call would make no sense.
ONCE = frozenset(
    (
        *("all", "again", "did", "drain", "dry-run", "from", "force", "json", "limit", "now", "once"),
        *("cut-off", "reason", "resume", "retry", "target", "try", "until-empty", "verify", "yes"),
        *(f"polling.set.{key}" for key in ("for", "interval", "pause", "priority")),
        *(f"polling.targets.{key}" for key in ("due", "event", "gone", "kind", "live", "paused")),
        *(f"events.mode.{key}" for key in ("canary", "inline", "legacy", "new")),
        *(f"events.publish.{key}" for key in ("brand", "job", "keyword", "platform", "project", "task-type")),
        *(
            "forget.database",
            "forget.export",
            "forget.older-than",
            "forget.redis-address",
            "events.replay.job",
            "events.replay.project",
            "events.replay.to",
        ),
        *("polling.settings.default", "repos.directory.plc", "repos.directory.relay"),
        *("sequence.missed.export.ranges", "sequence.missed.retry.every"),
        *("sequence.missed.retry.to", "repos.get.leave-out", "repos.get.plc", "repos.get.resolver", "repos.get.out"),
    )
)
# Variables of ours that set something else, some of it in tests and benchmarks.
OTHERS = frozenset(
    f"{PREFIX}_{name}"
    for name in (
        *("CONFIG", "DISCORD_WEBHOOK", "PEERS", "POLLING_WEBHOOK", "POLLING_WEBHOOK_SECRET", "PROMETHEUS_TOKEN"),
        *("PURE", "SOAK", "TOKEN"),
    )
)
FOR_TESTS = f"{PREFIX}_TEST_"

_WORDS = {"flag": "true or false", "int": "a whole number", "float": "a number", "text": "text in quotes"}
_WORDS |= {"path": "a path in quotes"}
_LEAST = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_TRUE, _FALSE = ("1", "t", "true", "y", "yes"), ("0", "f", "false", "n", "no")


@dataclass(frozen=True, slots=True)
class FlagSetting:
    """One flag: what it may be set to, and what it is otherwise."""

    name: str
    kind: str  # flag, int, float, text, path or choice
    default: object  # None if it is not set, ... if it has to be
    bounds: tuple[tuple[str, float], ...] = ()
    choices: tuple[str, ...] = ()
    many: bool = False
    variables: tuple[str, ...] = ()  # that set it besides those named after the table
    help: str = ""

    @property
    def expected(self) -> str:
        """What it may be set to, in words."""
        one = _WORDS.get(self.kind) or "one of " + ", ".join(f'"{choice}"' for choice in self.choices)
        bounds = " and ".join(f"{_LEAST[sign]} {bound}" for sign, bound in self.bounds)
        said = f"{one}, {bounds}" if bounds else one
        return f"a list in brackets, each of it {said}" if self.many else said

    def wrong(self, value: object) -> str:
        """What is wrong with a value, in words; empty if nothing is."""
        if self.many and isinstance(value, list):
            wrong = next((each for each in value if not self._fits(each)), None)
            found = "" if wrong is None else f"a list with {found_words(wrong, shown=self.kind == 'choice')} in it"
        else:
            found = "" if self._fits(value) and not self.many else found_words(value, shown=self.kind == "choice")
        return found and f"found {found}, expected {self.expected}"

    def _fits(self, value: object) -> bool:
        match self.kind:
            case "flag":
                return isinstance(value, bool)
            case "int":
                return isinstance(value, int) and not isinstance(value, bool) and self._within(value)
            case "float":
                return isinstance(value, int | float) and not isinstance(value, bool) and self._within(value)
            case "choice":
                return isinstance(value, str) and value in self.choices
            case "path":
                return isinstance(value, str) and value != "" and "\0" not in value
        return isinstance(value, str) and "\0" not in value

    def _within(self, number: float) -> bool:
        for sign, bound in self.bounds:
            fits = {">=": number >= bound, ">": number > bound, "<=": number <= bound, "<": number < bound}
            if not fits[sign]:
                return False
        # Not what is no number, nor what no machine can hold.
        return number in (float("inf"), float("-inf")) or abs(number) < 1e308

    def read(self, text: str) -> object:
        """The value that a variable of the environment stands for. Raises ValueError."""
        between = os.pathsep if self.kind == "path" else None
        value = [self._one(each) for each in text.split(between)] if self.many else self._one(text)
        if wrong := self.wrong(value):
            raise ValueError(wrong)
        return value

    def _one(self, text: str) -> object:
        if self.kind == "flag" and text.lower() in (*_TRUE, *_FALSE):
            return text.lower() in _TRUE
        if self.kind in ("int", "float"):
            try:
                return int(text) if self.kind == "int" else float(text)
            except ValueError:
                return text
        return text


def found_words(value: object, *, shown: bool = False) -> str:
    """What was found instead. Text is shown only where it cannot be a secret."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)[:40]
        case str():
            return f'"{value[:40]}"' if shown and value.isprintable() and "://" not in value else "text"
        case list():
            return "a list"
        case dict():
            return "a table"
    return "a date or a time"


HOME = FlagSetting(
    "home", "path", None, help="The folder for all that is kept on this machine, unless a flag says where."
)


def variable(table: Table, key: str) -> str:
    """The variable of the environment for a key of a table."""
    return "_".join((PREFIX, *table, key)).replace("-", "_").upper()


def is_setting(command: Table, key: str) -> bool:
    """Whether a flag of a command may be set, or is for one call only."""
    once = key in ONCE or ".".join((*command, key)) in ONCE
    return key in SHARED or (command[0] not in CALLS and not once)


class KnownSettings:
    """All settings, by table."""

    def __init__(self, commands: Mapping[Table, Mapping[str, FlagSetting]]) -> None:
        self.commands = commands
        self.tables: dict[Table, None] = {TOP: None}
        self._below: dict[Table, list[Table]] = defaultdict(list)
        self._settings: dict[Table, dict[str, tuple[FlagSetting, ...]]] = {}
        for command in commands:
            for depth in range(1, len(command) + 1):
                self.tables.setdefault(command[:depth])
            for depth in range(len(command)):
                self._below[command[:depth]].append(command)

    def below(self, table: Table) -> list[Table]:
        """The commands that a table holds for; a command holds for itself."""
        return [table] if table in self.commands else self._below[table]

    def settings(self, table: Table) -> dict[str, tuple[FlagSetting, ...]]:
        """What a table may have: for each key, all that it sets at once.

        A name that is a command is that command's table, and nothing else.
        """
        if table in self._settings:
            return self._settings[table]
        found: dict[str, dict[FlagSetting, None]] = defaultdict(dict)
        for command in self.below(table):
            for key, setting in self.commands[command].items():
                if (table != TOP or key in SHARED) and (*table, key) not in self.tables:
                    found[key][setting] = None
        top = {HOME.name: (HOME,)} if table == TOP else {}
        self._settings[table] = top | {key: tuple(settings) for key, settings in found.items()}
        return self._settings[table]

    def place(self, command: Table, key: str) -> Table:
        """Where a setting of a command is best set: the highest table below which it is the same for all who have it.

        What nobody shares is best set for the command alone.
        """
        for depth in range(len(command)):
            table = command[:depth]
            shared = sum(key in self.commands[other] for other in self._below[table]) > 1
            if shared and len(self.settings(table).get(key, ())) == 1:
                return table
        return command

    def placed(self, table: Table) -> dict[str, FlagSetting]:
        """What is best set there."""
        found = {HOME.name: HOME} if table == TOP else {}
        for command in self.below(table):
            for key, setting in self.commands[command].items():
                if key not in found and self.place(command, key) == table:
                    found[key] = setting
        return found


@cache
def known() -> KnownSettings:
    """All settings that there are."""
    document = json.loads(FILE.read_bytes())
    made = {name: _read_setting(name, fields) for name, fields in document["settings"].items()}
    return KnownSettings(
        {
            tuple(command.split(".")): {made[name].name: made[name] for name in names.split()}
            for command, names in document["commands"].items()
        }
    )


def _read_setting(name: str, fields: Mapping[str, Any]) -> FlagSetting:
    default = fields.get("default", ...)
    return FlagSetting(
        name=name.partition("/")[0],
        kind=fields["kind"],
        default=tuple(default) if isinstance(default, list) else default,
        bounds=tuple((sign, bound) for sign, bound in fields.get("bounds", ())),
        choices=tuple(fields.get("choices", ())),
        many=fields.get("many", False),
        variables=tuple(fields.get("variables", ())),
        help=fields["help"],
    )
