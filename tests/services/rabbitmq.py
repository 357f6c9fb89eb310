"""RabbitMQ: one already running, or a private node of the installed one with its own epmd."""

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika

from services.process import Running, Service, Unreachable, free_ports, program, running

# One scheduler, which sleeps while it has nothing to do: as it comes, those of all cores spin for a while first.
CALM = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"


def hello(url: str, seconds: float) -> None:
    async def connect() -> None:
        async with asyncio.timeout(seconds):
            connection = await aio_pika.connect(url)
            await connection.close()

    parts = urlsplit(url)
    try:
        # The client logs every refusal at warning level; while a node starts there would be hundreds.
        _knock(parts.hostname or "", parts.port or 5672, seconds)
        asyncio.run(connect())
    except (OSError, aio_pika.exceptions.AMQPError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None


def _knock(host: str, port: int, seconds: float) -> None:
    """Raise OSError if nothing listens there."""
    socket.create_connection((host, port), seconds).close()


@contextmanager
def start(folder: Path) -> Iterator[Running]:
    # Debian's command on the path is a wrapper that switches to the user rabbitmq; this folder has the program itself.
    server = program("rabbitmq-server", before_path="/usr/lib/rabbitmq/bin")
    epmd = program("epmd")
    amqp_port, epmd_port, dist_port = free_ports(3)
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{amqp_port}\n")
    (folder / "plugins").write_text("[].\n")
    environment = _environment(folder, epmd_port, dist_port)
    url = f"amqp://guest:guest@127.0.0.1:{amqp_port}/"
    # Left to itself the node starts an epmd that outlives it; in the foreground it is ours to stop.
    with (
        running(
            [epmd, "-port", str(epmd_port), "-address", "127.0.0.1"],
            lambda: _listening(epmd_port),
            folder=folder,
            environment=environment,
        ),
        running([server], lambda: hello(url, 5), folder=folder, environment=environment) as pid,
    ):
        yield Running(url, server, pid)


def _listening(port: int) -> None:
    try:
        _knock("127.0.0.1", port, 1)
    except OSError as error:
        raise Unreachable(str(error)) from None


def _environment(folder: Path, epmd_port: int, dist_port: int) -> Mapping[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "sanderling@localhost",
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false " + CALM,
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        # Does not exist: keeps the machine's own settings in /etc/rabbitmq out.
        "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
        # The script then becomes the node instead of its parent, so the pid we stop is the node's.
        "RUNNING_UNDER_SYSTEMD": "true",
    }


RABBITMQ = Service(name="rabbitmq", usual=("amqp://guest:guest@127.0.0.1:5672/",), hello=hello, start=start)
