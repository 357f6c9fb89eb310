"""Where changes go: to a webhook, or into a queue.

A sink is told the same change again whenever it is not certain that it has it; the number of a change says which is
which. A webhook's URL is a secret, since whoever has it can write there: it is in no message, no log line and no repr.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import aiohttp
import msgspec
from yarl import URL

from sanderling.clock import Clock
from sanderling.fetch.classify import of_error
from sanderling.limit.hints import retry_after
from sanderling.observe.alerts_webhook import checked
from sanderling.stores.polling import RowChange
from sanderling.stores.queue import Letter, Queue, QueueError, UnfitLetterError

POST_SECONDS = 30.0
# Most servers take 1 MB without being told to.
LARGEST_BODY = 1_000_000
# Who asks us to stay away for longer is asked again all the same: what changes meanwhile is not kept for ever.
LONGEST_WAIT = 3_600.0
# Of what a receiver says with a refusal.
MOST_READ, MOST_SAID = 4_096, 200
# A shorter part of a URL is a word like any other, and no secret.
SHORTEST_SECRET = 4


class SinkError(Exception):
    """It is not certain that the changes arrived. The message holds no secrets; `wait` is what the receiver asked."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class ChangeSink(Protocol):
    """Takes changes in order."""

    async def send(self, changes: Sequence[RowChange]) -> None:
        """Return when all of them are there to stay. Raises SinkError; then some may be."""

    async def close(self) -> None:
        """Let go."""


class WebhookPost(NamedTuple):
    """A body, and the numbers it is about."""

    first: int
    last: int
    body: bytes


class WebhookSink:
    """Posts JSON: {"first": 7, "last": 8, "changes": [...]}. With a secret, it is signed like GitHub's."""

    def __init__(self, url: str, clock: Clock, secret: bytes = b"") -> None:
        """Raises ValueError if nothing can be posted there."""
        given = checked(url)
        self._url = given.with_user(None)
        self._login = _login(given)
        self._clock = clock
        self._secret = secret
        self._hidden = _secrets(given, self._login, secret)
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<WebhookSink of {self._url.host}>"

    async def send(self, changes: Sequence[RowChange]) -> None:
        """WebhookPost them, one body after the other."""
        for post in posts(changes):
            await self._post(post)

    async def _post(self, post: WebhookPost) -> None:
        request = self._opened().post(self._url, data=post.body, headers=self._headers(post), allow_redirects=False)
        try:
            async with request as response:
                if not 200 <= response.status < 300:
                    raise await self._refusal(response)
        except (aiohttp.ClientError, OSError) as error:
            # Neither its text nor its cause, which may hold the URL.
            raise SinkError(f"no answer: {of_error(error).detail}") from None

    def _headers(self, post: WebhookPost) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{post.first}-{post.last}"}
        if self._login:
            headers["Authorization"] = f"Basic {self._login}"
        if self._secret:
            signature = hmac.new(self._secret, post.body, hashlib.sha256).hexdigest()
            headers["X-Sanderling-Signature"] = f"sha256={signature}"
        return headers

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept-Encoding": "identity", "User-Agent": "sanderling"},
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=POST_SECONDS),
            )
        return self._session

    async def _refusal(self, response: aiohttp.ClientResponse) -> SinkError:
        headers = response.headers
        wait = retry_after(headers.get("Retry-After"), date=headers.get("Date"), now=self._clock.wall()) or 0.0
        why = f"status {response.status}"
        if 300 <= response.status < 400:
            # It leads to another host, and both the data and the login are for this one.
            why += ", and redirects are not followed"
        if said := await self._said(response):
            why += f": {said}"
        return SinkError(why, min(LONGEST_WAIT, wait))

    async def _said(self, response: aiohttp.ClientResponse) -> str:
        """One short line of it, without what it knows of us."""
        try:
            body = await response.content.read(MOST_READ)
        except (aiohttp.ClientError, OSError) as error:
            return of_error(error).detail
        line = " ".join(body.decode("utf-8", "replace").split())
        if self._hidden is not None:
            line = self._hidden.sub("***", line)
        line = "".join(each for each in line if each.isprintable())
        return line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]}…"

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def posts(changes: Sequence[RowChange]) -> Iterator[WebhookPost]:
    """The changes in as few bodies as may be; one is larger than it should only if it has a single change."""
    start, size = 0, 0
    parts: list[msgspec.Raw] = []
    for place, change in enumerate(changes):
        part = msgspec.json.encode(change)
        if parts and size + len(part) + 1 > LARGEST_BODY - 100:  # for the frame
            yield _post(changes[start:place], parts)
            start, size, parts = place, 0, []
        parts.append(msgspec.Raw(part))
        size += len(part) + 1
    if parts:
        yield _post(changes[start:], parts)


def _post(changes: Sequence[RowChange], parts: list[msgspec.Raw]) -> WebhookPost:
    first, last = changes[0].seq, changes[-1].seq
    return WebhookPost(first, last, msgspec.json.encode({"first": first, "last": last, "changes": parts}))


def _login(url: URL) -> str:
    """User and password of the URL as a header has them. As UTF-8: the client would fail with other letters."""
    given = f"{url.user or ''}:{url.password or ''}"
    return base64.b64encode(given.encode("utf-8", "replace")).decode() if given != ":" else ""


def _secrets(url: URL, login: str, secret: bytes) -> re.Pattern[str] | None:
    """What must not be quoted: all that follows the host in a URL, however it is spelled, and who may log in."""
    parts = {url.user, url.raw_user, url.password, url.raw_password, login, secret.decode("utf-8", "replace")}
    parts |= {*url.parts, *url.raw_parts, *url.query.values(), url.query_string, url.raw_query_string}
    found = sorted((re.escape(part) for part in parts if part and len(part) >= SHORTEST_SECRET), key=len, reverse=True)
    return re.compile("|".join(found), re.IGNORECASE) if found else None


class ChangeQueueSink:
    """One letter for each change; its key is the number, its body the change as JSON."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<ChangeQueueSink of {self._queue!r}>"

    async def send(self, changes: Sequence[RowChange]) -> None:
        """Return when all of them are durable."""
        # With leading zeros, so that keys are in the order of their numbers wherever they are sorted as text.
        letters = [Letter(f"{change.seq:020d}", msgspec.json.encode(change)) for change in changes]
        try:
            await self._publish(letters)
        except QueueError as error:
            raise SinkError(str(error)) from error

    async def _publish(self, letters: list[Letter]) -> None:
        """Return when all are durable, those that the queue never takes as dead letters that say so."""
        while letters:
            try:
                await self._queue.publish(letters)
            except UnfitLetterError as error:
                instead = msgspec.json.encode({"seq": int(error.key), "not_queued": error.why})
                await self._queue.publish_dead(Letter(error.key, instead), f"the change {error.why}")
                letters = [each for each in letters if each.key != error.key]
            else:
                return

    async def close(self) -> None:
        """Let go of the queue."""
        await self._queue.close()
