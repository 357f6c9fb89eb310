"""What does a page cost when two processes share a crawl, or a job, beside one process alone?

A thousand hosts on loopback with small pages of ten links, of which five lead to other hosts: with eight parts, nearly
half of all links cross from one part to another. The real commands, with guard, robots.txt, limiter, ledger and
commits; the job makes a record of each page, and follows all of its links.

The CPU of a page is *marginal*: that of a long run less that of a short one, by the difference in pages, so that
imports do not count. Both sides alternate, and the ratio is the median of those of each round. How long it takes is
said with how busy the cores were: the server, and whatever else runs, has its share of them.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median

from harness import Report, arguments, at_most
from processes import Cost, Failed, Program, busy
from site_server import PROSE, answer, prose

HOSTS, LINKS = 1_000, 5
SHORT, LONG = 2, 12  # pages of each
LIMIT = 300.0  # seconds for one run
MOST = 1.25  # times the CPU of one process


def name_of(host: int) -> str:
    """Loopback has sixteen million addresses."""
    return f"127.1.{host // 250}.{host % 250 + 1}"


def page(host: int, number: int, pages: int, port: int) -> bytes:
    """About 1.5 KB of HTML, with five links to its own host and five to others."""
    paths = [f"/{pages}/{(number * LINKS + step) % pages}" for step in range(1, LINKS + 1)]
    others = (f"http://{name_of((host * 7 + number * 11 + step) % HOSTS)}:{port}" for step in range(LINKS))
    across = (other + path for other, path in zip(others, paths, strict=True))
    links = "".join(f'<li><a href="{each}">more</a></li>' for each in (*paths, *across))
    text = f"<main><h1>{host} {number}</h1><p>{prose(number)}</p><p>{PROSE * 3}</p></main><ul>{links}</ul>"
    return f"<!doctype html><html><head><title>{host} {number}</title></head><body>{text}</body></html>".encode()


class Connection(asyncio.Protocol):
    """Reads requests without bodies, and answers each by its host and path."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address, self._port = transport.get_extra_info("sockname")[:2]
        _, _, upper, lower = map(int, address.split("."))
        self._host, self._unread = upper * 250 + lower - 1, b""

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            path, self._unread = self._unread.split(b" ", 2)[1], self._unread[end + 4 :]
            pages, _, number = path[1:].partition(b"/")
            if number.isdigit():
                body = page(self._host, int(number), int(pages), self._port)
                self._transport.write(answer("200 OK", "text/html; charset=utf-8", body))
            else:
                self._transport.write(answer("404 Not Found", "text/plain", b"not here"))


async def serve() -> None:
    """Print the port, and answer until killed."""
    server = await asyncio.get_running_loop().create_server(Connection, "0.0.0.0", 0)  # noqa: S104 - all of loopback
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def served() -> Iterator[int]:
    """The port of a server, in a process of its own."""
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


JOB = """from sanderling import Job

job = Job("bench", start={seeds!r}, rps=1000.0)


@job.page("/*/*")
def document(page):
    yield {{"url": page.url, "title": page.css("h1").text}}
    yield from page.follow_all("a")
"""


def pages_command(folder: Path, seeds: list[str]) -> list[str]:
    """A crawl of pages."""
    (folder / "seeds").write_text("\n".join(seeds))
    return ["pages", "crawl", "--seeds", str(folder / "seeds"), "--no-parquet", "--rps", "1000"]


def job_command(folder: Path, seeds: list[str]) -> list[str]:
    """A job that reads the same pages."""
    (folder / "job.py").write_text(JOB.format(seeds=seeds))
    return ["run", str(folder / "job.py")]


SYSTEMS = {"page": (pages_command, "pages.jsonl"), "request of a job": (job_command, "records.jsonl")}


def crawl(port: int, what: str, processes: int, pages: int) -> Cost:
    """What one run cost. Failed unless each page has its row, once."""
    make_command, file = SYSTEMS[what]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = make_command(folder, [f"http://{name_of(host)}:{port}/{pages}/0" for host in range(HOSTS)])
        flags = ("--out", str(folder / "out"), "--processes", str(processes), "--private")
        command = (sys.executable, "-m", "sanderling", *asked, *flags)
        cost = Program(command, {}, cores=os.cpu_count() or 1).run(folder / "said", LIMIT)
        rows = [path.read_bytes().count(b"\n") for path in (folder / "out").rglob(file)]
        if sum(rows) != HOSTS * pages:
            raise Failed(f"{sum(rows)} rows, expected {HOSTS * pages}")
        return cost


def main() -> None:
    """Measure all sides in turn."""
    rounds = arguments("rounds", 3, "of all sides").rounds
    report, found = Report("parts"), dict[tuple[str, int], list[float]]()
    report.figures["load"] = busy()
    with served() as port:
        for what, processes in tuple(product(SYSTEMS, (1, 2))) * rounds:
            found.setdefault((what, processes), []).append(measure(port, what, processes, report))
    for (what, processes), each in found.items():
        report.figures[f"{processes} processes, CPU µs a {what}"] = round(median(each), 1)
    for what in SYSTEMS:
        ratio = median(two / one for one, two in zip(found[what, 1], found[what, 2], strict=True))
        report.bars.append(at_most(f"CPU of a {what} with two processes, in that with one", MOST, ratio))
    report.finish()


def measure(port: int, what: str, processes: int, report: Report) -> float:
    """µs of CPU a page."""
    pages = HOSTS * (LONG - SHORT)
    short, long = (crawl(port, what, processes, each) for each in (SHORT, LONG))
    cpu, wall = long.cpu - short.cpu, long.wall - short.wall
    report.figures[f"{processes} processes, {what}s a second"] = round(pages / wall)
    report.figures[f"{processes} processes, cores with {what}s"] = round(cpu / wall, 2)
    speed = f"{pages / wall:,.0f} a second with {cpu / wall:.2f} of {os.cpu_count()} cores"
    print(f"  {processes} processes: {cpu / pages * 1e6:,.0f} µs of CPU a {what}, {speed}", flush=True)
    return cpu / pages * 1e6


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()
