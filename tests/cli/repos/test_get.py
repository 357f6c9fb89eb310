"""`sanderling repos get` without archives: who a handle is, where the repo lives, and what becomes of it."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import called
from fleet_commands import archived, served

from sanderling.worlds.pds import FleetServer


@contextmanager
def serving() -> Iterator[FleetServer]:
    """A fleet in a thread, so that the command has a loop of its own."""
    ready, over, found = threading.Event(), asyncio.Event(), []

    async def serve() -> None:
        async with served() as server:
            found.append((server, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    server, loop = found[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


@pytest.fixture(scope="module")
def fleet() -> Iterator[FleetServer]:
    with serving() as server:
        yield server


def own_of(fleet: FleetServer) -> tuple[str, str]:
    """The first account of the first host: its DID, and the address that says so."""
    host = fleet.fleet.pds[0]
    return host.census.did(host.first), host.origin.removeprefix("http://")


@pytest.mark.parametrize("by", ["did", "well-known", "resolver"])
def test_a_repo_is_archived_by_did_or_handle(by: str, fleet: FleetServer, tmp_path: Path) -> None:
    did, address = own_of(fleet)
    host = fleet.fleet.pds[0]
    who = {"did": did, "well-known": f"@{address}", "resolver": f"u{host.first}.{host.name}"}[by]
    flags = ["--plc", fleet.fleet.plc.origin, "--private", "--out", str(tmp_path / "out"), "--json"]

    ended = called("repos", "get", who, *flags, *(["--resolver", host.origin] if by == "resolver" else []))

    assert ended.code == 0, ended.err
    said = json.loads(ended.out)
    assert (said["did"], said["host"]) == (did, host.origin)
    assert archived(tmp_path / "out") == [did]
    printed = called("repos", "get", did, str(tmp_path / "out"))
    assert len(printed.out.splitlines()) == sum(said["collections"].values())


@pytest.mark.parametrize(
    ("who", "code", "said"),
    [
        pytest.param("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", 1, "CONTENT_NOT_FOUND", id="unknown"),
        pytest.param("not a handle", 2, "neither a DID", id="no handle"),
        pytest.param("127.0.0.1:9", 1, "cannot be told", id="nobody there"),
    ],
)
def test_what_cannot_be_resolved_says_why(who: str, code: int, said: str, fleet: FleetServer, tmp_path: Path) -> None:
    ended = called("repos", "get", who, "--plc", fleet.fleet.plc.origin, "--private", "--out", str(tmp_path))

    assert ended.code == code
    assert said in ended.err


def test_a_handle_that_its_document_does_not_name_is_refused(fleet: FleetServer, tmp_path: Path) -> None:
    _, address = own_of(fleet)
    other = address.replace("127.0.0.1", "localhost")

    ended = called("repos", "get", other, "--plc", fleet.fleet.plc.origin, "--private", "--out", str(tmp_path))

    assert ended.code == 1
    assert "whose document names" in ended.err
