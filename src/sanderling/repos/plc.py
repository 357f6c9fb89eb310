"""The log of did:plc, folded: which host each DID has now.

The log is exported as JSON lines of two formats: an old one, where an operation that was undone says `nullified`, and
one where each has a `seq`. Both give the time and the CID of each operation, so lines of both may be mixed: the time
says which is later, and the seq only among those of one millisecond.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

import msgspec

from sanderling.ids import HostError, normalise

# An operation has 7,500 bytes at most, by the directory's own rules; its line a little more.
LONGEST_LINE = 1 << 16
LONGEST_ENDPOINT = 600  # a host's longest input, and its scheme
LONGEST_DID = 2048
# Operations of one DID that are remembered. To undo takes a newer operation, so the last is the right one but for the
# moments in which we know that it was undone, and not yet by what. Few DIDs have more than three.
KEPT = 8
SHOWN = 20  # faults described one by one; the others are only counted

DID = re.compile(r"did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]")
_ENDPOINT = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#\s]*)(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EndpointError(ValueError):
    """An endpoint is no host that we would call. `reason` is one of a few words, for counting."""

    def __init__(self, reason: str, found: str) -> None:
        super().__init__(f"{reason}: {found}")
        self.reason = reason


class Operation(msgspec.Struct, frozen=True, gc=False):
    """One change of a DID."""

    did: str
    cid: str
    created_at: int  # microseconds since 1970
    seq: int = 0  # 0 where the export does not say
    host: str = ""  # that the DID has from now on; none if it ended, or named none that we would call
    nullified: bool = False


class RememberedOperation(NamedTuple):
    """What is remembered of an operation. They sort by age."""

    created_at: int
    seq: int
    tag: bytes  # of its CID
    host: int  # whichever number stands for it; 0 for none
    nullified: bool


@dataclass(slots=True)
class ImportTally:
    """What was read, and what was wrong with it."""

    lines: int = 0
    operations: int = 0
    bad: Counter[str] = field(default_factory=Counter)  # lines left out, by reason
    refused: Counter[str] = field(default_factory=Counter)  # endpoints left out, by reason
    shown: list[tuple[int, str]] = field(default_factory=list)  # the first of both: line, and what was found
    seq: int = 0  # the last of all
    created_at: int = 0  # the latest of all

    @property
    def cursor(self) -> str:
        """Where to go on: `after` of the next export."""
        if self.seq:
            return str(self.seq)
        at = (_EPOCH + timedelta(microseconds=self.created_at)).isoformat(timespec="milliseconds")
        return at.replace("+00:00", "Z") if self.created_at else ""

    def show(self, found: str) -> None:
        """Describe what is wrong with this line, if not too many were described before."""
        if len(self.shown) < SHOWN:
            self.shown.append((self.lines, found[:200]))


class _Service(msgspec.Struct):
    endpoint: str = ""


class _Services(msgspec.Struct):
    atproto_pds: _Service | None = None


class _Change(msgspec.Struct):
    type: Literal["plc_operation", "create", "plc_tombstone"]
    services: _Services = msgspec.field(default_factory=_Services)
    service: str = ""  # of `create`, which was before there were services

    @property
    def endpoint(self) -> str:
        """What the operation itself names, or nothing."""
        if self.type == "plc_operation":
            return self.services.atproto_pds.endpoint if self.services.atproto_pds else ""
        return self.service if self.type == "create" else ""


class _Line(msgspec.Struct):
    did: str
    operation: _Change
    cid: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    created_at: Annotated[datetime, msgspec.Meta(tz=True)] = msgspec.field(name="createdAt")
    nullified: bool = False
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


def read(lines: Iterable[bytes], tally: ImportTally, *, plain: bool = False) -> Iterator[Operation]:
    """The operations of an export, as they come. What is none is counted; nothing that a line says raises.

    With `plain`, hosts without TLS are taken too.
    """
    decoder = msgspec.json.Decoder(_Line)
    for line in lines:
        tally.lines += 1
        if line.isspace():
            continue
        try:
            found = _decoded(decoder, line)
        except _LineError as error:
            tally.bad[error.reason] += 1
            tally.show(str(error))
            continue
        tally.operations += 1
        operation = _operation(found, tally, plain=plain)
        tally.seq = max(tally.seq, operation.seq)
        tally.created_at = max(tally.created_at, operation.created_at)
        yield operation


class _LineError(ValueError):
    def __init__(self, reason: str, found: object) -> None:
        super().__init__(f"{reason}: {found}")
        self.reason = reason


def _decoded(decoder: msgspec.json.Decoder[_Line], line: bytes) -> _Line:
    if len(line) > LONGEST_LINE:
        raise _LineError("too long", f"more than {LONGEST_LINE} bytes")
    try:
        found = decoder.decode(line)
    except msgspec.ValidationError as error:
        raise _LineError("not an operation", error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _LineError("not JSON", error) from None
    if not is_did(found.did):
        raise _LineError("not a DID", repr(found.did[:80]))
    return found


def is_did(text: str) -> bool:
    """Whether `text` has the form of a DID."""
    return len(text) <= LONGEST_DID and DID.fullmatch(text) is not None


def _operation(found: _Line, tally: ImportTally, *, plain: bool) -> Operation:
    host = ""
    if endpoint := found.operation.endpoint:
        try:
            host = host_at(endpoint, plain=plain)
        except EndpointError as error:
            tally.refused[error.reason] += 1
            tally.show(f"{found.did}: {error}")
    created_at = (found.created_at - _EPOCH) // timedelta(microseconds=1)
    return Operation(found.did, found.cid, created_at, found.seq, host, found.nullified)


def host_at(endpoint: str, *, plain: bool = False) -> str:
    """The host that an endpoint names, as we spell it. Raises EndpointError for what is more than a host, or less."""
    parts = _ENDPOINT.fullmatch(endpoint) if len(endpoint) <= LONGEST_ENDPOINT else None
    if parts is None:
        raise EndpointError("not a URL", f"{endpoint[:80]!r}, expected https://host")
    scheme = parts["scheme"].lower()
    if scheme not in ("https", "http"):
        raise EndpointError("scheme", f"{scheme[:20]!r}, expected 'https'")
    if scheme == "http" and not plain:
        raise EndpointError("without TLS", f"{endpoint[:80]!r}, expected https")
    if "@" in parts["authority"]:
        raise EndpointError("user info", "a name before the host, which may be a password's")
    if parts["rest"] not in ("", "/"):
        raise EndpointError("path", f"{parts['rest'][:80]!r}, expected nothing behind the host")
    try:
        return f"{scheme}://{normalise(parts['authority'], scheme=scheme)}"
    except HostError as error:
        raise EndpointError("host", str(error)) from None


def tag_of(cid: str) -> bytes:
    """What tells an operation from the others of its DID."""
    return blake2b(cid.encode(), digest_size=8).digest()


def fold(kept: Iterable[RememberedOperation]) -> tuple[RememberedOperation, ...]:
    """What of these to remember: the last few, oldest first, each once, and nullified if it ever was said to be.

    The same, in whatever order and however often they come, and folded at once or one after the other.
    """
    known: dict[bytes, RememberedOperation] = {}
    for each in kept:
        before = known.get(each.tag, each)
        known[each.tag] = max(before, each)._replace(nullified=before.nullified or each.nullified)
    return tuple(sorted(known.values())[-KEPT:])


def host_now(kept: Iterable[RememberedOperation]) -> int:
    """The host that the last valid one gives, 0 if it gives none or if there is none; `kept` is as `fold` left it."""
    return next((each.host for each in reversed(tuple(kept)) if not each.nullified), 0)
