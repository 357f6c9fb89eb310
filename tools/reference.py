"""Write docs/reference from the code: every command with its flags, and every setting by table.

Usage: reference.py [--check]. With --check nothing is written, and what differs is an error.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from cyclopts import App, Argument
from settings_write import settings

from sanderling.cli import app
from sanderling.cli.config.settings import FlagSetting, Table, known, variable

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
GENERATED = "<!-- Written by tools/reference.py (`make reference`); not to be edited. -->\n"

CLI_HEAD = f"""{GENERATED}
# Commands

All that `sanderling` can do, as `--help` says it. Data goes to stdout; logs, progress and errors go to stderr.

Every command also takes `--home FOLDER`, which holds all that it keeps on this machine, and `--config FILE`, which
[sets flags](../configuration.md); and each flag can be [set in that file or in the environment](settings.md). A flag
that takes nothing is switched off with `--no-`, as in `--no-parquet`.

Exit codes, where a command does not say more: 0 all went well, 1 it failed, 2 it was not called as it should be, 130
Ctrl-C.
"""

SETTINGS_HEAD = f"""{GENERATED}
# Settings

Every setting of `sanderling.toml`, by the table in which it is best set: the highest below which it is the same for all
commands that have it. Each may also be in the table of a command, which counts for more. How files and variables are
read is in [configuration](../configuration.md), and so is [what hosts share](../configuration.md#what-hosts-share), the
tables below `[limits]`; what a setting does in full is in the manual of its system.
"""


def main() -> None:
    """Write the pages, or compare them."""
    stale = [name for name, page in PAGES.items() if not _same(FOLDER / name, page())]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"reference: docs/reference/{', '.join(stale)} is not what the code says; run make reference")
        return
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"docs/reference/{name} is written anew", file=sys.stderr)


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def cli_page() -> str:
    """The reference of commands."""
    parts = [CLI_HEAD, _table(("command", "what it does"), list(_overview()))]
    for name in app:
        if not name.startswith("-"):
            parts.extend(_sections((name,), app[name]))
    return "\n".join(parts)


def commands() -> Iterator[tuple[Table, App]]:
    """All commands that can be run, with their names."""
    for name in app:
        if not name.startswith("-"):
            yield from _below((name,), app[name])


def _below(name: Table, command: App) -> Iterator[tuple[Table, App]]:
    if command.default_command is not None:
        yield name, command
        return
    for each in command:
        if not each.startswith("-"):
            yield from _below((*name, each), command[each])


def _overview() -> Iterator[tuple[str, ...]]:
    for name, command in commands():
        title = " ".join(name)
        yield f"[`{title}`](#sanderling-{'-'.join(name)})", plain(_paragraphs(command)[0])


def _sections(name: Table, command: App) -> Iterator[str]:
    """The section of a command, or those of all in a group."""
    title = " ".join(("sanderling", *name))
    yield f"{'#' * min(len(name) + 1, 4)} {title}\n"
    if command.default_command is not None:
        yield from _command(title, command)
        return
    yield from (plain(each) + "\n" for each in _paragraphs(command))
    for each in command:
        if not each.startswith("-"):
            yield from _sections((*name, each), command[each])


def _command(title: str, command: App) -> Iterator[str]:
    arguments = [each for each in command.assemble_argument_collection(parse_docstring=True) if not each.children]
    typed = {each.name.removeprefix("--") for each in arguments if each.show}
    flags = {key: each for key, each in settings(command).items() if key in typed}
    places = [each for each in arguments if not each.name.startswith("--")]
    yield f"```text\n{' '.join((title, *map(_place, places), *(('[FLAGS]',) if flags else ())))}\n```\n"
    yield from (plain(each) + "\n" for each in _paragraphs(command))
    if places:
        yield _table(("argument", "what it is"), [(f"`{each.name}`", _meaning(each)) for each in places])
    if flags:
        names = {each.name: spellings(each) for each in arguments}
        rows = [_flag(names[f"--{each.name}"], each) for each in flags.values()]
        yield _table(("flag", "takes", "default", "what it does"), rows)
    head, lines = _example(title, command)
    yield f"{plain(head)}\n\n```sh\n{lines}\n```\n"


def _place(argument: Argument) -> str:
    many = "..." if argument.field_info.kind is inspect.Parameter.VAR_POSITIONAL else ""
    return f"{argument.name}{many}" if argument.required else f"[{argument.name}{many}]"


def _meaning(argument: Argument) -> str:
    return plain(" ".join((argument.parameter.help or "").split()))


def spellings(argument: Argument) -> list[str]:
    """What a flag is called, without what switches it off."""
    others = (each for each in argument.names if not each.startswith(("--no-", "--empty-")))
    return list(dict.fromkeys((argument.name, *others)))


def _flag(names: list[str], flag: FlagSetting) -> tuple[str, ...]:
    also = f" Also {', '.join(flag.variables)}." if flag.variables else ""
    return ", ".join(f"`{name}`" for name in names), _takes(flag), _default(flag), plain(flag.help + also)


def _takes(setting: FlagSetting) -> str:
    """What may stand behind a flag."""
    words = {"flag": "", "int": "a whole number", "float": "a number", "text": "text", "path": "a path"}
    one = words.get(setting.kind) or ", ".join(f"`{choice}`" for choice in setting.choices)
    signs = {">=": "≥", ">": "more than", "<=": "≤", "<": "less than"}
    bounds = ", ".join(f"{signs[sign]} {bound:,}" for sign, bound in setting.bounds)
    said = ", ".join(part for part in (one, bounds) if part)
    return f"{said}; may be repeated" if setting.many else said


def _default(setting: FlagSetting) -> str:
    match setting.default:
        case _ if setting.default is ...:
            return "has to be given"
        case None | () | "":
            return ""
        case bool():
            return "on" if setting.default else "off"
    return f"`{setting.default}`"


def _paragraphs(command: App) -> list[str]:
    said = command.help() if callable(command.help) else command.help or ""
    return [" ".join(each.split()) for each in str(said).split("\n\n")]


def _example(title: str, command: App) -> tuple[str, str]:
    """What introduces an example, and its lines: of the help, else of the docstring, else the command alone."""
    head, _, lines = str(command.help_epilogue or "").partition("\n\n")
    if lines:
        return head, inspect.cleandoc(lines)
    shown = re.search(r"Example: (sanderling .+)", inspect.getdoc(command.default_command) or "")
    return "Example:", shown[1] if shown else title


def settings_page() -> str:
    """The reference of settings."""
    everything = known()
    parts = [SETTINGS_HEAD]
    for table in sorted(everything.tables):
        placed = everything.placed(table)
        if not placed:
            continue
        parts.append(f"## `[{'.'.join(table)}]`\n" if table else "## At the top level\n")
        rows = [_row(table, each) for _, each in sorted(placed.items())]
        parts.append(_table(("setting", "variable", "takes", "default", "what it does"), rows))
    return "\n".join(parts)


def _row(table: Table, each: FlagSetting) -> tuple[str, ...]:
    default = {"on": "`true`", "off": "`false`"}.get(_default(each), _default(each))
    takes = _takes(each) or "`true` or `false`"
    return f"`{each.name}`", f"`{variable(table, each.name)}`", takes, default, plain(each.help)


def plain(text: str) -> str:
    """A text of the help, so that Markdown makes nothing else of it but for what is between backticks."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(piece if piece[:1] == "`" else re.sub(r"([*_<>\[\]|\\])", r"\\\1", piece) for piece in pieces)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


PAGES: dict[str, Callable[[], str]] = {"cli.md": cli_page, "settings.md": settings_page}

if __name__ == "__main__":
    main()
