"""What is polled: where each target's document is, and how it is read."""

from typing import Protocol

from sanderling.clock import Clock
from sanderling.fetch.client import Client
from sanderling.fetch.messages import Headers, HttpRequest, HttpResponse
from sanderling.ids import host_of
from sanderling.polling.store import PollTarget
from sanderling.polling.trackside import LARGEST, Document, path_of, read_document


class PolledUpstream(Protocol):
    """What the scheduler needs of one."""

    base: str  # of a Trackside; empty: there is no event to discover

    def urls(self) -> set[str]:
        """One URL of each of its hosts, at least."""

    def targets(self) -> dict[str, int]:
        """The intervals in milliseconds of documents that need no discovery, by their names."""

    def place(self, target: PollTarget) -> tuple[str, Headers]:
        """The URL of a target's document, and the headers for it. Raises DocumentError."""

    def read(self, target: PollTarget, body: bytes) -> Document:
        """The rows of a document. Raises DocumentError."""


class Trackside:
    """The web server of FPVTrackside."""

    def __init__(self, url: str) -> None:
        self.base = url.rstrip("/")

    def urls(self) -> set[str]:
        """Its one."""
        return {self.base}

    def targets(self) -> dict[str, int]:
        """None: discovery finds them."""
        return {}

    def place(self, target: PollTarget) -> tuple[str, Headers]:
        """The URL of a target's document."""
        return self.base + path_of(target.type, target.event, target.source_id), ()

    def read(self, target: PollTarget, body: bytes) -> Document:
        """The rows of a document. Raises DocumentError."""
        return read_document(target.type, target.event, target.source_id, body)


class Requests:
    """Sends requests one at a time as it is told; redirects lead nowhere."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def get(self, url: str, headers: Headers = ()) -> HttpResponse:
        """The response to a request that leaves now."""
        return await self._client.send(HttpRequest(url, headers=headers, largest=LARGEST), follow=False)

    def ready_at(self, url: str) -> float:
        """When the host may be requested: later only by its own Retry-After."""
        return self._client.limiter.ready_at(host_of(url))

    def hold(self, url: str, seconds: float) -> None:
        """Request nothing there for so long."""
        self._client.limiter.wait_until(host_of(url), self._clock.now() + seconds)
