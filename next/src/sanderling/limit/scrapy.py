"""An add-on for Scrapy that replaces AutoThrottle: requests leave as fast as each host is learned to allow.

ADDONS = {"sanderling.limit.scrapy.SanderlingAddon": 500}  # in settings.py
SANDERLING = {"max_rps": 20}  # keywords of Limiter, if the usual ones do not fit
"""

from typing import Any, Self
from urllib.parse import urlsplit

from sanderling.clock import SystemClock
from sanderling.ids import normalise_host
from sanderling.limit.limiter import Limiter
from sanderling.limit.permit import Permit, outcome_of
from sanderling.limit.queue import CircuitOpen
from sanderling.outcome import Code

PATIENCE = 600.0  # seconds that a request waits for a host whose circuit is open
MOST_REFUSALS = 20  # of one request, before it counts as Scrapy's RETRY_TIMES says
PERMIT, REFUSALS = "sanderling_permit", "sanderling_refusals"  # in the meta of requests
# They say nothing about the host.
_OURS = frozenset({"IgnoreRequest", "StopDownload", "DownloadCancelledError", "UnsupportedURLSchemeError"})


class SanderlingAddon:
    """Switches AutoThrottle off and the limiter on. What a project sets itself stays."""

    def update_settings(self, settings: Any) -> None:  # noqa: ANN401 - Scrapy is not imported here
        """What Scrapy calls at the start."""
        settings["DOWNLOADER_MIDDLEWARES"][PacedDownloads] = 1000  # behind Scrapy's cache, which needs no permits
        settings.set("AUTOTHROTTLE_ENABLED", value=False, priority="spider")  # two would slow each other
        settings.set("CONCURRENT_REQUESTS_PER_DOMAIN", settings.getint("CONCURRENT_REQUESTS"), "addon")


class PacedDownloads:
    """The downloader middleware: a permit for each request that leaves, and what came back for the limiter."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self._clock = SystemClock()

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:  # noqa: ANN401
        """What Scrapy calls at the start."""
        return cls(Limiter(**crawler.settings.getdict("SANDERLING")))

    async def process_request(self, request: Any, spider: object = None) -> None:  # noqa: ANN401, ARG002
        """Wait for leave. Raises CircuitOpen if the host stays closed for too long."""
        place = urlsplit(request.url)
        if place.scheme not in ("http", "https"):
            return
        host = normalise_host(place.netloc.rpartition("@")[2], place.scheme)
        until = self._clock.now() + PATIENCE
        while PERMIT not in request.meta:
            try:
                request.meta[PERMIT] = await self.limiter.acquire(host)
            except CircuitOpen as closed:
                if closed.until > until:
                    raise
                await self._clock.sleep(closed.until - self._clock.now())

    def process_response(self, request: Any, response: Any, spider: object = None) -> Any:  # noqa: ANN401, ARG002
        """Learn from a response; a refused request is sent again later."""
        permit: Permit | None = request.meta.pop(PERMIT, None)
        if permit is None:  # it came from a cache
            return response
        headers = response.headers.to_unicode_dict()
        outcome = outcome_of(response.status, headers, None, None, self._clock.wall())
        permit.report(outcome, latency=request.meta.get("download_latency", 0.0), headers=headers, item=request.url)
        refusals = request.meta.get(REFUSALS, 0)  # of this item, which is not at fault
        if outcome.code is not Code.RATE_LIMITED or refusals >= MOST_REFUSALS:
            return response
        return request.replace(dont_filter=True, meta={**request.meta, REFUSALS: refusals + 1})

    def process_exception(self, request: Any, exception: Exception, spider: object = None) -> None:  # noqa: ANN401, ARG002
        """Learn from what ended without a response."""
        permit: Permit | None = request.meta.pop(PERMIT, None)
        if permit is not None:
            name = type(exception).__name__
            error = None if name in _OURS else TimeoutError() if "Timeout" in name else exception
            permit.report(outcome_of(0, (), error, None, self._clock.wall()), item=request.url)
