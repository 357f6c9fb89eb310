"""Alerts as JSON to a webhook: Discord's, or any other by a template.

A webhook's URL is a secret: whoever has it can write there. It is in no message, no log line and no repr.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from yarl import URL

from sanderling.clock import Clock
from sanderling.observe.alerts import Alert, Fate, Level, Receipt

TIMEOUT = 45.0
# Who is told to wait longer than a day is forgotten about anyway.
LONGEST_WAIT = 86_400.0

COLOURS = {
    Level.STATUS: 9807270,  # grey
    Level.INFO: 3447003,  # blue
    Level.WARNING: 15105570,  # orange
    Level.SERIOUS: 16737792,  # dark orange
    Level.ERROR: 15548997,  # red
    Level.CRITICAL: 10038562,  # dark red
}
# Discord refuses an embed that is longer.
MOST_NAME = 256
MOST_VALUE = 1024
MOST_FIELDS = 25
MOST_TEXT = 5400  # names and values; 6000 with the title and the footer

# Statuses below 500 that are no verdict on what we sent.
PASSING = {408, 425, 429}

Body = Callable[[Alert, float], bytes]


class Webhook:
    """A webhook as a sink: `async with discord(url, clock) as sink`."""

    def __init__(self, url: URL, body: Body, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._body = body
        self._clock = clock
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<Webhook of {self._url.host}>"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=self._timeout),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, alert: Alert, at: float) -> Receipt:
        """Post it once."""
        if self._session is None:
            raise RuntimeError("use the webhook as a context manager: async with discord(url, clock) as sink")
        body = self._body(alert, at)
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                # Only what it says of waiting is of interest, and that is short.
                said = await response.content.read(4096) if response.status == 429 else b""
                wait = max(_asked(response.headers.get("Retry-After", ""), self._clock.wall()), _discords(said))
                return _receipt(response.status, wait)
        except TimeoutError:
            return Receipt(Fate.LATER, f"no answer within {self._timeout:g} s")
        except (aiohttp.ClientError, OSError) as error:
            # Its own text may hold the URL.
            return Receipt(Fate.LATER, type(error).__name__)


def discord(url: str, clock: Clock, role: str = "", name: str = "sanderling") -> Webhook:
    """A webhook of Discord's; `role` is the id of the role that a ping calls, `name` says in the footer who speaks."""
    if not re.fullmatch(r"[0-9]{0,20}", role):
        raise ValueError(f"the role to ping is {role[:40]!r}, expected its id, which is a number")
    # Without `wait` it would say 204 before it has looked at the message.
    return Webhook(checked(url).update_query(wait="true"), lambda alert, at: embed(alert, at, role, name), clock)


def templated(url: str, clock: Clock, template: str) -> Webhook:
    """Any webhook that takes JSON: `template` is that JSON, with {title}, {text}, {level}, {kind} and {time} in it."""
    return Webhook(checked(url), Template(template).body, clock)


def checked(url: str) -> URL:
    """The URL, if something can be posted there. What is wrong with it is said without it."""
    try:
        given = URL(url.strip())
    except ValueError:
        raise ValueError("the webhook's URL cannot be read; expected https://host/path") from None
    if given.scheme not in {"http", "https"} or not given.host:
        raise ValueError("the webhook's URL must begin with https:// or http:// and name a host")
    return given


def _receipt(status: int, wait: float) -> Receipt:
    if 200 <= status < 300:
        return Receipt(Fate.SENT)
    if status in PASSING or status >= 500:
        return Receipt(Fate.LATER, f"status {status}", wait)
    return Receipt(Fate.NEVER, f"status {status}")


def _asked(retry_after: str, wall: float) -> float:
    """Seconds to wait, by the header: a number of them, or a date."""
    text = retry_after.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return min(LONGEST_WAIT, float(text))
    try:
        date = parsedate_to_datetime(text)
        # A date in "-0000" has no zone, and is meant as UTC.
        return min(LONGEST_WAIT, max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - wall))
    except (ValueError, OverflowError):
        return 0.0


class _Limited(msgspec.Struct):
    retry_after: float


def _discords(said: bytes) -> float:
    """Seconds to wait, by the body of Discord's 429, which is exact where the header is rounded."""
    try:
        return min(LONGEST_WAIT, max(0.0, msgspec.json.decode(said, type=_Limited).retry_after))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0.0


def embed(alert: Alert, at: float, role: str, name: str) -> bytes:
    """The alert as Discord wants it."""
    ping = alert.ping and role != ""
    message = {
        **({"content": f"<@&{role}>"} if ping else {}),
        "embeds": [
            {
                "title": _cut(alert.title, MOST_NAME),
                "color": COLOURS[alert.level],
                "fields": list(_fields(alert)),
                "timestamp": rfc3339(at),
                "footer": {"text": _cut(name, MOST_NAME)},
            }
        ],
        # Whatever a field says: nobody else is called.
        "allowed_mentions": {"parse": [], "roles": [role] if ping else []},
    }
    return msgspec.json.encode(message)


def _fields(alert: Alert) -> Iterator[dict[str, str | bool]]:
    room = MOST_TEXT
    for field in alert.fields[:MOST_FIELDS]:
        name = _cut(field.name, MOST_NAME)
        value = _cut(field.value, min(MOST_VALUE, max(1, room - len(name))))
        room -= len(name) + len(value)
        if room >= 0:
            yield {"name": name, "value": value, "inline": field.inline}


def _cut(text: str, most: int) -> str:
    """The text as long as it may be; Discord refuses one that is empty."""
    text = _sound(text) if text.strip() else "-"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _sound(text: str) -> str:
    """The text without halves of characters, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def rfc3339(at: float) -> str:
    """Unix seconds as a date and time."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_PLACE = re.compile(r"\{([a-z_]+)\}")
PLACES = {"title", "text", "level", "kind", "time"}


class Template:
    """JSON with places in its texts, which each alert fills; what is filled in can never become JSON."""

    def __init__(self, text: str) -> None:
        try:
            msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError(f"the template of alerts is no JSON: {error}") from None
        self._json = text  # in which a brace is followed by a letter only within a text
        used = set(_PLACE.findall(text))
        if unknown := used - PLACES:
            raise ValueError(f"the template of alerts has {sorted(unknown)}, expected some of {sorted(PLACES)}")
        if not used & {"title", "text"}:
            raise ValueError("the template of alerts has neither {title} nor {text}: all alerts would look the same")

    def body(self, alert: Alert, at: float) -> bytes:
        """The JSON for an alert."""
        values = {
            "title": alert.title,
            "text": "\n".join(f"{field.name}: {field.value}" for field in alert.fields),
            "level": alert.level.value,
            "kind": alert.kind,
            "time": rfc3339(at),
        }
        escaped = {name: msgspec.json.encode(_sound(value)).decode()[1:-1] for name, value in values.items()}
        # In one pass, so that a title of "{text}" stays what it is.
        return _PLACE.sub(lambda place: escaped[place[1]], self._json).encode()
