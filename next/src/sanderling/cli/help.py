"""Texts of --help, made from the table of commands and from the options."""

import textwrap
from collections.abc import Iterable

from sanderling.cli.commands import GROUPS
from sanderling.cli.resolve import ShellOptions
from sanderling.options import REQUIRED, Option, Options
from sanderling.systems import Command

_COLUMN = 30  # where the help of an option begins


def program_help(commands: Iterable[Command], width: int) -> str:
    """What `sanderling --help` prints."""
    commands = list(commands)
    lines = [
        "Sanderling: a polite, resumable crawler for sites and APIs.",
        "",
        "Usage: sanderling COMMAND … ; sanderling COMMAND --help shows its options.",
    ]
    for group in GROUPS:
        rows = [(command.words, command.help) for command in commands if command.group == group]
        if rows:
            lines += ["", f"{group}:", *_rows(rows, 18, width)]
    rows = [
        ("--version", "Show the version."),
        ("--completion SHELL", "Print a script with which bash, zsh or fish completes commands."),
    ]
    lines += ["", "Options:", *_rows(rows, 20, width)]
    return "\n".join(lines)


def command_help(command: Command, kind: type[Options], width: int) -> str:
    """What a command's --help prints."""
    arguments = [each for each in kind.fields.values() if each.argument]
    usage = " ".join(["sanderling", command.words, *map(_argument, arguments), "[OPTION…]"])
    lines = [*textwrap.wrap(command.help, width), "", f"Usage: {usage}"]
    if command.example:
        lines += ["", f"Example: sanderling {command.example}"]
    if arguments:
        lines += ["", *_rows([(each.argument, _describe(each)) for each in arguments], _COLUMN, width)]
    options = [each for each in {**kind.fields, **ShellOptions.fields}.values() if each.flags]
    for title in dict.fromkeys(each.title for each in options):
        rows = [(_flag(each), _describe(each)) for each in options if each.title == title]
        lines += ["", f"{title or 'Options'}:", *_rows(rows, _COLUMN, width)]
    settable = [each for each in options if each.tables(kind.table)]
    if settable:
        variable, table = settable[0].variables(kind.table)[0][0], settable[0].tables(kind.table)[0]
        key = f"[{table}] {settable[0].key}" if table else settable[0].key
        text = f"Options can also be set by variables, as {variable}, and in sanderling.toml, as {key}."
        lines += ["", *textwrap.wrap(f"{text} See: sanderling config show {command.words}", width)]
    return "\n".join(lines)


def _argument(each: Option) -> str:
    name = f"{each.argument}…" if each.shape else each.argument
    return name if each.default is REQUIRED else f"[{name}]"


def _flag(each: Option) -> str:
    if each.item is bool and not each.shape:
        return f"--[no-]{each.key}" if each.default is True else f"--{each.key}"
    return f"--{each.key} {each.metavar}"


def _describe(each: Option) -> str:
    notes = []
    if each.default not in (None, REQUIRED, "", ()) and each.default != {} and each.item is not bool:
        notes.append(f"default {each.show(each.default)}")
    if len(each.flags) > 1:
        notes.append(f"also --{each.flags[1]}")
    if each.shape and not each.argument:
        notes.append("can be given several times")
    return each.help + (f" [{'; '.join(notes)}]" if notes else "")


def _rows(rows: Iterable[tuple[str, str]], column: int, width: int) -> list[str]:
    """Two columns; in a narrow terminal the second one stands below the first."""
    lines = []
    indent = " " * 6
    for left, right in rows:
        if width < column + 24:
            below = textwrap.wrap(right, max(16, width), initial_indent=indent, subsequent_indent=indent)
            lines += [f"  {left}", *below]
            continue
        wrapped = textwrap.wrap(right, width - column - 2)
        first = f"  {left:<{column}}" if len(left) < column else f"  {left}\n  {'':<{column}}"
        lines += [first + wrapped[0], *(f"  {'':<{column}}{line}" for line in wrapped[1:])]
    return lines
