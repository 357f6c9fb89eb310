"""`sanderling world api`: serve a simulated API on this machine, for jobs to collect."""

import asyncio
import json as jsonlib
import sys
from collections.abc import Iterator

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.clock import SystemClock
from sanderling.worlds.api import PASSWORD, USER, ApiRules, ApiServer, ApiWorld
from sanderling.worlds.server import WorldPortError

PORT = 8040  # as the examples have it


def api(*, seed: int, json: bool, posts: int = 300, faults: float = 0.02, port: int = PORT) -> None:
    """Serve a simulated API, until Ctrl-C: lists with details, a log-in, a search by POST, one like GraphQL.

    It listens on 127.0.0.1, and nothing leaves this machine. Prints where, and what to run against it. When it ends it
    says how often it was asked.

    Example: sanderling world api --posts 1000
    """
    world = ApiWorld(seed, ApiRules(posts=posts, faults=faults))
    try:
        run(_serve(ApiServer(world, SystemClock(), port=port), as_json=json))
    except KeyboardInterrupt:
        if not json:
            sys.stderr.write(f"\n{world.asked.total():,} requests.\n")
        raise


async def _serve(server: ApiServer, *, as_json: bool) -> None:
    try:
        async with server:
            if as_json:
                print(jsonlib.dumps({"address": server.url(), "posts": server.api.rules.posts}), flush=True)
            else:
                print("\n".join(_words(server)), flush=True)
            await asyncio.Event().wait()
    except WorldPortError as error:
        raise CommandError(f"--port: {error}; choose another") from None


def _words(server: ApiServer) -> Iterator[str]:
    number = server.api.rules.posts
    yield f"A simulated API at {server.url()}, with {number:,} entries of each kind:"
    yield ""
    yield "  GET  /posts?limit=&cursor=   a list by cursor; /posts/ID has the details"
    yield f"  GET  /orders?page=           behind a log-in: POST /login as {USER}, password {PASSWORD!r}"
    yield "  POST /search                 {query, offset, limit}"
    yield "  POST /graphql                books(first, after)"
    yield ""
    yield "Collect it from another terminal, with a file of examples/:"
    yield ""
    yield "    sanderling run examples/paged_api.py --out posts --private"
    yield ""
    yield "Ctrl-C ends it, and says how often it was asked."
