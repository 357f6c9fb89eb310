"""ClickHouse: one already running, or its engine from the chdb-core wheel behind a small HTTP server."""

import importlib.util
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from services.process import Missing, Running, Service, StartError, Unreachable, ask, free_ports, running


def hello(url: str, seconds: float) -> None:
    status, body = ask("GET", f"http://{urlsplit(url).netloc}/?{urlencode({'query': 'SELECT 41 + 1'})}", seconds)
    if status != 200 or body.strip() != b"42":
        raise Unreachable(f"status {status}, {body[:80]!r}")


@contextmanager
def start(folder: Path) -> Iterator[Running]:
    if importlib.util.find_spec("chdb") is None:
        raise Missing("no chdb-core wheel")
    (port,) = free_ports(1)
    url = f"clickhouse://127.0.0.1:{port}/default"
    # -P, since the files beside it have the names of other people's packages.
    command = [sys.executable, "-P", str(Path(__file__).with_name("chdb_http.py")), str(folder / "data"), str(port)]
    with running(command, lambda: hello(url, 5), folder=folder) as pid:
        yield Running(url, "chdb-core over HTTP", pid)


@contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """Give the URL of an empty database beside that of `url`, and remove it afterwards."""
    name = f"sanderling_{uuid.uuid4().hex}"
    _command(url, f"CREATE DATABASE {name}")
    try:
        yield url.rpartition("/")[0] + f"/{name}"
    finally:
        _command(url, f"DROP DATABASE {name}")


def _command(url: str, statement: str) -> None:
    parts = urlsplit(url)
    # With the user and password of the URL, which a given server may need.
    user = urlencode({"user": parts.username, "password": parts.password or ""}) if parts.username else ""
    status, body = ask("POST", f"http://{parts.netloc}/?{urlencode({'query': statement})}&{user}", 30)
    if status != 200:
        raise StartError(f"{statement}: status {status}, {body[:200]!r}")


CLICKHOUSE = Service(name="clickhouse", usual=("clickhouse://127.0.0.1:8123/default",), hello=hello, start=start)
