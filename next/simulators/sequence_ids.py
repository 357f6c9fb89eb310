"""An API of growing ids in virtual time: what a client would be told, with no socket between.

Written from outside: ids are born at a rate that changes, become visible some time later, out of order; some never are;
after so many ids so many numbers are left out, again and again; the API fails for a while in one of several ways.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from hashlib import blake2b

from sanderling.clock import Clock
from sanderling.fetch.client import Read
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome


@dataclass
class IdWorld:
    clock: Clock
    first: int = 1_000
    back: int = 0  # ids that are there when it begins
    rates: tuple[tuple[float, float], ...] = ((0.0, 1.0),)  # (from this second on, ids a second)
    block: tuple[int, int] = (0, 0)  # so many ids, then so many numbers left out, again and again
    holes: float = 0.0
    scatter: float = 1.0  # seconds: a record is visible 0.2 s after its birth and up to this much later
    latency: float = 0.1
    troubles: tuple[tuple[float, float, str], ...] = ()  # (from, until, 503|refused|hang|200|shape)
    refused: float = 0.0  # the share of records that are refused for ever, whatever the pace
    edited: float = 0.0  # the share of records that change an hour after they are visible
    deleted: float = 0.0  # and of those that are deleted then
    stamps: bool = True
    head: bool = False  # an address that says the newest id
    seed: int = 1
    begun: float = 0.0
    asked: list[tuple[float, int, str]] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    stored_at: dict[int, float] = field(default_factory=dict)  # when a record was first given away

    def __post_init__(self) -> None:
        self.begun = self.clock.now()
        self._starts = [start for start, _ in self.rates]
        self._counts = [0.0]
        for (start, rate), (end, _) in zip(self.rates, self.rates[1:], strict=False):
            self._counts.append(self._counts[-1] + rate * (end - start))

    def chance(self, number: int, what: str) -> float:
        return int.from_bytes(blake2b(f"{self.seed}:{what}:{number}".encode(), digest_size=8).digest()) / 2**64

    def place(self, number: int) -> int | None:
        at, (size, gap) = number - self.first, self.block
        if at < 0:
            return None
        if not size:
            return at
        blocks, rest = divmod(at, size + gap)
        return blocks * size + rest if rest < size else None

    def number(self, place: int) -> int:
        size, gap = self.block
        return self.first + place + (place // size * gap if size else 0)

    def born(self, place: int) -> float:
        """Seconds from the start; what was there before has negative ones, a tenth of a second apart."""
        after = place - self.back
        if after < 0:
            return after / 10
        step = max(0, bisect_right(self._counts, after) - 1)
        while step and self.rates[step][1] == 0:
            step -= 1
        rate = self.rates[step][1]
        return self._starts[step] + (after - self._counts[step]) / rate if rate else float("inf")

    def seen(self, number: int) -> float:
        """From which second on its record is visible; never for a hole."""
        place = self.place(number)
        if place is None or self.chance(number, "hole") < self.holes:
            return float("inf")
        return self.born(place) + 0.2 + self.scatter * self.chance(number, "seen")

    def now(self) -> float:
        return self.clock.now() - self.begun

    def is_deleted(self, number: int) -> bool:
        return self.chance(number, "deleted") < self.deleted and self.now() > self.seen(number) + 3600

    def name(self, number: int) -> str:
        changed = self.chance(number, "edited") < self.edited and self.now() > self.seen(number) + 3600
        return f"thing {number}" + " anew" * changed

    def due(self, second: float) -> set[int]:
        """The ids that are visible by then."""
        found, place = set(), 0
        while self.born(place) <= second:
            if self.seen(self.number(place)) <= second:
                found.add(self.number(place))
            place += 1
        return found

    def newest(self) -> int:
        low, high = 0, 1
        while self.born(high) <= self.now():
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.born(middle) <= self.now() else (low, middle)
        return self.number(low)

    async def send(
        self,
        request: HttpRequest,
        permit: Permit | None = None,
        *,
        read: Read | None = None,
        item: Hashable = None,
        of_host: bool = False,
    ) -> HttpResponse:
        kind = next((kind for start, end, kind in self.troubles if start <= self.now() < end), "")
        text = request.url.rpartition("/")[2]
        if kind == "hang":
            await self.clock.sleep(30.0)
        elif kind != "refused":
            await self.clock.sleep(self.latency)
        response = self._answer(text, kind, request.url)
        outcome = read(response) if read is not None and response.status else response.outcome
        if permit is not None:
            permit.report(outcome, latency=self.latency, item=item, of_host=of_host)
        return response

    def _answer(self, text: str, kind: str, url: str) -> HttpResponse:
        if kind and kind != "shape":
            said, status, body = kind, 200, b'{"error": {"message": "internal"}}'
        elif text == "newest":
            said, status, body = "head", 200, str(self.newest()).encode()
        elif self.chance(int(text), "refused") < self.refused:
            said, status, body = "refused for ever", 429, b"{}"
        elif self.seen(int(text)) <= self.now() and not self.is_deleted(int(text)):
            number = int(text)
            record = {"number" if kind == "shape" else "id": number, "name": self.name(number)}
            if self.stamps:
                record["created"] = self.clock.wall() - self.now() + self.born(self.place(number) or 0)
            said, status, body = kind or "ok", 200, json.dumps(record).encode()
            if not kind:
                self.stored_at.setdefault(number, self.now())
        else:
            said, status, body = "none", 404, b"{}"
        self.asked.append((self.now(), 0 if text == "newest" else int(text), said))
        self.said[said] += 1
        match kind:
            case "503":
                return HttpResponse(Outcome(Code.HOST_UNAVAILABLE, 503), url, 1, 503, body=b"no")
            case "hang":
                return HttpResponse(Outcome(Code.TIMEOUT), url, 1)
            case "refused":
                return HttpResponse(Outcome(Code.CONNECTION_REFUSED, sent=False), url, 1)
        code = {200: Code.OK, 429: Code.RATE_LIMITED}.get(status, Code.CONTENT_NOT_FOUND)
        return HttpResponse(Outcome(code, status), url, 1, status, body=body)
