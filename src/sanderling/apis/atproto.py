"""ATProto: the XRPC calls that an archive of repos needs, and why a repo was not to be had.

Names of errors are read from the JSON of an answer and nowhere else: a repo that contains the word RepoNotFound, or a
proxy's page that does, says nothing about the repo.
"""

from enum import StrEnum
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec

from sanderling.formats.parsed import Kind, RepoError
from sanderling.outcome import Code, Outcome
from sanderling.task import Blame, Reply, Task

CAR = (("Accept", "application/vnd.ipld.car"),)
JSON = (("Accept", "application/json"),)
LINES = (("Accept", "application/jsonlines"),)


class AtprotoCategory(StrEnum):
    """Why a repo was not archived."""

    NOT_FOUND = "not_found"
    DEACTIVATED = "deactivated"
    TAKENDOWN = "takendown"
    SUSPENDED = "suspended"
    PARSE_ERROR = "parse_error"
    DID_MISMATCH = "did_mismatch"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    UNCHANGED = "unchanged"  # since an earlier archive, which has it
    LEFT_OUT = "left_out"  # by whoever runs us
    INCOMPLETE = "incomplete"  # what came is not all of it
    RATE_LIMITED = "rate_limited"
    HTTP_ERROR = "http_error"
    DNS_ERROR = "dns_error"
    UNAVAILABLE = "unavailable"
    CONNECTION_ERROR = "connection_error"
    TIMEOUT = "timeout"
    LEFT_ALONE = "left_alone"  # its host, by `sanderling control`
    MOVED = "moved"  # its account, to another host than the one that was asked
    UNKNOWN = "unknown"

    @property
    def permanent(self) -> bool:
        """Whether asking again in a later pass would change nothing."""
        return self in PERMANENT

    @property
    def blames_host(self) -> bool:
        """Whether it counts against the host, and not only against the repo."""
        return self in HOSTS_FAULT


PERMANENT = frozenset(
    {
        AtprotoCategory.NOT_FOUND,
        AtprotoCategory.DEACTIVATED,
        AtprotoCategory.TAKENDOWN,
        AtprotoCategory.SUSPENDED,
        AtprotoCategory.PARSE_ERROR,
        AtprotoCategory.DID_MISMATCH,
        AtprotoCategory.TOO_LARGE,
        AtprotoCategory.REFUSED,
        AtprotoCategory.UNCHANGED,
        AtprotoCategory.LEFT_OUT,
    }
)
TRANSIENT = tuple(category for category in AtprotoCategory if category not in PERMANENT)
HOSTS_FAULT = frozenset(
    {
        AtprotoCategory.DNS_ERROR,
        AtprotoCategory.UNAVAILABLE,
        AtprotoCategory.CONNECTION_ERROR,
        AtprotoCategory.TIMEOUT,
        AtprotoCategory.UNKNOWN,
    }
)

# The names that the lexicon gives, and those that hosts of other makes give for the same.
BY_NAME = {
    "RepoNotFound": AtprotoCategory.NOT_FOUND,
    "AccountNotFound": AtprotoCategory.NOT_FOUND,
    "NotFound": AtprotoCategory.NOT_FOUND,
    "RepoDeactivated": AtprotoCategory.DEACTIVATED,
    "AccountDeactivated": AtprotoCategory.DEACTIVATED,
    "RepoTakendown": AtprotoCategory.TAKENDOWN,
    "AccountTakedown": AtprotoCategory.TAKENDOWN,
    "RepoSuspended": AtprotoCategory.SUSPENDED,
    "AccountSuspended": AtprotoCategory.SUSPENDED,
    "RateLimitExceeded": AtprotoCategory.RATE_LIMITED,
}
# What the reference host says, under a name that means anything, for a repo whose root is gone.
GONE = "could not find repo"
BY_STATUS = {404: AtprotoCategory.NOT_FOUND, 410: AtprotoCategory.DEACTIVATED, 429: AtprotoCategory.RATE_LIMITED}
BY_CODE = {
    Code.RATE_LIMITED: AtprotoCategory.RATE_LIMITED,
    Code.DNS_ERROR: AtprotoCategory.DNS_ERROR,
    Code.TIMEOUT: AtprotoCategory.TIMEOUT,
    Code.CONNECTION_REFUSED: AtprotoCategory.CONNECTION_ERROR,
    Code.CONNECTION_RESET: AtprotoCategory.CONNECTION_ERROR,
    Code.TLS_ERROR: AtprotoCategory.CONNECTION_ERROR,
    Code.NETWORK_ERROR: AtprotoCategory.CONNECTION_ERROR,
    # A body that was cut on the way is the network's doing: filed under parse errors it would never be asked for again.
    Code.TRUNCATED: AtprotoCategory.CONNECTION_ERROR,
    Code.HOST_UNAVAILABLE: AtprotoCategory.UNAVAILABLE,
    Code.TOO_LARGE: AtprotoCategory.TOO_LARGE,
    Code.REFUSED: AtprotoCategory.REFUSED,
    Code.INVALID_URL: AtprotoCategory.REFUSED,
    Code.BAD_ENCODING: AtprotoCategory.HTTP_ERROR,
    Code.CANCELLED: AtprotoCategory.LEFT_ALONE,  # the one reason of our own for which a host is set aside
    Code.INVALID_RESPONSE: AtprotoCategory.HTTP_ERROR,
    Code.REDIRECT_LOOP: AtprotoCategory.HTTP_ERROR,
    Code.HTTP_ERROR: AtprotoCategory.HTTP_ERROR,
    Code.AUTH_FAILED: AtprotoCategory.HTTP_ERROR,
    Code.ACCESS_DENIED: AtprotoCategory.HTTP_ERROR,
}


# What is wrong with a body that came as a repo, if another time could bring a sound one. Who answers everything with
# a page of theirs, be it that the name was sold, sends no CAR at all. A repo that is written to while it is sent, or
# sent by somebody who hung up, lacks blocks.
BY_KIND = {
    Kind.TOO_LARGE: AtprotoCategory.TOO_LARGE,
    Kind.CAR_HEADER: AtprotoCategory.HTTP_ERROR,
    Kind.CAR_FRAME: AtprotoCategory.INCOMPLETE,
    Kind.COMMIT_MISSING: AtprotoCategory.INCOMPLETE,
    Kind.MST_MISSING_NODE: AtprotoCategory.INCOMPLETE,
}


def get_repo(host: str, did: str, blame: Blame | None = None) -> Task:
    """All of a repo, as a CAR. `host` is like https://host.example."""
    return Task(_address(host, "com.atproto.sync.getRepo", did=did), headers=CAR, blame=blame)


def get_latest_commit(host: str, did: str, blame: Blame | None = None) -> Task:
    """The revision of a repo."""
    return Task(_address(host, "com.atproto.sync.getLatestCommit", did=did), headers=JSON, blame=blame)


def list_repos(host: str, cursor: str = "", limit: int = 1000) -> Task:
    """A page of the repos of a host, or of all that a relay knows."""
    return Task(_address(host, "com.atproto.sync.listRepos", limit=str(limit), cursor=cursor), headers=JSON)


def list_hosts(relay: str, cursor: str = "", limit: int = 1000) -> Task:
    """A page of the hosts that a relay knows."""
    return Task(_address(relay, "com.atproto.sync.listHosts", limit=str(limit), cursor=cursor), headers=JSON)


def export(plc: str, after: str, count: int = 1000) -> Task:
    """A page of the log of did:plc behind `after`, which is a number of its sequence, or a time in the older form."""
    return Task(f"{plc.rstrip('/')}/export?{urlencode({'count': count, 'after': after}, safe=':')}", headers=LINES)


def _address(host: str, method: str, **values: str) -> str:
    given = "&".join(f"{name}={quote(value, safe=':')}" for name, value in values.items() if value)
    return f"{host.rstrip('/')}/xrpc/{method}?{given}"


class LatestCommit(msgspec.Struct):
    """The answer of getLatestCommit."""

    cid: str
    rev: str


def latest_rev(body: bytes) -> str:
    """The revision that an answer of getLatestCommit names; "" if it is no such answer."""
    try:
        return msgspec.json.decode(body, type=LatestCommit).rev
    except (msgspec.MsgspecError, RecursionError):
        return ""


# Ours to send back and to keep; those in use have a few dozen characters.
Cursor = Annotated[str, msgspec.Meta(max_length=2000)]


class ListedRepo(msgspec.Struct):
    """One repo of listRepos."""

    did: str
    rev: str = ""
    head: str = ""
    active: bool = True
    status: str | None = None


class ListedRepos(msgspec.Struct):
    """The answer of listRepos; without a cursor it was the last page."""

    repos: list[ListedRepo]
    cursor: Cursor | None = None


class ListedHost(msgspec.Struct):
    """One host of listHosts."""

    hostname: str
    status: str = "active"


class ListedHosts(msgspec.Struct):
    """The answer of listHosts; without a cursor it was the last page."""

    hosts: list[ListedHost]
    cursor: Cursor | None = None


class _Error(msgspec.Struct):
    error: str = ""
    message: str = ""


def why_not(outcome: Outcome, reply: Reply | None) -> AtprotoCategory:
    """The category of an answer to getRepo that was not a repo."""
    if reply is not None and reply.status >= 400 and (named := _named(reply.body)) is not None:
        return named
    return BY_STATUS.get(outcome.status) or BY_CODE.get(outcome.code) or _by_hundred(outcome.status)


def why_unsound(error: RepoError) -> AtprotoCategory:
    """The category of an answer to getRepo that is no sound repo."""
    return BY_KIND.get(error.kind, AtprotoCategory.PARSE_ERROR)


def _by_hundred(status: int) -> AtprotoCategory:
    if status >= 500:
        return AtprotoCategory.UNAVAILABLE
    return AtprotoCategory.HTTP_ERROR if status else AtprotoCategory.UNKNOWN


def _named(body: bytes) -> AtprotoCategory | None:
    """The category that the error's own name stands for, if it has one."""
    try:
        error = msgspec.json.decode(body, type=_Error)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if error.error == "InvalidRequest" and GONE in error.message.lower():
        return AtprotoCategory.NOT_FOUND
    return BY_NAME.get(error.error)
