"""Who may come in: holders of the token, or, where there is none, programs on this machine.

A browser on this machine is a program on this machine, and it runs what strangers wrote. Without a token, a request
must therefore name this machine in its Host header (a stranger's page that got our address by DNS rebinding names its
own) and must not come from a page of another origin. Who follows a link from such a page to here sees what everyone
may see: the page that had the link sees nothing of it.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from multidict import CIMultiDictProxy

from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.web.problems import ProblemError, problem

log = logs.get(__name__)

VARIABLE = "SANDERLING_TOKEN"
HOOK_HEADER = "X-Sanderling-Token"  # for senders of webhooks that can set no Authorization
SHORTEST, LONGEST = 16, 1024  # characters of a token
QUIET_SECONDS = 10.0  # between two lines about wrong tokens
NAMES = "localhost, 127.0.0.1, [::1]"  # and any other address of this machine only
OWN_SITES = ("same-origin", "none")  # of Sec-Fetch-Site; "none" is a person who typed the address

# For every answer. Nothing here is a page, so nothing of it may run, be guessed at, kept or told to others.
SAFE_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Referrer-Policy": "no-referrer",
    "Server": "sanderling",
}


class AccessError(ValueError):
    """A token cannot be used, or is needed. The message says what to do, and never has the token."""


class Token:
    """What lets its holder in. Only its hash is kept."""

    __slots__ = ("_digest",)

    def __init__(self, text: str, source: str = "the token") -> None:
        if not SHORTEST <= len(text) <= LONGEST:
            found = f"{source} has {len(text)} characters"
            raise AccessError(f"{found}, expected {SHORTEST} to {LONGEST}; `openssl rand -hex 32` makes one")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise AccessError(f"{source} has characters that no header can hold, expected ASCII without spaces")
        self._digest = sha256(text.encode()).digest()

    def __repr__(self) -> str:
        return "<Token>"

    def equals(self, given: str) -> bool:
        """Whether that is the token; the time this takes tells nothing, not even the length."""
        return hmac.compare_digest(sha256(given.encode("utf-8", "surrogatepass")).digest(), self._digest)


def token_from(environ: Mapping[str, str], file: Path | None = None) -> Token | None:
    """The token that a file has, or else the environment; None if neither has one. Raises AccessError."""
    if file is None:
        text = environ.get(VARIABLE, "").strip()
        return Token(text, VARIABLE) if text else None
    try:
        with file.open("rb") as opened:
            text = opened.read(LONGEST + 100).decode("ascii", "replace").strip()
    except OSError as error:
        raise AccessError(f"the token's file {file}: {error.strerror}") from None
    return Token(text, f"the token in {file}")


class Caller(NamedTuple):
    """What a request says about who sent it."""

    peer: str  # the address; empty if it has none
    headers: CIMultiDictProxy[str]


class Access:
    """The rule at the door. Raises ProblemError for whom it does not let in."""

    def __init__(self, token: Token | None, clock: Clock) -> None:
        self.token = token
        self._clock = clock
        self._refused = 0  # since the last line about it
        self._told = -QUIET_SECONDS

    def __repr__(self) -> str:
        return f"<Access {'by token' if self.token else 'from this machine'}>"

    def check(self, caller: Caller, *, everyone: bool = False, hook: bool = False) -> None:
        """Let the caller pass, or raise. `everyone`: a route without secrets; `hook`: one that webhooks come to."""
        if self.token is None:
            check_local(caller, links=everyone)
        elif not everyone:
            self._check_token(self.token, caller, hook=hook)

    def _check_token(self, token: Token, caller: Caller, *, hook: bool) -> None:
        given = bearers(caller.headers) + (caller.headers.getall(HOOK_HEADER, []) if hook else [])
        if given and all(token.equals(each) for each in given):
            return
        if given:
            self.tell(caller.peer)
        found = "a wrong token" if given else "no token"
        challenge = 'Bearer realm="sanderling"' + (', error="invalid_token"' if given else "")
        expected = f"expected the header Authorization: Bearer TOKEN{f' or {HOOK_HEADER}: TOKEN' if hook else ''}"
        raise problem(401, f"found {found}, {expected}", {"WWW-Authenticate": challenge})

    def tell(self, peer: str) -> None:
        """Log wrong tokens without them, in one line for many: whoever guesses must not fill the disk."""
        self._refused += 1
        now = self._clock.now()
        if now - self._told >= QUIET_SECONDS or self._told > now:
            log.warning("access_refused", attempts=self._refused, last_peer=peer)
            self._refused, self._told = 0, now


def bearers(headers: CIMultiDictProxy[str]) -> list[str]:
    """The tokens of all Authorization headers; one of another scheme counts as a wrong token."""
    given = []
    for value in headers.getall("Authorization", []):
        scheme, _, rest = value.strip().partition(" ")
        given.append(rest.strip() if scheme.lower() == "bearer" else "")
    return given


def check_local(caller: Caller, *, links: bool = False) -> None:
    """Let pass a program on this machine, and no page of a stranger; with `links`, who follows one on such a page."""
    if not is_loopback(caller.peer):
        raise _refusal("this request comes from another machine, and there is no token")
    hosts = caller.headers.getall("Host", [])
    if len(hosts) != 1 or not _is_ours(hosts[0]):
        found = f"Host is {', '.join(hosts)[:100]!r}" if hosts else "there is no Host"
        raise _refusal(f"{found}, expected one of {NAMES}")
    for origin in caller.headers.getall("Origin", []):
        if origin.lower() != f"http://{hosts[0].lower()}":
            raise _refusal(f"Origin is {origin[:100]!r}, expected none, or that of this server")
    for site in caller.headers.getall("Sec-Fetch-Site", []):
        if site.lower() not in OWN_SITES and not (links and _is_link(caller.headers)):
            raise _refusal(f"Sec-Fetch-Site is {site[:100]!r}, expected one of {', '.join(OWN_SITES)}")


def is_loopback(address: str) -> bool:
    """Whether that is an address of this machine only."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def _is_link(headers: CIMultiDictProxy[str]) -> bool:
    """Whether the browser goes here with all of its window, and tells nobody what it finds."""
    wanted = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    return all(headers.getall(name, []) == [value] for name, value in wanted.items())


def _is_ours(host: str) -> bool:
    """Whether a Host header names this machine: by a word, or by an address, which nobody else can make mean us."""
    name, _, port = host.rpartition(":")
    name = name if name and port.isdecimal() and port.isascii() else host
    if name.lower() == "localhost":
        return True
    bracketed = name.startswith("[") and name.endswith("]")
    return bracketed == (":" in name) and is_loopback(name[1:-1] if bracketed else name)


def _refusal(found: str) -> ProblemError:
    return problem(403, f"{found}; to be reached otherwise, the server needs a token in {VARIABLE}")
