"""Who a handle is, and where the repo of a DID lives: which documents say so, and what they mean. No I/O.

A handle names a DID in https://HANDLE/.well-known/atproto-did, or a host that resolves handles is asked. The DID names
its host in its document: of did:plc the directory has it, of did:web the domain itself. The document names the handle
in return; one that it does not name is somebody else's claim.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

import msgspec

from sanderling.task import Reply, Task

PLC = "https://plc.directory"
LONGEST_HANDLE = 253
_DID = re.compile(r"did:(plc:[a-z2-7]{24}|web:[a-zA-Z0-9.-]+(?:%3A[0-9]{1,5})?)")
# As the handle specification has it: at least two labels, and the last does not begin with a digit.
_HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_OWN = re.compile(r"[a-z0-9.-]{1,253}(?::[0-9]{1,5})?")  # of one's own network: a name or an address, and a port


class IdentityError(ValueError):
    """An identity cannot be resolved. The message says what was found, and where."""


class _Service(msgspec.Struct):
    id: str = ""
    type: str = ""
    endpoint: object = msgspec.field(name="serviceEndpoint", default="")


class _Document(msgspec.Struct):
    id: str = ""
    known_as: list[str] = msgspec.field(name="alsoKnownAs", default_factory=list)
    service: list[_Service] = msgspec.field(default_factory=list)


class _Resolved(msgspec.Struct):
    did: str


@dataclass(frozen=True, slots=True)
class RepoIdentity:
    """A DID, the endpoint of its host, and the handles that it names."""

    did: str
    endpoint: str
    handles: tuple[str, ...]


def is_did(text: str) -> bool:
    """Whether it is a DID of a kind that has a document which we can read."""
    return _DID.fullmatch(text) is not None


def read_handle(text: str, *, private: bool = False) -> str:
    """The handle that a text is, without @ or at://. Raises IdentityError."""
    handle = text.removeprefix("at://").removeprefix("@").lower()
    pattern = _OWN if private else _HANDLE
    if len(handle) > LONGEST_HANDLE or not pattern.fullmatch(handle):
        raise IdentityError(f"{text[:80]!r} is neither a DID (did:plc:…, did:web:…) nor a handle (alice.example)")
    return handle


def ask_handle(handle: str, *, private: bool = False) -> Task:
    """The question who a handle is, to the handle itself."""
    return Task(f"{'http' if private else 'https'}://{handle}/.well-known/atproto-did")


def ask_resolver(handle: str, resolver: str) -> Task:
    """The same question, to a host that resolves handles."""
    return Task(f"{resolver.rstrip('/')}/xrpc/com.atproto.identity.resolveHandle?handle={quote(handle, safe='')}")


def read_did(reply: Reply) -> str:
    """The DID in the answer to either question. Raises IdentityError."""
    text = reply.body[:2048].decode(errors="replace").strip()
    if text.startswith("{"):
        try:
            text = msgspec.json.decode(reply.body, type=_Resolved).did
        except msgspec.MsgspecError as error:
            raise IdentityError(f"{reply.url}: {error}") from None
    if not is_did(text):
        raise IdentityError(f"{reply.url} says {text[:60]!r}, expected a DID")
    return text


def ask_document(did: str, plc: str = PLC, *, private: bool = False) -> Task:
    """The question where a DID lives."""
    if did.startswith("did:plc:"):
        return Task(f"{plc.rstrip('/')}/{did}")
    domain = unquote(did.removeprefix("did:web:"))
    return Task(f"{'http' if private else 'https'}://{domain}/.well-known/did.json")


def read_document(did: str, reply: Reply) -> RepoIdentity:
    """What the document of a DID says. Raises IdentityError."""
    try:
        document = msgspec.json.decode(reply.body, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IdentityError(f"{reply.url} is no document of a DID: {error}") from None
    if document.id != did:
        raise IdentityError(f"{reply.url} is the document of {document.id[:60]!r}, expected {did}")
    for service in document.service:
        if service.id in ("#atproto_pds", f"{did}#atproto_pds") and isinstance(service.endpoint, str):
            handles = tuple(each.removeprefix("at://") for each in document.known_as if each.startswith("at://"))
            return RepoIdentity(did, service.endpoint, handles)
    raise IdentityError(f"{did} names no host of repos: its account was closed, or it never had one")
