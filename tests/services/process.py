"""Start a server, wait until it answers, stop it: one way for every service of the tests."""

import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

# RabbitMQ is the slowest: 5 to 8 s on an idle machine of two cores.
START_SECONDS = 240.0
# SeaweedFS takes 2 s to stop, RabbitMQ 1 s.
STOP_SECONDS = 60.0
# Below the range from which Linux takes ports for outgoing connections (32768 and up), also after adding 10000.
PORTS = range(10_001, 22_000)


class Unreachable(Exception):  # noqa: N818 -- a state of the world, asked for in a loop
    """Nothing there that speaks the protocol and lets us in."""


class Missing(Exception):  # noqa: N818 -- the same
    """This machine has no program for the service."""


class StartError(Exception):
    """The program is there, but never came to answer."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server we started."""

    url: str
    program: str
    pid: int


@dataclass(frozen=True, slots=True)
class Service:
    """What the search for a service needs to know about it."""

    name: str
    usual: tuple[str, ...]
    hello: Callable[[str, float], None]
    """Speak the protocol with a URL, within seconds; raise Unreachable if that fails."""
    start: Callable[[Path], AbstractContextManager[Running]]
    """Run a private one in a folder; raise Missing if there is no program for it."""


def program(*names: str, before_path: str = "") -> str:
    """Return the first of these programs that is on the path, or in a folder to look at before it."""
    folders = os.pathsep.join((before_path, os.environ.get("PATH", os.defpath)))
    for name in names:
        if found := shutil.which(name, path=folders):
            return found
    raise Missing(f"no {' or '.join(names)} binary on the path")


def private_folder() -> AbstractContextManager[str]:
    """Return a folder that vanishes on exit.

    Not pytest's tmp_path: that is closed to other users, and PostgreSQL refuses to run as root.
    """
    return tempfile.TemporaryDirectory(prefix="sanderling-")


def free_ports(count: int) -> list[int]:
    """Return ports nobody listens on, each with its neighbour 10000 above free as well (SeaweedFS puts gRPC there)."""
    # Not the seeded generator: two pytest workers with one seed would both take the same ports.
    candidates = random.SystemRandom().sample(PORTS, k=len(PORTS))
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = candidates.pop()
            if _hold(port, held) and _hold(port + 10_000, held):
                found.append(port)
    return found


def _hold(port: int, held: ExitStack) -> bool:
    """Bind `port` until `held` is closed; say whether it was free."""
    listener = held.enter_context(socket.socket())
    # As the servers do; otherwise a port of which an old connection is still closing would count as taken.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def ask(method: str, url: str, seconds: float) -> tuple[int, bytes]:
    """Return status and body of one HTTP exchange; straight to the host, whatever proxy the environment names."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc.rpartition("@")[2], timeout=seconds)
    try:
        connection.request(method, f"{parts.path or '/'}?{parts.query}")
        reply = connection.getresponse()
        return reply.status, reply.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None
    finally:
        connection.close()


@contextmanager
def running(
    command: Sequence[str],
    ready: Callable[[], None],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
    seconds: float = START_SECONDS,
) -> Iterator[int]:
    """Run `command` in `folder`, from the moment `ready` no longer raises Unreachable until the block ends; its pid."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 -- the commands are written in this folder
            command,
            cwd=folder,
            env=environment,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C must reach pytest only: the server is still needed while the tests clean up.
            start_new_session=True,
        )
    try:
        _wait(process, ready, log, seconds)
        yield process.pid
    finally:
        _stop(process, stop_signal)


def _wait(process: "subprocess.Popen[bytes]", ready: Callable[[], None], log: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        try:
            return ready()
        except Unreachable as why:
            if time.monotonic() > deadline:
                raise StartError(f"{log.stem} did not answer within {seconds:g} s ({why})\n{_tail(log)}") from None
        time.sleep(0.05)
    raise StartError(f"{log.stem} ended with status {process.returncode} before it answered\n{_tail(log)}")


def _stop(process: "subprocess.Popen[bytes]", stop_signal: signal.Signals) -> None:
    process.send_signal(stop_signal)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-20:]
    return "\n".join(["the end of its log:", *lines])
