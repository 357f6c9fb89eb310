"""Alerts for people: messages to a webhook, as Discord takes them.

    async with open_alerts(options.alert_webhook, options.alert_role, clock) as alerts:
        alerts.post(Alert("Gap found", fields=(("ids", "4,000 to 8,000"),), level=Level.WARNING))

Posting never waits. A message is tried three times; what the webhook does not take is counted, and dropped.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import IntEnum

import aiohttp
import msgspec

from sanderling.clock import Clock
from sanderling.observe.report import Fact, clean_text, count
from sanderling.options import Options, option
from sanderling.redact import Secret

_log = logging.getLogger(__name__)
TRIES = 3
MOST_WAITING = 100
LONGEST_WAIT = 60.0  # seconds between two tries
CLOSING = 10.0  # seconds for what waits at the end
_MOST_FIELDS = 25  # Discord refuses more, as it does longer texts
_LONGEST_NAME, _LONGEST_VALUE, _LONGEST_TEXT = 256, 200, 4000
_ANSWER_SECONDS = 20.0


class Level(IntEnum):
    """How bad it is; the value is the color that Discord shows."""

    STATUS = 0x95A5A6
    INFO = 0x3498DB
    WARNING = 0xE67E22
    ERROR = 0xED4245


class Alert(msgspec.Struct, frozen=True):
    """One message."""

    title: str
    text: str = ""
    level: Level = Level.INFO
    fields: tuple[tuple[str, str], ...] = ()
    ping: bool = False  # calls the role

    def body(self, role: str, wall: float) -> bytes:
        """As Discord takes it. Nobody is called but the role, whatever a text says."""
        embed = {
            "title": _short(self.title, _LONGEST_NAME),
            "color": self.level.value,
            "timestamp": datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds"),
            "fields": [
                {"name": _short(name, _LONGEST_NAME), "value": _short(value, _LONGEST_VALUE), "inline": True}
                for name, value in self.fields[:_MOST_FIELDS]
            ],
        }
        if self.text:
            embed["description"] = _short(self.text, _LONGEST_TEXT)
        called = [role] if self.ping and role else []
        message = {"embeds": [embed], "allowed_mentions": {"parse": [], "roles": called}}
        if called:
            message["content"] = f"<@&{role}>"
        return msgspec.json.encode(message)


class AlertOptions(Options, table=""):
    """Where alerts go."""

    alert_webhook: Secret | None = option(None, "Post alerts to this webhook of Discord, or another that takes them.")
    alert_role: str = option("", "The id of the role that serious alerts call.")


class Alerts:
    """A queue of messages to one webhook. Without a URL they are only logged."""

    def __init__(self, url: Secret | None, role: str, clock: Clock) -> None:
        self.sent = self.dropped = 0
        self._url = url
        self._role = role
        self._clock = clock
        self._waiting: deque[tuple[Alert, float]] = deque()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def post(self, alert: Alert) -> None:
        """Send it as soon as possible. Of too many, the oldest is dropped."""
        fields = ", ".join(f"{name} {value}" for name, value in alert.fields)
        _log.log(
            logging.WARNING if alert.level >= Level.WARNING else logging.INFO,
            "alert: %s",
            ": ".join(filter(None, (alert.title, alert.text, fields))),
        )
        if self._url is None:
            return
        if len(self._waiting) == MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append((alert, self._clock.wall()))
        self._idle.clear()
        self._news.set()

    def facts(self) -> tuple[Fact, ...]:
        """For the report."""
        return (
            count("alerts_sent", self.sent, "Alerts that the webhook took.", more=True),
            count("alerts_dropped", self.dropped, "Alerts that it did not take.", more=not self.dropped),
        )

    async def work(self, url: str) -> None:
        """Send what is posted, until cancelled."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            while True:
                while self._waiting:
                    alert, wall = self._waiting.popleft()
                    taken = await self._send(session, url, alert.body(self._role, wall))
                    self.sent, self.dropped = self.sent + taken, self.dropped + (not taken)
                self._idle.set()
                self._news.clear()
                await self._news.wait()

    async def flush(self) -> None:
        """Return when nothing waits."""
        await self._idle.wait()

    async def _send(self, session: aiohttp.ClientSession, url: str, body: bytes) -> bool:
        """Whether it was taken. An error is logged without its text, which may hold the URL: who has it can post."""
        for each in range(1, TRIES + 1):
            wait = 2.0**each
            try:
                headers = {"Content-Type": "application/json"}
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                    if response.status < 300:
                        return True
                    found = f"status {response.status}"
                    if response.status < 500 and response.status not in (408, 425, 429):
                        break  # it will never take this
                    wait = max(wait, _seconds(response.headers.get("Retry-After", "")))
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                found = type(error).__name__
            if each < TRIES:
                await self._clock.sleep(wait)
        _log.warning("an alert was not taken by the webhook: %s", found)
        return False


@asynccontextmanager
async def open_alerts(options: AlertOptions, clock: Clock) -> AsyncIterator[Alerts]:
    """The poster of a run. At the end it has ten seconds for what waits."""
    alerts = Alerts(options.alert_webhook, options.alert_role, clock)
    if options.alert_webhook is None:
        yield alerts
        return
    async with asyncio.TaskGroup() as group:
        work = group.create_task(alerts.work(options.alert_webhook.reveal()))
        yield alerts
        try:
            async with asyncio.timeout(CLOSING):
                await alerts.flush()
        except TimeoutError:
            _log.warning("the webhook is slow; some alerts are dropped")
        work.cancel()


def _seconds(header: str) -> float:
    """What a Retry-After in seconds says, within bounds; anything else is zero."""
    return min(LONGEST_WAIT, float(header)) if header.isascii() and header.isdecimal() else 0.0


def _short(text: str, most: int) -> str:
    """A text as Discord takes it: not empty, not too long, and without secrets."""
    clean = clean_text(text) or "-"
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"
