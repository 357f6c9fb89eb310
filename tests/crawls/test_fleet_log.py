"""Who waits for a server or the object store says so, and why, for as long as it waits."""

from collections.abc import Callable, Coroutine
from threading import Event
from typing import Any, TypeVar

import pytest

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_log import until_there
from sanderling.stores.leases import HeldLease, Lease, LeasesAwayError
from sanderling.stores.objects import ObjectError, ObjectFault

T = TypeVar("T")


class SlowCaller(DirectStoreCaller):
    """A caller that asks once whether anybody still waits, and looks at what is said meanwhile."""

    def __init__(self) -> None:
        self.said: list[dict[int, tuple[float, str]]] = []
        self.fleet = FleetStores([], self)

    def wait_for(self, asks: Coroutine[Any, Any, T], gives_up: Callable[[], bool] = bool) -> T:
        """As in the port."""
        assert not gives_up()
        self.said.append(dict(self.fleet.waits))
        return super().wait_for(asks)

    def rest(self, until: Event, seconds: float) -> None:
        """As in the port, and at once."""
        del until, seconds
        self.said.append(dict(self.fleet.waits))


@pytest.mark.parametrize(
    ("of", "error"),
    [
        ("PostgreSQL", LeasesAwayError("nobody listens")),
        ("the object store", ObjectError("nobody listens", fault=ObjectFault.DOWN)),
    ],
)
def test_what_is_waited_for_is_said_until_it_answers(of: str, error: Exception) -> None:
    caller, errors = SlowCaller(), [error]
    held = HeldLease(Lease(7, 1, 0), 30.0, lambda: 100.0, 100.0)

    async def ask() -> str:
        if errors:
            raise errors.pop()
        return "an answer"

    assert until_there(caller.fleet, held, ask, of) == "an answer"

    silent, away = (100.0, f"{of} does not answer"), (100.0, f"{of} is away: nobody listens")
    assert caller.said == [{7: silent}, {7: away}, {7: away}]
    assert caller.fleet.waits == {}


def test_who_gives_up_waits_no_more() -> None:
    caller = SlowCaller()
    held = HeldLease(Lease(7, 1, 0), 30.0, lambda: 100.0, 100.0)

    async def ask() -> None:
        held.hurried = True
        raise LeasesAwayError("nobody listens")

    with pytest.raises(LeasesAwayError):
        until_there(caller.fleet, held, ask)

    assert caller.fleet.waits == {}
