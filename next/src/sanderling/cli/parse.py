"""Words into options: `--depth 3`, `--depth=3`, `--private`, `--no-private`, `--header A=B`, arguments, and `--`.

A single dash does as well, since seed 004 writes `-ingest-concurrency=1`. Reading `Option` directly costs less at the
start than argparse or cyclopts (docs/why/skeleton.md) and names the options in its errors as people typed them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sanderling.options import Option, OptionError, nearest


@dataclass
class Typed:
    """What was typed for one option: as which flag, and the raw value."""

    origin: str
    raw: object = None
    every: list[str] = field(default_factory=list)  # the values of one that can be given several times


def parse(words: Iterable[str], options: Mapping[str, Option]) -> dict[str, Typed]:
    """The raw values by the names of their options. Raises OptionError."""
    flags = {flag: option for option in options.values() for flag in option.flags}
    arguments: list[str] = []
    typed: dict[str, Typed] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            arguments += rest
        elif word.startswith("-") and word != "-":
            name, equals, value = word.lstrip("-").partition("=")
            option, negated = _option(word.partition("=")[0], name.replace("_", "-"), flags)
            if option.item is bool and not option.shape:
                if negated and equals:
                    raise OptionError(f"--{name} takes no value; type --{option.key}={value} or --{name}")
                value = value if equals else str(not negated).lower()
            elif not equals:
                value = next(rest, "--")
                if value.startswith("--"):
                    raise OptionError(f"--{name} needs a value; expected {option.expected}")
            _add(typed, option, f"--{name}", value)
        else:
            arguments.append(word)
    _take_arguments(arguments, [option for option in options.values() if option.argument], typed)
    return typed


def _option(word: str, name: str, flags: Mapping[str, Option]) -> tuple[Option, bool]:
    if name in flags:
        return flags[name], False
    positive = flags.get(name.removeprefix("no-"))
    if name.startswith("no-") and positive is not None and positive.item is bool:
        return positive, True
    raise OptionError(f"there is no option {word}{nearest(f'--{name}', [f'--{flag}' for flag in flags])}")


def _add(typed: dict[str, Typed], option: Option, origin: str, raw: str) -> None:
    known = typed.setdefault(option.name, Typed(origin))
    if option.shape:
        known.every.append(raw)
        known.raw = known.every
    elif known.raw is None:
        known.raw = raw
    elif known.origin == origin:
        raise OptionError(f"{origin} is given twice; give it once")
    else:
        raise OptionError(f"{known.origin} and {origin} are the same option; give one of them")


def _take_arguments(words: list[str], options: list[Option], typed: dict[str, Typed]) -> None:
    for option in options:
        if option.shape and words:
            typed[option.name] = Typed(option.argument, words)
            return
        if words:
            typed[option.name] = Typed(option.argument, words.pop(0))
    if words:
        expected = " ".join(option.argument for option in options) or "none"
        raise OptionError(f"unexpected argument {words[0][:60]!r}; expected arguments: {expected}")
