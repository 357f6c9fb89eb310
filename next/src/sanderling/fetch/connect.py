"""Names to addresses to sockets, with the guard at each step."""

import asyncio
import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.request import getproxies

from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from sanderling.fetch.guard import check_address
from sanderling.options import OptionError

# Names that are looked up at once. One whose nameservers are silent holds its thread for half a minute, and the loop's
# own threads, of which there are five or six, would all be held by such names.
AT_ONCE = 64


class Trying:
    """One try to send a request, and what became known of its connection on the way."""

    __slots__ = ("fresh", "proxied")

    def __init__(self, *, proxied: bool) -> None:
        self.fresh = False  # whether a connection was made for it
        self.proxied = proxied  # whether that goes to the proxy, which whoever runs this has named


# Names and connections are made deep inside aiohttp, which has no other way to say for which request.
attempt: ContextVar[Trying] = ContextVar("attempt")


class Guarded(AbstractResolver):
    """Looks names up, makes sockets, and lets through only what may be requested."""

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._threads = ThreadPoolExecutor(AT_ONCE, "names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OSError, or Refused if one of them may not be requested.

        One bad address spoils the host. To give a public one beside a private one is how an attacker gets past a check
        of the first, and a host that does so by mistake cannot be told from one that means it.
        """
        look_up = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        try:
            rows = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        except UnicodeError:
            raise socket.gaierror(socket.EAI_NONAME, "no name for a nameserver") from None
        found = [_result(host, port, *row) for row in rows]
        if not attempt.get().proxied:
            for each in found:
                check_address(each["host"], private=self._private)
        return found

    def make_socket(self, address: AddrInfoType) -> socket.socket:
        """A socket for this very address, which is looked at once more: nothing came in between."""
        family, kind, protocol, _, place = address
        trying = attempt.get()
        if not trying.proxied:
            check_address(str(place[0]), private=self._private)
        trying.fresh = True
        made = socket.socket(family, kind, protocol)
        made.settimeout(0)
        return made

    async def close(self) -> None:
        """Look nothing more up; what is being looked up is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _result(
    host: str, port: int, family: int, _kind: int, proto: int, _name: str, address: tuple[Any, ...]
) -> ResolveResult:
    # An address with a zone keeps it, and is refused for it.
    zone = f"%{address[3]}" if family == socket.AF_INET6 and address[3] else ""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=f"{address[0]}{zone}", port=port, family=family, proto=proto, flags=flags)


def proxy_of_environment(scheme: str, host: str = "") -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names, unless NO_PROXY names the host; "" for none."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    name = host.rpartition(":")[0] or host
    for each in proxies.get("no", "").lower().split(","):
        spared = each.strip().removeprefix("*").removeprefix(".")
        if host and (each.strip() == "*" or spared in (host, name) or (spared and name.endswith(f".{spared}"))):
            return ""
    return proxy


def tls() -> ssl.SSLContext:
    """Certificates as the system trusts them, or those that SSL_CERT_FILE names. Raises OptionError."""
    context = ssl.create_default_context()
    if path := os.environ.get("SSL_CERT_FILE"):
        # OpenSSL passes over a file that it cannot read, and then no certificate is valid.
        try:
            context.load_verify_locations(path)
        except OSError as error:  # SSLError is one
            said = getattr(error, "reason", None) or error.strerror
            raise OptionError(
                f"SSL_CERT_FILE: {path} holds no certificates ({said}); name a file in PEM form"
            ) from None
    return context
