"""The copy of a part's ledger, and the snapshots that are made of it."""

from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from fake_objects import MemoryObjects

from sanderling.crawls.fleet import DirectStoreCaller
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.stores.fleet import FleetCrawl, PartCommit, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import LeaseLostError
from sanderling.stores.ledger_log import SharedHead
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.testing import FakeClock

CRAWL = FleetCrawl(
    name="sky", id="1", system="repos", plan="{}", parts=1, seconds=30.0, ledger="1", objects="", started=0.0
)


def test_a_snapshot_whose_answer_was_lost_is_kept_and_one_that_is_refused_is_not(tmp_path: Path) -> None:
    """Else whoever made it would give the part up, and its object would be taken for one of nobody."""
    clock, call, objects = FakeClock(), DirectStoreCaller(), MemoryObjects()
    memory = FleetMemory(clock.wall)
    server, other = (MemoryFleet(memory, "sky", WorkerIdentity(name, "", "")) for name in ("one", "two"))
    for each in (server, other):
        call.wait_for(each.begin(CRAWL, range(1)))
    (lease,) = call.wait_for(server.acquire(1))

    def ask(make: Any) -> Any:  # noqa: ANN401 - whatever is asked for
        if make.func == server.keep_snapshot:
            call.wait_for(make())  # and its answer is lost
        return call.wait_for(make())

    place = ObjectPlace(cast("Any", objects), "rows", "sky/")
    copy = LedgerCopy(tmp_path / "progress.db", server, 0, place, SqliteProgress.create_shared, ask)
    copy.bring_up()
    progress = SqliteProgress(tmp_path / "progress.db")

    numbers = count(1)

    def share(body: bytes) -> SharedHead:
        number = next(numbers)
        call.wait_for(server.commit(PartCommit(lease._replace(head=number - 1), f"t{number}", body)))
        return SharedHead(number, f"t{number}")

    def commit(number: int) -> None:
        progress.record([], [], cursor=f"{number}", segment=0)

    progress.share(share)
    commit(1)
    assert copy.keep_snapshot(lease) == ""
    first = call.wait_for(server.state(0)).key
    commit(2)
    assert copy.keep_snapshot(lease) == first
    assert call.wait_for(server.state(0)).snapshot == 2
    clock.advance(100)
    commit(3)
    call.wait_for(other.acquire(1))
    with pytest.raises(LeaseLostError):
        copy.keep_snapshot(lease)
    progress.close()
