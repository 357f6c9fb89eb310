"""A reader process: takes items from a socket, calls the work function for each, and sends the answers back.

The kernel ends it when an item takes too long, so nothing here, in Python or in C, can prevent that.
"""

import faulthandler
import importlib
import os
import resource
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

Work = Callable[[bytes, bytes], bytes]
"""What a reader calls for an item: head and body in, answer out."""

REQUEST = struct.Struct("<IQ?")  # bytes of the head, bytes of the body, whether the body is the path of a file
ANSWER = struct.Struct("<QB?d")  # bytes of the answer, index in FAILURES, whether the reader ends, its CPU so far
FAILURES = ("", "error", "memory", "answer too large")
OPENING = 60.0  # seconds to import what the work needs
CLOSING = 5.0  # and to close what it has opened


class ReaderLimits(msgspec.Struct, frozen=True):
    """What an item, and a host, may take."""

    cpu: float = 2.0  # seconds an item
    wall: float = 60.0  # seconds an item, for what sleeps or waits
    memory: int = 1 << 30  # bytes of address space beyond what the work function takes when it is opened
    answer: int = 16 << 20  # bytes
    host_cpu: float = 600.0  # seconds a host, and a quarter of `cpu` more for each of its items


class Opening(msgspec.Struct):
    """The first thing a reader is told."""

    function: str
    argument: bytes
    limits: ReaderLimits
    limit_memory: bool


def open_work(function: str, argument: bytes) -> Work:
    """Call `function` ("module:name") with `argument`; it returns the work function."""
    module, _, name = function.partition(":")
    opening: Callable[[bytes], Work] = getattr(importlib.import_module(module), name)
    return opening(argument)


def close_work(work: Work) -> None:
    """Let a work function that can be closed free what it has opened."""
    close = getattr(work, "close", None)
    if close is not None:
        close()


def describe(error: BaseException) -> str:
    """The error and where it was raised: the last lines of its traceback, bounded."""
    # Without our own frame and the causes. 4,000 characters hold three frames and a sentence.
    frames = error.__traceback__ and error.__traceback__.tb_next
    return "".join(traceback.format_exception(type(error), error, frames, limit=-3, chain=False)).strip()[-4000:]


def answer_item(work: Work, head: bytes, body: bytes | Path, most: int) -> tuple[str, bytes]:
    """One of FAILURES, and the answer or what went wrong."""
    try:
        answer = work(head, body if isinstance(body, bytes) else body.read_bytes())
        if not isinstance(answer, bytes):
            raise TypeError(f"the work function returned {type(answer).__name__}, expected bytes")  # noqa: TRY301
    except MemoryError as error:
        traceback.clear_frames(error.__traceback__)  # describing it takes memory, too
        return "memory", describe(error).encode(errors="replace")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a page does to its function is that item's failure
        return "error", describe(error).encode(errors="replace")
    if len(answer) > most:
        return "answer too large", f"{len(answer):,} bytes, expected at most {most:,}".encode()
    return "", answer


def main(channel: int, log: int) -> None:
    """Serve the socket with the descriptor `channel` until it is closed; `log` is for the last words."""
    for descriptor in (channel, log):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no keyword
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the crawl stops readers, by closing the socket
        signal.signal(ignored, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel's default action for both timers ends the process; faulthandler first writes down where it was.
    faulthandler.enable(log, all_threads=False)
    for timer in (signal.SIGPROF, signal.SIGALRM):
        faulthandler.register(timer, log, all_threads=False, chain=True)
    with suppress(ConnectionError, EOFError):  # the crawl has ended
        _serve(socket.socket(fileno=channel))
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads that were left behind


def _serve(channel: socket.socket) -> None:
    head, _ = _receive(channel)
    opening = msgspec.msgpack.decode(head, type=Opening)
    limits = opening.limits
    works: list[Work] = []

    def open_here(_head: bytes, _body: bytes) -> bytes:
        works.append(open_work(opening.function, opening.argument))
        return b""

    signal.setitimer(signal.ITIMER_REAL, OPENING)
    failure, answer = answer_item(open_here, b"", b"", limits.answer)
    signal.setitimer(signal.ITIMER_REAL, 0)
    space, resident = _memory()
    if opening.limit_memory:
        resource.setrlimit(resource.RLIMIT_AS, (space + limits.memory, space + limits.memory))
    threads = threading.active_count()
    is_last = not works
    while True:
        channel.sendall(ANSWER.pack(len(answer), FAILURES.index(failure), is_last, _cpu()) + answer)
        if is_last:
            return
        del answer
        try:
            head, body = _receive(channel)
        except EOFError:
            signal.setitimer(signal.ITIMER_REAL, CLOSING)
            close_work(works[0])
            raise
        signal.setitimer(signal.ITIMER_PROF, limits.cpu)
        signal.setitimer(signal.ITIMER_REAL, limits.wall)
        failure, answer = answer_item(works[0], head, body, limits.answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        # A reader that is no longer what it was is replaced.
        kept = _memory()[1] - resident > limits.memory // 2
        is_last = failure == "memory" or kept or threading.active_count() > threads


def _receive(channel: socket.socket) -> tuple[bytes, bytes | Path]:
    head_size, body_size, is_path = REQUEST.unpack(_receive_bytes(channel, REQUEST.size))
    head = _receive_bytes(channel, head_size)
    body = _receive_bytes(channel, body_size)
    return head, Path(os.fsdecode(body)) if is_path else body


def _receive_bytes(channel: socket.socket, size: int) -> bytes:
    # The usual case is one piece, which is not copied.
    data = channel.recv(size, socket.MSG_WAITALL) if size else b""
    if len(data) < size:
        raise EOFError
    return data


def _cpu() -> float:
    # Not time.process_time: while a timer is set, Linux updates that only every 4 ms.
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@cache
def _statm() -> int:
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _memory() -> tuple[int, int]:
    """Bytes of address space and of memory in use; on systems without /proc, 0 and the most that ever was in use."""
    if sys.platform != "linux":
        return 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kept open, as this is asked after each item: 1 µs instead of 10.
    pages = os.pread(_statm(), 100, 0).split()
    return int(pages[0]) * resource.getpagesize(), int(pages[1]) * resource.getpagesize()
