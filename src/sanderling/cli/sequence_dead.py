"""`sanderling sequence dead list` and `replay`: the letters that could not be stored, why, and another try for them."""

import base64
import json as jsonlib
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli import CommandError
from sanderling.cli.loop import run
from sanderling.cli.pages_summary import count, duration, printable, size
from sanderling.cli.repos_progress import without_password
from sanderling.cli.sequence_place import QUEUE, USUAL, Keeping, Place, flags_of
from sanderling.clock import SystemClock
from sanderling.stores.queue import Dead, QueueError, WholeQueue

SHOWN = 20
PAGE = 100  # letters in memory at once

T = TypeVar("T")
AsJson = Annotated[bool, Parameter(negative=(), help="Print JSON, and nothing else.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Which queue. A command takes one as `*, letters: Letters = EMBEDDED`."""

    queue: str | None = None
    """The queue: sqlite:FOLDER or amqp://…; by default a file in the folder."""

    queue_name: str = QUEUE
    """What it is called there."""

    def where(self, place: Place) -> str:
        """The place, as it may be shown."""
        return str(place.out) if self.queue is None else without_password(self.queue)

    def there(self, place: Place) -> bool:
        """Whether there is one, as far as that can be known without making it: a broker may have it."""
        kind, _, folder = (self.queue or f"sqlite:{place.out}").partition(":")
        return kind != "sqlite" or not folder or Path(folder.removeprefix("//"), f"{self.queue_name}.db").is_file()

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncIterator[WholeQueue | None]:
        """The queue; None where there is none."""
        if not self.there(place):
            yield None
            return
        queue = Keeping(queue=self.queue, queue_name=self.queue_name).open_queue(place, SystemClock())
        try:
            yield queue
        finally:
            await queue.close()


EMBEDDED = Letters()


def list_dead(
    *,
    limit: Annotated[
        int | None, Parameter(validator=Number(gte=1), help=f"Letters to show at most; {SHOWN}, or with --json all.")
    ] = None,
    show: Annotated[bool, Parameter(negative=(), help="Show what is in them, too.")] = False,
    json: AsJson = False,
    letters: Letters = EMBEDDED,
    place: Place = USUAL,
) -> None:
    """Say which letters are dead, and why."""
    _explained(_list(letters, place, limit, show=show, as_json=json))


def replay(
    *keys: Annotated[str, Parameter(help="The ids of dead letters.")],
    all: Annotated[bool, Parameter(name="--all", negative=(), help="All that are dead.")] = False,  # noqa: A002 - its name
    json: AsJson = False,
    letters: Letters = EMBEDDED,
    place: Place = USUAL,
) -> None:
    """Make dead letters ready again, as if they had never failed."""
    if bool(keys) == all:
        raise CommandError("expected ids of dead letters, or --all", code=2)
    replayed = _explained(_replay(letters, place, None if all else set(keys)))
    if json:
        print(jsonlib.dumps({"replayed": replayed}))
    else:
        print(f"{count(replayed, 'dead letter')} ready again.")
    if replayed < len(set(keys)):
        missing = len(set(keys)) - replayed
        raise CommandError(f"{count(missing, 'key')} of {len(set(keys)):,} not found among the dead letters")


async def _list(letters: Letters, place: Place, limit: int | None, *, show: bool, as_json: bool) -> None:
    wall = SystemClock().wall()
    async with letters.opened(place) as queue:
        if as_json:
            async for dead in _letters(queue, limit):
                print(jsonlib.dumps(_described(dead, show=show)))
            return
        number = (await queue.depth()).dead if queue else 0
        print(printable(f"{count(number, 'dead letter')} in {letters.where(place)}{':' if number else '.'}"))
        shown = 0
        async for dead in _letters(queue, limit or SHOWN):
            shown += 1
            for line in _words(dead, wall, show=show):
                print(printable(line))
        if shown < number:
            print(f"and {number - shown:,} more: see --limit")
        if number:
            again = f"sanderling sequence dead replay --all{flags_of(place, letters)}"
            print(f"\nOnce the reason is gone, have them tried again:\n\n    {again}\n")


async def _replay(letters: Letters, place: Place, keys: set[str] | None) -> int:
    async with letters.opened(place) as queue:
        return await queue.replay(keys) if queue else 0


async def _letters(queue: WholeQueue | None, limit: int | None) -> AsyncIterator[Dead]:
    """Dead letters, the first buried first."""
    after, left = "", sys.maxsize if limit is None else limit
    while queue and left and (page := await queue.dead(min(left, PAGE), after)):
        for dead in page:
            yield dead
        after, left = page[-1].key, left - len(page)


def _explained(work: Coroutine[Any, Any, T]) -> T:
    try:
        return run(work)
    except QueueError as error:
        raise CommandError(printable(str(error))) from None


def _described(dead: Dead, *, show: bool) -> dict[str, object]:
    known: dict[str, object] = {"key": dead.key, "why": dead.why, "tries": dead.tries, "at": dead.at}
    known["size"] = len(dead.body)
    if show:
        try:
            known["body"] = dead.body.decode()
        except UnicodeDecodeError:
            known["body_base64"] = base64.b64encode(dead.body).decode()
    return known


def _words(dead: Dead, wall: float, *, show: bool) -> Iterator[str]:
    age, tries = duration(max(0.0, wall - dead.at)), f"{dead.tries:,} failed before"
    yield f"  {dead.key:<20} {size(len(dead.body)):>9}  {age} ago, {tries}: {dead.why}"
    if show:
        yield f"    {dead.body.decode(errors='replace')}"
