"""How well is an API met that allows 20 requests a second, 20 at once, and that nobody told us about?

400 items; the ideal is 19 seconds. With a 429 the API says when to come back, or says nothing. Ours is
examples/limit_items.py (aiohttp and the limiter, in at most 40 lines) and `sanderling run` of bench/limited_job.py,
both with both policies, and Scrapy with our add-on; beside them plain Scrapy and Crawlee, as they come and at their
best (bench/peers_limited.py, `make peers`). All counts are the API's own. The bars are for ours; with --quick no peer
runs.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bars import Bar, report

sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from hidden_limit import Running, Tally, running

HERE = Path(__file__).parent
ITEMS = 400
EXAMPLE = HERE.parent / "examples" / "limit_items.py"
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
LIMIT = 45.0  # seconds from its first request that a client may take
START = 60.0  # seconds to its first request: imports are not what is measured
JOB = HERE / "limited_job.py"
RUN = [sys.executable, "-m", "sanderling", "run", JOB.name, "--out", "out", "--private", "--quiet", "--policy"]
OURS = {
    "governor": [sys.executable, str(EXAMPLE), "BASE", str(ITEMS), "governor"],
    "aimd": [sys.executable, str(EXAMPLE), "BASE", str(ITEMS), "aimd"],
    "sanderling run, governor": [*RUN, "governor"],
    "sanderling run, aimd": [*RUN, "aimd"],
}
THEIRS = {
    name: [str(PEERS), str(HERE / "peers_limited.py"), name, "BASE", str(ITEMS)]
    for name in ("scrapy-sanderling", "scrapy", "scrapy-best", "crawlee", "crawlee-best")
}
MEASURED = (*OURS, "scrapy-sanderling")  # with bars


def play(words: list[str], *, told: bool) -> Tally:
    """What a client got done, by the API's own count."""
    with running(told=told) as api, TemporaryDirectory() as folder:
        words = [api.base if word == "BASE" else word for word in words]
        (Path(folder) / JOB.name).write_text(JOB.read_text().replace("https://api.example", api.base))
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            try:
                _wait(client, api)
            finally:
                client.kill()
        return api.tally()


def _wait(client: subprocess.Popen[bytes], api: Running) -> None:
    began = time.monotonic()
    while client.poll() is None:
        age = api.tally().age
        if (age or 0.0) > LIMIT or (age is None and time.monotonic() - began > START):
            return
        time.sleep(0.25)


def main() -> int:
    clients = OURS if "--quick" in sys.argv else OURS | THEIRS
    if "--quick" not in sys.argv and not PEERS.exists():
        print("no peers here: make peers", file=sys.stderr)
        clients = OURS
    lines = len(EXAMPLE.read_text().splitlines())
    bars = [Bar("lines of the program with aiohttp and the limiter", lines, 40)]
    plays = list(product(clients, (True, False)))
    with ThreadPoolExecutor(4) as pool:  # at once, since they mostly wait
        tallies = list(pool.map(lambda each: play(clients[each[0]], told=each[1]), plays))
    for (name, told), found in zip(plays, tallies, strict=True):
        about = f"{name}, {'with' if told else 'without'} Retry-After:"
        ours = name in MEASURED
        refused = 100 * found.refused / max(1, found.refused + found.delivered)
        bars += [
            Bar(f"{about} items of {ITEMS}", found.delivered, ITEMS if ours else None, least=True),
            Bar(f"{about} % refused", refused, 2.0 if ours else None),
            Bar(f"{about} requests before a Retry-After was over", found.early, 0 if ours else None),
            Bar(f"{about} seconds to the last new item", found.seconds),
        ]
        print(f"{about} {found}", file=sys.stderr, flush=True)
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
