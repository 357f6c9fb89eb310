"""The two flags that every command takes, wherever they stand: `--home` and `--config`.

They are taken out of the command line before it is read, since they decide what else it need not say. What a file or
the environment sets comes in where cyclopts asks for it, after the flags of the command itself.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cyclopts import App, ArgumentCollection, CycloptsError, Token

FLAGS = {"--home": "a folder", "--config": "a file, or none"}  # and what has to follow each
ABOUT = ("config", "init")  # commands that are about the settings, and have none


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What these flags said; None if they were not given."""

    home: str | None = None
    config: str | None = None

    def __call__(self, _app: App, command: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Give a command all that its own flags left open. Raises CommandError, or CycloptsError."""
        try:
            Path.cwd()
        except FileNotFoundError:
            raise CycloptsError(msg="the folder that this was called in is gone; expected one that is there") from None
        if command[:1] and command[0] in ABOUT:
            for flag, value in (("--home", self.home), ("--config", self.config)):
                if value is not None:
                    arguments[flag].append(Token(keyword=flag, value=value, source="cli"))
            return
        # Here and not at the top: --help and --version need none of it.
        from sanderling.cli.config.tokens import settle  # noqa: PLC0415

        _refuse_settings(command, arguments)
        settle(self, command, arguments)
        if command[:1] != ("doctor",):  # which says of each what is wrong
            _check_urls(arguments)


def _refuse_settings(command: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Say of what was typed as a flag and is a setting how it is set. Raises CycloptsError."""
    for argument in arguments:
        if argument.parameter.show is False and any(token.source == "cli" for token in argument.tokens):
            from sanderling.cli.config.settings import known, variable  # noqa: PLC0415 - only now

            key = argument.name.removeprefix("--")
            table = known().place(command, key)
            where = f"in [{'.'.join(table)}]" if table else "at the top"
            said = f"set {key} {where} of sanderling.toml, or {variable(table, key)} in the environment"
            raise CycloptsError(msg=f"{argument.name} is a setting and no flag: {said}")


def _check_urls(arguments: ArgumentCollection) -> None:
    """Say before a command begins what it would lack for the URLs that it was given. Raises CycloptsError."""
    from sanderling.extras import missing_for  # noqa: PLC0415
    from sanderling.redact import HIDDEN  # noqa: PLC0415

    for place, url in _urls(arguments):
        if HIDDEN in url:
            raise CycloptsError(msg=f"{place} has {HIDDEN} in it, which stands for a secret; put the secret there")
        if lacking := missing_for(url):
            raise CycloptsError(msg=f"{place}: {lacking}")


def _urls(arguments: ArgumentCollection) -> Iterator[tuple[str, str]]:
    """What may be a URL, and where it was found."""
    for argument in arguments:
        yield from ((argument.name, token.value) for token in argument.tokens if ":" in token.value)
        if argument.name == "--events-job" and argument.tokens:  # what is found is handed on to these
            names = (f"SANDERLING_EVENTS_{store}" for store in ("DATABASE", "OBJECTS", "QUEUE"))
            yield from ((name, os.environ.get(name, "")) for name in names)


def taken(words: Sequence[str]) -> tuple[list[str], Everywhere]:
    """The command line without these flags, and what they said. Raises CycloptsError."""
    said: dict[str, str] = {}
    rest: list[str] = []
    left = iter(words)
    for word in left:
        flag, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *left]
        elif flag not in FLAGS:
            rest.append(word)
        elif flag in said:
            raise CycloptsError(msg=f"{flag} is given twice; expected it once")
        else:
            said[flag] = value if equals else next(left, "--")
            if not said[flag] or (said[flag].startswith("--") and not equals):
                raise CycloptsError(msg=f"{flag} is given without a value; expected {FLAGS[flag]} after it")
    return rest, Everywhere(said.get("--home"), said.get("--config"))
