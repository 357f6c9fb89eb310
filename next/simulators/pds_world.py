"""Thirty hosts of accounts, of every kind, on ports of this machine; and what must become of each account.

    python simulators/pds_world.py FOLDER [--seed 1] [--dids 3000]     serve until Ctrl-C
    python simulators/pds_world.py FOLDER --check ARCHIVE              compare an archive with the truth

FOLDER gets `accounts.txt` (lines DID HOST, for --did-file), `plc.jsonl` (the log of the directory, for --import) and
`truth.jsonl`: of each account its host, the host's kind, how many records it has, and its fates, of which one is right:
`archived`, a category, or `waiting` behind a category that says why. Written from the protocol's text.
"""

import argparse
import asyncio
import gzip
import json
import socket
import struct
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from random import Random
from time import time
from urllib.parse import parse_qs, urlsplit

from atproto_repos import (
    build_tree,
    cid_of,
    encode,
    make_commit,
    make_records,
    make_repo,
    varint,
    write_car,
    write_node,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DONE = ["archived"]
# What a host of that kind makes of its accounts, unless an account is special.
KINDS: dict[str, list[str]] = {
    "healthy": DONE,
    "throttled": DONE,  # four requests a second, Retry-After in seconds
    "throttled by date": DONE,
    "refusing": ["rate_limited"],  # every request
    "dead": ["connection_error"],  # nobody listens
    "silent": ["timeout"],  # takes the request and says nothing
    "slow": DONE,  # each body takes a second
    "stalling": ["timeout", "connection_error", "incomplete"],  # in the middle of a body, for ever
    "cutting": ["connection_error", "incomplete"],  # each body, with a Content-Length
    "cutting once": DONE,  # the first response for every third account
    "failing": ["unavailable"],
    "flaky": DONE,  # fails at the same
    "a web site": ["parse_error", "http_error", "incomplete"],  # 200 and HTML
    "an error page": ["http_error", "not_found"],  # 404 and HTML, to everything
    "redirecting": DONE,  # to the next healthy host, as a relay does
    "redirecting for ever": ["http_error", "unknown", "connection_error"],
    "redirecting home": ["refused", "http_error", "connection_error"],  # to 169.254.169.254
    "gzip": DONE,
    "gzip bombs": ["too_large"],
    "endless": ["too_large"],  # frames without end
    "boasting": ["too_large"],  # Content-Length: 2 GB
    "old": DONE,  # HTTP/1.0, no length, no type, commits of version 2
    "broken": [],  # each account in a way of its own
    "gone": [],  # the same
}
GONE = {
    "RepoTakendown": ["takendown"],
    "RepoDeactivated": ["deactivated"],
    "RepoNotFound": ["not_found"],
    "RepoSuspended": ["suspended"],
    "Could not find repo": ["not_found"],
    "404": ["not_found"],
    "410": ["deactivated"],
    "tombstone": ["deleted"],  # of the directory: never requested
}
BROKEN = {
    "flipped": ["parse_error"],
    "nobody's": ["did_mismatch"],
    "no tree": ["incomplete"],
    "cut between frames": ["incomplete"],
    "a ring": ["parse_error"],
    "keys out of order": ["parse_error"],
    "version 1": ["parse_error"],
    "no CAR": ["parse_error", "incomplete"],
    "a frame of 2**40": ["parse_error", "incomplete"],
    "100,000 lists": DONE,  # one record is dropped
    "floats": DONE,
    "a record missing": ["incomplete", "archived"],
    "empty": DONE,
}


@dataclass(slots=True)
class Account:
    did: str
    host: int
    special: str = ""
    records: int = 0
    car: bytes = b""
    fates: list[str] = field(default_factory=list)


class World:
    """All hosts and accounts; drawn from the seed, but for the ports."""

    def __init__(self, seed: int, dids: int) -> None:
        rng = Random(seed)
        kinds = list(KINDS)
        self.kinds = kinds + ["healthy"] * (30 - len(kinds))
        rng.shuffle(self.kinds)
        self.sockets = [socket.create_server(("127.0.0.1", 0)) for _ in self.kinds]
        self.urls = [f"http://127.0.0.1:{each.getsockname()[1]}" for each in self.sockets]
        self.accounts: dict[str, Account] = {}
        for number in range(dids):
            did = "did:plc:" + "".join(rng.choices("abcdefghijklmnopqrstuvwxyz234567", k=24))
            self.accounts[did] = self._account(did, number % len(self.kinds), number // len(self.kinds), rng)
        self.asked: Counter[str] = Counter()
        self.recent: dict[int, list[float]] = {number: [] for number in range(len(self.kinds))}

    def _account(self, did: str, host: int, number: int, rng: Random) -> Account:
        kind = self.kinds[host]
        account = Account(did, host, records=rng.choice((0, 1, 3, 10, 40, 120)), fates=KINDS[kind])
        table = (
            GONE if kind == "gone" or (kind == "healthy" and number % 25 == 7) else BROKEN if kind == "broken" else {}
        )
        if table:
            account.special = list(table)[number % len(table)]
            account.fates = table[account.special]
        old = {"version": 2, "rev": "left out", "prev": "left out"} if kind == "old" else {}
        account.car = make_repo(rng, did, account.records, **old)
        if kind == "broken":
            account.car, account.records = broken(account, rng)
        return account

    def write(self, folder: Path) -> None:
        accounts = self.accounts.values()
        folder.mkdir(parents=True, exist_ok=True)
        named = [each for each in accounts if each.special != "tombstone"]
        (folder / "accounts.txt").write_text("".join(f"{each.did} {self.urls[each.host]}\n" for each in named))
        rows = [
            {"did": each.did, "host": self.urls[each.host], "kind": self.kinds[each.host], "special": each.special,
             "fates": each.fates, "records": each.records}
            for each in accounts
        ]  # fmt: skip
        (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with (folder / "plc.jsonl").open("w") as file:
            for number, each in enumerate(accounts):
                service = {"type": "AtprotoPersonalDataServer", "endpoint": self.urls[each.host]}
                operations = [{"type": "plc_operation", "services": {"atproto_pds": service}, "alsoKnownAs": []}]
                if each.special == "tombstone":
                    operations.append({"type": "plc_tombstone"})
                for operation in operations:
                    when = f"2025-01-02T03:{number // 60 % 60:02}:{number % 60:02}.000Z"
                    file.write(json.dumps({"did": each.did, "operation": operation, "createdAt": when}) + "\n")

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, (kind, listener) in enumerate(zip(self.kinds, self.sockets, strict=True)):
                if kind == "dead":
                    listener.close()
                else:
                    server = await asyncio.start_server(self._connected(number), sock=listener)
                    group.create_task(server.serve_forever())

    def _connected(self, host: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                while True:
                    request = await reader.readuntil(b"\r\n\r\n")
                    if not await self._answer(host, request.split(b" ", 2)[1].decode("latin-1"), writer):
                        break
            writer.close()

        return connected

    async def _answer(self, host: int, target: str, writer: asyncio.StreamWriter) -> bool:
        """Send a response; whether the connection stays open."""
        did = parse_qs(urlsplit(target).query).get("did", [""])[0]
        kind, account = self.kinds[host], self.accounts.get(did)
        self.asked[f"{host} {did}"] += 1
        # The first request for every third account.
        is_unlucky = self.asked[f"{host} {did}"] == 1 and sum(did.encode()) % 3 == 0
        recent = self.recent[host] = [each for each in self.recent[host] if each > time() - 1] + [time()]
        healthy = self.urls[self.kinds.index("healthy")]

        def send(status: str, body: bytes, *headers: str, length: int | None = None) -> None:
            lines = [
                f"HTTP/1.1 {status}",
                f"Content-Length: {len(body) if length is None else length}",
                *headers,
                "",
                "",
            ]
            writer.write("\r\n".join(lines).encode() + body)

        def error(status: str, name: str, text: str = "") -> None:
            send(status, json.dumps({"error": name, "message": text}).encode(), "Content-Type: application/json")

        car_type = "Content-Type: application/vnd.ipld.car"
        body = account.car if account else b""
        if kind == "silent":
            await asyncio.sleep(3600)
        elif kind.startswith("throttled") and len(recent) > 4:
            after = formatdate(time() + 2, usegmt=True) if kind.endswith("date") else "2"
            send("429 Too Many Requests", b"", f"Retry-After: {after}")
        elif kind == "refusing":
            error("429 Too Many Requests", "RateLimitExceeded")
        elif kind == "failing" or (kind == "flaky" and is_unlucky):
            send("503 Service Unavailable", b"no")
        elif kind == "a web site":
            send("200 OK", b"<!doctype html><title>Welcome</title>RepoNotFound", "Content-Type: text/html")
        elif kind == "an error page":
            send("404 Not Found", b"<!doctype html><title>404</title>", "Content-Type: text/html")
        elif kind.startswith("redirecting"):
            away = {"redirecting": healthy, "redirecting home": "http://169.254.169.254"}.get(kind, self.urls[host])
            send("302 Found", b"", f"Location: {away}{target}")
        elif account is None or (account.host != host and self.kinds[account.host] != "redirecting"):
            error("400 Bad Request", "RepoNotFound")
        elif account.special in GONE:
            name = account.special
            if name.isdigit():
                send(f"{name} Gone", b"gone", "Content-Type: text/plain")
            else:
                unknown = name.startswith("Could")
                error("400 Bad Request", "InvalidRequest" if unknown else name, f"Could not find repo for DID: {did}")
        elif kind == "gzip":
            send("200 OK", gzip.compress(body), car_type, "Content-Encoding: gzip")
        elif kind == "gzip bombs":
            send("200 OK", gzip.compress(body + bytes(200 << 20), 1), car_type, "Content-Encoding: gzip")
        elif kind == "boasting":
            send("200 OK", body, car_type, length=2 << 30)
            await writer.drain()
            await asyncio.sleep(30)
            return False
        elif kind in ("stalling", "cutting") or (kind == "cutting once" and is_unlucky):
            send("200 OK", body[: len(body) // 2], car_type, length=len(body))
            await writer.drain()
            await asyncio.sleep(3600 if kind == "stalling" else 0)
            return False
        elif kind == "endless":
            frame = varint(37 + 60_000) + cid_of(bytes(60_001)) + bytes(60_001)
            writer.write(f"HTTP/1.1 200 OK\r\n{car_type}\r\nConnection: close\r\n\r\n".encode() + body)
            for _ in range(20_000):
                writer.write(frame)
                await writer.drain()
            return False
        elif kind == "old":
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
            await writer.drain()
            return False
        elif kind == "slow":
            send("200 OK", body[:100], car_type, length=len(body))
            await writer.drain()
            await asyncio.sleep(1)
            writer.write(body[100:])
        else:
            send("200 OK", body, car_type)
        await writer.drain()
        return True


def broken(account: Account, rng: Random) -> tuple[bytes, int]:
    """The CAR of an account that is broken in its own way, and how many records can be had of it."""
    records = make_records(rng, 12) | {"com.example.odd/1": encode({"x": 0.5})}
    if account.special == "100,000 lists":
        records["com.example.odd/2"] = b"\x81" * 100_000 + b"\0"
    if account.special == "empty":
        records = {}
    keys = {key.encode(): cid_of(block) for key, block in records.items()}
    tree, nodes = build_tree(keys.items())
    first, second = (sorted(keys.items()) * 2 or [(b"a/b", cid_of(b""))] * 2)[:2]
    blocks = {cid_of(block): block for block in records.values()}
    ring = cid_of(rng.randbytes(8))
    match account.special:
        case "no tree":
            nodes.pop(tree)
        case "a ring":
            tree, nodes = ring, {ring: write_node(ring, [])}
        case "keys out of order":
            node = write_node(None, [(*second, None), (*first, None)])
            tree, nodes = cid_of(node), {cid_of(node): node}
        case "a record missing":
            blocks.pop(first[1])
    did = "did:plc:" + "z" * 24 if account.special == "nobody's" else account.did
    commit = make_commit(rng, did, tree, **({"version": 1} if account.special == "version 1" else {}))
    car = write_car([cid_of(commit)], [*nodes.items(), *blocks.items(), (cid_of(commit), commit)])
    ways = {
        "flipped": car[:-20] + bytes([car[-20] ^ 1]) + car[-19:],
        "cut between frames": write_car([cid_of(commit)], nodes.items()),
        "no CAR": rng.randbytes(5000),
        "a frame of 2**40": car + varint(1 << 40),
    }
    return ways.get(account.special, car), len(keys) - (account.special in ("a record missing", "100,000 lists"))


def archived(archive: Path) -> dict[str, list[int]]:
    """How many records each repo of an archive has; several numbers for an account that is there several times."""
    found: dict[str, list[int]] = {}
    for path in sorted(archive.rglob("segment_*.rca")):
        data = path.read_bytes()
        at, end = 64, struct.unpack_from("<q", data, 24)[0]
        while at < end:
            (size,) = struct.unpack_from("<I", data, at)
            place, texts = at + 4, []
            for _ in range(3):
                (length,) = struct.unpack_from("<H", data, place)
                texts.append(data[place + 2 : place + 2 + length].decode())
                place += 2 + length
            (collections,) = struct.unpack_from("<H", data, place + 8)
            place, rows = place + 14, []
            for _ in range(collections):
                (length,) = struct.unpack_from("<H", data, place)
                rows.append(struct.unpack_from("<II", data, place + 2 + length))
                place += 10 + length
            for records, packed in rows:
                content, inner = zstd.decompress(data[place : place + packed]), 0
                for _ in range(records):
                    for form in ("<H", "<I"):
                        inner += struct.calcsize(form) + struct.unpack_from(form, content, inner)[0]
                assert inner == len(content), f"{path} {texts[0]}"
                place += packed
            assert place == at + size, f"{path} {texts[0]}"
            found.setdefault(texts[0], []).append(sum(records for records, _ in rows))
            at += size
    return found


def check(folder: Path, archive: Path) -> int:
    """Print what differs from the truth; 1 if anything does."""
    truth = {row["did"]: row for row in map(json.loads, (folder / "truth.jsonl").read_text().splitlines())}
    found = archived(archive)
    wrong: Counter[str] = Counter()
    for did, row in truth.items():
        got, kind = found.pop(did, []), f"{row['kind']} {row['special']}".strip()
        if got and "archived" not in row["fates"]:
            wrong[f"{kind}: archived, expected {' or '.join(row['fates'])}"] += 1
        elif not got and row["fates"] == DONE:
            wrong[f"{kind}: not archived"] += 1
        elif len(got) > 1 or (got and got[0] != row["records"]):
            wrong[f"{kind}: {got} records, expected {row['records']}"] += 1
    for text, count in wrong.most_common():
        print(f"{count:5} {text}")
    records = sum(row["records"] for row in truth.values() if row["fates"] == DONE)
    print(f"{len(truth)} accounts, {records} records to be had; {wrong.total()} wrong, {len(found)} unknown")
    return 1 if wrong or found else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dids", type=int, default=3000)
    parser.add_argument("--check", type=Path)
    given = parser.parse_args()
    if given.check:
        return check(given.folder, given.check)
    world = World(given.seed, given.dids)
    world.write(given.folder)
    print(f"{len(world.kinds)} hosts, {len(world.accounts)} accounts; see {given.folder}", flush=True)
    with suppress(KeyboardInterrupt):
        asyncio.run(world.serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
