"""Logs: an event's name and fields, without secrets.

    from sanderling.observe.log import log
    log.info("host_parked", host=host, failures=10)

They go to the standard library's logger "sanderling", whose level and handlers are those of the program that uses the
package. `configure` sets up our own commands, where logs of other packages get the same form.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

import structlog
from structlog.stdlib import BoundLogger, LoggerFactory, ProcessorFormatter, add_log_level, filter_by_level

from sanderling.observe.report import clean_text

Event = MutableMapping[str, Any]


def _clean(_logger: object, _method: str, event: Event) -> Event:
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in event.items()}


def _as_text(_logger: object, _method: str, event: Event) -> str:
    """`14:02:11 host_parked host=example.org failures=10`, with the level where it is worse than info.

    What an event has to `say` to a person stands alone.
    """
    wall, name, level = (str(event.pop(key, "")) for key in ("timestamp", "event", "level"))
    trace = event.pop("exception", "")
    if "say" in event:
        return f"{wall[11:19]} {event['say']}"
    fields = [f"{field}={value!r}" if " " in str(value) else f"{field}={value}" for field, value in event.items()]
    words = [wall[11:19], "" if level in ("info", "debug") else level, name, *fields]
    return " ".join(filter(None, words)) + (f"\n{trace}" if trace else "")


_BEFORE = (add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info)

structlog.configure(
    processors=[filter_by_level, *_BEFORE, ProcessorFormatter.wrap_for_formatter],
    logger_factory=LoggerFactory(),
    wrapper_class=BoundLogger,
    cache_logger_on_first_use=True,
)

log: BoundLogger = structlog.get_logger("sanderling")


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what stderr is now: while the screen is drawn, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configure(form: Literal["text", "json"], *, verbose: bool = False) -> None:
    """Send the logs of a command to standard error, from info on or all of them."""
    last = _as_text if form == "text" else structlog.processors.JSONRenderer()
    remove = ProcessorFormatter.remove_processors_meta
    handler = _Stderr()
    handler.setFormatter(ProcessorFormatter(processors=[remove, _clean, last], foreign_pre_chain=_BEFORE))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sanderling").setLevel(logging.DEBUG if verbose else logging.INFO)
