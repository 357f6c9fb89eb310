"""How the third edition crawls hosts with limits."""

from pathlib import Path


def crawl(addresses: list[str], out: Path, rps: float, patience: float = 600) -> list[object]:
    return ["pages", "crawl", *addresses, "--out", out, "--private", "--rps", rps, "--patience", patience]
