"""An origin server as RFC 9110 has it, with validators and conditions, and with the ways in which it may be unkind.

Written from the text of the standards, and not from what our client does.
"""

import asyncio
import json
import re
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime

from live_polling import Upstream, answer

from sanderling.task import Reply, Task
from sanderling.testing import LoopClock

ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')  # 8.8.3


class Origin(Upstream):
    """One document, or several, each with a version that goes up when it is told to."""

    def __init__(self, clock: LoopClock, live: int = 1) -> None:
        super().__init__(clock, live, 0)
        self.changes_at: tuple[float, ...] = ()  # when the version goes up
        self.tag: Callable[[int], str] | None = None  # the ETag of a version
        self.dated = False  # whether there is a Last-Modified
        self.from_then = False  # whether an answer is what there was when it was asked for
        self.full = 0  # answers with a document
        self.unchanged = 0  # answers without one
        self.listed: Callable[[float], bool] = lambda _: True
        self._asked: dict[str, str] = {}

    async def send(self, task: Task) -> Reply:
        """One exchange."""
        self._asked = {name.lower(): value for name, value in task.headers}
        return await super().send(task)

    def version(self, now: float) -> int:
        """The version that is current."""
        return sum(at <= now for at in self.changes_at)

    async def _answer(self, path: str) -> Reply:
        asked, began = dict(self._asked), self._clock.now()
        await asyncio.sleep(self.latency(began))
        now = began if self.from_then else self._clock.now()
        headers = {"Date": self._http_date(now)}
        if path == "/list":
            return answer(200, json.dumps(list(self.ids) if self.listed(now) else []).encode(), **headers)
        version = self.version(now)
        if self.tag is not None:
            headers["ETag"] = self.tag(version)
        if self.dated:
            headers["Last_Modified"] = self._modified(now)
        if not self._passes(asked, headers):
            self.unchanged += 1
            return answer(304, b"", **headers)
        self.full += 1
        record = {"id": path.rsplit("/", 1)[1], "state": "live", "version": version}
        return answer(200, json.dumps(record).encode(), **headers)

    def _passes(self, asked: dict[str, str], headers: dict[str, str]) -> bool:
        """13.2.2: If-Modified-Since counts only where there is no If-None-Match."""
        given = asked.get("if-none-match")
        if given is not None:
            if given.strip() == "*":
                return False  # 13.1.2: there is a current representation
            # 13.1.2 and 8.8.3.2: a weak comparison.
            return _opaque(headers.get("ETag", "")) not in [_opaque(each) for each in _listed(given)]
        since = asked.get("if-modified-since")
        if since is not None and "Last_Modified" in headers:
            return parsedate_to_datetime(headers["Last_Modified"]) > parsedate_to_datetime(since)
        return True

    def _modified(self, now: float) -> str:
        """8.8.2: to the second, which is all that a date can say."""
        return self._http_date(max((at for at in self.changes_at if at <= now), default=-3600.0))

    def _http_date(self, at: float) -> str:
        return formatdate(self._clock.wall() - self._clock.now() + at, usegmt=True)


def _listed(tags: str) -> list[str]:
    return ENTITY_TAG.findall(tags) or [tags.strip()]


def _opaque(tag: str) -> str:
    return tag.strip().removeprefix("W/")
