"""What a crawled page costs beside Scrapy, Crawlee and a bare loop over aiohttp: CPU of all processes of each.

Pages of 30 and 114 KB by their links, with their main text and without; JSON documents of 1 KB by a list. All write a
JSON line a page, with its title and its links; 64 requests at a time, no pace, one server that outruns them. Ours
keeps its queue on disk and survives kill -9, which the others do not try here.

The CPU of a page is *marginal*: a long run less a short one, so that imports do not count. Programs alternate in one
run. `--rival PATH` measures another Sanderling beside this one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bars import Bar, report

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
LIMIT = 120.0  # seconds for one run
SIZES = {"JSON": (500, 3000), "30 KB": (60, 360), "114 KB": (30, 150)}  # pages of a short run and of a long one


@dataclass(frozen=True, slots=True)
class Crawl:
    """One run: where it begins, and where it writes."""

    folder: Path
    text: bool

    @property
    def seeds(self) -> str:
        return str(self.folder / "seeds.txt")

    @property
    def rows(self) -> str:
        return str(self.folder / "rows.jsonl")

    @property
    def out(self) -> str:
        return str(self.folder / "out")


def ours(crawl: Crawl) -> list[str]:
    flags = ["--policy", "none", "--text", "fast" if crawl.text else "none", "--depth", "1000", "--quiet"]
    return [sys.executable, "-m", "sanderling", "pages", "crawl", "--seeds", crawl.seeds, "--out", crawl.out, *flags]


def rival(program: str) -> Callable[[Crawl], list[str]]:
    flags = ["--rps", "100000", "--depth", "1000", "--no-parquet", "--json"]
    return lambda crawl: [program, "pages", "crawl", "--seeds", crawl.seeds, "--out", crawl.out, *flags]


def peer(script: str, *words: str) -> Callable[[Crawl], list[str]]:
    return lambda crawl: [str(PEERS), str(HERE / "peers" / script), crawl.seeds, crawl.rows, *words]


@contextmanager
def served(count: int, size: int, delay: float = 0.0, log: Path | None = None) -> Iterator[str]:
    """The site, in a process of its own; its address."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(count), str(size), str(delay), str(log or Path(folder) / "log.txt")]
        program = [sys.executable, str(HERE / "web_server.py"), *words]
        server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()
            server.wait()


def cpu_of(command: list[str], said: Path) -> float:
    """Seconds of CPU that a program and its children took."""
    with said.open("wb") as sink:
        process = subprocess.Popen([*command], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=said.parent)
        try:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{said.read_text()[-2000:]}")
    return used.ru_utime + used.ru_stime


def run(program: Callable[[Crawl], list[str]], base: str, kind: str, pages: int, *, text: bool) -> float:
    """One crawl. It counts only if each page has its row, once."""
    with tempfile.TemporaryDirectory() as name:
        crawl = Crawl(Path(name), text)
        urls = [f"{base}/json/{at}" for at in range(pages)] if kind == "JSON" else [f"{base}/html/0"]
        Path(crawl.seeds).write_text("\n".join(urls) + "\n")
        command = program(crawl)
        private = ["--private"] if "pages" in command else []
        took = cpu_of([*command, *private], crawl.folder / "said.txt")
        written = Path(crawl.out) / "pages.jsonl"
        lines = (written if written.exists() else Path(crawl.rows)).read_bytes().splitlines()
        found = {json.loads(line)["url"] for line in lines}
        if len(found) != pages or len(lines) != pages:
            said = (crawl.folder / "said.txt").read_text()[-1500:]
            raise SystemExit(f"{command[:6]}: {len(lines)} rows of {len(found)} pages, expected {pages}\n{said}")
        return took


def measure(
    programs: dict[str, Callable[[Crawl], list[str]]], kind: str, rounds: int, *, text: bool
) -> dict[str, list[float]]:
    """Milliseconds of CPU a page, by program, one figure a round."""
    short, long = SIZES[kind]
    size = 0 if kind == "JSON" else int(kind.removesuffix(" KB")) * 1000
    found: dict[str, list[float]] = {name: [] for name in programs}
    with served(short, size) as few, served(long, size) as many:
        for _ in range(rounds):
            for name, program in programs.items():
                less = run(program, few, kind, short, text=text)
                more = run(program, many, kind, long, text=text)
                found[name].append(1000 * (more - less) / (long - short))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rival", help="another Sanderling, as .venv/bin/sanderling")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, Scrapy at its best only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="one kind of page: JSON, 30 or 114")
    given = parser.parse_args()
    if not PEERS.exists():
        raise SystemExit("no peers here: make peers")
    rounds = 1 if given.quick else given.rounds
    bars: list[Bar] = []

    def judge(
        kind: str,
        label: str,
        programs: dict[str, Callable[[Crawl], list[str]]],
        times: float,
        versus: str,
        *,
        text: bool = False,
    ) -> None:
        if not kind.startswith(given.only):
            return
        more = {"the rival": rival(given.rival)} if given.rival else {}
        found = measure({"ours": ours, **programs, **more}, kind, rounds, text=text)
        bars.extend(Bar(f"{label}: ms of CPU, {name}", median(each)) for name, each in found.items())
        ratio = {name: median(a / b for a, b in zip(each, found["ours"], strict=True)) for name, each in found.items()}
        bars.append(Bar(f"{label}: {versus}, times the CPU of ours", ratio[versus], times, least=True))
        if "bare loop" in ratio:
            bars.append(Bar(f"{label}: ours, in bare loops over aiohttp", 1 / ratio["bare loop"], 3.5))

    for kind in ("30 KB", "114 KB"):
        defaults = {} if given.quick else {"Scrapy": peer("scrapy_pages.py", "defaults", "text")}
        best = "Scrapy at its best"
        programs = {best: peer("scrapy_pages.py", "best", "text"), **defaults}
        judge(kind, f"{kind} with text", programs, 3.0, best, text=True)
        defaults = {} if given.quick else {"Crawlee": peer("crawlee_pages.py")}
        programs = {best: peer("scrapy_pages.py", "best", "none"), **defaults}
        judge(kind, f"{kind} without text", programs, 1.3, best)
    programs = {
        "Scrapy at its best": peer("scrapy_pages.py", "best", "none"),
        "bare loop": peer("bare_loop.py"),
        **({} if given.quick else {"Crawlee": peer("crawlee_pages.py")}),
    }
    judge("JSON", "JSON by a list", programs, 2.5, "Scrapy at its best")
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
