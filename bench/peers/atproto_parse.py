"""A repo's CAR to its records as JSON, by collection, with the SDK of the network.

Usage: atproto_parse.py CAR TIMES. Ends with a line of JSON: seconds of CPU each time, records, bytes of JSON. The SDK
decodes all blocks; the tree is walked here, since the SDK has no such walk. It checks no hashes.
"""

import json
import sys
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson  # type: ignore[import-not-found, unused-ignore] # only where the peers are
from atproto import CAR, CID  # type: ignore[import-not-found, unused-ignore] # likewise

LINKS = (b"\x01\x71\x12\x20", b"\x01\x55\x12\x20")  # how a CID begins; the SDK gives both these and bytes as bytes
Grouped = dict[str, list[tuple[str, bytes]]]


def plain(value: Any) -> dict[str, str]:  # noqa: ANN401 - whatever JSON has no word for
    """Links and bytes, as the network writes them in JSON."""
    if len(value) == 36 and value[:4] in LINKS:
        return {"$link": CID.from_decoded_bytes(value).encode()}
    return {"$bytes": b64encode(value).decode().rstrip("=")}


def parse(data: bytes) -> Grouped:
    """Every record, by collection."""
    car = CAR.from_bytes(data)
    blocks, found = car.blocks, Grouped()

    def walk(link: bytes | None) -> None:
        if link is None:
            return
        node = blocks[CID.from_decoded_bytes(link)]
        walk(node["l"])
        key = b""
        for entry in node["e"]:
            key = key[: entry["p"]] + entry["k"]
            collection, _, rkey = key.decode().partition("/")
            record = blocks[CID.from_decoded_bytes(entry["v"])]
            found.setdefault(collection, []).append((rkey, orjson.dumps(record, default=plain)))
            walk(entry["t"])

    walk(blocks[car.root]["data"])
    return found


def main(path: Path, times: int) -> None:
    """Parse it so many times, as repos_work.py does."""
    data, took, found = path.read_bytes(), [], Grouped()
    for _ in range(times):
        found = Grouped()
        began = time.process_time()
        found = parse(data)
        took.append(time.process_time() - began)
    records = [record for group in found.values() for _, record in group]
    print(json.dumps({"took": took, "records": len(records), "bytes": sum(map(len, records))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
