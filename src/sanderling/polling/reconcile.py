"""What discovery changes: from the targets that are known and those that should be, a plan. Pure.

The plan can only name what is discovery's to write, so what an admin set outlives it. A target that is no more is first
marked as gone, and forgotten a day later: an upstream that lists half of what it has, or another event for a moment,
costs nobody his settings. Targets whose kind the source does not know were put there by hand, and stay as they are.
"""

from collections.abc import Iterable, Sequence

from sanderling.apis.polled import Kind, Wanted
from sanderling.polling.settings import PollingSettings
from sanderling.stores.polling import KnownTarget, Reconciliation, WantedTarget

FORGET = 86_400.0  # seconds after which a target that is gone is deleted

Name = tuple[str, str]  # a plain one: with a named tuple for each target, all of this takes half as long again


def reconcile(
    known: Iterable[KnownTarget],
    wanted: Iterable[Wanted],
    settings: PollingSettings,
    kinds: Sequence[Kind],
    wall: float,
) -> Reconciliation:
    """What makes the known targets the wanted ones. Of two that are wanted under one name, the first counts."""
    missing = _found(wanted, settings, kinds)
    ours = {kind.name for kind in kinds}
    update: list[tuple[int, WantedTarget]] = []
    gone: list[int] = []
    delete: list[int] = []
    for target in known:
        if target.found.kind not in ours:
            continue
        found = missing.pop((target.found.kind, target.found.source_id), None)
        if found is None:
            if target.gone is None:
                gone.append(target.id)
            elif wall - target.gone > FORGET:
                delete.append(target.id)
        elif found != target.found or target.gone is not None:
            update.append((target.id, found))
    return Reconciliation(tuple(missing.values()), tuple(update), tuple(gone), tuple(delete))


def _found(wanted: Iterable[Wanted], settings: PollingSettings, kinds: Sequence[Kind]) -> dict[Name, WantedTarget]:
    """The wanted targets by name, as they should be stored. There is none of a kind that the source does not have."""
    rules = {kind.name: (settings.usual[kind.name], kind.priority) for kind in kinds}
    found: dict[Name, WantedTarget] = {}
    for each in wanted:
        name = each.kind, each.source_id
        if each.kind in rules and name not in found:
            found[name] = WantedTarget(*name, each.event, each.only, *rules[each.kind])
    return found
