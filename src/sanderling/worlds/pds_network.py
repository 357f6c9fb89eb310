"""The simulated fleet in process: a client without sockets, so that under virtual time hours take seconds."""

from typing import TYPE_CHECKING, cast

from sanderling.clock import Clock
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import HttpRules
from sanderling.worlds.pds import Fleet
from sanderling.worlds.site_network import SiteNetwork

if TYPE_CHECKING:
    from sanderling.worlds.site import World


class FleetNetwork(SiteNetwork):
    """Stands where `fetch.http.Http` would: the same replies, and the same exceptions where there are none."""

    def __init__(
        self, fleet: Fleet, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        # A fleet has what a network needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", fleet), clock, rules=rules, guard=guard)
        self.fleet = fleet
