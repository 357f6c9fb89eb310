"""The file that `sanderling init` writes: every setting with its meaning and its default, all commented out.

A line of prose begins with `# `, a setting with `#`: without that it is in force.
"""

import json
from collections.abc import Iterator

from sanderling.cli.config.hosts import EXAMPLE as HOSTS
from sanderling.cli.config.limits import EXAMPLE
from sanderling.cli.config.settings import TOP, FlagSetting, KnownSettings, Table, variable

HEAD = """\
# Settings of sanderling. Take away the # before a line to set it.
#
# A table is called as its command is, and a setting as the flag. What is set for a group, as in [events], holds for all
# of its commands that have such a flag, and what is set for one command counts for more. A flag that is typed counts
# most, then a variable of the environment: {example} is what [{table}] has as {key}.
#
# sanderling config check says whether all is well, sanderling config show what holds and why.
"""
COMMAND, KEY = ("events", "consume"), "batches"
TAIL = """
# What hosts share, what requests cost and what is set for some hosts is in tables that are no command's, and holds for
# all that ask hosts:
#
"""


def template(all_known: KnownSettings) -> str:
    """The text of the file."""
    head = HEAD.format(example=variable(COMMAND, KEY), table=".".join(COMMAND), key=KEY)
    limits = "".join(f"#     {line}\n" if line else "#\n" for line in f"{EXAMPLE}\n{HOSTS}".splitlines())
    return (
        head + "".join(f"{line}\n" for table in all_known.tables for line in _lines(all_known, table)) + TAIL + limits
    )


def _lines(all_known: KnownSettings, table: Table) -> Iterator[str]:
    if table != TOP:
        yield ""
        yield f"# {'sanderling ' + ' '.join(table)}{'' if table in all_known.commands else ': what its commands share'}"
        yield f"[{'.'.join(table)}]"
    for key, setting in all_known.placed(table).items():
        yield ""
        yield f"# {setting.help}{_by_default(setting)}"
        yield f"#{key} = {toml(_example(setting))}"


def _by_default(setting: FlagSetting) -> str:
    if setting.default is ...:
        return " It has to be given."
    return " Not set by default; for example:" if setting.default is None else ""


def _example(setting: FlagSetting) -> object:
    """The default, or where there is none something that could stand there."""
    if setting.default is not None and setting.default is not ...:
        return setting.default
    match setting.kind:
        case "flag":
            return True
        case "int" | "float":
            least = max((bound for sign, bound in setting.bounds if sign in (">=", ">")), default=0)
            return least + 1 if setting.kind == "int" else float(least + 1)
        case "choice":
            return setting.choices[0]
        case "path":
            return f"path/to/{setting.name.removesuffix('-file')}"
    return setting.name


def toml(value: object) -> str:
    """A value as TOML has it."""
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(toml(each) for each in value)}]"
        case str():
            # A string of JSON is one of TOML, but for DEL, which has to be escaped there.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
