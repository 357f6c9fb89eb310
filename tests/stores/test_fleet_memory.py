"""The twin of a fleet's server passes what the server passes, so it may stand in for it."""

from copy import deepcopy
from typing import Any

import pytest
from fleet_contract import NAME, FleetContract

from sanderling.stores.fleet import WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.testing import FakeClock


class MemoryPlace:
    """A server in this process."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self._memory = FleetMemory(self._clock.wall)

    async def server(self, worker: str, name: str = NAME) -> MemoryFleet:
        return MemoryFleet(self._memory, name, WorkerIdentity(worker, "a machine", "1.0"))

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def tables(self) -> Any:  # noqa: ANN401 - what can be compared
        return [
            deepcopy(
                (each.crawl, each.parts, each.workers, each.leases.holders(), [*map(each.leases.head, each.parts)])
            )
            for each in self._memory.crawls.values()
        ]

    async def quotas(self) -> set[str]:
        return {name for each in self._memory.crawls.values() for name in each.quotas}

    async def close(self) -> None:
        pass


class TestMemoryFleet(FleetContract):
    @pytest.fixture
    def place(self) -> MemoryPlace:
        return MemoryPlace()
