"""What does a fetch of ours cost beside a bare loop over aiohttp, and which event loop is cheaper for it?

2 KB bodies from loopback, the server on one core and the client on another. Each run is a process of its own; the
sides alternate, so that whatever else the machine does hits all of them.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from harness import Report, at_most
from processes import ROOT, Program, busy
from site_server import Site, running

ROUNDS = 5
REQUESTS = 5_000
IN_FLIGHT = (64, 256)
LOOPS = ("asyncio", "uvloop")
SHIPPED = "uvloop"  # what `sanderling` runs on: it needs less for a whole fetch, and stays within the bar
MOST = 2.0
LIMIT = 60.0

Case = tuple[str, str, int]  # side, loop, in flight


def measure(case: Case, site: Site, said: Path) -> float:
    """Microseconds of CPU for each request."""
    side, loop, in_flight = case
    script = str(ROOT / "bench" / "peers" / "fetching.py")
    program = Program(
        (sys.executable, script, side, loop, site.url("/blob"), str(REQUESTS), str(in_flight)),
        {"PYTHONPATH": str(ROOT / "src")},
    )
    program.run(said, LIMIT)
    return float(said.read_text().splitlines()[-1])


def main() -> None:
    """Measure all the cases in turn, several times."""
    report = Report("fetch")
    report.figures["load"] = busy()
    cases = [(side, loop, many) for many in IN_FLIGHT for loop in LOOPS for side in ("bare", "ours")]
    took: dict[Case, list[float]] = {case: [] for case in cases}
    with running() as site, tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for case in cases:
                took[case].append(measure(case, site, Path(folder) / "said"))
        server = site.cpu() / site.count() * 1e6

    print(f"  {'CPU µs per request':24} {'in flight':>9} {'bare':>8} {'ours':>8} {'ratio':>7}")
    for many in IN_FLIGHT:
        for loop in LOOPS:
            bare, ours = took["bare", loop, many], took["ours", loop, many]
            ratio = median(mine / theirs for mine, theirs in zip(ours, bare, strict=True))
            print(f"  {loop:24} {many:9} {median(bare):8.0f} {median(ours):8.0f} {ratio:7.2f}")
            report.figures |= {
                f"{loop} {many} bare": round(median(bare)),
                f"{loop} {many} ours": round(median(ours)),
                f"{loop} {many} ratio": round(ratio, 3),
            }
            if loop == SHIPPED:
                report.bars.append(at_most(f"a fetch, {many} in flight, in bare loops over aiohttp", MOST, ratio))
    print(f"  the server: {server:.0f} µs per request")
    report.figures["server"] = round(server)
    report.finish()


if __name__ == "__main__":
    main()
