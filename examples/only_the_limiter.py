"""Only the limiter, around a client of your own: each host is asked as fast as it allows, never faster.

Run it with some addresses: python examples/only_the_limiter.py https://example.org/ https://example.com/
"""

import asyncio
import sys

import aiohttp

from sanderling import CircuitOpen, Limiter, LimiterRules, PaceRules, host_of

limiter = Limiter(LimiterRules(pace=PaceRules.up_to(4.0)))  # requests a second to a host; how many it bears is learned


async def fetch(session: aiohttp.ClientSession, url: str) -> None:
    """Ask once, with leave."""
    try:
        async with limiter.attempt(host_of(url)) as attempt, session.get(url) as reply:
            attempt.report(reply.status, reply.headers)  # it learns from latency, refusals and Retry-After
            print(reply.status, url)
    except CircuitOpen as closed:
        print("not now:", url, f"(again in {closed.until - asyncio.get_running_loop().time():.0f} s)")


async def main(urls: list[str]) -> None:
    """Ask for all of them at once; those of one host take their turns."""
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(fetch(session, url))
    for host in limiter.snapshot().top:
        print(f"{host.host}: {host.requests} requests, {host.why}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
