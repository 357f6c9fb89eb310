"""A web server as FPVTrackside's on a bad day, written from what it is known to do.

One thread, always 200, Content-Length and close. While it is `cruel` each answer may be cut, empty, another page, of
wrong types, with nulls for lists, endless in depth, late, or no answer at all. What is true only grows.
"""

import contextlib
import json
import socket
import threading
import time
from random import Random
from typing import Any

EVENT = "0e0e0e0e-aaaa"
ODD: tuple[Any, ...] = (None, 5, -1, 2**80, 1e300, "x", "", "\0", [], {}, True, [[[]]], {"ID": None}, "9" * 20_000)


class HostileTrackside:
    """The server, on a port of its own."""

    def __init__(self, seed: int, races: int = 3, pace: float = 0.02) -> None:
        self.random = Random(seed)
        self.races = [f"{number:08x}-race" for number in range(races)]
        self.cruel = True
        self.asked: list[tuple[float, str]] = []
        self._begun = time.monotonic()
        self._pace = pace
        self._most = 760
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def passed(self) -> int:
        """Passes of the race that runs, so far."""
        return min(self._most, int((time.monotonic() - self._begun) / self._pace))

    def truth(self) -> set[str]:
        """The ids of all passes there will be."""
        return {f"d-{number}" for number in range(self._most)}

    def close(self) -> None:
        """Serve no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            with connection, contextlib.suppress(OSError, IndexError):
                connection.settimeout(2)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        heard = connection.recv(65_536)
        path = heard.split(b" ")[1].decode()
        self.asked.append((time.monotonic(), path))
        body = self._body(path)
        if self.cruel and self.random.random() < 0.3:
            match self.random.randrange(7):
                case 0:
                    body = body[: self.random.randrange(len(body) + 1)]
                case 1:
                    body = b""
                case 2:
                    body = b"<html><body>FPVTrackside</body></html>"
                case 3:
                    body = b"[" * 200_000
                case 4:
                    return  # the listener was aborted
                case 5:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + body)
                    return
                case 6:
                    time.sleep(0.3)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)

    def _body(self, path: str) -> bytes:
        found = self._document(path)
        if isinstance(found, bytes):
            return found
        if self.cruel and isinstance(found, list) and found and self.random.random() < 0.4:
            row = self.random.choice(found)
            name = self.random.choice([each for each in row if each != "ID"] or ["Odd"])
            # An empty list says that there is none of it, which nobody can tell from the truth.
            row[name] = self.random.choice([each for each in ODD if each != [] or not isinstance(row[name], list)])
        return json.dumps(found).encode()

    def _document(self, path: str) -> Any:  # noqa: ANN401 - JSON
        parts = path.strip("/").split("/")
        if parts[-1] == "Event.json":
            return [{"ID": EVENT, "Name": "Cup", "Laps": 3, "Races": [*self.races, "stray"], "RemovedPilots": [],
                     "PilotChannels": [{"Pilot": "p", "Channel": "c"}]}]  # fmt: skip
        if parts[-1] == "Pilots.json":
            return [{"ID": "p", "Name": "Zoë"}]
        if parts[-1] == "Rounds.json":
            return [{"ID": "r", "Order": 100, "Valid": True}]
        if parts[-1] == "Channels.json":
            return [{"ID": "c", "Number": 1, "ChannelPrefix": "\0"}]
        if parts[-1] == "Race.json" and parts[2] in self.races:
            runs = parts[2] == self.races[0]
            return [{"ID": parts[2], "Round": "r", "RaceNumber": self.races.index(parts[2]), "Valid": True,
                     "Start": "2026/05/01 9:00:01.5" if runs else "0001/01/01 0:00:00", "End": "0001/01/01 0:00:00",
                     "Detections": [{"ID": f"d-{number}", "LapNumber": number, "Valid": True}
                                    for number in range(self.passed if runs else 0)],
                     "Laps": [], "PilotChannels": []}]  # fmt: skip
        if parts[0] == "events":
            return b""
        return f'<script>new EventManager("events/{EVENT}")</script>'.encode()
