"""Who may read, and who may change something.

The admin's token may do everything, a follower's only read. Where there is no token, programs on this machine may come
in. A browser on this machine is such a program, and runs what strangers wrote: so the Host header must name this
machine (a page that reached us by DNS rebinding names its own), and no page of another origin is answered.
"""

import hmac
import secrets
from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from sanderling.clock import Clock
from sanderling.files import FolderError, disk_errors, read_small, write_file

TOKEN_FILE = "admin.token"  # noqa: S105 - its name
TICKET_SECONDS = 600
SHORTEST_TOKEN = 16  # characters
_LOCAL = "localhost, 127.0.0.1 or [::1]"


class Needs(Enum):
    """What whoever requests a route must be allowed to do."""

    NOTHING = "nothing"
    READ = "read"
    CHANGE = "change"


class Denied(Exception):  # noqa: N818 - the answer
    """Whoever asks may not. The message says what was expected."""

    def __init__(self, status: int, found: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(found)
        self.status = status
        self.headers = dict(headers or {})


def own_token(folder: Path) -> str:
    """The admin's token that is kept in a folder, for its owner only; made when it is needed first."""
    path = folder / TOKEN_FILE
    if not path.exists():
        write_file(path, secrets.token_urlsafe(32).encode() + b"\n", mode=0o600)
    with disk_errors(path):
        path.chmod(0o600)
    token = read_small(path).decode("ascii", "replace").strip()
    if len(token) < SHORTEST_TOKEN:
        raise FolderError(f"{path} holds no token", "remove it; a new one is written at the next start")
    return token


class Access:
    """The rule for every request. Without `admin`, whoever is on this machine may read and change.

    With it, changing needs that token. Reading needs one of the two if there is a follower's, or if others can reach us
    (`public`). Pages of `origins` may read with a token or a ticket: a token of ten minutes that can stand in a URL.
    """

    def __init__(
        self, clock: Clock, admin: str = "", follower: str = "", origins: tuple[str, ...] = (), *, public: bool = False
    ) -> None:
        for token in filter(None, (admin, follower)):
            if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
                raise FolderError(
                    f"a token has {len(token)} characters, expected at least {SHORTEST_TOKEN} of ASCII without spaces",
                    "make one with: openssl rand -hex 32",
                )
        if public and not admin:
            raise FolderError("others can reach this address, and there is no token", "serve at 127.0.0.1, or set one")
        self.origins = frozenset(origins)
        self._clock = clock
        self._admin, self._follower = admin.encode(), follower.encode()
        self._reading_is_open = not follower and not public
        self._ticket_key = secrets.token_bytes(32)

    def check(self, request: web.Request, needs: Needs) -> None:
        """Return if the request may be answered. Raises Denied."""
        self._check_origin(request)
        if needs is Needs.NOTHING:
            return
        given = request.headers.getall("Authorization", [])
        if given:
            self._check_token(given[0] if len(given) == 1 else "", needs)
        elif ticket := request.query.get("ticket"):
            if needs is not Needs.READ or not self._is_ticket(ticket):
                raise Denied(401, "the ticket is wrong or has expired; get a new one by POST /tickets")
        elif self._admin and not (needs is Needs.READ and self._reading_is_open):
            who = "the admin's token" if needs is Needs.CHANGE else "a token"
            challenge = {"WWW-Authenticate": 'Bearer realm="sanderling"'}
            raise Denied(401, f"there is no token; expected {who} as Authorization: Bearer TOKEN", challenge)
        else:
            _check_local(request)

    def ticket(self) -> tuple[str, float]:
        """A new ticket, and until when it holds, in seconds since 1970."""
        until = int(self._clock.wall()) + TICKET_SECONDS
        return f"{until}.{self._signature(str(until))}", until

    def cors(self, request: web.Request) -> dict[str, str]:
        """The headers by which a page of another allowed origin may read the answer."""
        origin = request.headers.get("Origin", "")
        if origin not in self.origins:
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID",
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        }

    def _check_token(self, header: str, needs: Needs) -> None:
        scheme, _, token = header.strip().partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b""
        if self._admin and hmac.compare_digest(given, self._admin):
            return
        if not (self._follower and hmac.compare_digest(given, self._follower)):
            raise Denied(401, "the token is wrong", {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        if needs is Needs.CHANGE:
            raise Denied(403, "a follower's token only reads; expected the admin's")

    def _check_origin(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        if (
            origin is not None
            and origin not in self.origins
            and urlsplit(origin).netloc.lower() != request.host.lower()
        ):
            raise Denied(403, f"Origin is {origin[:100]!a}, expected none, our own, or one that is allowed")
        site = request.headers.get("Sec-Fetch-Site", "none")
        followed_link = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method == "GET"
        if origin is None and site not in ("none", "same-origin") and not followed_link:
            raise Denied(403, f"Sec-Fetch-Site is {site[:100]!a}, expected same-origin or none")

    def _is_ticket(self, ticket: str) -> bool:
        until, _, signature = ticket.partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(until).encode()):
            return False
        return int(until) >= self._clock.wall()

    def _signature(self, until: str) -> str:
        return hmac.digest(self._ticket_key, until.encode("utf-8", "replace"), sha256).hex()


def _check_local(request: web.Request) -> None:
    if not is_loopback(request.remote or ""):
        raise Denied(403, "this comes from another machine, and there is no token")
    name = urlsplit(f"//{request.host}").hostname or ""
    if name != "localhost" and not is_loopback(name):
        raise Denied(403, f"Host is {request.host[:100]!a}, expected {_LOCAL}")


def is_loopback(address: str) -> bool:
    """Whether that is an address of this machine only."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
