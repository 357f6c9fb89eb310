"""`sanderling config show`: each option, its value, and where the value is from, as a file of configuration."""

import msgspec

from sanderling.cli.commands import all_commands, find_command
from sanderling.cli.context import Context
from sanderling.cli.resolve import DEFAULT, FILE, Setting, all_options, read_document, resolve
from sanderling.files import Exit
from sanderling.options import REQUIRED, Option, OptionError, Options, nearest, option
from sanderling.redact import Secret
from sanderling.systems import load_name


class ConfigOptions(Options):
    """Options of `config show`."""

    command: tuple[str, ...] = option((), "The command whose options are shown; without one: all.", argument="COMMAND")
    json: bool = option(default=False, help="Print one line of JSON.")


def show(options: ConfigOptions, context: Context) -> Exit:
    """Print options as a file that can be copied; what is not set anywhere stands behind a #."""
    commands = all_commands(context.systems)
    kinds = [kind for kind in all_options(commands) if any(each.table is not None for each in kind.fields.values())]
    if options.command:
        command, rest = find_command(options.command, commands)
        if command is None or rest:
            typed = " ".join(options.command)
            raise OptionError(f"there is no command {typed[:60]}{nearest(typed, [each.words for each in commands])}")
        kinds = [load_name(command.options)]
    document = read_document({}, context)
    tables: dict[str, dict[str, Setting]] = {"": {}}
    for kind in kinds:
        for setting in resolve(kind, {}, context, document):
            declared = setting.option.tables(kind.table)
            if declared:
                # Where it is declared, unless the command's own table or variable sets it.
                own = setting.origin.startswith((f"{FILE} [{kind.table}", *setting.option.variables(kind.table)[0][:1]))
                table = declared[0] if own else declared[-1]
                tables.setdefault(table, {}).setdefault(setting.option.key, setting)
    if options.json:
        rows = [_row(table, setting) for table, settings in tables.items() for setting in settings.values()]
        context.print(msgspec.json.encode(rows).decode())
        return Exit.DONE
    for table, settings in tables.items():
        lines = [_line(table, setting) for setting in settings.values()]
        if lines:
            context.print("\n".join([f"[{table}]"] * bool(table) + lines) + "\n")
    return Exit.DONE


def _row(table: str, setting: Setting) -> dict[str, object]:
    value = msgspec.to_builtins(setting.value, enc_hook=_shown)
    return {"table": table, "key": setting.option.key, "value": value, "origin": setting.origin}


def _shown(value: object) -> object:
    return {name: each for name, each in vars(value).items() if each} if isinstance(value, Options) else str(value)


def _line(table: str, setting: Setting) -> str:
    each = setting.option
    if each.is_table:
        names = ", ".join(setting.value) if isinstance(setting.value, dict) else "set"
        where = ".".join(filter(None, (table, each.key)))
        return f"# [{where}]  {'not set' if setting.origin == DEFAULT else names}"
    line = f"{each.key} = {each.metavar if setting.value in (None, REQUIRED) else _literal(each, setting.value)}"
    return f"# {line:<38} {each.help}" if setting.origin == DEFAULT else f"{line:<40} # from {setting.origin}"


def _literal(each: Option, value: object) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(_literal(each, one) for one in value)}]"
        case dict():
            pairs = [f"{msgspec.json.encode(name).decode()} = {_literal(each, one)}" for name, one in value.items()]
            return f"{{{', '.join(pairs)}}}"
        case int() | float() if each.show(value).replace(".", "").replace("-", "").isdigit():
            return each.show(value)
        case Secret():
            return f'"{value.source}"'
    return msgspec.json.encode(each.show(value)).decode()
