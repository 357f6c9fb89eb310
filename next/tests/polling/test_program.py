"""The program on a hostile Trackside: killed six times, followed all the while."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_trackside import HostileTrackside
from kit.postgres import new_name, shared_postgres

pytestmark = pytest.mark.real
KILLS = 6
Servers = Callable[[int], HostileTrackside]


class Program:
    def __init__(self, folder: Path, url: str, *more: str) -> None:
        self.folder, self.port = folder, 0
        words = ["polling", "run", url, "--out", str(folder), "--port", "0", "-ingest-full-interval=1s", *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sanderling", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert self.process.stderr
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "serving at" in line:
                self.url = line.split()[-1]
                break
        else:
            raise AssertionError("".join(said))
        self.reading = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reading.start()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def call(self, method: str, path: str, token: str = "", body: object = None) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for each in started:
        if each.process.poll() is None:
            os.kill(each.process.pid, signal.SIGKILL)
        each.process.wait(20)
        each.reading.join(20)
        assert each.process.stderr
        each.process.stderr.close()


@pytest.fixture
def servers() -> Iterator[Servers]:
    started: list[HostileTrackside] = []

    def start(seed: int) -> HostileTrackside:
        started.append(HostileTrackside(seed))
        return started[-1]

    yield start
    for each in started:
        each.close()


class Follower(threading.Thread):
    """Follows the stream of whichever program runs, from the first change on."""

    def __init__(self, programs: list[Program]) -> None:
        super().__init__(daemon=True)
        self.programs = programs
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.resets = 0

    def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError):
                self._follow()
            time.sleep(0.05)

    def _follow(self) -> None:
        last = str(self.changes[-1][0]) if self.changes else "0"
        request = urllib.request.Request(self.programs[-1].url + "/stream", headers={"Last-Event-ID": last})
        event: dict[str, str] = {}
        with urllib.request.urlopen(request, timeout=5) as lines:
            for raw in lines:
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                    continue
                if event.get("event") == "change":
                    self.changes.append((int(event["id"]), json.loads(event["data"])))
                self.resets += event.get("event") == "reset"
                event = {}


def test_six_kills_and_a_hostile_upstream_lose_and_double_nothing(
    tmp_path: Path, programs: list[Program], servers: Servers
) -> None:
    server = servers(4)
    programs.append(Program(tmp_path / "out", server.url))
    follower = Follower(programs)
    follower.start()
    for _ in range(KILLS):
        time.sleep(2)
        programs[-1].kill()
        programs.append(Program(tmp_path / "out", server.url))
    server.cruel = False
    until = time.monotonic() + 60
    told: set[str] = set()
    while time.monotonic() < until and told != server.truth():
        time.sleep(0.5)
        every = [each for _, each in follower.changes]
        inserted = [each["key"] for each in every if (each["table"], each["op"]) == ("detections", "insert")]
        told = set(inserted)

    assert told == server.truth()
    assert len(inserted) == len(told)
    positions = [position for position, _ in follower.changes]
    assert positions == list(range(1, len(positions) + 1))
    assert not follower.resets
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "polling.db")) as base:
        assert {row[0] for row in base.execute("SELECT sourceId FROM detections")} == server.truth()
        while (races := base.execute("SELECT count(*) FROM races").fetchone()[0]) < 3 and time.monotonic() < until:
            time.sleep(0.5)  # one that does not run is read each five seconds
        assert races == 3


def test_who_may_change_what(
    tmp_path: Path, programs: list[Program], servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLLOWER", "follower-token-0123456789")
    server = servers(5)
    server.cruel = False
    programs.append(Program(tmp_path / "out", server.url, "--follower-token", "env:FOLLOWER"))
    program = programs[-1]
    admin, follower = (tmp_path / "out" / "admin.token").read_text().strip(), "follower-token-0123456789"
    until = time.monotonic() + 30
    while time.monotonic() < until and not program.call("GET", "/rows/races", follower)[1]["rows"]:
        time.sleep(0.2)

    changing = [
        ("POST", "/ingest/full", None),
        ("POST", "/ingest/events/0e0e0e0e-aaaa/snapshot", None),
        ("POST", "/ingest/events/0e0e0e0e-aaaa/full", None),
        ("POST", "/ingest/events/0e0e0e0e-aaaa/results", None),
        ("POST", f"/ingest/events/0e0e0e0e-aaaa/race/{server.races[1]}", None),
        ("POST", "/promote", {"type": "race", "sourceId": server.races[1]}),
        ("GET", "/admin/scheduler/targets", None),
        ("PATCH", f"/targets/race/{server.races[1]}", {"intervalMs": 3000}),
        ("PATCH", f"/rows/races/{server.races[1]}", {"bracket": "A"}),
        ("PUT", "/settings/burst", {"value": "3"}),
        ("DELETE", "/settings/burst", None),
    ]
    for method, path, body in changing:
        assert program.call(method, path, body=body)[0] == 401
        assert program.call(method, path, follower, body)[0] == 403
        assert program.call(method, path, "wrong", body)[0] == 401
        assert program.call(method, path, admin, body)[0] == 200, path
    for path in ("/targets", "/settings", "/rows/races", "/changes?since=0", "/openapi.json"):
        assert program.call("GET", path)[0] == 401
        assert program.call("GET", path, follower)[0] == 200
    for method, path, body, status in [
        ("POST", "/ingest/events/nowhere/full", None, 404),
        ("POST", "/promote", {"type": "race", "sourceId": "nowhere"}, 404),
        ("POST", "/promote", {"type": "race"}, 400),
        ("GET", "/rows/nowhere", None, 404),
        ("GET", "/stream?since=-1", None, 400),
        ("PUT", "/settings/burst", {"value": "many"}, 400),
        ("PATCH", f"/rows/races/{server.races[1]}", {"raceNumber": "three"}, 400),
        ("PATCH", f"/targets/race/{server.races[1]}", {"intervalMs": -1}, 400),
    ]:
        assert program.call(method, path, admin, body)[0] == status, path
    assert program.call("POST", "/ingest/purge", admin)[1]["races"] >= 3


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_other_commands_work_beside_a_run_wherever_its_tables_are(
    tmp_path: Path, programs: list[Program], servers: Servers, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    more = []
    if kind == "postgres":
        monkeypatch.setenv("POLLED", shared_postgres().url)
        more = ["--database", "env:POLLED", "--schema", new_name()]
    server = servers(7)
    server.cruel = False
    out = str(tmp_path / "out")
    programs.append(Program(tmp_path / "out", server.url, *more))

    def typed(*words: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "sanderling", *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    until = time.monotonic() + 60
    while not (found := typed("export", out, "--to", "-")):
        assert time.monotonic() < until
    race = next(row["sourceId"] for row in map(json.loads, found.splitlines()) if row["table"] == "races")
    assert f"race/{race}" in typed("tasks", out, "waiting") + typed("tasks", out, "due")
    assert f'"sourceId": "{race}"' in typed("show", out, race)
    assert "nothing is missing" in typed("verify", out)
    assert "scheduler.raceIdleMs" in typed("polling", "set", out, "raceIdleMs=4000")
    programs[-1].kill()
    assert typed("tasks", out, "waiting", "--retry")


def test_two_runs_on_one_folder_and_an_open_address_are_refused(
    tmp_path: Path, programs: list[Program], servers: Servers
) -> None:
    server = servers(6)
    server.cruel = False
    programs.append(Program(tmp_path / "out", server.url))
    run = [sys.executable, "-m", "sanderling", "polling", "run"]
    for words, code, says in [
        ([server.url, "--out", str(tmp_path / "out"), "--port", "0"], 75, "in use by"),
        ([server.url, "--out", str(tmp_path / "other"), "--port", "0", "--bind", "0.0.0.0"], 2, "no token"),
        ([server.url + "/nowhere", "--documents", "x", "--out", str(tmp_path / "other")], 2, "either"),
    ]:
        ended = subprocess.run([*run, *words], capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == code, ended.stderr
        assert says in ended.stderr
