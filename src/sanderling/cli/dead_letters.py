"""Dead letters of every system: letters that were given up, why, and another try."""

import base64
import json as jsonlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, NamedTuple

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import again
from sanderling.cli.letters import InFolder, QueueFlags
from sanderling.cli.report_words import line
from sanderling.cli.times import written
from sanderling.clock import SystemClock
from sanderling.stores.queue import LONGEST_KEY, Dead, WholeQueue
from sanderling.words import count, duration, printable, size

SHOWN = 20
PAGE = 100  # letters in memory at once
MOST_COMPARED, MOST_NAMED = 2_000, 3  # keys that are looked at for a near one, and that are named
# Every line of a document is indented by its depth: a megabyte of small things at a depth of a thousand would be two
# gigabytes. Letters that anybody writes are at most ten deep.
DEEPEST = 20
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)

Key = Annotated[str, Parameter(help="The key of a dead letter, as `dead list` shows it.")]
Keys = Annotated[str, Parameter(help="The keys of dead letters, as `dead list` shows them.")]
Limit = Annotated[
    int | None, Parameter(validator=Number(gte=1), help=f"Letters to show at most; {SHOWN}, or with --json all.")
]
Every = Annotated[bool, Parameter(name="--all", negative=(), help="All that are dead.")]


class LetterContent(NamedTuple):
    """What our reader makes of a letter."""

    facts: dict[str, str | None]
    notes: tuple[str, ...] = ()  # on what is not as it should be


@dataclass(frozen=True, slots=True)
class DeadLetterCommands:
    """Those of one queue."""

    letters: QueueFlags
    folder: InFolder
    read: Callable[[bytes], LetterContent | str]  # what a body says, or why it cannot be read

    async def tell_all(self, limit: int | None, *, as_json: bool) -> None:
        """Say which there are, and why. Raises CommandError and QueueError."""
        wall = SystemClock().wall()
        async with self._opened() as queue:
            if as_json:
                async for dead in _letters(queue, limit):
                    print(jsonlib.dumps(_known(dead)))
                return
            number, listed = (await queue.depth()).dead if queue else 0, 0
            print(printable(f"{count(number, 'dead letter')} in {self._where}{':' if number else '.'}"))
            async for dead in _letters(queue, limit or SHOWN):
                listed += 1
                about = f"{size(len(dead.body)):>9}  {_when(dead, wall)}{_before(dead)}"
                print(printable(f"  {dead.key:<20} {about}: {dead.why}"))
            if listed < number:
                print(f"and {number - listed:,} more: see --limit")
            if number:
                self._tell_more("them", "--all", self.letters)

    async def show(self, key: str, *, as_json: bool) -> None:
        """Show all of one, and what it says. Raises CommandError and QueueError."""
        dead = await self._found(key)
        read = self.read(dead.body)
        if as_json:
            print(jsonlib.dumps(_known(dead) | _body(dead.body) | _says(read)))
            return
        for each in _words(dead, read, SystemClock().wall()):
            print(printable(each))
        # A key that begins with a dash would be taken for a flag.
        self._tell_more("it", self.letters, *(["--"] if key.startswith("-") else []), key)

    async def replay(self, keys: Collection[str], *, every: bool, as_json: bool) -> None:
        """Make these ready again, or all of them. Raises CommandError and QueueError."""
        if bool(keys) == every:
            raise CommandError("expected keys of dead letters, or --all", code=2)
        wanted = set(keys)
        async with self._opened() as queue:
            replayed = await queue.replay(None if every else wanted) if queue else 0
        print(jsonlib.dumps({"replayed": replayed}) if as_json else f"{count(replayed, 'dead letter')} ready again.")
        if replayed < len(wanted):
            missing = count(len(wanted) - replayed, "key")
            raise CommandError(f"{missing} of {len(wanted):,} not found among the dead letters")

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[WholeQueue | None]:
        """The queue; None where there is none, since nobody who only looks should make one."""
        if not self.letters.there(self.folder):
            yield None
            return
        async with self.letters.opened(self.folder, SystemClock()) as queue:
            yield queue

    async def _found(self, key: str) -> Dead:
        """The letter of that key. Raises CommandError."""
        keys: list[str] = []
        async with self._opened() as queue:
            async for dead in _letters(queue, None):
                if dead.key == key:
                    return dead
                if len(keys) < MOST_COMPARED:
                    keys.append(dead.key)
        near = get_close_matches(key[:LONGEST_KEY], keys, MOST_NAMED)
        hint = f"did you mean {' or '.join(near)}?" if near else f"see: {again('dead list', self.folder.out)}"
        raise CommandError(printable(f"{self._where} has no dead letter {key[:LONGEST_KEY]!r}; {hint}"))

    @property
    def _where(self) -> str:
        return self.letters.where(self.folder)

    def _tell_more(self, which: str, *given: object) -> None:
        command = again("dead replay", self.folder.out, *given)
        print(f"\nOnce the reason is gone, have {which} tried again:\n\n    {command}\n")


async def _letters(queue: WholeQueue | None, limit: int | None) -> AsyncIterator[Dead]:
    """Dead letters, the first buried first."""
    after, left = "", sys.maxsize if limit is None else limit
    while queue and left and (page := await queue.dead(min(left, PAGE), after)):
        for dead in page:
            yield dead
        after, left = page[-1].key, left - len(page)


# As JSON.


def _known(dead: Dead) -> dict[str, object]:
    return {"key": dead.key, "why": dead.why, "tries": dead.tries, "at": dead.at, "size": len(dead.body)}


def _body(body: bytes) -> dict[str, object]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _says(read: LetterContent | str) -> dict[str, object]:
    return {"unreadable": read} if isinstance(read, str) else {"says": {**read.facts, "notes": list(read.notes)}}


# In words.


def _words(dead: Dead, read: LetterContent | str, wall: float) -> Iterator[str]:
    yield line("key", dead.key)
    yield line("why", dead.why or "it was not said")
    if dead.tries:
        yield line("tries", f"{dead.tries:,} failed before")
    yield line("given up", f"{written(dead.at)}, {_when(dead, wall)}" if dead.at > 0 else _when(dead, wall))
    yield line("size", size(len(dead.body)))
    yield ""
    yield from (f"    {each}" for each in pretty(dead.body))
    yield ""
    if isinstance(read, str):
        yield f"It cannot be read: {read}"
        return
    for name, value in read.facts.items():
        yield line(name.removesuffix("_id"), value or "not said")
    for note in read.notes:
        yield line("note", note)


def _before(dead: Dead) -> str:
    """How many tries the queue has counted. Those at a store are not its business: `why` says how many they were."""
    return f", {dead.tries:,} failed before" if dead.tries else ""


def pretty(body: bytes) -> list[str]:
    """A document as people like to read it; anything else as it is."""
    try:
        found = msgspec.json.format(body, indent=2) if depth(body) <= DEEPEST else body
    except UNREADABLE:
        found = body
    # Not by `splitlines`: texts may have other characters in them that end a line, to some.
    return found.decode(errors="replace").replace("\r\n", "\n").split("\n")


def depth(body: bytes) -> int:
    """How deep a document is nested, if it is one."""
    now = deepest = 0
    for found in _BRACKETS.finditer(body):
        now += 1 if found[1] else -1 if found[2] else 0
        deepest = max(deepest, now)
    return deepest


def _when(dead: Dead, wall: float) -> str:
    return f"{duration(max(0.0, wall - dead.at))} ago" if dead.at > 0 else "nobody knows when"
