"""What is set where: a file, the environment, and which of them counts.

    flags > environment > file > default, and within each the most specific table

Nothing here knows the command line. A file is read as a whole and checked as a whole, whichever command runs: a slip in
a table that is needed next month is found today.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sanderling.cli.config.lines import TomlLines
from sanderling.cli.config.settings import (
    HOME,
    ONCE,
    SHARED,
    TOP,
    FlagSetting,
    KnownSettings,
    Table,
    found_words,
    known,
    variable,
)
from sanderling.cli.replaced import old_command, old_flag, old_variables

if TYPE_CHECKING:
    from sanderling.cli.config.limits import SharedLimits
    from sanderling.crawls.session import HostPatterns

NAME = "sanderling.toml"
VARIABLE = "SANDERLING_CONFIG"
NONE = "none"  # instead of a file: that there is none
CLOSE = 0.75  # how alike a slip of the finger is to what was meant; what is less so may be right elsewhere
LIMITS: Table = ("limits",)  # tables of no command: what hosts share
# What the file of this call says of them; the command that is called then asks for it.
limits_in_force: ContextVar["SharedLimits | None"] = ContextVar("limits", default=None)
HOSTS: Table = ("hosts",)  # and what is set for hosts by pattern
hosts_in_force: ContextVar["HostPatterns | None"] = ContextVar("hosts", default=None)
LARGEST = 1 << 20  # bytes; what people write by hand has some thousand
PAGES = "pages"  # the folder of a crawl of pages in a home; without one it has to be named
IN_PAGES = {("pages.crawl", "out"), ("pages.failed", "FOLDER"), ("why", "out")}

# `tomllib` takes time by the square of the names in one key, and nothing of ours has more than four.
_TOO_DEEP = re.compile(
    r"""^[ \t]*(?:\[{1,2}[ \t]*)?(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){16}""", re.MULTILINE
)
_POSITION = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


class ConfigError(Exception):
    """A file that is not as it should be, in words: what, where, and what was expected."""


class Value(NamedTuple):
    """What a file says, and in which line."""

    value: object
    line: int


class EffectiveValue(NamedTuple):
    """What holds, and where that is from. What a variable says is text, whatever it stands for."""

    value: object
    origin: str
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was read: what it sets, and what is wrong with it."""

    name: str
    values: Mapping[tuple[Table, str], Value]
    problems: tuple[str, ...] = ()
    limits: "SharedLimits | None" = None  # what hosts share
    hosts: "HostPatterns | None" = None  # what is set for some


NO_FILE = File("", {})


def find(config: str | None, home: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Where the file is; None if there is none, or none is wanted. Raises ConfigError."""
    origin = "--config" if config is not None else VARIABLE
    named = config if config is not None else environment.get(VARIABLE)
    if named is not None:
        if named in ("", NONE):
            return None
        if not os.path.lexists(named):
            raise ConfigError(f"{origin}: there is no {named}; expected a file, or {NONE}")
        return Path(named)
    places = [Path(NAME)] if home is None else [Path(NAME), home / NAME]
    return next((place for place in places if os.path.lexists(place)), None)


def read(path: Path) -> str:
    """The text of a file. Raises ConfigError."""
    try:
        # Without waiting: what is no file could keep us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ConfigError(f"{path}: found something else, expected a file")
            raw = file.read(LARGEST + 1)
    except IsADirectoryError:
        raise ConfigError(f"{path}: found a folder, expected a file") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from None
    if len(raw) > LARGEST:
        raise ConfigError(f"{path}: found more than {LARGEST:,} bytes, expected at most that")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: found a byte that is no UTF-8, expected text in UTF-8") from None


def parse(text: str, name: str, all_known: KnownSettings) -> File:
    """What a text sets. Raises ConfigError if it is no TOML; what else is wrong is in the file."""
    if deep := _TOO_DEEP.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise ConfigError(f"{name}, line {line}: found a key of more than 16 names, expected at most four")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{name}: found brackets in brackets without end, expected a few") from None
    except ValueError as error:  # also for numbers that Python does not read
        raise ConfigError(_no_toml(str(error), text, name)) from None
    return _Check(name, TomlLines(text), all_known).of(document)


def _no_toml(said: str, text: str, name: str) -> str:
    found = _POSITION.fullmatch(said)
    if found is None:
        return f"{name} is no TOML: {said}"
    *before, last = text.split("\n")
    line, column = found[2] or len(before) + 1, found[3] or len(last) + 1
    return f"{name}, line {line}, column {column}: {found[1]}"


class _Check:
    """Compares a document with what is known, and takes down both what it sets and what is wrong."""

    def __init__(self, name: str, lines: TomlLines, all_known: KnownSettings) -> None:
        self._name = name
        self._lines = lines
        self._known = all_known
        self._values: dict[tuple[Table, str], Value] = {}
        self._problems: list[tuple[int, str]] = []
        self._limits: SharedLimits | None = None
        self._hosts: HostPatterns | None = None

    def of(self, document: Mapping[str, object]) -> File:
        self._table(TOP, (), document)
        problems = sorted(self._problems, key=lambda problem: problem[0])
        words = tuple(f"{self._name}, line {line}: {words}" for line, words in problems)
        return File(self._name, self._values, words, self._limits, self._hosts)

    def _table(self, table: Table, written: tuple[str, ...], content: Mapping[str, object]) -> None:
        settings = self._known.settings(table)
        for name, value in content.items():
            key, line = name.replace("_", "-"), self._lines[(*written, name)]
            below = (*table, key)
            if below in self._known.tables:
                if isinstance(value, Mapping):
                    self._table(below, (*written, name), value)
                else:
                    said = f"{_where(table)}{key} is the table of a command"
                    self._wrong(line, f"{said}: found {found_words(value)}, expected [{_dotted(below)}]")
            elif below == LIMITS:
                # Here and not at the top: few files have them, and a limiter comes with them.
                from sanderling.cli.config.limits import read as read_limits  # noqa: PLC0415

                self._limits = read_limits(value, name, self._lines, self._wrong)
            elif below == HOSTS:
                from sanderling.cli.config.hosts import read as read_hosts  # noqa: PLC0415 - the same

                self._hosts = read_hosts(value, name, self._lines, self._wrong)
            elif key in settings:
                self._setting(table, key, Value(value, line), settings[key])
            else:
                self._wrong(line, self._unknown(table, name, value))

    def _setting(self, table: Table, key: str, value: Value, settings: tuple[FlagSetting, ...]) -> None:
        if (table, key) in self._values:
            earlier = self._values[table, key].line
            self._wrong(
                value.line, f"{key} is there twice, with - and with _; expected it once (also in line {earlier})"
            )
        for setting in settings:
            if wrong := setting.wrong(value.value):
                self._wrong(value.line, f"{_where(table)}{key}: {wrong}")
                break
        else:
            self._values[table, key] = value

    def _unknown(self, table: Table, name: str, value: object) -> str:
        """What to say of a name that nothing has: what it may have meant, or where it belongs."""
        key, kind = name.replace("_", "-"), "table" if isinstance(value, Mapping) else "setting"
        shown = name if name.isprintable() and len(name) <= 60 else "of that name"
        said = f"{_titled(table)} has no {kind} {shown}"
        if why := _gone(table, key, kind):
            return f"{said}{why}"
        if kind == "table":
            near = [each[-1] for each in self._known.tables if each[:-1] == table and each]
        else:
            near = list(self._known.settings(table))
        if close := get_close_matches(key, near, 1, CLOSE):
            return f"{said}; did you mean {close[0]}?"
        tables = (TOP, *self._known.commands) if kind == "setting" else ()
        if having := [_titled(each) for each in tables if key in self._known.settings(each)]:
            others = " and others" if len(having) > 3 else ""
            return f"{said}; it belongs to {', '.join(having[:3])}{others}"
        if close := get_close_matches(key, near, 1):
            return f"{said}; did you mean {close[0]}?"
        return f"{said}; expected one of {', '.join(sorted(near)[:40])}" if near else said

    def _wrong(self, line: int, words: str) -> None:
        self._problems.append((line, words))


def _gone(table: Table, key: str, kind: str) -> str:
    """What to say of what an earlier release had there; nothing if it had none."""
    if new := old_flag(table, key):
        return f" any more: it is now {new}"
    if kind == "table":
        new = old_command((*table, key))
        return f" any more: {new}" if new else ""
    once = any(key == each.rpartition(".")[2] for each in ONCE)
    return f": --{key} is for one call, and is no setting" if once else ""


def _dotted(table: Table) -> str:
    return ".".join(table)


def _titled(table: Table) -> str:
    return f"[{_dotted(table)}]" if table else "the top level"


def _where(table: Table) -> str:
    return f"[{_dotted(table)}] " if table else ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file and an environment together: what holds for a command."""

    file: File = NO_FILE
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    given_home: str | None = None  # by a flag

    @classmethod
    def load(cls, config: str | None, home: str | None, environment: Mapping[str, str] = os.environ) -> "Configuration":
        """What there is to be found. Raises ConfigError; what is wrong within a file is in its `problems`."""
        told = home or environment.get(variable(TOP, HOME.name))
        path = find(config, Path(told).expanduser() if told else None, environment)
        file = NO_FILE if path is None else parse(read(path), str(path), known())
        return cls(file, environment, home)

    @property
    def home(self) -> EffectiveValue | None:
        """The folder that holds everything, if one was named."""
        found = self.found(TOP, HOME.name) if self.given_home is None else EffectiveValue(self.given_home, "--home")
        # As a shell would; what is typed comes here without its ~ already.
        return found and EffectiveValue(os.path.expanduser(str(found.value)), found.origin)  # noqa: PTH111 - must not fail

    def found(self, table: Table, key: str, variables: tuple[str, ...] = ()) -> EffectiveValue | None:
        """What is set for a command, or for all in a table; None if nothing is. An empty variable sets nothing."""
        tables = [table[:depth] for depth in range(len(table), -1, -1)]
        for each in tables:
            name = variable(each, key)
            if self.environment.get(name) and (each == table or has(each, key)):
                return EffectiveValue(self.environment[name], name, is_text=True)
        for name in variables:
            if self.environment.get(name):
                return EffectiveValue(self.environment[name], name, is_text=True)
        for each in tables:
            if value := self.file.values.get((each, key)):
                return EffectiveValue(value.value, f"{self.file.name}, line {value.line}")
        return None

    def at_home(self, command: Table, key: str, default: str | None) -> EffectiveValue | None:
        """Where a folder is that nobody has named, if there is a home."""
        home = self.home
        name = PAGES if (_dotted(command), key) in IN_PAGES else default
        if home is None or name is None:
            return None
        return EffectiveValue(str(Path(str(home.value)) / name), "default, in the home")

    def effective(self, command: Table, setting: FlagSetting) -> EffectiveValue:
        """What holds for a command, whoever says so."""
        found = self.home if setting is HOME else self.found(command, setting.name, setting.variables)
        if found is None and setting.kind == "path":
            default = setting.default if isinstance(setting.default, str) else None
            found = self.at_home(command, setting.name, default)
        return found or EffectiveValue(None if setting.default is ... else setting.default, "default")

    def wrong_variables(self) -> Iterator[str]:
        """What is wrong with variables of the environment that set something."""
        for name, settings in variables(known()).items():
            text = self.environment.get(name)
            for setting in settings if text else ():
                try:
                    setting.read(text or "")
                except ValueError as error:
                    yield f"{name}: {error}"
                    break
        yield from old_variables(self.environment)


def has(table: Table, key: str) -> bool:
    """Whether a table may have that key. At the top few may, and these are asked for often."""
    return key in (*SHARED, HOME.name) if table == TOP else key in known().settings(table)


def variables(all_known: KnownSettings) -> dict[str, tuple[FlagSetting, ...]]:
    """Every variable that sets something, and what it sets."""
    found: dict[str, tuple[FlagSetting, ...]] = {}
    for table in all_known.tables:
        for key, settings in all_known.settings(table).items():
            found[variable(table, key)] = settings
    for command in all_known.commands.values():
        for setting in command.values():
            found |= {name: (setting,) for name in setting.variables if name not in found}
    return found
