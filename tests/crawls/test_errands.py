"""Errands: what belongs to another part is asked by that one, at its pace, and its answer comes back whole."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from small_web import inline, reply

from sanderling.crawls.errands import Brought, Errand, Errands, ErrandTools, PageMail
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.fleet_mail import FleetBoard, FleetInbox
from sanderling.crawls.parts import part_of
from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.guard import HeldBack
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.outcome import Code
from sanderling.task import SECRET_BODY, Reply, Task
from sanderling.testing import LoopClock, run_virtual

PARTS = 2
NAMES = [f"h{number}.example" for number in range(99)]
OURS, THEIRS = (next(name for name in NAMES if part_of(name, PARTS) == part) for part in (0, 1))
URL = f"http://{THEIRS}/robots.txt"


class Post:
    """Brings mail at once, but for what it loses."""

    def __init__(self) -> None:
        self.parts: dict[int, Side] = {}
        self.loses: Callable[[object], bool] = lambda _: False

    def put(self, to: int, lines: bytes) -> None:
        for mail in self.parts[to].exchange._decoder.decode_lines(lines):
            if not self.loses(mail):
                asyncio.get_running_loop().call_soon(self.parts[to].errands.take, mail)

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class Side:
    """One part, with a host's own log of what it sends."""

    def __init__(self, part: int, post: Post, answers: Callable[[Task], Reply | Exception], latency: float) -> None:
        self.clock, self.memory, self.ending = LoopClock(1_800_000_000.0), Memory(2**30), False
        self.sent: list[tuple[float, Task]] = []
        self._answers, self._latency = answers, latency
        pace = PaceRules(initial_rps=2, max_rps=2)
        self.limiter = Limiter(LimiterRules(pace=pace), clock=self.clock, rng=Random(1))
        self.exchange = PartExchange(part, FleetBoard(PARTS), PageMail, post, FleetInbox())
        tools = ErrandTools(self, self.limiter, self.memory, inline, self.clock)
        self.errands = Errands(self.exchange, tools, lambda: self.ending)
        self.fetcher = Fetcher(self.errands, self.limiter, clock=self.clock, retry=False)
        post.parts[part] = self

    async def send(self, task: Task) -> Reply:
        """By its own client."""
        self.sent.append((self.clock.now(), task))
        await asyncio.sleep(self._latency)
        found = self._answers(task)
        if isinstance(found, Exception):
            raise found
        self.memory.take(task.holder or task.url, len(found.body))
        return replace(found, url=task.url)


def play(
    scene: Callable[[Side, Side, Post], Coroutine[Any, Any, None]],
    answers: Callable[[Task], Reply | Exception] = lambda _: reply(body=b"x"),
    latency: float = 0.1,
) -> tuple[Side, Side]:
    """Our part and theirs, which serve each other meanwhile."""

    async def main() -> tuple[Side, Side]:
        post = Post()
        sides = Side(0, post, answers, latency), Side(1, post, answers, latency)
        serving = [asyncio.create_task(each.errands.serve()) for each in sides]
        await scene(*sides, post)
        for task in serving:
            task.cancel()
        await asyncio.wait(serving)
        return sides

    return run_virtual(main())


def test_an_answer_comes_back_as_it_was_from_who_has_the_host() -> None:
    """Also a header that is no UTF-8, and none of it takes up memory where it was asked."""
    odd = Reply(201, (("X-Odd", "\udcff\udc80 é"), ("Set-Cookie", "a=b")), b"\x00\xff" * 5000, "http://set.later/", 0.1)
    found: list[Reply] = []

    async def scene(ours: Side, theirs: Side, _: Post) -> None:
        task = Task(URL, "POST", (("X-Asked", "\udcfe"),), b"\xffq", most=7, wait=3.0, holder="me")
        found.append(await ours.errands.send(task))
        assert (ours.memory.held("me"), theirs.memory.total) == (len(odd.body), 0)

    ours, theirs = play(scene, lambda _: odd)

    assert (found[0].status, found[0].headers, found[0].body, found[0].url) == (201, odd.headers, odd.body, URL)
    assert not ours.sent
    ((_, task),) = theirs.sent
    assert (task.method, task.headers, task.body, task.most, task.wait) == (
        "POST", (("X-Asked", "\udcfe"),), b"\xffq", 7, 3.0,
    )  # fmt: skip


def test_all_that_ask_one_host_have_its_pace_and_its_wish_to_be_left_alone() -> None:
    """Its own part among them."""
    found: list[Fetched] = []

    async def scene(ours: Side, theirs: Side, _: Post) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                asks = (ours, theirs)[number % 2].fetcher
                group.create_task(asks.fetch(Task(f"http://{THEIRS}/{number}")))
        found.append(await ours.fetcher.fetch(Task(f"http://{THEIRS}/full")))
        found.append(await theirs.fetcher.fetch(Task(f"http://{THEIRS}/full"), None))
        found.append(await ours.fetcher.fetch(Task(f"http://{THEIRS}/later")))

    def answers(task: Task) -> Reply:
        return reply(429, Retry_After="60") if task.url.endswith("full") else reply()

    ours, theirs = play(scene, answers)

    assert not ours.sent
    times = [at for at, task in theirs.sent if not task.url.endswith(("full", "later"))]
    assert len(times) == 8
    assert all(later - earlier > 0.499 for earlier, later in pairwise(times))
    assert [each.outcome.code for each in found[:1]] == [Code.RATE_LIMITED]
    full, *after = [at for at, task in theirs.sent if task.url.endswith(("full", "later"))]
    assert all(at - full >= 60 for at in after)


def test_a_host_that_wants_to_be_left_alone_is_asked_for_nobody_and_who_asks_is_told_until_when() -> None:
    found: list[Fetched] = []

    async def scene(ours: Side, theirs: Side, _: Post) -> None:
        await theirs.fetcher.fetch(Task(URL))
        found.append(await ours.fetcher.fetch(Task(URL)))

    _, theirs = play(scene, lambda _: reply(503, Retry_After="600"))

    assert len(theirs.sent) == 1
    assert (found[0].outcome.code, found[0].reply) == (Code.DEFERRED, None)
    assert 590 < (found[0].outcome.retry_after or 0) <= 600


@pytest.mark.parametrize(
    ("error", "code", "unsent"),
    [
        (TimeoutError("idle"), Code.TIMEOUT, False),
        (socket.gaierror(-2, "no"), Code.DNS_ERROR, True),
        (HeldBack("x"), Code.DEFERRED, False),
    ],
)
def test_what_went_wrong_there_is_what_went_wrong_here(error: Exception, code: Code, unsent: bool) -> None:  # noqa: FBT001 - a case
    found: list[Fetched] = []

    async def scene(ours: Side, _: Side, __: Post) -> None:
        found.append(await ours.fetcher.fetch(Task(URL)))

    play(scene, lambda _: error)

    assert (found[0].outcome.code, found[0].outcome.unsent, found[0].reply) == (code, unsent, None)


@pytest.mark.parametrize("lost", [Errand, Brought])
def test_what_is_lost_on_the_way_is_asked_again(lost: type) -> None:
    async def scene(ours: Side, _: Side, post: Post) -> None:
        left = [1]

        def loses(mail: object) -> bool:
            left[0] -= isinstance(mail, lost)
            return isinstance(mail, lost) and left[0] >= 0

        post.loses = loses
        assert (await ours.errands.send(Task(URL))).body == b"x"

    _, theirs = play(scene)

    assert len(theirs.sent) == (1 if lost is Errand else 2)


def test_a_host_that_takes_its_time_is_asked_once() -> None:
    async def scene(ours: Side, _: Side, __: Post) -> None:
        assert (await ours.errands.send(Task(URL))).body == b"x"

    _, theirs = play(scene, latency=100.0)

    assert len(theirs.sent) == 1


def test_who_ends_waits_for_nobody() -> None:
    async def scene(ours: Side, _: Side, __: Post) -> None:
        asyncio.get_running_loop().call_later(5.0, lambda: setattr(ours, "ending", True))
        with pytest.raises(HeldBack):
            await ours.errands.send(Task(URL))
        assert 5 <= ours.clock.now() < 7

    play(scene, latency=100.0)


def test_nobody_is_sent_to_a_host_of_somebody_else() -> None:
    async def scene(ours: Side, theirs: Side, _: Post) -> None:
        theirs.errands.take(Errand(0, 1, f"http://{OURS}/"))
        await asyncio.sleep(1)
        assert not ours.sent

    assert not play(scene)[1].sent


def test_passwords_and_what_is_ours_are_sent_by_ourselves() -> None:
    async def scene(ours: Side, _: Side, __: Post) -> None:
        await ours.errands.send(Task(f"http://{OURS}/"))
        await ours.errands.send(Task(f"http://{THEIRS}/token", "POST", body=b"s", secrets=frozenset({SECRET_BODY})))
        await ours.errands.send(Task(f"http://{THEIRS}/form", secrets=frozenset({SECRET_BODY})))

    ours, theirs = play(scene)

    assert [task.host for _, task in ours.sent] == [OURS, THEIRS]
    assert [task.url for _, task in theirs.sent] == [f"http://{THEIRS}/form"]
