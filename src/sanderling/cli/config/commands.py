"""`sanderling config show`, `sanderling config check` and `sanderling init`: what is set, and a file to set it in."""

import json as jsonlib
import os
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.config.file import (
    NAME,
    NONE,
    VARIABLE,
    ConfigError,
    Configuration,
    EffectiveValue,
    File,
    variables,
)
from sanderling.cli.config.hosts import as_tables as host_tables
from sanderling.cli.config.limits import as_tables
from sanderling.cli.config.settings import (
    FOR_TESTS,
    HOME,
    OTHERS,
    PREFIX,
    TOP,
    FlagSetting,
    KnownSettings,
    Table,
    known,
    variable,
)
from sanderling.cli.config.template import template, toml
from sanderling.cli.config.tokens import checked
from sanderling.cli.replaced import old_variables
from sanderling.redact import HIDDEN, is_secret, is_secret_parameter, redact, redact_url
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new
from sanderling.words import count, printable

_PAIR = re.compile(r"([^:=]+)(=|:(?!//)).*", re.DOTALL)  # a header, or KEY=VALUE

Home = Annotated[str | None, Parameter(help="The folder for all that is kept on this machine; by default this one.")]
Config = Annotated[str | None, Parameter(help=f"The file; by default {NAME}, here or in the home.")]


def show(
    *command: Annotated[str, Parameter(help="A command, or a group of them; by default all.")],
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object, and nothing else.")] = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Say what holds, and where it is from."""
    configuration, tables = checked(config, home), _tables(command)
    if json:
        print(jsonlib.dumps(_document(configuration, tables)))
        return
    print(f"# {printable(configuration.file.name) or 'no file'}")
    for table in tables:
        rows = list(_rows(configuration, table, alone=bool(command)))
        if rows:
            print(f"\n[{'.'.join(table)}]" if table else "")
        for setting, found in rows:
            print(_line(setting, found))
    for line in _of_hosts(configuration.file) if not command else ():
        print(printable(line) if line else "")


def _of_hosts(file: File) -> Iterator[str]:
    """What hosts share and what is set for them, as lines of a file."""
    limits = {} if file.limits is None else as_tables(file.limits)
    for title, said in (limits | host_tables(file.hosts or {})).items():
        yield ""
        yield f"[{title}]"
        for key, value in said.items():
            yield f"{toml(key) if title == 'limits.cost' else key} = {toml(value)}"


def _tables(command: tuple[str, ...]) -> list[Table]:
    """What was asked for: a table and those below it."""
    words = tuple(word for each in command for word in each.split())
    tables = [table for table in known().tables if table[: len(words)] == words]
    if not tables:
        near = get_close_matches(" ".join(words), [" ".join(table) for table in known().tables], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise CommandError(printable(f"there is no command {' '.join(words)[:80]} with settings{hint}"), code=2)
    return tables


def _rows(configuration: Configuration, table: Table, *, alone: bool) -> Iterator[tuple[FlagSetting, EffectiveValue]]:
    """What holds in a table. Unless it is `alone`, without what a table above has said already."""
    all_known = known()
    if alone:
        for setting in all_known.commands.get(table, {}).values():
            yield setting, configuration.effective(table, setting)
        return
    for setting in all_known.placed(table).values():
        yield setting, configuration.effective(table, setting)
    for key, setting in all_known.commands.get(table, {}).items():
        place, found = all_known.place(table, key), configuration.effective(table, setting)
        if place != table and found != configuration.effective(place, setting):
            yield setting, found


def _line(setting: FlagSetting, found: EffectiveValue) -> str:
    value = _hidden(setting, found)
    said = setting.name if value is None else f"{setting.name} = {toml(value)}"
    return f"{printable(said):<50} # {printable(found.origin)}{': not set' if value is None else ''}"


def _hidden(setting: FlagSetting, found: EffectiveValue) -> object:
    """A value as it may be shown, in its own type."""
    value = found.value
    if found.is_text:
        try:
            value = setting.read(str(value))
        except ValueError as error:
            raise CommandError(f"{found.origin}: {error}", code=2) from None
    if value is not None and is_secret(setting.name):
        return HIDDEN
    if isinstance(value, list | tuple):
        return [_without_secret(each) for each in value]
    return _without_secret(value)


def _without_secret(value: object) -> object:
    if not isinstance(value, str):
        return value
    if (pair := _PAIR.fullmatch(value)) and (is_secret(pair[1]) or (pair[2] == "=" and is_secret_parameter(pair[1]))):
        return f"{pair[1]}{pair[2]} {HIDDEN}" if pair[2] == ":" else f"{pair[1]}={HIDDEN}"
    return redact_url(value) if "://" in value else redact(value)


def _document(configuration: Configuration, tables: list[Table]) -> dict[str, object]:
    """All of it, for programs: of each command whatever holds for it."""
    home = configuration.effective(TOP, HOME)
    return {
        "file": configuration.file.name or None,
        "home": {"value": home.value, "from": home.origin},
        "tables": {
            ".".join(table): {
                setting.name: {"value": _hidden(setting, found), "from": found.origin}
                for setting, found in _rows(configuration, table, alone=True)
            }
            for table in tables
            if table in known().commands
        },
        "limits": None if configuration.file.limits is None else as_tables(configuration.file.limits),
        "hosts": None if configuration.file.hosts is None else host_tables(configuration.file.hosts),
    }


def check(*, home: Home = None, config: Config = None) -> None:
    """Say all that is wrong, or that nothing is."""
    try:
        configuration = Configuration.load(config, home)
    except ConfigError as error:
        raise CommandError(printable(str(error)), code=2) from None
    problems = [*configuration.file.problems, *configuration.wrong_variables()]
    for note in _strangers(configuration, known()):
        print(f"note: {note}", file=sys.stderr)
    if problems:
        raise CommandError("\n".join(printable(problem) for problem in problems), code=2)
    name = configuration.file.name
    setting = [each for each in variables(known()) if configuration.environment.get(each)]
    limits = configuration.file.limits
    also = "" if limits is None else f", {count(len(limits.shared) + len(limits.costs), 'limit')}"
    also += f", {count(len(configuration.file.hosts), 'pattern')} of hosts" if configuration.file.hosts else ""
    said = f"{name}: {count(len(configuration.file.values), 'setting')}{also}" if name else f"no {NAME}: 0 settings"
    print(printable(f"{said}, and {len(setting)} in the environment; all well"))


def _strangers(configuration: Configuration, all_known: KnownSettings) -> Iterator[str]:
    """Variables that look like settings and are none. They are no error: they may be somebody else's."""
    names = variables(all_known)
    for name in sorted(configuration.environment):
        if (
            name.startswith(f"{PREFIX}_")
            and name not in names
            and name not in OTHERS
            and not name.startswith(FOR_TESTS)
            and not any(old_variables({name: "set"}))
        ):
            near = get_close_matches(name, names, 1, cutoff=0.8)
            yield printable(f"{name} sets nothing" + (f"; did you mean {near[0]}?" if near else ""))


def init(
    *,
    home: Home = None,
    config: Config = None,
    force: Annotated[bool, Parameter(negative=(), help="Write it even if there is one already.")] = False,
) -> None:
    """Write a file with every setting commented out."""
    path = _to_write(home, config)
    if os.path.lexists(path) and not force:
        raise CommandError(f"{path} is there already, and is left as it is; --force writes it anew", code=2)
    text = template(known())
    try:
        with plainly(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, [text.encode()])
            sync_folder(path.parent)
    except FolderError as error:
        raise CommandError(printable(str(error))) from None
    settings = sum(len(known().placed(table)) for table in known().tables)
    print(printable(f"{path}: {count(settings, 'setting')}, all commented out"))


def _to_write(home: str | None, config: str | None) -> Path:
    named = config if config is not None else os.environ.get(VARIABLE)
    if config in ("", NONE):
        raise CommandError(
            f"--config {NONE} says that no file is wanted; expected one to write, or no --config", code=2
        )
    if named not in (None, "", NONE):
        return Path(str(named))
    folder = home or os.environ.get(variable(TOP, HOME.name)) or "."
    return Path(folder).expanduser() / NAME
