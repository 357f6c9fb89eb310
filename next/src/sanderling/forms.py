"""How values are written on the command line and in the file: durations, sizes, URLs, paths, secrets."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sanderling.redact import HOW, Secret, redact


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a type are written. `read` raises ValueError."""

    read: Callable[[str], object]
    expected: str
    metavar: str
    show: Callable[[Any], str] = str


_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}  # by 1,024, as in seed 001's program
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"


def _read_units(text: str, units: Mapping[str, float]) -> float:
    if re.fullmatch(_NUMBER, text):
        return float(text)
    parts = re.findall(rf"({_NUMBER})([a-zA-Z]{{1,2}})", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError
    if unknown := [unit for _, unit in parts if unit not in units]:
        raise ValueError(f"found the unit {unknown[0]}, expected one of {', '.join(units)}")
    return sum(float(number) * units[unit] for number, unit in parts)


def read_durations(text: str) -> tuple[float, ...]:
    """The seconds of several durations, as in 36h,30d. Raises ValueError."""
    return tuple([_read_units(each.strip(), _SECONDS) for each in text.split(",")]) if text else ()


def _show_units(value: float, units: Mapping[str, float], base: str) -> str:
    fitting = [unit for unit, size in units.items() if value >= size and round(value / size, 6).is_integer()]
    unit = fitting[-1] if fitting else base
    return f"{value / units[unit]:g}{unit}"


def _read_url(text: str) -> str:
    from sanderling.ids import normalise_url  # noqa: PLC0415 - only commands with URLs need ada-url

    return normalise_url(text)


def _read_host_pattern(text: str) -> str:
    from sanderling.ids import normalise_host_pattern  # noqa: PLC0415 - the same

    return normalise_host_pattern(text)


def _read_path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError:  # ~name of a user who does not exist
        return Path(text)


Seconds = Annotated[
    float,
    Form(
        lambda text: _read_units(text, _SECONDS),
        "a duration like 200ms, 10s, 5m or 1d",
        "TIME",
        lambda value: _show_units(value, _SECONDS, "s"),
    ),
]
Durations = Annotated[str, Form(lambda text: read_durations(text) and text, "durations like 36h,30d", "TIME,TIME")]
Bytes = Annotated[
    int,
    Form(
        lambda text: round(_read_units(text.upper(), _BYTES)),
        "a size like 100MB or 2GB",
        "SIZE",
        lambda value: _show_units(value, _BYTES, "B"),
    ),
]
Url = Annotated[str, Form(_read_url, "a URL like https://example.org/", "URL", redact)]
HostPattern = Annotated[
    str, Form(_read_host_pattern, "a host like example.org, or *.example.org for it and all below it", "HOST")
]
SecretOrText = Annotated[
    Secret | str,
    Form(
        lambda text: Secret(text) if text.startswith(("env:", "file:")) else text,
        f"a text, or {HOW} for a secret",
        "TEXT",
    ),
]

# What msgspec reads by itself, when it is told that numbers are texts.
SIMPLE: Mapping[object, Form] = {
    bool: Form(str, "true or false", ""),
    int: Form(str, "a whole number", "N"),
    float: Form(str, "a number", "NUMBER", "{:g}".format),
    str: Form(str, "a text", "TEXT", redact),
}
OTHER: Mapping[object, Form] = {
    Path: Form(_read_path, "a path", "PATH"),
    Secret: Form(Secret, HOW, "env:NAME|file:PATH"),
}
