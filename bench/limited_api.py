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
from itertools import product
from pathlib import Path

from harness import Report, at_least, at_most
from limited_server import VARIANTS, Limited, Tally, running
from processes import busy

from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.task import Task

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("SANDERLING_PEERS", HERE.parent / ".venv-peers" / "bin" / "python"))
ITEMS, WORKERS = 400, 32
TRIES = 20  # how often an item is taken up again; the peers are given as many
LIMIT, PATIENCE = 60.0, 60.0  # seconds that a peer may take, and those it may take before it begins
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


def theirs(name: str, settings: str, variant: str) -> Tally | str:
    """What a peer got done; or, in words, why that was not measured."""
    command = [str(PEERS), str(HERE / "peers_limited.py"), name, settings]
    with running(variant) as api, tempfile.TemporaryDirectory() as folder, (Path(folder) / "said").open("wb") as said:
        run = subprocess.Popen([*command, api.base, str(ITEMS)], stdout=said, stderr=said, cwd=folder)  # noqa: S603 - ours
        try:
            code = _wait(run, api)
        finally:
            run.kill()
            run.wait(10)
        tally = api.tally()
    if tally.age is None or code not in (0, None):
        return f"not measured: {'it asked for nothing' if tally.age is None else f'it ended with code {code}'}"
    return tally


def _wait(run: subprocess.Popen[bytes], api: Limited) -> int | None:
    """Its exit code, or None if its time was over, counted from its first request: imports are not what we measure."""
    started = time.monotonic()
    while (code := run.poll()) is None:
        age = api.tally().age
        if (age or 0.0) > LIMIT or (age is None and time.monotonic() - started > PATIENCE):
            return None
        time.sleep(0.25)
    return code


def show(client: str, variant: str, found: Tally | str, report: Report) -> None:
    """One row."""
    row = f"  {variant:12} {client:46}"
    if isinstance(found, str):
        print(f"{row} {found}", flush=True)
        return
    delivered = f"{found.delivered} / {ITEMS}"
    stopped = f", stopped after {LIMIT:.0f} s" if (found.age or 0.0) > LIMIT else ""
    print(f"{row} {delivered:>10} {found.refused:6} {found.seconds:7.1f} s{stopped}", flush=True)
    report.figures |= {
        f"{client}, {variant}: delivered": found.delivered,
        f"{client}, {variant}: 429s": found.refused,
        f"{client}, {variant}: seconds": round(found.seconds, 2),
    }


def main() -> None:
    """Ours first, then each peer; one at a time, as whoever must share the machine would be slower for it."""
    report = Report("limited_api")
    report.figures["load"] = busy()
    print(f"  {'':12} {'':46} {'delivered':>10} {'429s':>6} {'wall':>9}")
    for variant in VARIANTS:
        with running(variant) as api:
            asyncio.run(ours(api))
            tally = api.tally()
        show("ours", variant, tally, report)
        report.bars += [
            at_least(f"{variant}: items delivered of {ITEMS}", ITEMS, tally.delivered),
            at_most(f"{variant}: refusals", 10, tally.refused),
            at_most(f"{variant}: seconds", 24, tally.seconds),
        ]
    if PEERS.exists():
        for (name, settings), variant in product(CLIENTS, VARIANTS):
            client = f"{name}, {BEST[name] if settings == 'best' else 'defaults'}"
            show(client, variant, theirs(name, settings, variant), report)
    else:
        print("  peers not measured: make peers")
    report.finish()


if __name__ == "__main__":
    main()
