"""Whoever looks while a system runs."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sanderling.cli.screen import Silent
from sanderling.cli.watching import (
    KEEP_EVERY,
    PUBLISH_EVERY,
    FolderLimiterKeeper,
    draw,
    follow_control,
    publish_status,
    repeat,
    run_beside,
    save_limiter,
)
from sanderling.clock import Clock
from sanderling.ids import host_of
from sanderling.limit import Feedback, Limiter, Quota
from sanderling.stores.control_file import Control, Wish, change_control, read_control, write_control
from sanderling.stores.disk_room import DiskRoom
from sanderling.stores.durable import FolderError
from sanderling.stores.limiter_file import FILE, NEWS, recall
from sanderling.stores.status_file import read_status, write_status
from sanderling.testing import LoopClock, run_virtual

T = TypeVar("T")


async def desk(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    return work(*args)


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """What comes of it, if anything does within an hour of virtual time."""

    async def bounded() -> T:
        async with asyncio.timeout(3600):
            return await work

    return run_virtual(bounded())


class Seen(Silent[float, object]):
    """A screen that remembers."""

    every = 0.25

    def __init__(self) -> None:
        self.frames: list[float] = []

    def show(self, shown: float, /) -> None:
        self.frames.append(shown)


def test_a_screen_is_drawn_at_once_and_then_as_often_as_it_likes() -> None:
    screen, clock = Seen(), LoopClock()

    virtually(run_beside(clock.sleep(1.1), draw(screen, clock.now)))

    assert screen.frames == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])


def test_a_status_is_published_every_second(tmp_path: Path) -> None:
    clock, published = LoopClock(), list[float | None]()

    async def noting(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        done = await desk(work, *args)
        published.append(read_status(tmp_path, float))
        return done

    virtually(run_beside(clock.sleep(2.5), publish_status(partial(write_status, tmp_path), clock.now, noting)))

    assert published == pytest.approx([0, PUBLISH_EVERY, 2 * PUBLISH_EVERY])


def test_what_the_limiter_learns_is_kept_while_it_learns(tmp_path: Path) -> None:
    clock, host = LoopClock(), host_of("https://shut.example/")

    async def main() -> list[bool]:
        limiter = Limiter(clock=clock)

        async def ask() -> list[bool]:
            await clock.sleep(0.1)
            before = host.encode() in (tmp_path / FILE).read_bytes()
            limiter.feedback(await limiter.acquire(host), Feedback(status=429, latency=0.1, retry_after=3600.0))
            await clock.sleep(KEEP_EVERY + 0.1)
            return [before, host.encode() in (tmp_path / FILE).read_bytes(), (tmp_path / NEWS).exists()]

        return await run_beside(ask(), save_limiter(limiter, FolderLimiterKeeper(tmp_path, desk)))

    assert virtually(main()) == [False, True, False]


PENALTIES = {
    "Retry-After": [Feedback(status=429, latency=0.1, retry_after=20.0)],
    "nothing left": [Feedback(status=200, latency=0.1, quota=Quota(0, 20.0))],
    "no connection": [Feedback(error="refused", unsent=True)] * 3,
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("hosts", [1, 3000])  # to save so many takes a tenth of a second and more
@pytest.mark.parametrize("at", [0.05, 0.1, 3.0])
def test_a_penalty_outlives_a_process_that_is_killed_a_moment_later(
    tmp_path: Path, penalty: str, hosts: int, at: float
) -> None:
    clock, shut = LoopClock(), host_of("https://shut.example/")

    async def main() -> float:
        limiter = Limiter(clock=clock)
        for number in range(hosts):
            limiter.try_acquire(f"h{number}.example")

        async def ask() -> None:
            await clock.sleep(at)
            for feedback in PENALTIES[penalty]:
                await clock.sleep(max(0.0, limiter.ready_at(shut) - clock.now()))
                limiter.feedback(await limiter.acquire(shut), feedback)
            await clock.sleep(0.01 if hosts == 1 else 0.05)  # a piece of what is saved takes as long

        await run_beside(ask(), save_limiter(limiter, FolderLimiterKeeper(tmp_path, desk)))
        after = Limiter(clock=clock)
        recall(after, tmp_path)
        return after.ready_at(shut) - clock.now()

    assert virtually(main()) > 14


def test_what_comes_of_the_system_comes_back_and_nobody_looks_any_more() -> None:
    async def main() -> tuple[str, list[asyncio.Task[Any]]]:
        async def system() -> str:
            await LoopClock().sleep(1)
            return "done"

        result = await run_beside(system(), repeat(0.1, nothing), repeat(0.1, nothing))
        return result, [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert virtually(main()) == ("done", [])


async def nothing() -> None:
    pass


def test_a_look_that_fails_ends_the_system() -> None:
    """Where a status cannot be written, nothing else can."""
    ended = []

    async def system() -> None:
        try:
            await LoopClock().sleep(60)
        finally:
            ended.append(LoopClock().now())

    def full() -> Awaitable[object]:
        raise FolderError("the disk is full")

    with pytest.raises(ExceptionGroup) as caught:
        virtually(run_beside(system(), repeat(1, full)))

    assert caught.value.subgroup(FolderError) is not None
    assert ended == [0]


@pytest.fixture
def signals() -> Iterator[list[int]]:
    """The SIGTERMs that came."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGTERM, before)


class Roomy(DiskRoom):
    """A disk with room, which is looked at without a thread: those know nothing of virtual time."""

    async def run(self, clock: Clock) -> None:
        await clock.sleep(1e9)


def test_what_people_want_is_obeyed_and_stop_is_one_sigterm(
    tmp_path: Path, signals: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Control] = []
    notes: list[str] = []
    hosts = frozenset({"a.example"})
    wishes: list[Wish] = ["resume", "drain", "stop", "pause"]
    write_control(tmp_path, Control(paused=True, hosts=hosts, ending="stop"))

    async def want() -> None:
        for wish in wishes:
            await asyncio.sleep(2)
            change_control(tmp_path, lambda control, wish=wish: control.after(wish))  # type: ignore[misc]
        await asyncio.sleep(2)

    async def main() -> None:
        monkeypatch.setattr("sanderling.cli.watching.SystemClock", LoopClock)
        await run_beside(want(), follow_control(tmp_path, told.append, notes.append, Roomy(tmp_path)))

    virtually(main())

    assert notes == [
        "an earlier process was told to stop; that is over, and this one goes on",
        f"paused: nothing is begun until somebody says: sanderling control {tmp_path} resume",
    ]
    assert told == [
        Control(paused=True, hosts=hosts),
        Control(hosts=hosts),
        Control(hosts=hosts, ending="drain"),
        Control(hosts=hosts, ending="stop"),
        Control(hosts=hosts, ending="stop", paused=True),
    ]
    assert signals == [signal.SIGTERM]


def test_who_is_started_beside_others_that_end_ends_as_well(tmp_path: Path) -> None:
    notes: list[str] = []
    write_control(tmp_path, Control(ending="drain"))

    follow_control(tmp_path, lambda _: None, notes.append, DiskRoom(tmp_path), alone=False).close()

    assert read_control(tmp_path) == Control(ending="drain")
    assert notes == [f"others that run in {tmp_path} were told to drain, and so is this one"]


@pytest.mark.parametrize("text", ['{"ending": "sleep"}', "{", '{"paused": true, "version": 99}'])
def test_a_control_that_makes_no_sense_at_the_start_pauses_before_anything_is_begun(tmp_path: Path, text: str) -> None:
    told, notes = list[Control](), list[str]()
    (tmp_path / "control.json").write_text(text)

    follow_control(tmp_path, told.append, notes.append, DiskRoom(tmp_path)).close()

    assert told == [Control(paused=True)]
    assert len(notes) == 1
    assert notes[0].startswith(f"paused, since nobody knows what is wanted: {tmp_path / 'control.json'}: ")
    assert notes[0].endswith(f": sanderling control {tmp_path} resume --replace")
    assert (tmp_path / "control.json").read_text() == text
