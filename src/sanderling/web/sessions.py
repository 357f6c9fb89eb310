"""Who looks at the dashboard, and whether a request is theirs: people come with a cookie, programs with the token.

A cookie is sent by the browser whatever page asks for it. So whoever wants to change something must also know a word
that only our own page is told (`X-CSRF-Token`), and must come from that page by what the browser says.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from multidict import CIMultiDictProxy

from sanderling.clock import Clock
from sanderling.web.access import OWN_SITES, Access, Caller, bearers
from sanderling.web.problems import ProblemError, problem

CSRF_HEADER = "X-CSRF-Token"
THIS_MACHINE = "this machine"
LASTING = 12 * 3600.0  # seconds of a session
MOST_SESSIONS, MOST_PEERS = 1_000, 1_000
FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0  # seconds that a wrong token costs: twice as long with each
FORGIVEN = 600.0  # seconds after which a wrong one is forgotten


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who came with the token."""

    id: str
    csrf: str
    until: float


class Visitor(NamedTuple):
    """Who a request is from; `csrf` is what the page of this visitor must send along, if it needs to."""

    who: str
    csrf: str | None


class Sessions:
    """Those that last, in memory only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def begin(self) -> Session:
        """A new one; of very many, the oldest ends."""
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._clock.now() + LASTING)
        self._known[session.id] = session
        while len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)
        return session

    def of(self, cookie: str) -> Session | None:
        """The one that a cookie names, if it lasts. Ids are random and long: looking one up tells nothing."""
        session = self._known.get(cookie)
        if session is not None and self._clock.now() >= session.until:
            del self._known[cookie]
            return None
        return session

    def end(self, cookie: str) -> bool:
        """End the one that a cookie names; whether there was one."""
        return self._known.pop(cookie, None) is not None


class Attempts:
    """Makes whoever comes with wrong tokens wait, longer each time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and when the last was
        self._waiting: set[str] = set()

    def check(self, peer: str) -> None:
        """Raise ProblemError while this peer waits for the answer to another attempt: no two are made at once."""
        if peer in self._waiting:
            seconds = int(LONGEST_WAIT)
            raise problem(429, "there were wrong tokens from there; wait a little", {"Retry-After": f"{seconds}"})

    async def wrong(self, peer: str) -> None:
        """Return when a wrong token may be answered."""
        number, last = self._wrong.pop(peer, (0, 0.0))
        now = self._clock.now()
        number = 1 if now - last > FORGIVEN else number + 1
        self._wrong[peer] = (number, now)
        while len(self._wrong) > MOST_PEERS:
            self._wrong.popitem(last=False)
        self._waiting.add(peer)
        try:
            await self._clock.sleep(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(number - 1, 10)))
        finally:
            self._waiting.discard(peer)

    def right(self, peer: str) -> None:
        """Forget what was wrong."""
        self._wrong.pop(peer, None)


class Door:
    """Lets in programs that have the token, and people that have a session. `name` is what the holder is called."""

    def __init__(self, access: Access, clock: Clock, name: str) -> None:
        self.sessions = Sessions(clock)
        self._access = access
        self._attempts = Attempts(clock)
        self._name = name
        self._csrf = secrets.token_urlsafe(32)  # of this machine, where there is no token

    @property
    def secured(self) -> bool:
        """Whether there is a token."""
        return self._access.token is not None

    def knock(self, caller: Caller) -> None:
        """What everyone must pass, also who is told nothing. Raises ProblemError."""
        self._access.check(caller, everyone=True)

    def visitor(self, caller: Caller, port: int) -> Visitor | None:
        """Who that is; None if they have not come in. Wrong tokens are none."""
        if not self.secured:
            return Visitor(THIS_MACHINE, self._csrf)
        given, token = bearers(caller.headers), self._access.token
        if given:
            right = token is not None and all(token.equals(each) for each in given)
            return Visitor(self._name, None) if right else None
        session = self.sessions.of(cookie_in(caller.headers, port))
        return None if session is None else Visitor(self._name, session.csrf)

    async def enter(self, caller: Caller, port: int, *, changes: bool) -> Visitor:
        """Let the caller in, or raise ProblemError. `changes`: whether the request is to change something."""
        found = self.visitor(caller, port)
        if found is None:
            if bearers(caller.headers):
                await self._attempts.wrong(caller.peer)
            self._access.check(caller)  # raises, with the right words
            raise problem(401, "there is no session; log in first")
        if found.csrf is not None:
            # Also who only looks: a page at another port of this machine is sent our cookie, and would take up streams.
            check_origin(caller, strictly=changes and self.secured)
            if changes:
                check_csrf(caller, found.csrf)
        return found

    async def login(self, caller: Caller, token: str) -> Session:
        """A session for who has the token. Raises ProblemError, after a while."""
        check_origin(caller, strictly=False)
        known = self._access.token
        if known is None:
            raise problem(409, "there is no token here: this machine is let in without one")
        self._attempts.check(caller.peer)
        if not known.equals(token):
            self._access.tell(caller.peer)
            await self._attempts.wrong(caller.peer)
            raise problem(401, "that is not the token")
        self._attempts.right(caller.peer)
        return self.sessions.begin()

    def logout(self, caller: Caller, port: int) -> None:
        """End the caller's session. Raises ProblemError if it has none."""
        if not self.sessions.end(cookie_in(caller.headers, port)):
            raise problem(
                409, "there is no session to end: whoever has none comes with the token, or from this machine"
            )


def check_csrf(caller: Caller, expected: str) -> None:
    """See that the page knows the word. Raises ProblemError."""
    given = caller.headers.getall(CSRF_HEADER, [])
    right = len(given) == 1 and secrets.compare_digest(given[0].encode("utf-8", "surrogatepass"), expected.encode())
    if not right:
        found = "a wrong one" if given else "none"
        raise problem(403, f"found {found}, expected the header {CSRF_HEADER} as /api/session gives it")


def check_origin(caller: Caller, *, strictly: bool) -> None:
    """See that the request comes from our own page; strictly: that the browser says so. Raises ProblemError."""
    headers = caller.headers
    hosts, origins = headers.getall("Host", []), headers.getall("Origin", [])
    sites = headers.getall("Sec-Fetch-Site", [])
    for origin in origins:
        # Whichever scheme: the way to us may be through a proxy that ends TLS.
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or [parts.netloc.lower()] != [each.lower() for each in hosts]:
            raise _foreign(f"Origin is {origin[:100]!r}, expected that of this server")
    for site in sites:
        if site.lower() not in OWN_SITES:
            raise _foreign(f"Sec-Fetch-Site is {site[:100]!r}, expected one of {', '.join(OWN_SITES)}")
    if strictly and not origins and not sites:
        raise _foreign("there is neither Origin nor Sec-Fetch-Site, expected that of this server")


def _foreign(found: str) -> ProblemError:
    return problem(403, f"this request does not come from the dashboard: {found}")


def cookie_name(port: int) -> str:
    """What the cookie is called: browsers share cookies among all ports of a machine."""
    return f"sanderling_{port}"


def cookie_in(headers: CIMultiDictProxy[str], port: int) -> str:
    """The session that the cookies of a request name; empty if none does."""
    # By hand: the library's parser gives up at the first cookie that another program of this machine wrote badly.
    pairs = (pair.strip().partition("=") for header in headers.getall("Cookie", []) for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == cookie_name(port)), "")


def cookie_for(session: Session | None, port: int, *, secure: bool) -> str:
    """What sets the cookie; without a session, what removes it."""
    value, seconds = ("", 0.0) if session is None else (session.id, LASTING)
    flags = f"Path=/; Max-Age={seconds:.0f}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
    return f"{cookie_name(port)}={value}; {flags}"
