"""A made-up house for the page of the dashboard: all systems at work, with ten minutes behind them.

It answers as the real server does, and does nothing. `python tests/web/dashboard_fake.py 8700` serves it to look at;
the pictures in the docs are of that, 1280 by 860: sequence in light, events in dark.
"""

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from sanderling.web.assets import INDEX, Assets
from sanderling.web.stream import HEADERS, event
from sanderling.words import duration

Json = dict[str, Any]
Wave = Callable[[float], float]

POINTS = 600
IDS = 58  # that there are more every second


def noise(number: int) -> float:
    """Something from -1 to 1 that looks like chance, and is the same every time."""
    return math.sin(number * 12.9898) * 43_758.5453 % 2 - 1


def wave(middle: float, swing: float, seconds: float, shift: float = 0.0) -> Wave:
    """Something that goes up and down, not quite evenly, and is never below 0."""

    def at(wall: float) -> float:
        slow = math.sin(wall / seconds * math.tau + shift) + 0.4 * math.sin(wall / seconds * 17.3 + shift)
        # The mean of a few seconds, as rates are.
        rough = sum(noise(int(wall) + back + int(seconds)) for back in range(5)) / 5
        return round(max(0.0, middle + swing * (0.7 * slow + 0.5 * rough)), 6)

    return at


def burst(wave_of: Wave, every: float, lasting: float) -> Wave:
    """The same, now and then; 0 otherwise."""
    return lambda wall: wave_of(wall) if wall % every < lasting else 0.0


# The series of each system, by name; the first four are those that every system has.
WAVES: dict[str, dict[str, Wave]] = {
    "pages": {
        "asked": wave(310, 70, 400),
        "kept": wave(287, 66, 400),
        "failed": wave(6, 4, 170),
        "waiting": wave(41_000, 9_000, 1_300, 1.0),
    },
    "sequence": {
        "asked": wave(64, 22, 520, 2.0),
        "kept": wave(59, 21, 520, 2.0),
        "failed": burst(wave(2, 1.5, 60), 300, 40),
        "waiting": wave(7, 6, 200),
        "lag": wave(95, 80, 640, 0.5),
        "workers": lambda wall: float([25, 50, 50, 80, 120, 80, 60, 45, 40, 40][int(wall / 60) % 10]),
    },
    "repos": {
        "asked": wave(24, 6, 300),
        "kept": wave(21.5, 6, 300),
        "failed": wave(0.9, 0.8, 120),
        "waiting": wave(5_200, 600, 900),
        "archived": wave(21.5, 6, 300),
    },
    "polling": {
        "asked": lambda wall: wave(6.5, 0.6, 90)(wall) + burst(wave(5, 0.4, 40), 240, 150)(wall),
        "kept": lambda wall: wave(2.2, 0.9, 90)(wall) + burst(wave(4, 0.6, 40), 240, 150)(wall),
        "failed": burst(wave(0.4, 0.3, 50), 200, 12),
        "waiting": wave(1, 1, 30),
        "late_p99": wave(0.0062, 0.0032, 80),
    },
    "events": {
        "asked": wave(3.4, 1.1, 240, 4.0),
        "kept": wave(3.3, 1.1, 240, 4.0),
        "failed": burst(wave(0.2, 0.15, 60), 150, 20),
        "waiting": wave(120, 80, 500),
        "errors": wave(9, 5, 130),
        "posts": wave(166, 55, 240, 4.0),
    },
    "jobs": {
        "asked": wave(8, 2, 200),
        "kept": wave(61, 14, 200),
        "failed": wave(0.2, 0.2, 90),
        "waiting": wave(320, 90, 400),
    },
}
DOING = {
    "pages": "asking 10,000 hosts; {waiting:,.0f} URLs wait",
    "sequence": "catching up, {behind:,.0f} ids behind; {workers:.0f} workers",
    "repos": "archiving from 214 hosts; 182,400 repos left, about 2 h 21 min",
    "polling": "race 7f3ac201 is live: asked for every 200 ms, and 2 more",
    "events": "processing batches as they come",
    "jobs": "posts: asking 3 hosts; {waiting:,.0f} requests wait",
}
TROUBLES = {
    "pages": [("warning", "shop.d.example: circuit open for another 12.4 s after failures")],
    "events": [("error", "the disk has no room"), ("warning", "3 messages given up")],
}
NUMBERS = {
    "pages": "pages=1,204,113; waiting={waiting:,.0f}; failed=8,204; hosts=10,000; in flight=412; read=61.4 GB; "
    "told to wait=a.example and 3 more; for=1 h 12 min",
    "sequence": "behind={behind:,.0f} ids; lag={lag_said}; records a second={kept:.1f}; workers={workers:.0f}; "
    "to ask again=412; gaps=3; queued=902,117; stored=902,044",
    "repos": "archived=612,004; left=182,400; time left=2 h 21 min; records=88,204,512; hosts=214; blocked=2; "
    "written=104.2 GB; segment=38 with 1.4 GB",
    "polling": "targets=342; live=3; runs a second={asked:.1f}; late (p99)=6 ms; changes=48,201; failing=1; "
    "missed runs=0; followers=12",
    "events": "batches=12,044; posts=602,311; errors=31,877 (5.0%); items a second={posts:.1f}; "
    "waiting={waiting:.0f}; given up=3; outbox=0; seen before=87",
    "jobs": "records=61,204; requests=8,120; waiting={waiting:,.0f}; failed=31; in flight=4; read=212.4 MB; "
    "told to wait=no host; for=17 min",
}


def pages_facts(_wall: float) -> Json:
    counts = {
        "fetched": 1_180_022,
        "unchanged": 24_091,
        "moved": 31_874,
        "refused": 12_400,
        "failed": 8_204,
        "left": 640,
    }
    return {
        "counts": counts,
        "known": 1_298_542,
        "waiting": 41_311,
        "inflight": 412,
        "bytes": 61_400_000_000,
        "hosts": 10_000,
    }


def jobs_facts(_wall: float) -> Json:
    counts = {"fetched": 8_044, "failed": 31, "left_out": 2}
    numbers = {"known": 8_400, "waiting": 320, "inflight": 4, "bytes": 212_400_000, "hosts": 3}
    return {"counts": counts, **numbers}


def sequence_facts(wall: float) -> Json:
    steps = [
        (25, 50, "catch_up", "135 s behind: 25 workers become 50"),
        (50, 80, "catch_up", "still 120 s behind, and no errors: 80"),
        (80, 120, "catch_up", "the host takes it: latency is as usual"),
        (120, 80, "fine_tune", "the host answers slower than usual: 80 is enough"),
        (80, 80, "probe_gap", "61% of a period is missing: looking for the end of a gap"),
        (80, 60, "fine_tune", "at the head in 40 s at this rate"),
    ]
    decisions = [
        {"wall": wall - 600 + 90 * number, "before": before, "workers": workers, "strategy": strategy, "why": why}
        for number, (before, workers, strategy, why) in enumerate(steps)
    ]
    lag, workers = (WAVES["sequence"][name](wall) for name in ("lag", "workers"))
    cursor = 16_000_000_000 + int(wall * 60) % 10_000_000
    behind = int(lag * IDS)
    return {
        "cursor": cursor,
        "head": cursor + behind,
        "behind": behind,
        "lag": lag,
        "workers": int(workers),
        "strategy": "catch_up",
        "why": f"{lag:.0f} s behind: {workers:.0f} workers until that is below 60 s",
        "decisions": decisions,
        "missed": {"hidden": 311, "timeout": 88, "gap": 13},
        "gaps": 3,
        "skipped": 29_988,
        "available": True,
    }


def repos_facts(_wall: float) -> Json:
    ends = {"archived": 612_004, "not_found": 20_114, "timeout": 4_120, "deactivated": 3_377, "taken_down": 402}
    return {
        "done": 635_897,
        "known": 818_297,
        "eta": 8_460.0,
        "categories": ends,
        "segment": 38,
        "segment_bytes": 1_400_000_000,
        "hosts": 214,
        "blocked": 2,
    }


def polling_facts(wall: float) -> Json:
    last = int(wall * 2)
    tables = [
        ("race_result", "update", ["gate", "time_ms"]),
        ("lap", "insert", []),
        ("pilot_position", "update", ["rank"]),
    ]
    recent = []
    for seq in range(last - 14, last + 1):
        table, op, fields = tables[seq % 3]
        recent.append(
            {"seq": seq, "at": seq / 2, "op": op, "table": table, "key": f"7f3ac201:{seq % 97}", "fields": fields}
        )
    settings = [
        ("scheduler.enabled", "true", "true", "Whether anything is polled."),
        ("race.interval", "10", "10", "Seconds between two runs of a race that is not live."),
        ("race.active_interval", "0.2", "0.5", "Seconds between two runs while it is live."),
        ("discovery.interval", "60", "60", "Seconds between two looks at what there is to poll."),
    ]
    return {
        "targets": {"all": 342, "due": 4, "accelerated": 3, "paused": 2, "failing": 1, "gone": 17},
        "late": {"accelerated": {"p50": 0.0011, "p99": 0.0062}, "usual": {"p50": 0.002, "p99": 0.021}},
        "accelerated": [
            {"kind": "race", "id": "7f3ac201", "interval": 0.2, "left": 42.0, "late": 0.001},
            {"kind": "leaderboard", "id": "e2026-final", "interval": 1.0, "left": 42.0, "late": 0.002},
            {"kind": "weather", "id": "north-field", "interval": 5.0, "left": 300.0, "late": 0.002},
        ],
        "next": [
            {
                "kind": "race",
                "id": f"{number:x}c19e04",
                "due": number * 1.7 - wall % 1.7,
                "interval": 10.0,
                "status": "OK",
            }
            for number in range(1, 6)
        ],
        "recent": recent,
        "settings": [
            {"key": key, "value": value, "default": usual, "meaning": meaning, "set": value != usual}
            for key, value, usual, meaning in settings
        ],
        "followers": 12,
    }


def events_facts(wall: float) -> Json:
    minutes = []
    for back in range(30, 0, -1):
        at = (wall // 60 - back) * 60
        posts = WAVES["events"]["posts"](at) * 60
        mood = 0.42 + 0.16 * math.sin(at / 420)
        minutes.append(
            {
                "at": at,
                "positive": int(posts * mood),
                "neutral": int(posts * 0.31),
                "negative": int(posts * (0.69 - mood)),
                "skipped": 0,
                "errors": 0,
            }
        )
    why = ["the batch is not in the bucket", "line 17 is no JSON: unexpected end", "the batch is not in the bucket"]
    dead = [
        {"key": f"batch-{number:04x}", "why": why[number % 3], "at": wall - 600 - number * 91, "tries": 5}
        for number in range(3)
    ]
    errors = [
        ("RATE_LIMITED", "throttling", "429 from the feed"),
        ("TIMEOUT", "network", "no answer within 10 s"),
        ("LOGIN_REQUIRED", "access", "the profile is private"),
    ]
    recent = [
        {
            "at": wall // 9 * 9 - 9 * back,
            "platform": "chirp.example",
            "code": errors[back % 3][0],
            "category": errors[back % 3][1],
            "message": errors[back % 3][2],
        }
        for back in range(8, 0, -1)
    ]
    return {
        "batches": 12_044,
        "posts": 602_311,
        "errors": 31_877,
        "outbox": 0,
        "minutes": minutes,
        "dead": dead,
        "recent": recent,
        "categories": {
            "throttling": 14_210,
            "network": 9_004,
            "access": 5_127,
            "parsing": 2_411,
            "content": 1_002,
            "other": 123,
        },
        "codes": {"RATE_LIMITED": 14_210, "TIMEOUT": 6_044, "LOGIN_REQUIRED": 5_127, "DNS": 2_960, "BAD_JSON": 2_411},
        "sentiments": {"positive": 260_004, "neutral": 190_117, "negative": 152_190},
        "queue": {"ready": 121, "taken": 8, "delayed": 4, "dead": 3},
        "modes": {"new": True, "legacy": True, "inline": False, "canary": 0.25},
    }


FACTS: dict[str, Callable[[float], Json]] = {
    "pages": pages_facts,
    "sequence": sequence_facts,
    "repos": repos_facts,
    "polling": polling_facts,
    "events": events_facts,
    "jobs": jobs_facts,
}


def host(number: int) -> Json:
    """One of very many."""
    state = "open" if number % 97 == 4 else "half_open" if number % 151 == 7 else "closed"
    throttled = number % 23 == 0
    why = {
        "open": "circuit open for another 12.4 s after failures",
        "half_open": "circuit half open: one probe at a time",
    }
    return {
        "system": "pages",
        "host": f"{'abcdefghij'[number % 10]}{number:05}.example",
        "requests": 40_000 - number * 3,
        "asked": round(19 / (1 + number / 40), 2),
        "rate": round(48 / (1 + number / 40) + number % 7 / 10, 2),
        "ceiling": None if number % 3 else round(60 / (1 + number / 50), 1),
        "latency": 0.04 + number % 37 / 100,
        "p95": 0.09 + number % 37 / 40,
        "error_rate": number % 19 / 400,
        "state": state,
        "failures": 12 if state == "open" else 0,
        "not_before": 12.4 if throttled or state == "open" else 0.0,
        "inflight": number % 5,
        "waiting": number % 3,
        "cap": None,
        "queued": number * 7 % 900,
        "paused": False,
        "why": why.get(state, "told to wait another 12.4 s" if throttled else "growing until the host objects"),
        "trouble": "TIMEOUT no answer within 30 s" if state == "open" else "",
    }


def item(number: int) -> Json:
    """One of very many that failed."""
    address = f"https://{'abcdefghij'[number % 10]}{number:05}.example/page/{number}"
    return {"id": address, "state": "failed", "why": "SERVER_ERROR 503", "host": "", "tries": 1 + number % 9}


@dataclass(slots=True)
class FakeHouse:
    """It goes by `clock`, and tells what is new every `every` seconds."""

    systems: tuple[str, ...] = tuple(WAVES)
    hosts: list[Json] = field(default_factory=lambda: [host(number) for number in range(200)])
    every: float = 1.0
    clock: Callable[[], float] = time.time
    remembers: int = POINTS  # seconds of history
    audit: list[Json] = field(default_factory=list)

    def house(self, *, history: bool) -> Json:
        wall = self.clock()
        systems = [self._system(name, wall, history=history) for name in self.systems]
        return {"wall": wall, "home": "harvest", "version": "0.2.0", "secured": False, "systems": systems}

    def _system(self, name: str, wall: float, *, history: bool) -> Json:
        waves = WAVES[name]
        now = {each: at(wall) for each, at in waves.items()}
        now["behind"] = now.get("lag", 0.0) * IDS
        numbers = NUMBERS[name].format(**now, lag_said=duration(now.get("lag")))
        flow = {each: waves[each](wall) for each in ("asked", "kept", "failed")}
        system: Json = {
            "name": name,
            "system": name,
            "running": True,
            "paused": False,
            "age": 0.4,
            "pid": 4711,
            "started": wall - 4_320,
            "doing": DOING[name].format(**now),
            "troubles": [text for _, text in TROUBLES.get(name, [])],
            "severities": [severity for severity, _ in TROUBLES.get(name, [])],
            "numbers": [each.split("=") for each in numbers.split("; ")],
            "flow": {**flow, "allowed": flow["asked"] * 0.97, "waiting": int(waves["waiting"](wall))},
            "facts": FACTS[name](wall),
        }
        if not history:
            return {**system, "points": {each: at(wall) for each, at in waves.items()}}
        first = wall - self.remembers + 1
        points = {each: [at(first + second) for second in range(self.remembers)] for each, at in waves.items()}
        return {**system, "history": {"every": 1.0, "from": first, **points}}

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/", _asset)
        app.router.add_get("/api/session", _session)
        app.router.add_get("/api/stream", self._stream)
        app.router.add_get("/api/hosts", self._hosts)
        app.router.add_get("/api/history", self._history)
        app.router.add_get("/api/items", self._items)
        app.router.add_get("/api/audit", self._audit)
        app.router.add_post("/api/actions", self._act)
        app.router.add_get("/{name}", _asset)
        return app

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        name, wanted = "house", True
        try:
            while True:
                told = msgspec.json.encode(self.house(history=wanted))
                await response.write(event(name, told, int(self.clock())))
                name, wanted = "tick", False
                await asyncio.sleep(self.every)
        except ConnectionError:
            return response

    async def _hosts(self, request: web.Request) -> web.Response:
        query = request.query
        found = [each for each in self.hosts if query.get("search", "") in each["host"]]
        known = [each for each in found if each[query["sort"]] is not None]
        known.sort(key=lambda each: each[query["sort"]], reverse=query["descending"] == "true")
        ordered = known + [each for each in found if each[query["sort"]] is None]
        first = int(query["offset"])
        return _json(
            {"total": len(self.hosts), "matching": len(found), "hosts": ordered[first : first + int(query["limit"])]}
        )

    async def _history(self, request: web.Request) -> web.Response:
        seconds = int(request.query["range"])
        every = max(10, seconds // 720)
        first = int(self.clock()) - seconds
        walls = range(first, first + seconds, every)
        series = {name: [at(wall) for wall in walls] for name, at in WAVES[request.query["system"]].items()}
        return _json({"every": every, "from": first, "series": series})

    async def _items(self, request: web.Request) -> web.Response:
        first = int(request.query.get("after", "0"))
        items = [item(number) for number in range(first, first + 50)]
        return _json({"states": ["failed", "again"], "state": "failed", "items": items, "after": str(first + 50)})

    async def _audit(self, _request: web.Request) -> web.Response:
        return _json(self.audit)

    async def _act(self, request: web.Request) -> web.Response:
        body = await request.json()
        for each in self.hosts:
            if each["host"] == body.get("host"):
                each["paused"] = body["action"] == "pause_host"
        entry = {
            "at": self.clock(),
            "who": "this machine",
            "from": "127.0.0.1",
            "action": body["action"],
            "system": body["system"],
        }
        what = " ".join(str(value) for name, value in body.items() if name not in ("action", "system"))
        self.audit.insert(0, {**entry, "what": what, "done": True, "why": ""})
        return _json({"done": f"{body['action'].replace('_', ' ')}: {what or body['system']}"})


async def _asset(request: web.Request) -> web.Response:
    return Assets().answer(request.match_info.get("name", INDEX), request)


async def _session(_request: web.Request) -> web.Response:
    return _json({"secured": False, "in": True, "csrf": "word"})


def _json(data: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(data), content_type="application/json")


@asynccontextmanager
async def fake_dashboard(house: FakeHouse, port: int = 0) -> AsyncIterator[str]:
    """Serve it while the block runs; gives the address."""
    runner = web.AppRunner(house.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _main(port: int) -> None:
    async with fake_dashboard(FakeHouse(hosts=[host(number) for number in range(10_000)]), port) as url:
        sys.stdout.write(f"{url}\n")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
