"""What the readers of these tests do with an item: the head is a command."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser


def _recurse() -> None:
    _recurse()


def _loop() -> None:
    while True:
        pass


def _burn(seconds: float) -> bytes:
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    return b"burnt"


def _grow(size: int) -> bytes:
    held = bytearray()
    while len(held) < size:
        held += b"x" * (1 << 20)
        time.sleep(0.01)
    time.sleep(60)
    return bytes(held[:1])


def _leave_grandchild() -> None:
    """Die while another session's process holds the socket."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(9)
    os._exit(0)


def _tell_pid_and_sleep(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(3600)


def _leave_thread() -> bytes:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return b"left"


COMMANDS: dict[str, Callable[[bytes], object]] = {
    "echo": lambda body: body,
    "pid": lambda body: str(os.getpid()).encode(),
    "size": lambda body: str(len(body)).encode(),
    "environment": lambda body: "\n".join(os.environ).encode(),
    "descriptors": lambda body: " ".join(map(str, Path("/dev/fd").iterdir())).encode(),
    "selectolax": lambda body: str(LexborHTMLParser(body).css_first("p") is None).encode(),
    "resiliparse": lambda body: str(HTMLTree.parse_from_bytes(body).title).encode(),
    "burn": lambda body: _burn(float(body)),
    "loop": lambda body: _loop(),
    "sleep": lambda body: time.sleep(3600),
    "segfault": lambda body: ctypes.string_at(0),
    "allocate": lambda body: bytearray(4 << 30),
    "hold": lambda body: globals().update(held=b"x" * int(body)) or b"held",
    "exit": lambda body: os._exit(7),
    "sys.exit": lambda body: sys.exit("enough"),
    "recurse": lambda body: _recurse(),
    "divide": lambda body: 1 // 0,
    "answer": lambda body: b"x" * int(body),
    "wrong type": lambda body: {"a": 1},
    "grow": lambda body: _grow(int(body)),
    "grandchild": lambda body: _leave_grandchild(),
    "tell pid and sleep": lambda body: _tell_pid_and_sleep(Path(body.decode())),
    "thread": lambda body: _leave_thread(),
}


def open_work(argument: bytes) -> Callable[[bytes, bytes], bytes]:
    return lambda head, body: COMMANDS[head.decode()](body)  # type: ignore[return-value]  # one is of a wrong type


def open_after_failures(argument: bytes) -> Callable[[bytes, bytes], bytes]:
    """Fails at the second and the third start. The argument is a folder in which starts are counted."""
    for number in count(1):
        try:
            (Path(argument.decode()) / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        if number in (2, 3):
            raise OSError("no file descriptors left")
        return open_work(b"")
    raise AssertionError


def fail(argument: bytes) -> Callable[[bytes, bytes], bytes]:
    raise RuntimeError("cannot be opened")
