"""The limiter and the client alone, for those of the kit's `limits` checks that need no crawl:

    PATH=$PWD/.venv/bin:$PATH python kit/run --adapter tests/kit/library --program tests/kit/library/all_pages.py \\
        limits.hidden limits.failing limits.neighbours
"""

from pathlib import Path


def crawl(addresses: list[str], out: Path, rps: float, patience: float = 600) -> list[str]:
    return [str(rps), *addresses]
