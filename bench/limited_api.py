"""How well is an API met that allows 20 requests a second, 20 at once, and that nobody told us about?

400 items; the ideal is 19 seconds. The API says with a 429 when to come back, says nothing, or claims to allow 100 a
second. Ours starts where `--rps 100` would: at a twentieth of the most, 5 a second at most. Delivered, refusals and
seconds are the API's own count, from the first request to the last new item.
"""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from harness import Report, at_least, at_most
from limited_server import VARIANTS, Limited, Tally, running

from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.task import Task

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("SANDERLING_PEERS", HERE.parent / ".venv-peers" / "bin" / "python"))
ITEMS, WORKERS = 400, 32
TRIES = 20  # how often an item is taken up again; the peers are given as many
LIMIT = 60.0  # seconds that a peer may take
MOST_RPS = 100.0
PACE = PaceRules.up_to(MOST_RPS)
CLIENTS = (("scrapy", "default"), ("scrapy", "best"), ("crawlee", "default"), ("crawlee", "best"))
BEST = {"scrapy": "AutoThrottle, 20 retries", "crawlee": "ThrottlingRequestManager, 20 retries"}


async def ours(api: Limited) -> None:
    """Fetch every item with what people use: guard, client, limiter, retries."""
    async with Http(guard=GuardRules(private=True, raw_addresses=True)) as http:
        fetcher = Fetcher(http, Limiter(LimiterRules(pace=PACE)))
        items = iter(range(ITEMS))
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work(fetcher, api, items))


async def work(fetcher: Fetcher, api: Limited, items: Iterator[int]) -> None:
    """Fetch items until there are none, taking up again what must wait, as any scheduler would."""
    for item in items:
        for _ in range(TRIES):
            outcome = (await fetcher.fetch(Task(f"{api.base}/item/{item}"))).outcome
            if outcome.ok:
                break
            await asyncio.sleep(outcome.retry_after or 0.0)


def theirs(name: str, settings: str) -> dict[str, Tally]:
    """One peer against all variants at once: each has a server of its own, and 20 requests a second load nobody."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        apis = {variant: stack.enter_context(running(variant)) for variant in VARIANTS}
        command = [str(PEERS), str(HERE / "peers_limited.py"), name, settings]
        with (Path(folder) / "said").open("wb") as said:
            runs = [
                subprocess.Popen([*command, api.base, str(ITEMS)], stdout=said, stderr=said, cwd=folder)  # noqa: S603
                for api in apis.values()
            ]
            ends = time.monotonic() + LIMIT
            for run in runs:
                _end(run, ends)
        return {variant: api.tally() for variant, api in apis.items()}


def _end(run: subprocess.Popen[bytes], ends: float) -> None:
    try:
        code = run.wait(max(0.0, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait(10)
    else:
        if code != 0:
            print(f"  WARNING: {run.args!r} ended with code {code}")


def show(client: str, found: dict[str, Tally], report: Report) -> None:
    """A row for each variant."""
    for variant, tally in found.items():
        delivered = f"{tally.delivered} / {ITEMS}"
        print(f"  {variant:12} {client:46} {delivered:>10} {tally.refused:6} {tally.seconds:7.1f} s", flush=True)
        report.figures |= {
            f"{client}, {variant}: delivered": tally.delivered,
            f"{client}, {variant}: 429s": tally.refused,
            f"{client}, {variant}: seconds": round(tally.seconds, 2),
        }


def main() -> None:
    """Ours alone first, then each peer."""
    report = Report("limited_api")
    print(f"  {'':12} {'':46} {'delivered':>10} {'429s':>6} {'wall':>9}")
    for variant in VARIANTS:
        with running(variant) as api:
            asyncio.run(ours(api))
            tally = api.tally()
        show("ours", {variant: tally}, report)
        report.bars += [
            at_least(f"{variant}: items delivered of {ITEMS}", ITEMS, tally.delivered),
            at_most(f"{variant}: refusals", 10, tally.refused),
            at_most(f"{variant}: seconds", 24, tally.seconds),
        ]
    if PEERS.exists():
        for name, settings in CLIENTS:
            show(f"{name}, {BEST[name] if settings == 'best' else 'defaults'}", theirs(name, settings), report)
    else:
        print("  peers not measured: make peers")
    report.finish()


if __name__ == "__main__":
    main()
