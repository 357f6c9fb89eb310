"""A race day with three races of four seconds, for `polling`, on a server that answers one by one."""

import asyncio
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from sanderling.cli.demo.upstream import Upstream
from sanderling.clock import Clock

RACES, PILOTS, PASSES = 3, 4, 12
BEFORE, LASTS, EVERY, LAP = 2.0, 4.0, 5.0, 0.33  # seconds
EVENT, ROUND = "e0000000-demo", "r0000000-demo"
UNSET = "0001/01/01 0:00:00"


class RaceDay:
    """What is true at each instant; it begins with the first request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Any path; what there is nothing for is empty, and 200."""
        self._begun = self._clock.wall() if self._begun is None else self._begun
        async with self._one_at_a_time:
            await self._clock.sleep(0.005)
            if request.path == "/":
                page = f'<script>var eventManager = new EventManager("events/{EVENT}");</script>'
                return web.Response(text=page, content_type="text/html")
            found = self._document(request.path)
            return web.Response() if found is None else web.json_response(found)

    def _document(self, path: str) -> Any:  # noqa: ANN401 - JSON
        match path.strip("/").split("/"):
            case ["current"]:
                running = [race for race in range(RACES) if self._times(race)[0] and not self._times(race)[1]]
                return {"CurrentRace": _race_id(running[0]) if running else None}
            case ["httpfiles", "Channels.json"]:
                return [{"ID": f"c{each}", "Number": each, "Band": "Raceband"} for each in range(PILOTS)]
            case ["events", _, "Event.json"]:
                pairs = [{"Pilot": f"p{each}", "Channel": f"c{each}"} for each in range(PILOTS)]
                races = [_race_id(race) for race in range(RACES)]
                return [{"ID": EVENT, "Name": "Demo Cup", "Laps": 3, "Races": races, "PilotChannels": pairs,
                         "RemovedPilots": []}]  # fmt: skip
            case ["events", _, "Pilots.json"]:
                return [{"ID": f"p{each}", "Name": f"Pilot {each + 1}"} for each in range(PILOTS)]
            case ["events", _, "Rounds.json"]:
                return [{"ID": ROUND, "Name": "Round 1", "Order": 100, "Valid": True}]
            case ["events", _, race, name] if race.startswith("race-"):
                return self._race(int(race[5:]), name)
        return None

    def _times(self, race: int) -> tuple[float | None, float | None]:
        start = (self._begun or 0) + BEFORE + race * EVERY
        now = self._clock.wall()
        return start if now >= start else None, start + LASTS if now >= start + LASTS else None

    def _race(self, race: int, name: str) -> Any:  # noqa: ANN401 - JSON
        start, end = self._times(race)
        if name == "Result.json":
            rows = [{"Pilot": f"p{each}", "Position": each + 1, "ResultType": "Race"} for each in range(PILOTS)]
            return rows if end else None
        passed = int(min(PASSES, ((end or self._clock.wall()) - start) / LAP)) if start else 0
        detections = [
            {"ID": f"d{race}-{each}", "Pilot": f"p{each % PILOTS}", "LapNumber": each // PILOTS, "Valid": True}
            for each in range(passed)
        ]
        laps = [
            {"ID": f"l{race}-{each}", "Detection": f"d{race}-{each}", "LengthSeconds": LAP * PILOTS}
            for each in range(passed)
        ]
        return [{"ID": _race_id(race), "Round": ROUND, "RaceNumber": race + 1, "Valid": True, "Start": _date(start),
                 "End": _date(end), "Detections": detections, "Laps": laps, "PilotChannels": []}]  # fmt: skip


def track(clock: Clock) -> Upstream:
    """The upstream."""
    with socket.socket() as free:  # the page has to know where the API will be
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def watched(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(Path(__file__).with_name("race.html"))

    def words(url: str, folder: Path) -> tuple[str, ...]:
        seconds = BEFORE + RACES * EVERY + 3
        return ("polling", "run", url, "--out", str(folder), "--port", str(port), "--origin", url.rstrip("/"),
                "--duration", f"{seconds:g}s", "-ingest-full-interval=3s", "-ingest-race-idle=2s")  # fmt: skip

    app = web.Application()
    app.router.add_get("/live", watched)
    app.router.add_get("/{path:.*}", RaceDay(clock).answer)
    shows = "a race day whose races last four seconds, on a server that answers one request at a time"
    return Upstream(
        "polling", shows, app, words, _truth, key="sourceId",
        watch=lambda url: f"{url}live?api=http://127.0.0.1:{port}",
    )  # fmt: skip


def _truth(_url: str) -> set[str]:
    numbered = [f"{kind}{each}" for kind in "cp" for each in range(PILOTS)]
    passes = [f"{kind}{race}-{each}" for kind in "dl" for race in range(RACES) for each in range(PASSES)]
    results = [f"{_race_id(race)}:p{each}:Race" for race in range(RACES) for each in range(PILOTS)]
    pilots = [f"{EVENT}:p{each}" for each in range(PILOTS)]
    return {EVENT, ROUND, *map(_race_id, range(RACES)), *numbered, *passes, *results, *pilots}


def _race_id(number: int) -> str:
    return f"race-{number}"


def _date(at: float | None) -> str:
    if at is None:
        return UNSET
    found = datetime.fromtimestamp(at, UTC)
    return f"{found:%Y/%m/%d} {found.hour}:{found:%M:%S}.{found.microsecond // 1000:03d}"
