"""Do bad pages cost only themselves? Healthy sites behind pages that fail, with real sockets and the real client.

108 sites of 60 pages, all at once: each kind of bad page, few or a third of a site, in front of its good pages, between
them or behind them, at a host that allows anything, one that refuses more than 5 requests a second, and one that is
slow. Before them 200 good pages behind 30 and behind 150 that always answer 503 and say no time: of these two only the
good pages are judged, and they are stopped after a minute.

    python bench/poisoned.py [--json] [--quick]      --quick: 12 of the 108
"""

import asyncio
import sys
import tempfile
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from pathlib import Path

from bars import Bar, report
from url_crawl import crawl

from sanderling.clock import SystemClock, cpu_seconds
from sanderling.engine.rules import EngineRules
from sanderling.fetch import RequestOptions
from sanderling.outcome import Code

PAGES = 60
TIMEOUT = 3.0  # seconds that a host may be silent; 30 by default
LIMIT = 120.0  # seconds for the 108
CLOCK = SystemClock()


class Fault(Enum):
    """What is wrong with a page, and the reason that it has to end with."""

    ERROR = "always 503", Code.HOST_UNAVAILABLE
    HANG = "never answers", Code.TIMEOUT
    CIRCLE = "redirects in a circle", Code.REDIRECT_LOOP
    LONG = "announces more than it sends", Code.TIMEOUT
    CUT = "ends early", Code.TRUNCATED
    RESET = "connection reset", Code.CONNECTION_RESET


class HostPolicy(Enum):
    """What the host allows."""

    FREE = "free"
    STRICT = "refuses more than 5 a second"
    SLOW = "answers after 0.5 s"


@dataclass
class Site:
    """One host: a home page with links to all others, some of which are bad."""

    name: str
    pages: int
    bad: range
    fault: Fault = Fault.ERROR
    policy: HostPolicy = HostPolicy.FREE
    origin: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    _times: deque[float] = field(default_factory=lambda: deque([0.0] * 5, maxlen=5))

    def url(self, number: int) -> str:
        return f"{self.origin}/p/{number}"

    @property
    def good_urls(self) -> list[str]:
        return [self.url(number) for number in range(self.pages) if number not in self.bad]

    @property
    def bad_urls(self) -> list[str]:
        return [self.url(number) for number in self.bad]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                if not await self._respond(line.split()[1].decode(), writer):
                    return
        except (OSError, asyncio.CancelledError):
            return  # the client has gone, or we are done
        finally:
            writer.close()

    async def _respond(self, path: str, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        now = CLOCK.now()
        if self.policy is HostPolicy.STRICT and now - self._times[0] < 1.0:
            writer.write(head("429 Slow down", 0, "Retry-After: 1"))
            return True
        self._times.append(now)
        await asyncio.sleep(0.5 if self.policy is HostPolicy.SLOW else 0.02)
        self.requests[self.origin + path.partition("?")[0]] += "?" not in path
        links = "".join(f"<a href='/p/{n}'>{n}</a>" for n in range(self.pages)) if path == "/" else ""
        body = f"<title>{path}</title><main>{links}<p>{'text ' * 400}</main>".encode()
        if path == "/" or int(path.partition("?")[0].rpartition("/")[2]) not in self.bad:
            writer.write(head("200 OK", len(body)) + body)
            return True
        match self.fault:
            case Fault.ERROR:
                writer.write(head("503 Sorry", 0))
                return True
            case Fault.HANG:
                await asyncio.sleep(LIMIT)
            case Fault.CIRCLE:
                to = path.partition("?")[0] + ("" if "?" in path else "?again=1")
                writer.write(head("302 Elsewhere", 0, f"Location: {to}"))
                return True
            case Fault.LONG:
                writer.write(head("200 OK", 2 * len(body)) + body)
                await asyncio.sleep(LIMIT)
            case Fault.CUT:
                writer.write(head("200 OK", 2 * len(body)) + body)
            case Fault.RESET:
                writer.transport.abort()
        return False


def head(status: str, length: int, *more: str) -> bytes:
    """The head of a response."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", f"Content-Length: {length}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def make_sites() -> list[Site]:
    """One for each case."""
    sites = []
    for fault, few, start, policy in product(Fault, (2, 20), (0.0, 0.5, 1.0), HostPolicy):
        first = round(start * (PAGES - few))
        where = {0.0: "before", 0.5: "between", 1.0: "behind"}[start]
        name = f"{few} of {PAGES} {fault.value[0]}, {where} the good ones, {policy.value}"
        sites.append(Site(name, PAGES, range(first, first + few), fault, policy))
    return [sites[9 * n + n % 9] for n in range(12)] if "--quick" in sys.argv else sites


async def main() -> int:
    """Crawl all sites at once, and judge each."""
    sites = make_sites()
    behind = [Site(f"200 behind {bad} that answer 503", bad + 200, range(bad)) for bad in (30, 150)]
    for site in [*sites, *behind]:
        server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
        site.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    began, cpu = CLOCK.now(), cpu_seconds()
    with tempfile.TemporaryDirectory(prefix="poisoned-") as folder:
        options = RequestOptions(private=True, timeout=TIMEOUT)
        rules = EngineRules(slots=512)
        first, second = Path(folder) / "behind", Path(folder) / "sites"
        first.mkdir()
        second.mkdir()
        other, _, _ = await crawl([f"{site.origin}/" for site in behind], first, options, rules, 61.0)
        between = CLOCK.now()
        it, failed, waiting = await crawl([f"{site.origin}/" for site in sites], second, options, rules, LIMIT)
    seconds, cpu = CLOCK.now() - between, cpu_seconds() - cpu
    fetched = {url: at - began for url, at in other.fetched.items()}
    fetched |= {url: at - between for url, at in it.fetched.items()}
    requests = it.requests + other.requests

    def last(site: Site) -> float:
        return max(fetched.get(url, 999) for url in site.good_urls)

    wrong = Counter[str]()
    for site in sites:
        # A connection that had been used before and is reset may have been stale: the client sends the request again.
        most = 8 if site.fault is Fault.RESET else 4
        found = {
            "good pages not fetched": sum(url not in fetched for url in site.good_urls),
            "good pages that failed": sum(url in failed for url in site.good_urls),
            "bad pages without their own reason": sum(failed.get(u) != site.fault.value[1] for u in site.bad_urls),
            "pages that wait": sum(url in waiting for url in site.good_urls + site.bad_urls),
            "requests for a bad page beyond 4 (reset: 8)": sum(
                max(0, site.requests[url] - most) for url in site.bad_urls
            ),
        }
        wrong.update(found)
        if any(found.values()) and "--json" not in sys.argv:
            reasons = Counter(failed.get(url, "") for url in site.bad_urls)
            print(f"{site.name}: {found} {dict(reasons)}; last good page after {last(site):.0f} s")
    bars = [Bar("cases", len(sites), 12 if "--quick" in sys.argv else 108, least=True)]
    bars += [Bar(f"{what}, of all cases", number, 0) for what, number in wrong.items()]
    bars += [Bar(f"{site.name}: last good page after, s", last(site), 60) for site in behind]
    bars += [
        Bar("last good page of the 108 after, s", max(last(site) for site in sites)),
        Bar("all of the 108 ended after, s", seconds, LIMIT),
        Bar("requests", requests),
        Bar("CPU a request, servers included, ms", 1000 * cpu / requests),
    ]
    return report(bars)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
