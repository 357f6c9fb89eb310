"""Each option's value and where it is from: the flag, a variable, the file, or the default, in this order."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sanderling.cli.commands import all_commands
from sanderling.cli.context import Context
from sanderling.cli.parse import Typed
from sanderling.files import FolderError, read_small
from sanderling.options import PREFIX, Document, Option, OptionError, Options, match_keys, nearest, option
from sanderling.systems import Command, load_name

T = TypeVar("T", bound=Options)

FILE = "sanderling.toml"
DEFAULT = "default"


class ShellOptions(Options, title="Every command"):
    """Options of every command, which are for the shell alone."""

    config: Path | None = option(
        None, f"The file of configuration; by default {FILE} here, if there is one.", variable=f"{PREFIX}_CONFIG"
    )
    help: bool = option(default=False, help="Show this text.")


@dataclass(frozen=True, slots=True)
class Setting:
    """An option with its checked value and its origin."""

    option: Option
    value: object
    origin: str


def resolve(kind: type[Options], typed: Mapping[str, Typed], context: Context, document: Document) -> list[Setting]:
    """All options of a class, checked. Raises OptionError."""
    found = []
    for name, each in kind.fields.items():
        if name in typed:
            given = typed[name]
            found.append(Setting(each, each.read(given.raw, given.origin, typed=True), given.origin))
        else:
            found.append(
                _from_environment(each, kind, context.environment)
                or _from_document(each, kind, document)
                or Setting(each, each.default, DEFAULT)
            )
    return found


def build(kind: type[T], settings: Iterable[Setting]) -> T:
    """The options themselves; what is missing or does not go together is an OptionError."""
    return kind(**{each.option.name: each.value for each in settings if each.origin != DEFAULT})


def _from_environment(each: Option, kind: type[Options], environment: Mapping[str, str]) -> Setting | None:
    for names in each.variables(kind.table):
        present = [name for name in names if name in environment]
        if len(present) > 1:
            raise OptionError(f"{present[0]} and {present[1]} are the same option; unset one of them")
        if present:
            text = environment[present[0]]
            raw = text.split() if each.shape else text
            return Setting(each, each.read(raw, present[0], typed=True), present[0])
    return None


def _from_document(each: Option, kind: type[Options], document: Document) -> Setting | None:
    for table in each.tables(kind.table):
        content = document.get(table, {}) if table else document
        key = next((key for key in content if key.replace("_", "-") == each.key), None)
        if key is not None:
            origin = _origin(each, table, key)
            return Setting(each, each.read(content[key], origin), origin)
    return None


def _origin(each: Option, table: str, key: str) -> str:
    if each.is_table:
        return f"{FILE} [{table}.{key}]" if table else f"{FILE} [{key}]"
    return f"{FILE} [{table}] {key}" if table else f"{FILE} {key}"


def read_document(typed: Mapping[str, Typed], context: Context) -> Document:
    """What the file of configuration says, each table of it checked, whichever command runs."""
    shell = resolve(ShellOptions, {name: each for name, each in typed.items() if name == "config"}, context, {})
    named = next(each.value for each in shell if each.option.name == "config")
    path = context.folder / named if isinstance(named, Path) else context.folder / FILE
    if not named and not path.exists():
        return {}
    try:
        document = tomllib.loads(read_small(path).decode())
    except UnicodeDecodeError:
        raise FolderError(f"{path} is no text in UTF-8", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise FolderError(f"{path} is not TOML: {error}", "see https://toml.io for how values are written") from None
    if document:
        check_document(document, all_options(all_commands(context.systems)))
    return document


def all_options(commands: Iterable[Command]) -> list[type[Options]]:
    """The options of all commands."""
    return [load_name(command.options) for command in commands]


def check_document(document: Document, kinds: Iterable[type[Options]]) -> None:
    """Raise OptionError for a table, key or value that no command would accept."""
    tables: dict[str, dict[str, Option]] = {"": {}}
    for kind in kinds:
        for each in kind.fields.values():
            for table in each.tables(kind.table):
                tables.setdefault(table, {})[each.name] = each
    top = tables.pop("")
    own = {key: raw for key, raw in document.items() if not (key in tables and isinstance(raw, Mapping))}
    keys = {each.key for each in top.values()}
    for key, raw in own.items():
        if key.replace("_", "-") not in keys:
            what = f"table [{key[:60]}]" if isinstance(raw, Mapping) else f"key {key[:60]}"
            raise OptionError(f"{FILE} has no {what}{nearest(key.replace('_', '-'), [*keys, *tables])}")
    _check_table(own, top, "")
    for table, options in tables.items():
        if table in document:
            _check_table(document[table], options, table)


def _check_table(content: Mapping[str, Any], options: Mapping[str, Option], table: str) -> None:
    for name, (key, raw) in match_keys(content, options.values(), f"{FILE} [{table}]" if table else FILE).items():
        options[name].read(raw, _origin(options[name], table, key))


def doubtful_variables(kind: type[Options], context: Context) -> list[str]:
    """A sentence for each variable that looks like one of ours and is none."""
    from difflib import get_close_matches  # noqa: PLC0415 - 6 ms, and only where there are unknown names

    ours = {name for name in context.environment if name.startswith(f"{PREFIX}_")} - _variables([kind, ShellOptions])
    known = _variables([*all_options(all_commands(context.systems)), ShellOptions]) if ours else set()
    # All names begin alike, and people may keep secrets of their own under such names.
    close = {name: get_close_matches(name, known, 1, cutoff=0.85) for name in sorted(ours - known)}
    return [f"the variable {name} is no option; did you mean {meant[0]}?" for name, meant in close.items() if meant]


def _variables(kinds: Iterable[type[Options]]) -> set[str]:
    every = [names for kind in kinds for each in kind.fields.values() for names in each.variables(kind.table)]
    return {name for names in every for name in names}
