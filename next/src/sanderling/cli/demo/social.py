"""A host of 24 small ATProto repos, for `repos`: each a commit, one node of its tree, and its posts."""

from hashlib import sha256
from pathlib import Path

from aiohttp import web

from sanderling.cli.demo.upstream import Upstream
from sanderling.clock import Clock
from sanderling.files import make_folder, write_file

ACCOUNTS = 24
_LETTERS = "234567abcdefghijklmnopqrstuvwxyz"
_POST = "app.bsky.feed.post"


class _Link(bytes):
    """A CID."""


def social(_clock: Clock) -> Upstream:
    """The upstream."""
    app = web.Application()
    app.router.add_get("/xrpc/com.atproto.sync.getRepo", _repo)
    shows = "a host of ATProto repos, one of which was taken down"
    return Upstream("repos", shows, app, _words, _truth, key="rkey")


def _words(url: str, folder: Path) -> tuple[str, ...]:
    accounts = folder.with_name(f"{folder.name}-accounts.txt")
    make_folder(accounts.parent)
    write_file(accounts, "".join(f"{_did(number)} {url}\n" for number in range(ACCOUNTS)).encode())
    return ("repos", "crawl", "--did-file", str(accounts), "--out", str(folder), "--private")


def _truth(_url: str) -> set[str]:
    return {rkey for number in range(1, ACCOUNTS) for rkey in _rkeys(number)}


def _did(number: int) -> str:
    return f"did:plc:{_LETTERS[number] * 24}"


def _rkeys(number: int) -> list[str]:
    """Keys that are all in the lowest level of a tree, by their hashes, so that it has one node."""
    keys = (f"3k{_LETTERS[number]}{_LETTERS[at]}{'2' * 9}" for at in range(32))
    return [key for key in keys if sha256(f"{_POST}/{key}".encode()).digest()[0] >= 64][: number % 7]


async def _repo(request: web.Request) -> web.Response:
    number = next((each for each in range(ACCOUNTS) if _did(each) == request.query.get("did")), None)
    if not number:
        name = "RepoNotFound" if number is None else "RepoTakendown"
        return web.json_response({"error": name, "message": "the demo has no such repo"}, status=400)
    return web.Response(body=_car(number), content_type="application/vnd.ipld.car")


def _car(number: int) -> bytes:
    posts = {
        f"{_POST}/{key}": _cbor({"$type": _POST, "text": f"Post {key} of account {number}"}) for key in _rkeys(number)
    }
    entries: list[dict[str, object]] = []
    before = b""
    for name, block in sorted(posts.items()):
        key = name.encode()
        same = next((at for at, (one, other) in enumerate(zip(before, key, strict=False)) if one != other), 0)
        entries.append({"k": key[same:], "p": same, "t": None, "v": _cid(block)})
        before = key
    node = _cbor({"e": entries, "l": None})
    commit = _cbor(
        {"did": _did(number), "version": 3, "data": _cid(node), "rev": "3k2222222222a", "prev": None, "sig": bytes(64)}
    )
    parts = [_cbor({"roots": [_cid(commit)], "version": 1})]
    parts += [_cid(block) + block for block in (commit, node, *posts.values())]
    return b"".join(_length(len(part)) + part for part in parts)


def _cid(block: bytes) -> _Link:
    return _Link(b"\x01\x71\x12\x20" + sha256(block).digest())


def _length(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])


def _cbor(value: object) -> bytes:
    """DAG-CBOR of what is needed here."""
    match value:
        case None:
            return b"\xf6"
        case int():
            return _head(0, value)
        case _Link():
            return b"\xd8\x2a" + _head(2, len(value) + 1) + b"\0" + value
        case bytes():
            return _head(2, len(value)) + value
        case str():
            return _head(3, len(value)) + value.encode()
        case list():
            return _head(4, len(value)) + b"".join(map(_cbor, value))
        case dict():
            names = sorted(value, key=lambda name: (len(name), name))
            return _head(5, len(names)) + b"".join(_cbor(name) + _cbor(value[name]) for name in names)
    raise TypeError(type(value).__name__)


def _head(kind: int, number: int) -> bytes:
    return bytes([kind << 5 | number]) if number < 24 else bytes([kind << 5 | 24, number])
