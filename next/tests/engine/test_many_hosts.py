"""More hosts than fit in memory: none starves, whatever those in memory wait for."""

import asyncio
from pathlib import Path

import pytest
from engine.worlds import Fault, Item, Machine, Spell, World, items, play, run

from sanderling.clock import run_virtual
from sanderling.engine.host_locks import HostLocks
from sanderling.engine.rules import EngineRules

FEW = EngineRules(hosts=10)
WELL = "well.example"


def many(number: int, each: int = 1) -> list[Item]:
    return [item for n in range(number) for item in items(f"h{n}.example", each)]


def test_all_hosts_get_their_turn() -> None:
    world = World(many(500, 4), rules=FEW)

    play(world)

    assert not world.waiting


@pytest.mark.parametrize("due", [400.0, 86_400.0])
def test_hosts_whose_work_is_due_later_keep_out_nobody(due: float) -> None:
    """The links of the last page are found when the memory is full of hosts that are due much later."""
    found = Item(WELL, "late", finds=tuple(many(30, 2)[40:]))
    world = World(
        [*(Item(f"h{n}.example", "i0", due=due) for n in range(30)), Item(WELL, "first", finds=(found,))], rules=FEW
    )

    play(world)

    assert not world.waiting
    new = [at for (_, key), at in world.ended_at.items() if key == "i1"]
    assert max(new) < 60


@pytest.mark.parametrize("fault", [Fault.WAIT, Fault.HANG, Fault.UNREACHED, Fault.ERROR, Fault.REFUSED])
def test_hosts_that_do_not_answer_keep_out_nobody_for_long(fault: Fault) -> None:
    spells: dict[str, tuple[Spell, ...]] = {f"h{n}.example": (Spell(fault),) for n in range(30)}
    world = World(many(30, 3) + items(WELL, 50), spells=spells, rules=FEW)

    play(world)

    assert {each.host for each in world.waiting} == set(spells)
    assert world.last_end(host=WELL) < 700


def test_hosts_of_another_crawl_keep_out_nobody(tmp_path: Path) -> None:
    world = World(many(30) + items(WELL, 20), rules=FEW)
    theirs = HostLocks(tmp_path)
    assert all(theirs.acquire(f"h{n}.example") for n in range(30))

    async def main() -> Machine:
        async with asyncio.timeout(1e4):
            return await run(world, locks=HostLocks(tmp_path))

    run_virtual(main())

    assert len(world.ends) == 20
    assert len(world.waiting) == 30
