"""Both ledgers do what a ledger of a few dictionaries does, whatever they are asked in whatever order."""

import asyncio
from pathlib import Path

import pytest
from kit.postgres import new_name, shared_postgres
from stores.ledger_model import KINDS, PLAN, play

from sanderling.clock import FakeClock
from sanderling.stores import Ledger, open_ledger


@pytest.mark.parametrize("seed", range(12))
def test_sqlite_does_what_the_model_does(seed: int, tmp_path: Path) -> None:
    def open_it(clock: FakeClock) -> Ledger:
        return open_ledger(tmp_path / "crawl.db", plan=PLAN, clock=clock, kinds=KINDS)

    asyncio.run(play(open_it, seed))


@pytest.mark.real
@pytest.mark.parametrize("seed", range(6))
def test_postgres_does_what_the_model_does(seed: int) -> None:
    server, name = shared_postgres(), new_name("model")

    def open_it(clock: FakeClock) -> Ledger:
        return open_ledger(server.url, plan=PLAN, clock=clock, name=name, kinds=KINDS)

    asyncio.run(play(open_it, seed))
