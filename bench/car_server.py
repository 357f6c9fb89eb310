"""Many hosts of small repos on loopback, in one process that costs next to nothing to ask.

A file of repos is a DID and a CAR after the other, each with its size before it. `/xrpc/com.atproto.sync.getRepo` is
answered on every port with any of them.
"""

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import BinaryIO

from site_server import MISSING, Answers, answer

from sanderling.formats import cbor
from sanderling.formats.cid import Cid
from sanderling.worlds.pds_repos import FOLLOW, LIKE, POST, PROFILE, make_blocks, make_commit, write_blocks

SIZES = struct.Struct("<II")
SHAPES = 200  # different trees; each repo has one of them, and a commit of its own
SMALL = {POST: 2, LIKE: 3, FOLLOW: 2, PROFILE: 1}  # records; some 3.5 KB
GET_REPO = b"/xrpc/com.atproto.sync.getRepo?did="


def did_of(number: int) -> str:
    """The DID of a repo."""
    return f"did:plc:{number:024}"


def repos(count: int) -> Iterator[tuple[str, bytes]]:
    """So many small repos, DID and CAR; trees repeat themselves, commits do not."""
    rng = Random(5)
    shapes = []
    for _ in range(min(count, SHAPES)):
        root, blocks = make_blocks(rng, did_of(0), SMALL)
        commit = cbor.decode(blocks.pop(root))
        assert isinstance(commit, dict)
        assert isinstance(commit["data"], Cid)
        shapes.append((commit["data"], blocks))
    for number in range(count):
        tree, blocks = shapes[number % len(shapes)]
        commit_block = make_commit(rng, did_of(number), tree)
        root = Cid.of(commit_block)
        yield did_of(number), write_blocks(root, blocks | {root: commit_block})


def write(path: Path, made: Iterable[tuple[str, bytes]]) -> int:
    """Make the file of these repos; bytes of their CARs."""
    total = 0
    with path.open("wb") as file:
        for did, car in made:
            file.write(SIZES.pack(len(did), len(car)) + did.encode() + car)
            total += len(car)
    return total


def _answers(file: BinaryIO) -> Answers:
    found = {}
    while sizes := file.read(SIZES.size):
        did_size, car_size = SIZES.unpack(sizes)
        did = file.read(did_size)
        found[GET_REPO + did] = answer("200 OK", "application/vnd.ipld.car", file.read(car_size))
    return found


class Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            target = self._unread.split(b" ", 2)[1].replace(b"%3A", b":")
            self._unread = self._unread[end + 4 :]
            self._transport.write(self._answers.get(target, MISSING))


async def serve(path: Path, hosts: int) -> None:
    """Print the ports, and answer until killed."""
    with path.open("rb") as file:
        answers = _answers(file)
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda: Connection(answers), "127.0.0.1", 0) for _ in range(hosts)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.Event().wait()


@contextmanager
def running(path: Path, hosts: int) -> Iterator[list[str]]:
    """The hosts, by their addresses, in a process on a core of its own where there are two."""
    command = [sys.executable, __file__, str(path), str(hosts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - this very file
    assert process.stdout is not None
    try:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})  # the crawler has the last one
        yield [f"http://127.0.0.1:{int(port)}" for port in process.stdout.readline().split()]
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
