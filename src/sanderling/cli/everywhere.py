"""The two flags that every command takes, wherever they stand: `--home` and `--config`.

They are taken out of the command line before it is read, since they decide what else it need not say. What a file or
the environment sets comes in where cyclopts asks for it, after the flags of the command itself.
"""

from collections.abc import Sequence
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

        settle(self, command, arguments)
        if command[:1] != ("doctor",):  # which says of each what is wrong
            _check_extras(arguments)


def _check_extras(arguments: ArgumentCollection) -> None:
    """Say before a command begins what it would lack. Raises CycloptsError."""
    from sanderling.extras import missing_for  # noqa: PLC0415

    for argument in arguments:
        for token in argument.tokens:
            if lacking := missing_for(token.value):
                raise CycloptsError(msg=f"{argument.name}: {lacking}")


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
