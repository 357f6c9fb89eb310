"""Completion for bash, zsh and fish: a script that asks the program itself for each word.

`sanderling --completion bash` prints the script, which calls `sanderling --complete WORD… LAST`.
"""

from sanderling.cli.commands import all_commands, find_command
from sanderling.cli.context import Context
from sanderling.cli.resolve import ShellOptions
from sanderling.files import Exit
from sanderling.options import Option, OptionError
from sanderling.systems import load_name

SCRIPTS = {
    "bash": """\
# Put this into ~/.bashrc:  source <(sanderling --completion bash)
_sanderling() {
  local IFS=$'\\n'
  COMPREPLY=($(sanderling --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -o nosort -F _sanderling sanderling""",
    "zsh": """\
# Put this into ~/.zshrc, after compinit:  source <(sanderling --completion zsh)
_sanderling() {
  local -a found
  found=(${(f)"$(sanderling --complete "${(@)words[2,$CURRENT]}" 2>/dev/null | sed 's/:/\\\\:/g; s/\\t/:/')"})
  (( $#found )) && _describe sanderling found || _files
}
compdef _sanderling sanderling""",
    "fish": """\
# Put this into ~/.config/fish/completions/sanderling.fish
complete -c sanderling -a '(set -l w (commandline -opc) (commandline -ct); sanderling --complete $w[2..])'""",
}


def complete(words: tuple[str, ...], context: Context) -> Exit:
    """Print the script for a shell, or what the last word may become, with a tab and a help text."""
    if words[0] == "--completion":
        shell = words[1] if len(words) == 2 else ""
        if shell not in SCRIPTS:
            raise OptionError(f"--completion needs the name of a shell; expected one of {', '.join(SCRIPTS)}")
        context.print(SCRIPTS[shell])
        return Exit.DONE
    for word, help_ in _candidates(words[1:] or ("",), context):
        context.print(f"{word}\t{help_}")
    return Exit.DONE


def _candidates(words: tuple[str, ...], context: Context) -> list[tuple[str, str]]:
    *before, last = words
    commands = all_commands(context.systems)
    command, rest = find_command(tuple(before), commands)
    if command is None:
        begun = [each for each in commands if tuple(each.words.split())[: len(before)] == tuple(before)]
        rows = {each.words.split()[len(before)]: each.help for each in begun}
        return [(word, help_) for word, help_ in rows.items() if word.startswith(last)]
    options = {**load_name(command.options).fields, **ShellOptions.fields}.values()
    flags = {f"--{flag}": each for each in options for flag in each.flags}
    waiting = flags.get(rest[-1]) if rest else None
    if waiting is not None and waiting.item is not bool:
        return [(str(choice), "") for choice in waiting.choices if str(choice).startswith(last)]
    if last.startswith("-"):
        return [(flag, each.help) for flag, each in flags.items() if flag.startswith(last)]
    arguments: list[Option] = [each for each in options if each.argument]
    return [(str(choice), "") for each in arguments for choice in each.choices if str(choice).startswith(last)]
