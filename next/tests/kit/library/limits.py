"""The limiter and the client alone, for those of the kit's `limits` checks that need no crawl:

python kit/run --adapter tests/kit/library --program .venv/bin/python limits.hidden limits.failing limits.neighbours
"""

from pathlib import Path


def crawl(addresses: list[str], out: Path, rps: float, patience: float = 600) -> list[str]:
    """The words after the program's name, which is that of Python."""
    return [str(Path(__file__).with_name("all_pages.py")), str(rps), *addresses]
