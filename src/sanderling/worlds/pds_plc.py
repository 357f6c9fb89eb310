"""The directory of identities, simulated: what operations made each DID what it is, and the export of all of them.

Folding the operations gives the fleet's DIDs and their hosts, and no others. There are creations of both kinds, moves,
new names, tombstones, operations that were nullified, and identities without a host.
"""

import base64
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha512
from typing import NamedTuple

from sanderling.formats import cbor
from sanderling.formats.cbor import Value
from sanderling.formats.cid import Cid
from sanderling.worlds.pds_accounts import AccountCensus
from sanderling.worlds.pds_fates import json_page
from sanderling.worlds.pds_hosts import FleetHost, PdsHost, Query, home, parse_query
from sanderling.worlds.pds_keys import SigningKey
from sanderling.worlds.site_pages import SitePage

EXPORT = "/export"
MOST = 1000  # operations of a page
STRANGE = "https://taken.example"  # where somebody else's hands would have had an identity
BEGAN = datetime(2022, 11, 17, tzinfo=UTC)
APART = timedelta(minutes=1)  # two creations
LATER = timedelta(minutes=7, milliseconds=1)  # from one operation of an identity to its next: no two at one time
GAP = 7  # after so many operations a number of the sequence is left out


class PlcStep(NamedTuple):
    """One operation of an identity."""

    endpoint: str | None  # None: it has no host from now on
    key: SigningKey
    handle: str = ""
    tombstone: bool = False
    after: int = -1  # the step it builds on, if not the one before
    nullified: bool = False  # since a later step builds on an earlier one than this


class PlcOperation(NamedTuple):
    """A step as it was signed."""

    did: str
    cid: str
    body: dict[str, Value]
    nullified: bool


@dataclass(frozen=True)
class PlcDirectory(FleetHost):
    """Serves the export, by sequence number and in the older form by time."""

    census: AccountCensus
    hosts: tuple[PdsHost, ...]

    @cached_property
    def log(self) -> list[tuple[datetime, int, int]]:
        """All operations in the order of time: when, whose, and which of theirs."""
        return sorted(
            (BEGAN + number * APART + step * LATER, number, step)
            for number in range(self._accounts + self._departed)
            for step in range(len(self.history(number)))
        )

    @property
    def _accounts(self) -> int:
        return sum(host.size for host in self.hosts)

    @property
    def _departed(self) -> int:
        """How many identities are no longer anywhere: those with the numbers after all accounts."""
        return self._accounts // 20 + 2 if self.hosts else 0

    def page(self, path: str) -> SitePage:
        """What is at a path, its query included."""
        where, _, query = path.partition("?")
        if where != EXPORT:
            return self._document(where.removeprefix("/"))
        return self._export(parse_query(query))

    def _document(self, did: str) -> SitePage:
        """The document of a DID, as its last operation makes it."""
        number = self.census.number(did)
        host = home(self.hosts, number)
        if host is None:
            return json_page(404, {"message": f"DID not registered: {did[:80]}"})
        handles = [f"at://{self.history(number)[-1].handle}"]
        if number == host.first:  # its host says so, in .well-known/atproto-did
            handles.append(f"at://{host.origin.removeprefix('http://')}")
        pds = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": host.origin}
        return json_page(200, {"id": did, "alsoKnownAs": handles, "service": [pds]})

    def history(self, number: int) -> list[PlcStep]:
        """What happened to an identity, in order."""
        host = home(self.hosts, number)
        if host is None:
            first = self.hosts[number % len(self.hosts)]
            created = PlcStep(first.origin, first.key, f"u{number}.{first.name}")
            return [created, created._replace(endpoint=None, tombstone=number % 2 == 0)]
        # Some write their address with a slash.
        endpoint = f"{host.origin}/" if number % 25 == 11 else host.origin
        here = PlcStep(endpoint, host.key, f"u{number}.{host.name}")
        before = self.hosts[number % len(self.hosts)]
        if number % 10 == 3:
            return [here._replace(endpoint=before.origin, key=before.key), here]
        if number % 10 == 6:
            return [here, here._replace(handle=f"u{number}.example")]
        stolen = here._replace(endpoint=STRANGE, nullified=True)
        if number % 40 == 17:
            return [here, stolen, stolen._replace(handle="taken.example"), here._replace(after=0)]
        if number % 40 == 37:
            return [here, stolen._replace(tombstone=True), here._replace(after=0)]
        return [here]

    def operations(self, number: int) -> list[PlcOperation]:
        """The operations of an identity; each names the one it builds on."""
        did, made = self.census.did(number), list[PlcOperation]()
        for step in self.history(number):
            before = made[step.after].cid if made else None
            unsigned = _body(step, before, old=number % 3 == 0)
            bytes_ = cbor.encode(unsigned)
            signature = step.key.sign(bytes_) if self._signed else sha512(bytes_).digest()
            body = unsigned | {"sig": base64.urlsafe_b64encode(signature).decode().rstrip("=")}
            made.append(PlcOperation(did, Cid.of(cbor.encode(body)).text, body, step.nullified))
        return made

    @property
    def _signed(self) -> bool:
        return any(host.signed for host in self.hosts)

    def _export(self, query: Query) -> SitePage:
        count, after = query.get("count", str(MOST)), query.get("after", "")
        if not (count.isascii() and count.isdecimal() and 0 < len(count) <= 9 and int(count) > 0):
            return json_page(400, {"message": "Invalid count parameter"})
        most = min(int(count), MOST)
        if after.isascii() and after.isdecimal():
            # By bisection through the numbers, which have gaps.
            start = bisect_right(range(len(self.log)), int(after[:18]), key=_sequence)
            lines = [_sequenced(at, *self._entry(at)) for at in self._from(start, most)]
        else:
            try:
                since = datetime.fromisoformat(after) if after else datetime.min.replace(tzinfo=UTC)
                start = bisect_right(self.log, since, key=lambda entry: entry[0])
            except (ValueError, TypeError):  # no time, or one without a zone
                return json_page(400, {"message": "Invalid after parameter"})
            lines = [_dated(*self._entry(at)) for at in self._from(start, most)]
        return SitePage(200, (("Content-Type", "application/jsonlines"),), "\n".join(map(json.dumps, lines)).encode())

    def _from(self, start: int, most: int) -> Iterator[int]:
        yield from range(start, min(len(self.log), start + most))

    def _entry(self, at: int) -> tuple[datetime, PlcOperation]:
        time, number, step = self.log[at]
        return time, self.operations(number)[step]


def _sequence(at: int) -> int:
    return at + at // GAP + 1


def _sequenced(at: int, time: datetime, made: PlcOperation) -> dict[str, object]:
    return {"type": "sequenced_op", "seq": _sequence(at), **_common(time, made)}


def _dated(time: datetime, made: PlcOperation) -> dict[str, object]:
    return {**_common(time, made), "nullified": made.nullified}


def _common(time: datetime, made: PlcOperation) -> dict[str, object]:
    written = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"did": made.did, "operation": made.body, "cid": made.cid, "createdAt": written}


def _body(step: PlcStep, before: str | None, *, old: bool) -> dict[str, Value]:
    if step.tombstone:
        return {"type": "plc_tombstone", "prev": before}
    if old and before is None:  # as creations once were
        service: dict[str, Value] = {"service": step.endpoint, "handle": step.handle}
        return {"type": "create", "signingKey": step.key.did, "recoveryKey": step.key.did, **service, "prev": None}
    pds: Value = {"type": "AtprotoPersonalDataServer", "endpoint": step.endpoint}
    return {
        "type": "plc_operation",
        "rotationKeys": [step.key.did],
        "verificationMethods": {"atproto": step.key.did},
        "alsoKnownAs": [f"at://{step.handle}"],
        "services": {} if step.endpoint is None else {"atproto_pds": pds},
        "prev": before,
    }
