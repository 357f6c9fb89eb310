"""`repos get`: the records of one account, from an archive or from its host."""

import asyncio
from collections.abc import Callable

import msgspec

from sanderling.clock import SystemClock
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest
from sanderling.files import Exit, FolderError
from sanderling.formats.car import CarLimits, RepoError
from sanderling.formats.repo import parse_repo
from sanderling.options import OptionError
from sanderling.readers.pool import ReaderError, Readers
from sanderling.readers.reader import Work
from sanderling.repos.archive import Archive, lines, lines_of
from sanderling.repos.atproto import (
    LARGEST_JSON,
    EndpointError,
    handle_of,
    host_at,
    is_did,
    judged,
    repo_request,
    why_not,
)
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.notes import TextOutput
from sanderling.repos.options import GetOptions
from sanderling.repos.replay import open_any
from sanderling.repos.sink import iso
from sanderling.repos.work import BlockHeading, BlockWork, MadeBlock, reader_limits


class _Service(msgspec.Struct):
    id: str = ""
    endpoint: str | dict[str, object] | list[object] = msgspec.field(name="serviceEndpoint", default="")


class _Document(msgspec.Struct):
    """A DID document, as far as it says where the account is."""

    services: list[_Service] = msgspec.field(name="service", default_factory=list)


def get(options: GetOptions, context: TextOutput) -> Exit:
    """Print the records, each a line of JSON."""
    names = {name.strip() for each in options.collections for name in each.split(",") if name.strip()}
    left_out = RepoLeaveOut.read(options.leave_out)
    found = asyncio.run(_get(options, left_out, names))
    for line in found:
        context.print(line.decode())
    if not found:
        context.warn(f"sanderling: {options.account} has no such records")
    return Exit.DONE


async def _get(options: GetOptions, left_out: RepoLeaveOut, names: set[str]) -> list[bytes]:
    clock = SystemClock()
    wanted = names.__contains__ if names else None
    if options.out is not None and is_did(options.account):
        return _archived(options, await open_any(options.out, left_out), options.account, wanted)
    async with Client(options, clock=clock) as client:
        did = options.account if is_did(options.account) else await _resolve(client, options.account)
        if did in left_out.dids:
            raise FolderError(f"{did} is left out", "see the file of --leave-out")
        if options.out is not None:
            return _archived(options, await open_any(options.out, left_out), did, wanted)
        host = await _host_of(client, did, options)
        if left_out.names(did, host):
            raise FolderError(f"{host} is left out", "see the file of --leave-out")
        response = await client.send(repo_request(host, did, options.max_repo_size), read=judged)
        if response.status != 200 or not response.outcome.ok:
            said = response.outcome.detail or f"status {response.status}"
            raise FolderError(f"{host} does not give the repo of {did}: {why_not(response)} ({said})", "try later")
        work = BlockWork(cids=options.cids, largest=options.max_repo_size)
        heading = BlockHeading(did, host, round(response.at * 1e6))
        limits = reader_limits(options.max_repo_size)
        async with Readers(
            "sanderling.repos.get:open_work", msgspec.msgpack.encode((work, sorted(names))), count=1, clock=clock,
            limits=limits,
        ) as readers:  # fmt: skip
            try:
                answer = await readers.run(host, msgspec.msgpack.encode(heading), response.body)
            except ReaderError as error:
                raise FolderError(f"the repo of {did} cannot be read: {error}", "tell its host") from None
    made = msgspec.msgpack.decode(answer, type=MadeBlock)
    if made.fault is not None:
        raise FolderError(f"the repo of {did} cannot be read: {made.detail}", "tell its host")
    if made.did != did:
        raise FolderError(f"{host} gives the repo of {made.did[:200]} as that of {did}", "tell its host")
    return made.block.splitlines()


def _archived(options: GetOptions, archive: Archive, did: str, wanted: Callable[[str], bool] | None) -> list[bytes]:
    block, stone = archive.find(did), archive.tombstones.get(did)
    if stone is not None and (block is None or stone.at >= block.crawled_at):
        raise FolderError(f"{did} is gone: {stone.why}, as {stone.host} said on {iso(stone.at)}", "nothing is printed")
    if block is None:
        raise FolderError(f"{options.out} has no repo of {did}", "leave out --out to take it from its host")
    if archive.left_out.names(did, block.pds):
        raise FolderError(f"{did} is left out", "see the file of --leave-out")
    return list(lines_of(block, wanted))


async def _resolve(client: Client, handle: str) -> str:
    """The DID of a handle, as its host says it."""
    try:
        name = handle_of(handle)
    except ValueError as error:
        raise OptionError(f"DID|HANDLE: {error}") from None
    response = await client.send(HttpRequest(f"https://{name}/.well-known/atproto-did", largest=LARGEST_JSON))
    did = response.body.decode(errors="replace").strip()
    if response.status != 200 or not is_did(did):
        said = response.outcome.detail or f"status {response.status}"
        raise FolderError(f"{name} does not say its DID ({said})", "give the DID itself")
    return did


async def _host_of(client: Client, did: str, options: GetOptions) -> str:
    """Where an account is now, by its DID document."""
    method, _, name = did.removeprefix("did:").partition(":")
    if method == "plc":
        url = f"{options.plc}{did}"
    elif method == "web" and ":" not in name:
        url = f"https://{name.replace('%3A', ':')}/.well-known/did.json"
    else:
        raise OptionError(f"DID|HANDLE: found a did:{method[:20]}, expected did:plc:… or did:web:HOST")
    response = await client.send(HttpRequest(url, largest=LARGEST_JSON))
    if response.status != 200:
        said = response.outcome.detail or f"status {response.status}"
        raise FolderError(f"the document of {did} is not to be found ({said})", "check the spelling")
    try:
        document = msgspec.json.decode(response.body, type=_Document)
        found = [each.endpoint for each in document.services if each.id.endswith("#atproto_pds")]
        if not found or not isinstance(found[0], str):
            raise FolderError(f"the document of {did} names no host", "it has none, or is no account")
        return host_at(found[0], private=options.private)
    except (msgspec.MsgspecError, EndpointError) as error:
        raise FolderError(f"the document of {did}: {error}", "it cannot be requested") from None


def open_work(argument: bytes) -> Work:
    """What a reader is told to open: it makes lines of a CAR."""
    work, names = msgspec.msgpack.decode(argument, type=tuple[BlockWork, frozenset[str]])
    limits = CarLimits(car=work.largest)

    def read(_head: bytes, body: bytes) -> bytes:
        try:
            repo = parse_repo(body, cids=work.cids, limits=limits)
        except RepoError as error:
            return msgspec.msgpack.encode(MadeBlock(fault=error.fault, detail=str(error)))
        wanted = (each for each in repo.records() if not names or each.collection in names)
        content = b"".join([line + b"\n" for line in lines(repo.did, wanted)])
        return msgspec.msgpack.encode(MadeBlock(content, repo.did, repo.rev))

    return read
