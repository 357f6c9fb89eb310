"""Real hosts that lead to one, which keeps a log of who asked and when: for jobs that processes or machines share."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from scripted_server import ScriptedServer, answer

from sanderling.crawls.parts import part_of

PARTS, RPS, OWN = 8, 2.0, 4
JOB = """
from sanderling import Job

job = Job("leads", start=URLS, hosts=HOSTS, rps=RPS)

@job.read
def entry(reply):
    yield {"asked": reply.request.url, "came": reply.url, "number": reply.json()["number"]}
"""


def sender_of(writer: asyncio.StreamWriter) -> int:
    """The process at the other end of a connection within this machine."""
    local = f"0100007F:{writer.get_extra_info('peername')[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [row[9] for row in rows if row[1] == local]
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) == f"socket:[{inode}]":  # noqa: PTH115 - it is no path
                return int(link.parts[2])
    raise AssertionError(f"nobody has {local}")


@dataclass(slots=True)
class LeadingHosts:
    """Hosts that lead to the last of them."""

    servers: list[ScriptedServer]
    log: list[tuple[float, int]] = field(default_factory=list)  # of the one they lead to: when, and which process
    senders: set[int] = field(default_factory=set)  # to the others
    expected: list[dict[str, object]] = field(default_factory=list)  # the records, in some order

    def too_fast(self, late: float = 1.0) -> bool:
        """Whether the one that all lead to was asked faster than it allows, by a machine that may be so late."""
        times = sorted(at for at, _ in self.log)
        return any(
            times[end] - times[begin] < (end - begin) / RPS - late
            for begin in range(len(times))
            for end in range(begin, len(times))
        )

    def write_job(self, path: Path) -> str:
        """The file of a job that asks them all."""
        urls = [str(each["asked"]) for each in self.expected]
        hosts = tuple(sorted({url.split("/")[2] for url in urls}))
        path.write_text(JOB.replace("URLS", repr(urls)).replace("HOSTS", repr(hosts)).replace("RPS", repr(RPS)))
        return str(path)

    def _set_up(self) -> None:
        *leading, last = self.servers

        async def note(writer: asyncio.StreamWriter) -> None:
            at = time.monotonic()
            self.log.append((at, sender_of(writer)))

        async def note_sender(writer: asyncio.StreamWriter) -> None:
            self.senders.add(sender_of(writer))

        for number, each in enumerate(leading):
            moved = answer(302, Location=last.url(f"/entry/{number}"))
            each.script["/lead"] = [[note_sender, moved]]
            last.script[f"/entry/{number}"] = [[note, answer(200, b'{"number": %d}' % number)]]
            came = last.url(f"/entry/{number}")
            self.expected.append({"asked": each.url("/lead"), "came": came, "number": number})
        for number in range(OWN):
            url = last.url(f"/own/{number}")
            last.script[f"/own/{number}"] = [[note, answer(200, b'{"number": %d}' % -number)]]
            self.expected.append({"asked": url, "came": url, "number": -number})


@asynccontextmanager
async def leading_hosts(number: int = 6) -> AsyncIterator[LeadingHosts]:
    """So many, of which some belong to parts of another process than the last does, where there are two."""
    async with AsyncExitStack() as stack:
        servers: list[ScriptedServer] = []
        while len(servers) <= number or len({_part(each) % 2 for each in servers[:-1]}) < 2:
            servers.insert(0, await stack.enter_async_context(ScriptedServer({})))
        hosts = LeadingHosts(servers)
        hosts._set_up()
        yield hosts


def _part(server: ScriptedServer) -> int:
    return part_of(f"127.0.0.1:{server.port}", PARTS)
