"""The commands that are no runs of a system, and how words are matched with commands."""

from collections.abc import Iterable

from sanderling.systems import Command, System

GROUPS = ("Run", "Inspect", "Export", "Maintain")

COMMANDS = (
    Command(
        "try",
        "Send one request: what comes back, and what a selector or a path finds in it.",
        "sanderling.cli.try_url:TryOptions",
        "Inspect",
        "sanderling.cli.try_url:try_url",
        "try https://example.org/ --css h1::text",
    ),
    Command(
        "demo",
        "See every system at work on an upstream of its own, in under a minute.",
        "sanderling.cli.demo.command:DemoOptions",
        "Run",
        "sanderling.cli.demo.command:demo",
        "demo",
    ),
    Command(
        "status",
        "Show what a run does, or what the last one did.",
        "sanderling.cli.status:StatusOptions",
        "Inspect",
        "sanderling.cli.status:status",
        "status example --watch",
    ),
    Command(
        "dashboard",
        "Show all runs below a folder in the browser.",
        "sanderling.cli.dashboard:DashboardOptions",
        "Inspect",
        "sanderling.cli.dashboard:dashboard",
        "dashboard",
    ),
    Command(
        "tasks",
        "List what waits and what ended without a record, or try it again.",
        "sanderling.cli.tasks:TasksOptions",
        "Inspect",
        "sanderling.cli.tasks:tasks",
        "tasks example failed --retry",
    ),
    Command(
        "why",
        "Say why a host gets its rate, or what became of a URL.",
        "sanderling.cli.why:WhyOptions",
        "Inspect",
        "sanderling.cli.why:why",
        "why example example.org",
    ),
    Command(
        "show",
        "Show the records of one item, or what became of it.",
        "sanderling.cli.show:ShowOptions",
        "Inspect",
        "sanderling.cli.show:show",
        "show example https://example.org/",
    ),
    Command(
        "verify",
        "Prove that nothing is missing, damaged or there twice.",
        "sanderling.cli.show:VerifyOptions",
        "Inspect",
        "sanderling.cli.show:verify",
        "verify example",
    ),
    Command(
        "export",
        "Write records as JSON Lines, CSV, Parquet or SQLite.",
        "sanderling.cli.export:ExportOptions",
        "Export",
        "sanderling.cli.export:export_records",
        "export example --to pages.csv",
    ),
    Command(
        "control",
        "Pause, resume, stop or drain a run, or block one of its hosts.",
        "sanderling.cli.control:ControlOptions",
        "Maintain",
        "sanderling.cli.control:control",
        "control example pause",
    ),
    Command(
        "forget",
        "Remove pages or hosts that somebody wants gone, and never request them again.",
        "sanderling.cli.forget:ForgetOptions",
        "Maintain",
        "sanderling.cli.forget:forget",
        "forget example https://example.org/people/ann",
    ),
    Command(
        "config show",
        "Show every option of a command, its value, and where the value is from.",
        "sanderling.cli.config:ConfigOptions",
        "Maintain",
        "sanderling.cli.config:show",
        "config show pages crawl",
    ),
    Command(
        "doctor",
        "Check this machine, the installation and the configuration.",
        "sanderling.cli.doctor:DoctorOptions",
        "Maintain",
        "sanderling.cli.doctor:doctor",
        "doctor",
    ),
)


def all_commands(systems: Iterable[System]) -> list[Command]:
    """All commands in the order of --help."""
    every = [command for system in systems for command in system.runs] + list(COMMANDS)
    return sorted(every, key=lambda command: GROUPS.index(command.group))


def find_command(words: tuple[str, ...], commands: Iterable[Command]) -> tuple[Command | None, tuple[str, ...]]:
    """The command that the words begin with, and the words after it."""
    for command in commands:
        name = tuple(command.words.split())
        if words[: len(name)] == name:
            return command, words[len(name) :]
    return None, words
