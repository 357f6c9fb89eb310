"""What the file and the environment set, given to a command as if it had been typed behind it."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from cyclopts import Argument, ArgumentCollection, Token

from sanderling.cli.command_error import CommandError
from sanderling.cli.config.file import ConfigError, Configuration, EffectiveValue, hosts_in_force, limits_in_force
from sanderling.cli.config.settings import HOME, Table, is_setting, variable
from sanderling.cli.everywhere import Everywhere
from sanderling.cli.replaced import old_variables

CHECK = "sanderling config check"
GOES_WITH = {"events-out": "events-job"}  # folders that are named in vain unless something else is
# What a crawl that hands on to `events` asks the environment for.
EVENTS, HANDED = ("events",), ("database", "objects", "queue")


def settle(given: Everywhere, command: Table, arguments: ArgumentCollection) -> None:
    """Give a command what its flags left open. Raises CommandError."""
    configuration = checked(given.config, given.home)
    flags = {each.name.removeprefix("--"): each for each in arguments if not each.children}
    if (home := flags.pop(HOME.name, None)) is not None:  # of a command that is about the whole home
        _give(home, configuration.home)
    is_demo = command[:1] == ("demo",)
    limits_in_force.set(None if is_demo else configuration.file.limits)
    hosts_in_force.set(None if is_demo else configuration.file.hosts)
    for key, flag in flags.items():
        if not flag.name.startswith("--") or _typed(flag):
            continue
        if is_setting(command, key):
            _give(flag, configuration.found(command, key, tuple(flag.parameter.env_var or ())))
        elif configuration.environment.get(name := variable(command, key)):
            raise _failure(f"{name} sets nothing: {flag.name} is for one call, and is no setting")
    for key, flag in flags.items():
        needed = flags.get(GOES_WITH.get(key, key))
        if not flag.tokens and (needed is flag or (needed is not None and needed.tokens)):
            _give(flag, configuration.at_home(command, key, _folder(flag)))
    if "events-job" in flags and flags["events-job"].tokens:
        _hand_on(configuration)


def checked(config: str | None, home: str | None, environment: Mapping[str, str] = os.environ) -> Configuration:
    """What is set. Raises CommandError for a file that is not as it should be."""
    try:
        found = Configuration.load(config, home, environment)
    except ConfigError as error:
        raise _failure(str(error)) from None
    if problems := (*found.file.problems, *old_variables(found.environment)):
        which = "" if config is None else f" --config {shlex.quote(config)}"
        more = f"\n{len(problems) - 1} more; see: {CHECK}{which}" if len(problems) > 1 else ""
        raise _failure(problems[0], more)
    return found


def _failure(words: str, more: str = "") -> CommandError:
    # Here and not at the top: few files are wrong.
    from sanderling.words import printable  # noqa: PLC0415

    return CommandError(printable(words) + more, code=2)


def _typed(flag: Argument) -> bool:
    return any(token.source == "cli" for token in flag.tokens)


def _folder(flag: Argument) -> str | None:
    """The folder that a flag names by default, relative to a home."""
    default = flag.field_info.default
    return None if not isinstance(default, Path) or default.is_absolute() else str(default)


def _give(flag: Argument, found: EffectiveValue | None) -> None:
    """Let a flag have what was found, and nothing else; what is empty is as if it were not there."""
    flag.tokens = []
    if found is None:
        return
    for index, value in enumerate(_values(flag, found)):
        if isinstance(value, bool):
            flag.append(Token(keyword=flag.name, source=found.origin, index=index, implicit_value=value))
        else:
            flag.append(Token(keyword=flag.name, value=str(value), source=found.origin, index=index))


def _values(flag: Argument, found: EffectiveValue) -> Iterable[object]:
    if found.is_text:
        return flag.env_var_split(str(found.value))
    values = found.value if isinstance(found.value, list) else [found.value]
    # As a shell would; what is typed comes here without its ~ already.
    is_path = Path in (flag.resolved_hint, *getattr(flag.resolved_hint, "__args__", ()))
    return [os.path.expanduser(str(each)) if is_path else each for each in values]  # noqa: PTH111 - which must not fail


def _hand_on(configuration: Configuration) -> None:
    """A crawl that hands on to `events` asks the environment where that is, so the file has to speak through it."""
    for key in HANDED:
        found = configuration.found(EVENTS, key)
        if found is not None:
            os.environ[variable(EVENTS, key)] = str(found.value)
