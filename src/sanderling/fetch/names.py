"""Look host names up: in threads of our own, and letting through only what may be called."""

import asyncio
import socket
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.guard import GuardRules, check_addresses
from sanderling.limit.shelves import Shelves

# Names that are looked up at once. One whose nameservers are silent holds its thread for half a minute, and directories
# are full of those. The loop's own threads, of which there are four to six, would all be held by them, and hosts that
# are well would be found not to answer.
AT_ONCE = 64
REMEMBERED = 100_000  # names whose address is known
# Seconds for which it is. The client remembers a thousand by itself: with more hosts, every connection would ask again.
KEPT = 300.0
# Seconds for which it is known that there is no such name: the tries of one URL ask once, and one that was just
# registered is found soon. A nameserver that does not answer is asked again at once.
KEPT_MISSING = 30.0
NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
A_SECOND = 200  # names that are looked up, all hosts together: a nameserver is a host too

LookUp = Callable[..., list[tuple[Any, ...]]]  # socket.getaddrinfo, or a fake


class GuardedResolver(AbstractResolver):
    """Looks a name up and lets through only what may be called. The connection goes to the very address checked."""

    def __init__(
        self,
        rules: GuardRules,
        trusted: Collection[str] = (),
        look_up: LookUp = socket.getaddrinfo,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._next = 0.0  # when the next name may be looked up
        # Until when it is known, of which family, and the addresses, or why there are none.
        self._known: Shelves[tuple[float, int, list[tuple[Any, ...]] | socket.gaierror]] = Shelves(REMEMBERED)
        self._rules = rules
        self._trusted = trusted  # proxies, which whoever runs us has named
        self._look_up = partial(look_up, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        self._threads = ThreadPoolExecutor(AT_ONCE, "names")
        self._found: Shelves[str] = Shelves(REMEMBERED)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OSError, or Refused if one of them may not be called."""
        known = self._known.get(host)
        if known is not None and known[0] > self._clock.now() and known[1] == family:
            said = known[2]
        else:
            said = await self._ask(host, port, family)
        if isinstance(said, socket.gaierror):
            raise socket.gaierror(*said.args)  # a new one each time: one that is raised again grows its traceback
        lines = said
        found = [_result(host, port, *each) for each in lines]
        if host not in self._trusted:
            check_addresses([each["host"] for each in found], self._rules)
            self._found.put(host, min((each["host"] for each in found), key=_order))
        return found

    async def _ask(self, host: str, port: int, family: int) -> list[tuple[Any, ...]] | socket.gaierror:
        """Look the name up when it is its turn."""
        now = self._clock.now()
        self._next = max(now, self._next) + 1 / A_SECOND
        if (wait := self._next - 1 / A_SECOND - now) > 0:
            await self._clock.sleep(wait)
        work = partial(self._look_up, host, port, family=family)
        said: list[tuple[Any, ...]] | socket.gaierror
        try:
            said, kept = await asyncio.get_running_loop().run_in_executor(self._threads, work), KEPT
        except socket.gaierror as error:
            if error.errno not in NO_SUCH_NAME:
                raise
            said, kept = error.with_traceback(None), KEPT_MISSING
        self._known.put(host, (self._clock.now() + kept, family, said))
        return said

    def address(self, host: str) -> str:
        """Where a host lives: the lowest of its addresses, as their order differs each time; nothing if unknown."""
        if (found := self._found.get(host)) is not None:
            return found
        try:
            found = str(ip_address(host))  # which nobody looks up
        except ValueError:
            return ""
        self._found.put(host, found)
        return found

    async def close(self) -> None:
        """Look nothing more up. What is being looked up is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _order(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)


def _result(
    host: str, port: int, family: int, _kind: int, proto: int, _name: str, address: tuple[Any, ...]
) -> ResolveResult:
    """What aiohttp wants of a line of getaddrinfo. An address with a zone keeps it, and is refused for it."""
    zone = f"%{address[3]}" if family == socket.AF_INET6 and address[3] else ""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=f"{address[0]}{zone}", port=port, family=family, proto=proto, flags=flags)
