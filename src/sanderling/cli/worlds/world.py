"""`sanderling world`: a simulated world on this machine, to try things against.

It listens on 127.0.0.1, and nothing leaves this machine.
"""

import asyncio
import json as jsonlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, as_called
from sanderling.cli.loop import run
from sanderling.worlds.server import WorldPortError

World = Literal["site", "pds", "game", "race", "api", "social"]
Preset = Literal["demo", "steady", "backlog", "gap", "pause", "slow", "bursts", "lost", "fast", "day", "hostile"]
TAKES = {
    "site": ("port", "hosts"),
    "pds": ("port", "hosts", "repos", "large", "signed"),
    "game": ("port", "preset", "rate", "quota", "speed"),
    "race": ("port", "preset", "speed"),
    "api": ("port", "posts", "faults"),
    "social": ("preset", "rate", "batches", "out", "objects", "queue"),
}
SERVE = {
    "site": "sanderling.cli.worlds.webs:site",
    "pds": "sanderling.cli.worlds.webs:pds",
    "game": "sanderling.cli.worlds.game:game",
    "race": "sanderling.cli.worlds.race:race",
    "api": "sanderling.cli.worlds.api:api",
    "social": "sanderling.cli.worlds.social:social",
}
MOST_PATHS = 12  # that are listed when a world ends
OF_DAYS = ("demo", "day", "hostile")
PRESETS = {
    "game": ("demo", "steady", "backlog", "gap", "pause", "slow", "bursts", "lost", "fast"),
    "race": OF_DAYS,
    "social": OF_DAYS,
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorldFlags:
    """What a world is like. Which of them a world takes is in `TAKES`; None is what is usual for it."""

    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """The port, or the first of consecutive ones; 0 takes any that is free, which is the default but for api: 8040."""

    hosts: Annotated[int | None, Parameter(validator=Number(gte=1, lte=200))] = None
    """site, pds: how many ordinary hosts, beside one of each other character; 8, of pds 20."""

    repos: Annotated[int | None, Parameter(validator=Number(gte=1, lte=10_000_000))] = None
    """pds: how many repos the healthy hosts have altogether; 2000."""

    large: Annotated[int | None, Parameter(validator=Number(gte=0, lte=100))] = None
    """pds: megabytes of the largest repo; 0 for none in particular."""

    signed: Annotated[bool | None, Parameter(negative=())] = None
    """pds: make real signatures, which are slow."""

    preset: Preset | None = None
    """game, race, social: what it has in store; demo. race and social have demo, day and hostile."""

    rate: Annotated[float | None, Parameter(validator=Number(gt=0, lte=100_000))] = None
    """game: ids a second, 60, of the preset fast 3000. social: batches a second, as many as go."""

    quota: Annotated[float | None, Parameter(validator=Number(gte=0))] = None
    """game: requests a second that it allows; 0 for all; by default the preset's."""

    speed: Annotated[float | None, Parameter(validator=Number(gt=0, lte=100))] = None
    """game, race: how many times as fast everything happens; 1."""

    posts: Annotated[int | None, Parameter(validator=Number(gte=1, lte=100_000))] = None
    """api: entries of each list; 300."""

    faults: Annotated[float | None, Parameter(validator=Number(gte=0, lte=1))] = None
    """api: share of questions that are answered with an error first; 0.02."""

    batches: Annotated[int | None, Parameter(validator=Number(gte=1, lte=1_000_000))] = None
    """social: how many; by default a day of them."""

    out: Path | None = None
    """social: the folder of events; events."""

    objects: str | None = None
    """social: where batches are, as for `events consume`."""

    queue: str | None = None
    """social: where the queue is, as for `events consume`."""


ALL = WorldFlags()


def world(
    name: Annotated[World, Parameter(help="Which world.")],
    /,
    *,
    seed: Annotated[int, Parameter(help="Another number makes another world; the same number the same.")] = 1,
    json: AsJson = False,
    flags: WorldFlags = ALL,
) -> None:
    """Serve a world until Ctrl-C, or publish what a simulated crawler found."""
    given = {each.name: value for each in fields(flags) if (value := getattr(flags, each.name)) is not None}
    for flag in given:
        if flag not in TAKES[name]:
            takes = ", ".join(f"--{each}" for each in TAKES[name])
            raise CommandError(f"--{flag} is nothing that the world {name} takes; it takes {takes}", code=2)
    if flags.preset is not None and flags.preset not in PRESETS[name]:
        raise CommandError(f"--preset: {name} has no {flags.preset}, expected {', '.join(PRESETS[name])}", code=2)
    # Each is imported only when it is served: it needs much that the others do not.
    module, function = SERVE[name].split(":")
    make = getattr(import_module(module), function)
    if name == "social":
        make(seed=seed, json=json, **given)
    else:
        serve(make(seed=seed, **given), as_json=json)


class ServedWorld(NamedTuple):
    """A world that can be served, and what is said of it: once it is served, and when it has ended."""

    server: AbstractAsyncContextManager[object]
    describe: Callable[[], Iterable[Mapping[str, object]]]  # for --json, one to a line
    lines: Callable[[], Iterable[str]]  # what it is like, where it is, and what to run against it
    asked: Callable[[], Iterable[str]]  # what it was asked, as lines


def serve(world: ServedWorld, *, as_json: bool) -> None:
    """Serve a world until Ctrl-C. Raises CommandError."""

    async def serving() -> None:
        async with world.server:
            if as_json:
                said = [jsonlib.dumps(each) for each in world.describe()]
            else:
                said = [*map(as_called, world.lines()), "", "Ctrl-C ends it, and shows what it was asked."]
            print("\n".join(said), flush=True)
            await asyncio.Event().wait()

    try:
        run(serving())
    except WorldPortError as error:
        raise CommandError(f"--port: {error}; choose another") from None
    except KeyboardInterrupt:
        if not as_json:
            sys.stderr.writelines(f"{line}\n" for line in ("", *world.asked()))
        raise


def tallied(asked: int, kinds: Counter[Any], paths: Counter[str] | None = None) -> Iterator[str]:
    """How often a world was asked, with which answers, and for what most often."""
    yield f"{asked:,} requests."
    yield from (f"  {number:>10,}  {kind}" for kind, number in kinds.most_common())
    if paths:
        yield "Most often:"
        yield from (f"  {number:>10,}  {path}" for path, number in paths.most_common(MOST_PATHS))


def minutes(seconds: float) -> str:
    """Seconds since a world began, as minutes and seconds."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole}:{rest:02} min"
