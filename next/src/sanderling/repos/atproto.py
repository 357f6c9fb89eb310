"""ATProto: DIDs, hosts, the requests for a repo, and why a repo was not to be had.

Names of errors are read from the JSON of a response and nowhere else: a page of a proxy that contains RepoNotFound says
nothing about the repo.
"""

import re
from enum import StrEnum

import msgspec

from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.formats.car import RepoFault
from sanderling.ids import Host, HostError, normalise_host
from sanderling.outcome import Code, Outcome

ACCEPT_CAR = (("Accept", "application/vnd.ipld.car"),)
ACCEPT_JSON = (("Accept", "application/json"),)
LONGEST_DID = 2048
LARGEST_JSON = 1 << 20  # bytes
_DID = re.compile(r"did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]")


class RepoCategory(StrEnum):
    """What became of a repo that was not archived: the eleven of the seed, and ours."""

    NOT_FOUND = "not_found"
    DEACTIVATED = "deactivated"
    TAKENDOWN = "takendown"
    RATE_LIMITED = "rate_limited"
    PARSE_ERROR = "parse_error"
    HTTP_ERROR = "http_error"
    DNS_ERROR = "dns_error"
    UNAVAILABLE = "unavailable"
    CONNECTION_ERROR = "connection_error"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"
    SUSPENDED = "suspended"
    DELETED = "deleted"  # by the directory
    DID_MISMATCH = "did_mismatch"
    TOO_LARGE = "too_large"
    INCOMPLETE = "incomplete"  # what came is not all of it
    REFUSED = "refused"  # by us: it leads into a private network
    LEFT_OUT = "left_out"  # by a list
    MOVED = "moved"  # to another host, where it is requested
    UNCHANGED = "unchanged"  # since it was archived


GONE = frozenset(
    {
        RepoCategory.NOT_FOUND,
        RepoCategory.DEACTIVATED,
        RepoCategory.TAKENDOWN,
        RepoCategory.SUSPENDED,
        RepoCategory.DELETED,
    }
)
PERMANENT = GONE | {
    RepoCategory.PARSE_ERROR,
    RepoCategory.DID_MISMATCH,
    RepoCategory.TOO_LARGE,
    RepoCategory.REFUSED,
    RepoCategory.LEFT_OUT,
    RepoCategory.UNCHANGED,
}
# Those that say more about the host than about the repo: ten in a row block it.
OF_HOST = frozenset(
    {
        RepoCategory.DNS_ERROR,
        RepoCategory.UNAVAILABLE,
        RepoCategory.CONNECTION_ERROR,
        RepoCategory.TIMEOUT,
        RepoCategory.UNKNOWN,
    }
)
# The names that the lexicon gives, and those that hosts of other makes give for the same.
_BY_NAME = {
    "RepoNotFound": RepoCategory.NOT_FOUND,
    "AccountNotFound": RepoCategory.NOT_FOUND,
    "NotFound": RepoCategory.NOT_FOUND,
    "RepoDeactivated": RepoCategory.DEACTIVATED,
    "AccountDeactivated": RepoCategory.DEACTIVATED,
    "RepoTakendown": RepoCategory.TAKENDOWN,
    "AccountTakedown": RepoCategory.TAKENDOWN,
    "RepoSuspended": RepoCategory.SUSPENDED,
    "AccountSuspended": RepoCategory.SUSPENDED,
    "RateLimitExceeded": RepoCategory.RATE_LIMITED,
}
# What the reference host says, under a name that means anything, for a repo whose root is gone.
_ROOT_GONE = "could not find repo"
_BY_STATUS = {404: RepoCategory.NOT_FOUND, 410: RepoCategory.DEACTIVATED}
_BY_CODE = {
    Code.RATE_LIMITED: RepoCategory.RATE_LIMITED,
    Code.DNS_ERROR: RepoCategory.DNS_ERROR,
    Code.TIMEOUT: RepoCategory.TIMEOUT,
    Code.CONNECTION_REFUSED: RepoCategory.CONNECTION_ERROR,
    Code.CONNECTION_RESET: RepoCategory.CONNECTION_ERROR,
    Code.TLS_ERROR: RepoCategory.CONNECTION_ERROR,
    Code.NETWORK_ERROR: RepoCategory.CONNECTION_ERROR,
    Code.TRUNCATED: RepoCategory.CONNECTION_ERROR,  # filed as a parse error it would never be requested again
    Code.HOST_UNAVAILABLE: RepoCategory.UNAVAILABLE,
    Code.TOO_LARGE: RepoCategory.TOO_LARGE,
    Code.REFUSED: RepoCategory.REFUSED,
    Code.INVALID_URL: RepoCategory.REFUSED,
    Code.UNKNOWN_ERROR: RepoCategory.UNKNOWN,
    Code.INTERNAL_ERROR: RepoCategory.UNKNOWN,
}
_CODES = {
    RepoCategory.NOT_FOUND: Code.CONTENT_NOT_FOUND,
    RepoCategory.DEACTIVATED: Code.CONTENT_REMOVED,
    RepoCategory.TAKENDOWN: Code.CONTENT_UNAVAILABLE,
    RepoCategory.SUSPENDED: Code.CONTENT_UNAVAILABLE,
    RepoCategory.RATE_LIMITED: Code.RATE_LIMITED,
}
# Of faults in a body, those that another time could be without: a repo that is written to while it is sent lacks
# blocks. What is no CAR at all comes from somebody else than a host of repos.
_BY_FAULT = {
    RepoFault.TOO_LARGE: RepoCategory.TOO_LARGE,
    RepoFault.CAR_FRAME: RepoCategory.INCOMPLETE,
    RepoFault.COMMIT_MISSING: RepoCategory.INCOMPLETE,
    RepoFault.MST_MISSING_NODE: RepoCategory.INCOMPLETE,
}


class EndpointError(ValueError):
    """An endpoint is no host that could be requested."""


def is_did(text: str) -> bool:
    """Whether `text` has the form of a DID."""
    return len(text) <= LONGEST_DID and _DID.fullmatch(text) is not None


def host_at(endpoint: str, *, private: bool = False) -> str:
    """The address of the host that an endpoint names, as in https://pds.example.org. Raises EndpointError.

    Only hosts of one's own network are requested without TLS.
    """
    scheme, separator, rest = endpoint[:600].partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in ("https", "http"):
        raise EndpointError(f"found {endpoint[:80]!r}, expected https://HOST")
    if scheme == "http" and not private:
        raise EndpointError(f"found {endpoint[:80]!r}, expected https; --private allows http")
    try:
        return f"{scheme}://{normalise_host(rest.removesuffix('/'), scheme)}"
    except HostError as error:
        raise EndpointError(str(error)) from None


def address_of(host: str, did: str) -> str:
    """How a repo is called in the ledger."""
    return f"{host}/{did}"


def account_at(address: str) -> tuple[str, str]:
    """The host and the DID of such an address."""
    host, _, did = address.rpartition("/")
    return host, did


def repo_request(host: str, did: str, largest: int) -> HttpRequest:
    """The request for all of a repo."""
    return HttpRequest(_method(host, "getRepo", did), headers=ACCEPT_CAR, largest=largest)


def commit_request(host: str, did: str) -> HttpRequest:
    """The request for the revision of a repo."""
    return HttpRequest(_method(host, "getLatestCommit", did), headers=ACCEPT_JSON, largest=LARGEST_JSON)


def _method(host: str, name: str, did: str) -> str:
    # A percent sign belongs to DIDs such as did:web:localhost%3A3000, and is escaped itself.
    return f"{host}/xrpc/com.atproto.sync.{name}?did={did.replace('%', '%25')}"


class _LatestCommit(msgspec.Struct):
    rev: str


def latest_rev(body: bytes) -> str:
    """The revision that a response names; "" if it is no such response."""
    try:
        return msgspec.json.decode(body, type=_LatestCommit).rev
    except (msgspec.MsgspecError, RecursionError):
        return ""


class _Error(msgspec.Struct):
    error: str = ""
    message: str = ""


def why_not(response: HttpResponse) -> RepoCategory:
    """The category of a response that is no repo."""
    outcome = response.outcome
    if response.status >= 400 and (named := named_error(response.body)) is not None:
        return named
    found = _BY_STATUS.get(response.status) or _BY_CODE.get(outcome.code)
    if found is not None:
        return found
    if response.status >= 500:
        return RepoCategory.UNAVAILABLE
    return RepoCategory.HTTP_ERROR if response.status else RepoCategory.UNKNOWN


def category_of(outcome: Outcome) -> RepoCategory:
    """The category of a request that got no response with a body."""
    return _BY_CODE.get(outcome.code, RepoCategory.UNAVAILABLE if outcome.status >= 500 else RepoCategory.UNKNOWN)


def named_error(body: bytes) -> RepoCategory | None:
    """The category that the name of an error stands for, if a response has one."""
    try:
        error = msgspec.json.decode(body[:LARGEST_JSON], type=_Error)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if error.error == "InvalidRequest" and _ROOT_GONE in error.message.lower():
        return RepoCategory.NOT_FOUND
    return _BY_NAME.get(error.error)


def judged(response: HttpResponse) -> Outcome:
    """What a response means for limiter and engine: the name of its error says more than its status."""
    outcome = response.outcome
    if outcome.ok or not response.status:
        return outcome
    category = why_not(response)
    code = _CODES.get(category, outcome.code)
    return Outcome(code, outcome.status, category.value, outcome.retry_after, sent=outcome.sent)


def of_fault(fault: RepoFault) -> RepoCategory:
    """The category of a body that is no sound repo."""
    return _BY_FAULT.get(fault, RepoCategory.PARSE_ERROR)


def handle_of(text: str) -> str:
    """A handle in its one spelling. Raises ValueError."""
    try:
        host = normalise_host(text.removeprefix("@"))
    except HostError:
        host = Host("")
    if "." not in host or ":" in host or host.startswith("["):
        raise ValueError(f"found {text[:80]!r}, expected a DID like did:plc:… or a handle like alice.example.org")
    return host
