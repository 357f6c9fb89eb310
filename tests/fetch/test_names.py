"""Names are looked up side by side, and lead only where we may call."""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from scripted_server import ScriptedServer, answer

from sanderling.fetch.guard import GuardRules, Refused
from sanderling.fetch.http import Http
from sanderling.fetch.names import A_SECOND, KEPT, KEPT_MISSING, GuardedResolver
from sanderling.task import Task
from sanderling.testing.virtual import LoopClock, run_virtual

Line = tuple[Any, ...]
SILENT = 40  # names; a loop of its own has four to six threads to look them up in


def found(address: str) -> list[Line]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]


class Nameservers:
    """Silent about names that begin with `silent`, until they are told to speak."""

    def __init__(self) -> None:
        self.speak = threading.Event()

    def __call__(self, host: str, _port: int, **_how: int) -> list[Line]:
        if host.startswith("silent"):
            self.speak.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return found("93.184.216.34")


def test_names_that_are_not_answered_for_hold_up_no_others() -> None:
    nameservers = Nameservers()

    async def main() -> str:
        resolver = GuardedResolver(GuardRules(), look_up=nameservers)
        silent = [asyncio.ensure_future(resolver.resolve(f"silent{n}.example")) for n in range(SILENT)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(60):
                return (await resolver.resolve("well.example", 443))[0]["host"]
        finally:
            nameservers.speak.set()
            await asyncio.gather(*silent, return_exceptions=True)
            await resolver.close()

    assert asyncio.run(main()) == "93.184.216.34"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (found("127.0.0.1"), "loopback"),
        ([*found("93.184.216.34"), *found("10.0.0.1")], "private"),
        ([(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 443, 0, 2))], "zone id"),
        ([], "without any address"),
    ],
)
def test_what_may_not_be_called_is_refused(lines: list[Line], words: str) -> None:
    async def main() -> None:
        resolver = GuardedResolver(GuardRules(), look_up=lambda *_, **__: lines)
        try:
            await resolver.resolve("a.example", 443)
        finally:
            await resolver.close()

    with pytest.raises(Refused, match=words):
        asyncio.run(main())


def test_the_proxy_may_be_at_home() -> None:
    async def main() -> list[str]:
        resolver = GuardedResolver(GuardRules(), {"proxy.internal"}, look_up=lambda *_, **__: found("10.0.0.1"))
        try:
            return [each["host"] for each in await resolver.resolve("proxy.internal", 3128)]
        finally:
            await resolver.close()

    assert asyncio.run(main()) == ["10.0.0.1"]


def test_who_closes_the_client_ends_its_threads() -> None:
    async def main() -> list[threading.Thread]:
        async with ScriptedServer({"/": [answer()]}) as server, Http(None, GuardRules(private=True)) as http:
            await http.send(Task(server.url().replace("127.0.0.1", "localhost")))
            return [each for each in threading.enumerate() if each.name.startswith("names")]

    threads = asyncio.run(main())

    assert threads
    for each in threads:
        each.join(300)
        assert not each.is_alive()


class InThisThread(ThreadPoolExecutor):
    """Does everything at once, so that time can be virtual."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def test_a_name_is_looked_up_once_and_names_at_a_bounded_rate() -> None:
    """Three thousand names three times over: more than the client remembers, and fifteen seconds' worth."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_how: int) -> list[Line]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

    async def main() -> tuple[float, float]:
        clock = LoopClock()
        resolver = GuardedResolver(GuardRules(), look_up=look_up, clock=clock)
        resolver._threads = InThisThread()
        names = [f"h{number}.example" for number in range(3_000)]
        await asyncio.gather(*map(resolver.resolve, names))
        took = clock.now()
        for _ in range(2):
            assert [each["port"] for each in await resolver.resolve(names[7], 8080)] == [8080]
            await asyncio.gather(*map(resolver.resolve, names))
        again = clock.now()
        await clock.sleep(KEPT)
        await resolver.resolve(names[0])
        return took, again

    took, again = run_virtual(main())

    assert took == again == pytest.approx(2_999 / A_SECOND)
    assert len(asked) == 3_001


@pytest.mark.parametrize(("why", "lookups"), [(socket.EAI_NONAME, 2), (socket.EAI_AGAIN, 12)])
def test_that_there_is_no_such_name_is_remembered_and_silence_is_not(why: int, lookups: int) -> None:
    """Eleven times within its time, and once after that."""
    asked: list[str] = []

    def look_up(host: str, _port: int, **_how: int) -> list[Line]:
        asked.append(host)
        raise socket.gaierror(why, "no such name, or no answer")

    async def main() -> None:
        clock = LoopClock()
        resolver = GuardedResolver(GuardRules(), look_up=look_up, clock=clock)
        resolver._threads = InThisThread()
        for pause in [KEPT_MISSING / 20] * 10 + [KEPT_MISSING, 0.0]:
            with pytest.raises(socket.gaierror) as refused:
                await resolver.resolve("gone.example")
            assert refused.value.errno == why
            await clock.sleep(pause)

    run_virtual(main())

    assert len(asked) == lookups
