"""Logs to stderr: an event name and fields, one line per event, no secrets.

Tricky bits. Much of what is logged was written by strangers (host names, error messages, bodies), so a value can try to
look like another event, move the cursor of a terminal, or be endless; every value is escaped and cut. And some of it
was written by ourselves and must not be told: values are hidden by the name of their field, and inside URLs.
"""

import json
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Mapping
from itertools import islice
from typing import Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from sanderling.redact import HIDDEN, is_secret, redact

Style = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

# Room for a traceback; what a stranger sends beyond it is not worth a disk.
LONGEST = 8_000
MOST = 100  # items of one list or fields of one mapping
DEEPEST = 6  # mappings and lists inside each other; a ring of them would never end

_BARE = re.compile(r"[^\s\"=\\]+")

_COLOUR = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "31"}


def configure(style: Style | None = None, level: Level = "info", stream: TextIO | None = None) -> None:
    """Send every log line to `stream`, by default stderr: as text if that is a terminal, otherwise as JSON."""
    stream = stream or sys.stderr
    chain: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _with_exception,
        _cleaned,
        _renderer(style, stream),
    ]
    structlog.configure(
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
    _adopt_libraries(chain, stream)


def get(name: str) -> FilteringBoundLogger:
    """A log whose every line says where it came from; it may be made before `configure`."""
    return cast("FilteringBoundLogger", structlog.get_logger(where=name))


def _adopt_libraries(chain: list[Processor], stream: TextIO) -> None:
    """Give what libraries log the same form: asyncio reports lost exceptions there, as bare text of many lines.

    The root logger's own level stays at warning: a library's small talk is not for operators.
    """
    handler = logging.StreamHandler(stream)
    handler.set_name("sanderling")
    chain = [_where, structlog.stdlib.ProcessorFormatter.remove_processors_meta, *chain]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=chain))
    others = [old for old in logging.root.handlers if old.get_name() != "sanderling"]
    logging.root.handlers = [*others, handler]


def _where(_log: object, _method: str, event: EventDict) -> EventDict:
    event["where"] = event["_record"].name
    return event


def _renderer(style: Style | None, stream: TextIO) -> Processor:
    terminal = stream.isatty()
    if (style or ("text" if terminal else "json")) == "json":
        return _as_json
    # no-color.org: set, and not empty.
    return _as_colour if terminal and not os.environ.get("NO_COLOR") else _as_text


def _with_exception(_log: object, _method: str, event: EventDict) -> EventDict:
    """Turn `exc_info` into three fields."""
    error = _error(event.pop("exc_info", None))
    if error is not None:
        event["exception_type"] = type(error).__qualname__
        event["exception"] = str(error)
        event["traceback"] = "".join(traceback.format_exception(error)).rstrip()
    return event


def _error(exc_info: object) -> BaseException | None:
    """The exception meant by whatever logging allows as `exc_info`: one itself, a triple, or True for the current."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return cast("BaseException | None", exc_info[1])
    return sys.exc_info()[1] if exc_info else None


def _cleaned(_log: object, _method: str, event: EventDict) -> EventDict:
    return {name: _field(name, value, 0) for name, value in event.items()}


def _field(name: object, value: object, depth: int) -> object:
    # That a secret is not set is no secret; and a fraction is a measurement, if only of a host called auth.example.
    if value is None or value == "" or isinstance(value, float) or not is_secret(str(name)):
        return _clean(value, depth)
    return HIDDEN


def _clean(value: object, depth: int) -> object:
    """The value as plain data: bounded, without secrets, and fit for JSON."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= DEEPEST:
            return "…"
        case Mapping():
            return {_text(str(name)): _field(name, item, depth + 1) for name, item in islice(value.items(), MOST)}
        case list() | tuple() | set() | frozenset():
            return [_item(item, depth + 1) for item in islice(value, MOST)]
    return _text(value if isinstance(value, str) else repr(value))


def _item(item: object, depth: int) -> object:
    """One of a list; a pair may be a header."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return [_text(item[0]), _field(item[0], item[1], depth)]
    return _clean(item, depth)


def _text(text: str) -> str:
    """The text without secrets, then without its middle if it is too long: cut first, half a secret would show."""
    text = redact(text)
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{len(text) - LONGEST} more…{text[-half:]}"


def _as_json(_log: object, _method: str, event: EventDict) -> str:
    first = {name: event.pop(name) for name in ("timestamp", "level", "event")}
    return json.dumps({**first, **event})


def _as_text(_log: object, _method: str, event: EventDict) -> str:
    return _line(event, level="{:<7}", name="{}")


def _as_colour(_log: object, _method: str, event: EventDict) -> str:
    colour = _COLOUR.get(event["level"], "0")  # libraries may invent levels
    return _line(event, level=f"\x1b[{colour}m{{:<7}}\x1b[0m", name="\x1b[1m{}\x1b[0m")


def _line(event: EventDict, *, level: str, name: str) -> str:
    """One line; a traceback follows it, each line indented, so that none can be taken for an event."""
    stack = event.pop("traceback", "")
    head = [event.pop("timestamp"), level.format(event.pop("level")), name.format(_escaped(event.pop("event")))]
    fields = [f"{_quoted(key)}={_quoted(value)}" for key, value in event.items()]
    return "\n    ".join([" ".join(head + fields), *map(_escaped, stack.split("\n") if stack else ())])


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) or _BARE.fullmatch(text):
        return _escaped(text)
    return _escaped(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    """The text with all that could end a line, move a cursor or turn the writing around spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
