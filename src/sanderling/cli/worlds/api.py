"""`sanderling world api`: a simulated API, for jobs to collect."""

from collections import Counter
from collections.abc import Iterator

from sanderling.cli.worlds.world import ServedWorld, tallied
from sanderling.clock import SystemClock
from sanderling.worlds.api import PASSWORD, USER, ApiRules, ApiServer, ApiWorld

PORT = 8040  # as the examples have it


def api(*, seed: int, posts: int = 300, faults: float = 0.02, port: int = PORT) -> ServedWorld:
    """Lists with details, a log-in, a search by POST, one like GraphQL."""
    made = ApiWorld(seed, ApiRules(posts=posts, faults=faults))
    server = ApiServer(made, SystemClock(), port=port)

    def lines() -> Iterator[str]:
        yield f"A simulated API at {server.url()}, with {posts:,} entries of each kind:"
        yield ""
        yield "  GET  /posts?limit=&cursor=   a list by cursor; /posts/ID has the details"
        yield f"  GET  /orders?page=           behind a log-in: POST /login as {USER}, password {PASSWORD!r}"
        yield "  POST /search                 {query, offset, limit}"
        yield "  POST /graphql                books(first, after)"
        yield from ("", "Collect it from another terminal, with a file of examples/:", "")
        yield "    sanderling run examples/paged_api.py --out posts --private"

    def describe() -> Iterator[dict[str, object]]:
        yield {"address": server.url(), "posts": posts}

    return ServedWorld(server, describe, lines, lambda: tallied(made.asked.total(), Counter()))
