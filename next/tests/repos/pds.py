"""Hosts of repos on loopback, and archives of them in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from aiohttp import web
from atproto_repos import encode, make_car
from repos.world import did_of, inline, letters

from sanderling.clock import SystemClock
from sanderling.files import Exit
from sanderling.repos.opening import open_run
from sanderling.repos.options import ReposOptions
from sanderling.repos.run import ReposRun


class Hosts:
    """Some hosts, each with so many accounts of three records; the first of each are taken down."""

    def __init__(self, count: int, each: int, gone: int = 0) -> None:
        names = [(host, did_of(f"{letters(host)}{letters(number)}")) for host in range(count) for number in range(each)]
        self.host = {did: host for host, did in names}
        self.accounts = list(self.host)
        self.gone = {did for host in range(count) for did in self.accounts[host * each : host * each + gone]}
        self.changed: set[str] = set()
        self.ports: list[int] = [0] * count
        self.requests = 0

    def url(self, did: str) -> str:
        return f"http://127.0.0.1:{self.ports[self.host[did]]}"

    async def answer(self, request: web.BaseRequest) -> web.Response:
        did = request.query.get("did", "")
        rev = "3kbbbbbbbbb2a" if did in self.changed else "3kaaaaaaaaa2a"
        if did in self.gone or did not in self.host:
            self.requests += request.path.endswith("getRepo")
            return web.json_response({"error": "RepoTakendown" if did in self.gone else "RepoNotFound"}, status=400)
        if request.path.endswith("getLatestCommit"):
            return web.json_response({"cid": "x", "rev": rev})
        self.requests += 1
        keys = ("changed",) if did in self.changed else ("a", "b", "c")
        records = {f"app.bsky.feed.post/{key}": encode({"text": key}) for key in keys}
        return web.Response(body=make_car(Random(1), did, records, rev=rev), content_type="application/vnd.ipld.car")


@asynccontextmanager
async def served(hosts: Hosts) -> AsyncIterator[None]:
    runners = []
    try:
        for number in range(len(hosts.ports)):
            runner = web.ServerRunner(web.Server(hosts.answer))
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            hosts.ports[number] = runner.addresses[0][1]
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


async def archive(hosts: Hosts, out: Path, seconds: float | None = None, **given: Any) -> Exit | None:
    """Archive them; None if it was killed after so many seconds."""
    accounts = out.with_name(f"{out.name}.txt")
    accounts.write_text("".join(f"{did} {hosts.url(did)}\n" for did in hosts.accounts))
    given = {"did_file": accounts, "private": True, "readers": 0, "patience": 2.0, "policy": "none", **given}
    options = ReposOptions(out=out, **{name: value for name, value in given.items() if value is not None})
    with patch.object(asyncio, "to_thread", inline):  # a thread would outlive a kill here
        async with open_run(options, SystemClock()) as run:
            return await _run(run, seconds)


async def _run(run: ReposRun, seconds: float | None) -> Exit | None:
    run.parts.limiter.set_cap = lambda *_: None  # type: ignore[method-assign] # the pace has tests of its own
    work = asyncio.create_task(run.run())
    done, _ = await asyncio.wait([work], timeout=seconds)
    if done:
        return work.result()
    work.cancel()
    await asyncio.wait([work])
    return None
