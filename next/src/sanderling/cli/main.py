"""From the words that were typed to the exit code."""

import os
import sys
import traceback

from sanderling.cli.commands import all_commands, find_command
from sanderling.cli.context import Context, expected_error
from sanderling.cli.help import command_help, program_help
from sanderling.cli.parse import parse
from sanderling.cli.resolve import ShellOptions, build, doubtful_variables, read_document, resolve
from sanderling.files import Exit, FolderError
from sanderling.options import OptionError, nearest
from sanderling.redact import redact
from sanderling.systems import load_name


def main(context: Context | None = None) -> int:
    """The program: its exit code."""
    context = context or Context(tuple(sys.argv[1:]), os.environ, program=sys.argv[0])
    try:
        code = int(run_words(context))
        context.out.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Who read our output has enough, as `head` does. Python would complain when it flushes stdout at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    return code


def run_words(context: Context) -> Exit:
    """Run the command that was typed; every error that we expect ends here, as a sentence."""
    try:
        return _run(context)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last place where a sentence can be made of it
        expected = expected_error(error)
        if expected is not None:
            context.warn(f"sanderling: {redact(str(expected))}")
            return expected.code if isinstance(expected, FolderError) else Exit.WRONG
        context.warn(redact(traceback.format_exc()))
        context.warn("sanderling: this is a bug, and nothing that was stored is lost; please report the text above")
        return Exit.FAILED


def _run(context: Context) -> Exit:
    words = context.arguments
    commands = all_commands(context.systems)
    if words[:1] == ("--version",):
        from importlib.metadata import version  # noqa: PLC0415 - 20 ms, and only here

        context.print(f"sanderling {version('sanderling')}")
        return Exit.DONE
    if words[:1] in (("--completion",), ("--complete",)):
        from sanderling.cli.completion import complete  # noqa: PLC0415 - only shells ask for it

        return complete(words, context)
    if not words or words[0] in ("--help", "-h", "help"):
        context.print(program_help(commands, context.width))
        return Exit.DONE if words else Exit.WRONG
    command, rest = find_command(words, commands)
    if command is None:
        begun = [each.words for each in commands if each.words.split()[0] == words[0]]
        typed = " ".join(words[:2] if begun else words[:1])
        names = [each.words for each in commands]
        if typed.startswith("-"):
            names = ["--version", "--completion", "--help"]
        meant = (
            f"; expected {' or '.join(begun)}"
            if begun
            else nearest(" ".join(words[:2]), names) or nearest(typed, names)
        )
        what = "option" if typed.startswith("-") else "command"
        raise OptionError(f"there is no {what} {typed[:60]}{meant or '; see sanderling --help'}")
    kind = load_name(command.options)
    if "--help" in rest or "-h" in rest:
        context.print(command_help(command, kind, context.width))
        return Exit.DONE
    typed_options = parse(rest, {**kind.fields, **ShellOptions.fields})
    document = read_document(typed_options, context)
    options = build(kind, resolve(kind, typed_options, context, document))
    for sentence in doubtful_variables(kind, context):
        context.warn(f"sanderling: warning: {sentence}")
    if command.function:
        code: Exit = load_name(command.function)(options, context)
        return code
    from sanderling.cli.shell import run_command  # noqa: PLC0415 - only runs need asyncio, logs and a screen

    system = next(each for each in context.systems if command in each.runs)
    return run_command(system, options, context)
