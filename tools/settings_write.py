"""Write `settings_known.json` from the flags of all commands: `python tools/settings_write.py`.

It imports every command, which takes seconds; that is why the result is kept.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from cyclopts import App, Argument
from cyclopts.validators import Number

from sanderling.cli import app
from sanderling.cli.config.settings import FILE, FlagSetting, Table, is_setting
from sanderling.cli.everywhere import ABOUT, FLAGS

SIGNS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
KINDS: dict[object, str] = {bool: "flag", int: "int", float: "float", str: "text", Path: "path"}


def commands(group: App = app, above: Table = ()) -> Iterator[tuple[Table, App]]:
    """All commands that may be configured, with the tables that they are."""
    for name in group:
        if name.startswith("-") or (not above and name in ABOUT):
            continue
        if group[name].default_command is None:
            yield from commands(group[name], (*above, name))
        else:
            yield (*above, name), group[name]


def settings(command: App) -> dict[str, FlagSetting]:
    """The flags of a command, by name."""
    arguments = command.assemble_argument_collection(parse_docstring=True)
    flags = [each for each in arguments if each.name.startswith("--") and each.name not in FLAGS and not each.children]
    return {flag.name.removeprefix("--"): _setting(flag) for flag in flags}


def _setting(flag: Argument) -> FlagSetting:
    hint, many = _plain(flag.hint)
    default = ... if flag.required else flag.field_info.default
    lines = (flag.parameter.help or "").split()
    return FlagSetting(
        flag.name.removeprefix("--"),
        KINDS.get(hint, "choice"),
        str(default) if isinstance(default, Path) else default,
        tuple(_bounds(flag)),
        tuple(flag.get_choices(force=True) or ()),
        many,
        tuple(flag.parameter.env_var or ()),
        " ".join(lines),
    )


def _plain(hint: Any) -> tuple[object, bool]:  # noqa: ANN401 - what an annotation is
    """A type without None and without the tuple around it; and whether there was one."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True
    return (Literal if get_origin(hint) is Literal else hint), False


def _bounds(flag: Argument) -> Iterator[tuple[str, float]]:
    for validator in cast("tuple[object, ...]", flag.parameter.validator):
        if not isinstance(validator, Number) or validator.modulo is not None:
            raise TypeError(f"{flag.name} has a validator that settings do not know: {validator}")
        for name, sign in SIGNS.items():
            bound = getattr(validator, name)
            if bound is not None:
                yield sign, int(bound) if bound == int(bound) else bound


def written() -> str:
    """The file as it should be."""
    names: dict[FlagSetting, str] = {}
    using: dict[str, str] = {}
    for table, command in sorted(commands()):
        taken = [setting for key, setting in sorted(settings(command).items()) if is_setting(table, key)]
        using[".".join(table)] = " ".join(names.setdefault(setting, _name(setting, names)) for setting in taken)
    known = {name: _fields(setting) for setting, name in sorted(names.items(), key=lambda pair: pair[1])}
    lines = (f"    {json.dumps(name)}: {json.dumps(fields, ensure_ascii=False)}" for name, fields in known.items())
    listed = ",\n".join(lines)
    return f'{{\n  "settings": {{\n{listed}\n  }},\n  "commands": {json.dumps(using, indent=4)}\n}}\n'


def _name(setting: FlagSetting, names: dict[FlagSetting, str]) -> str:
    """Its own name, with a number where others have it too and are not the same."""
    others = sum(each.name == setting.name for each in names)
    return f"{setting.name}/{others + 1}" if others else setting.name


def _fields(setting: FlagSetting) -> dict[str, object]:
    """What there is to say of a setting, without what is usual."""
    fields = {name: value for name, value in asdict(setting).items() if name != "name" and value not in ((), False)}
    if setting.default is ...:
        del fields["default"]
    elif setting.default is False or setting.default == ():
        fields["default"] = setting.default
    return fields


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
    print(f"{FILE.name}: {len(written().splitlines())} lines", file=sys.stderr)
