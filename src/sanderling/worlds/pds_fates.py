"""What becomes of whoever asks for a repo, one row each: it is served, it is gone, or what comes is a lie.

Each row says how an honest archive files it.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from sanderling.apis.atproto import AtprotoCategory
from sanderling.formats import cbor
from sanderling.formats.cbor import Value
from sanderling.formats.cid import Cid, to_varint
from sanderling.formats.mst import write_node
from sanderling.worlds.pds_accounts import Account
from sanderling.worlds.pds_repos import Blocks, make_commit, write_blocks
from sanderling.worlds.site_pages import SitePage

# Where no host may lead a crawler, whatever else it is allowed: it would hand out the keys of a machine in a cloud.
INSIDE = "http://169.254.169.254/latest/meta-data/"
DEEP = 2000  # levels of a tree that has 128 at most
BOMB = 256  # MiB that a quarter of one unpacks to

Give = Callable[[Account], SitePage]


@dataclass(frozen=True, slots=True)
class RepoFate:
    """What getRepo gives, and what that comes to; None: the repo is archived."""

    word: str
    give: Give
    category: AtprotoCategory | None = None
    throughout: bool = True  # whether getLatestCommit says so too


def json_page(status: int, value: object) -> SitePage:
    """JSON."""
    return SitePage(status, (("Content-Type", "application/json; charset=utf-8"),), json.dumps(value).encode())


def complaint(name: str, message: str, status: int = 400) -> SitePage:
    """An error as XRPC says it."""
    return json_page(status, {"error": name, "message": message})


def _car(body: bytes) -> SitePage:
    headers = (("Content-Type", "application/vnd.ipld.car"), ("Vary", "Accept-Encoding"))
    return SitePage(200, headers, body)


def _named(error: str, words: str) -> Give:
    return lambda account: complaint(error, f"{words}: {account.did}")


def _plain(status: int, words: str) -> Give:
    return lambda _account: SitePage(status, (("Content-Type", "text/plain"),), f"{words}\n".encode())


def _html(status: int, title: str) -> Give:
    """A page for people, by something in front of the host; what it speaks of is none of our business."""
    text = f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>RepoNotFound</p></body>"
    return lambda _account: SitePage(status, (("Content-Type", "text/html; charset=utf-8"),), text.encode())


def _another(account: Account) -> SitePage:
    return _car(write_blocks(*account.blocks(f"{account.did[:-4]}aaaa")))


def _flipped(account: Account) -> SitePage:
    car = bytearray(account.car())
    car[-1] ^= 1
    return _car(bytes(car))


def _ends_early(account: Account) -> SitePage:
    return _car(account.car()[:-7])


def _treeless(account: Account) -> SitePage:
    root, blocks = account.blocks()
    commit = cbor.decode(blocks[root])
    assert isinstance(commit, dict)  # noqa: S101 - we made it
    del blocks[_link(commit["data"])]
    return _car(write_blocks(root, blocks))


def _ring(account: Account) -> SitePage:
    """A node that is its own left tree, which no hash allows."""
    forged = Cid.of(account.did.encode())
    return _car(_with_tree(account, forged, {forged: write_node(forged, [])}))


def _deep(account: Account) -> SitePage:
    nodes: Blocks = {}
    tree: Cid | None = None
    for _ in range(DEEP):
        node = write_node(tree, [])
        tree = Cid.of(node)
        nodes[tree] = node
    return _car(_with_tree(account, _link(tree), nodes))


def _with_tree(account: Account, tree: Cid, nodes: Blocks) -> bytes:
    commit = make_commit(Random(account.did), account.did, tree, rev=account.rev, version=account.version)
    return write_blocks(Cid.of(commit), nodes | {Cid.of(commit): commit})


def _link(value: Value) -> Cid:
    assert isinstance(value, Cid)  # noqa: S101 - we made it
    return value


def _boundless(account: Account) -> SitePage:
    return _car(account.car() + to_varint(2**40))


def _bomb(_account: Account) -> SitePage:
    headers = (("Content-Type", "application/vnd.ipld.car"), ("Content-Encoding", "gzip"))
    return SitePage(200, headers, _packed_zeros())


@cache
def _packed_zeros() -> bytes:
    # A gzip file may be several, one after the other.
    return gzip.compress(bytes(2**20), mtime=0) * BOMB


HELD = RepoFate("held", lambda account: _car(account.car()))

GONE = (
    RepoFate("not found", _named("RepoNotFound", "Could not find repo for DID"), AtprotoCategory.NOT_FOUND),
    RepoFate("deactivated", _named("RepoDeactivated", "Repo has been deactivated"), AtprotoCategory.DEACTIVATED),
    RepoFate("taken down", _named("RepoTakendown", "Repo has been takendown"), AtprotoCategory.TAKENDOWN),
    RepoFate("suspended", _named("RepoSuspended", "Repo has been suspended"), AtprotoCategory.SUSPENDED),
    RepoFate("rootless", _named("InvalidRequest", "Could not find repo for DID"), AtprotoCategory.NOT_FOUND),
    RepoFate("404", _plain(404, "Not Found"), AtprotoCategory.NOT_FOUND),
    RepoFate("410", _plain(410, "Gone"), AtprotoCategory.DEACTIVATED),
)

WALLED = (
    HELD,
    RepoFate("502 page", _html(502, "Bad gateway"), AtprotoCategory.UNAVAILABLE),
    HELD,
    RepoFate("403 page", _html(403, "Just a moment..."), AtprotoCategory.HTTP_ERROR),
    HELD,
    RepoFate("200 page", _html(200, "Welcome"), AtprotoCategory.HTTP_ERROR),
)

LIES = (
    HELD,
    RepoFate("another's repo", _another, AtprotoCategory.DID_MISMATCH, throughout=False),
    RepoFate("a broken hash", _flipped, AtprotoCategory.PARSE_ERROR, throughout=False),
    RepoFate("a cut CAR", _ends_early, AtprotoCategory.INCOMPLETE, throughout=False),
    RepoFate("a missing tree", _treeless, AtprotoCategory.INCOMPLETE, throughout=False),
    RepoFate("a ring", _ring, AtprotoCategory.PARSE_ERROR, throughout=False),
    RepoFate("a deep tree", _deep, AtprotoCategory.PARSE_ERROR, throughout=False),
    RepoFate("2**40 bytes", _boundless, AtprotoCategory.INCOMPLETE, throughout=False),
    RepoFate("nothing", lambda _account: _car(b""), AtprotoCategory.HTTP_ERROR, throughout=False),
    RepoFate("a gzip bomb", _bomb, AtprotoCategory.TOO_LARGE, throughout=False),
)

LED_AWAY = (RepoFate("inside", lambda _account: SitePage(302, (("Location", INSIDE),)), AtprotoCategory.REFUSED),)
