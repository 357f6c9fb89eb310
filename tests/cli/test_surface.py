"""How much there is to learn: commands, flags and settings. Whoever adds one says so here; fewer is better."""

import reference
from cyclopts import App

from sanderling.cli.config.settings import known

COMMANDS, FLAGS, SETTINGS = 52, 344, 207

# The names that every command has for these; another spelling would be another thing to learn.
ONE_NAME = {
    "--output-dir": "--out",
    "--output": "--out",
    "--dir": "--out",
    "--folder": "--out",
    "--max-rps": "--rps",
    "--rate-limit": "--rps",
    "--as-json": "--json",
    "--metrics": "--metrics-port",
    "--continue": "--resume",
    "--skip": "--leave-out",
    "--exclude": "--leave-out",
}


def typed(command: App) -> set[str]:
    """The flags that a command takes; what is only a setting is none."""
    arguments = command.assemble_argument_collection()
    return {each.name for each in arguments if each.show and each.name.startswith("--")} - {"--home", "--config"}


def test_there_are_no_more_commands_flags_and_settings_than_before() -> None:
    """If there are fewer, or one more is worth it, change the numbers above, and say in CHANGELOG.md what is new."""
    commands = [typed(command) for _, command in reference.commands()]
    settings = [each for table in known().tables for each in known().placed(table)]

    assert (len(commands), sum(map(len, commands)), len(settings)) == (COMMANDS, FLAGS, SETTINGS)


def test_what_several_commands_take_has_one_name() -> None:
    found = {flag: " ".join(name) for name, command in reference.commands() for flag in typed(command)}

    assert {flag: command for flag, command in found.items() if flag in ONE_NAME} == {}


def test_what_several_commands_take_has_one_meaning() -> None:
    """By its help, but for folders and JSON, of which each says what it is."""
    for flag in ("--rps", "--contact", "--private", "--pace", "--patience", "--metrics-port", "--dashboard"):
        meanings = {
            " ".join((each.parameter.help or "").split())
            for name, command in reference.commands()
            for each in command.assemble_argument_collection(parse_docstring=True)
            if each.name == flag and name != ("repos", "crawl")  # where hosts have rates by their size
        }
        assert len(meanings) == 1, flag
