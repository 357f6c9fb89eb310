"""The routes about targets: list them, change what an admin may change, have them run now."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import UNSET

from sanderling.clock import Clock
from sanderling.stores.polling import Field, PollingTarget, Query
from sanderling.web.parsing import Nothing, given
from sanderling.web.polling_types import Hook, KindAndId, Promotion, Promotions, TargetPatch, TargetsQuery
from sanderling.web.polling_views import (
    Promoted,
    Received,
    TargetPage,
    TargetView,
    cursor_of,
    read_cursor,
    target_view,
)
from sanderling.web.problems import ProblemError, problem
from sanderling.web.routes import Asked

GONE = {"true": True, "false": False, "any": None}


class TargetControl(Protocol):
    """What there must be behind these routes. Everything raises PollingStoreError."""

    async def targets(self, query: Query) -> list[PollingTarget]:
        """A page of them."""

    async def target(self, kind: str, source_id: str) -> PollingTarget | None:
        """The one of that name."""

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set. Whether there is such a target."""

    async def promote(self, query: Query, seconds: float) -> int:
        """Run these now, and accelerate them for so long. How many there are."""


class TargetRoutes:
    """They answer."""

    def __init__(self, control: TargetControl, clock: Clock) -> None:
        self._control = control
        self._clock = clock

    async def targets(self, asked: Asked[Nothing, TargetsQuery, Nothing]) -> TargetPage:
        """Targets, those that are due first before the others.

        Due times move while a client turns the pages: a target may be met twice, or not at all.
        """
        wall, query = self._clock.wall(), asked.query
        found = await self._control.targets(
            Query(
                kind=given(query.kind),
                event=given(query.event),
                enabled=None if query.enabled is UNSET else query.enabled == "true",
                gone=GONE[query.gone],
                due_before=wall if query.due == "true" else None,
                accelerated_at=wall if query.accelerated == "true" else None,
                after=None if query.cursor is UNSET else read_cursor(query.cursor),
                most=query.limit + 1,  # one more, to know whether there is another page
            )
        )
        page = found[: query.limit]
        return TargetPage(
            targets=tuple(target_view(target, wall) for target in page),
            next=cursor_of(page[-1]) if len(found) > query.limit else None,
        )

    async def target(self, asked: Asked[KindAndId, Nothing, Nothing]) -> TargetView:
        """One target."""
        return await self._view(asked.path)

    async def change_target(self, asked: Asked[KindAndId, Nothing, TargetPatch]) -> TargetView:
        """Set what an admin may set of a target; what is not given stays as it is."""
        patch = asked.body
        fields: dict[Field, bool | float | int | None] = {}
        if patch.enabled is not UNSET:
            fields["enabled"] = patch.enabled
        if patch.seconds is not UNSET:
            fields["set_seconds"] = patch.seconds
        if patch.priority is not UNSET:
            fields["set_priority"] = patch.priority
        if not fields:
            raise problem(400, "body: found nothing to change, expected some of enabled, seconds, priority")
        return await self._change(asked.path, fields)

    async def pause(self, asked: Asked[KindAndId, Nothing, Nothing]) -> TargetView:
        """Poll a target no more, until it is resumed."""
        return await self._change(asked.path, {"enabled": False})

    async def resume(self, asked: Asked[KindAndId, Nothing, Nothing]) -> TargetView:
        """Poll a target again."""
        return await self._change(asked.path, {"enabled": True})

    async def promote_target(self, asked: Asked[KindAndId, Nothing, Promotion]) -> Promoted:
        """Run a target now. One that is paused stays so."""
        promoted = await self._promote(asked.path, asked.body.seconds)
        if promoted is None:
            raise _unknown(asked.path)
        return Promoted(promoted=promoted)

    async def promote(self, asked: Asked[Nothing, Nothing, Promotions]) -> Promoted:
        """Run many targets now: those of a kind, of an event, or all. Those that are paused stay so."""
        which = asked.body
        query = Query(kind=given(which.kind), event=given(which.event))
        return Promoted(promoted=await self._control.promote(query, which.seconds))

    async def hook(self, asked: Asked[Nothing, Nothing, Hook]) -> Received:
        """Be told by the upstream that something has changed, and run what it names now.

        It may be told twice: a target that is to run now anyway runs once.
        """
        told = asked.body
        if (told.targets is UNSET) == (told.event is UNSET):
            raise problem(400, "body: expected either targets or event, and not both")
        if told.targets is UNSET:
            return Received(promoted=await self._control.promote(Query(event=given(told.event)), 0.0))
        promoted, unknown = 0, []
        for name in dict.fromkeys(told.targets):
            number = await self._promote(name, 0.0)
            if number is None:
                unknown.append(name)
            promoted += number or 0
        return Received(promoted=promoted, unknown=tuple(unknown))

    async def _promote(self, name: KindAndId, seconds: float) -> int | None:
        """Run one now. How many that are; None if there is no such target."""
        number = await self._control.promote(Query(kind=name.kind, source_id=name.id), seconds)
        if number == 0 and await self._control.target(name.kind, name.id) is None:
            return None
        return number

    async def _change(self, name: KindAndId, fields: Mapping[Field, bool | float | int | None]) -> TargetView:
        if not await self._control.change(name.kind, name.id, fields):
            raise _unknown(name)
        return await self._view(name)

    async def _view(self, name: KindAndId) -> TargetView:
        target = await self._control.target(name.kind, name.id)
        if target is None:
            raise _unknown(name)
        return target_view(target, self._clock.wall())


def _unknown(name: KindAndId) -> ProblemError:
    return problem(404, f"there is no target of kind {name.kind!a:.100} with the id {name.id!a:.100}")
