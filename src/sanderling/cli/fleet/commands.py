"""`sanderling fleet status`, `drain`, `retry` and `forget`."""

import asyncio
from collections import Counter
from typing import Annotated

import msgspec
from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.fleet.flags import (
    WORDS,
    ObjectStore,
    Servers,
    check_order,
    check_place,
    fleet_flags,
    open_fleet,
    open_place,
    prefix_of,
)
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_pace import FULL
from sanderling.stores.fleet import FleetCrawl
from sanderling.words import count

CrawlName = Annotated[str, Parameter(help="The name of the crawl: the last step of the --out that it was begun with.")]


def status(name: CrawlName, *, fleet: Servers = (), json: AsJson = False) -> None:
    """Print it."""
    found = asyncio.run(_status(name, fleet))
    if json:
        print(msgspec.json.encode(found).decode())
        return
    print("\n".join(_words(found)))


def drain(
    name: CrawlName,
    worker: Annotated[str | None, Parameter(help="The worker, as fleet status names it; all if none is given.")] = None,
    *,
    fleet: Servers = (),
) -> None:
    """Tell workers to end."""

    async def tell() -> int:
        async with open_fleet(fleet, name) as servers:
            await find_crawl(servers, name)
            return max([await servers.call(server.drain(worker)) for server in servers.servers])

    told = asyncio.run(tell())
    if worker is not None and not told:
        see = again("fleet status", name, *fleet_flags(fleet))
        raise CommandError(f"the crawl {name} has no worker {worker}; see: {see}", code=2)
    print(f"{count(told, 'worker')} told to end; each gives its parts to the others first")


def retry(name: CrawlName, *, fleet: Servers = ()) -> None:
    """Have what failed asked for again."""

    async def tell() -> bool:
        async with open_fleet(fleet, name) as servers:
            crawl = await find_crawl(servers, name)
            if crawl.system == "repos":
                raise CommandError(f"the crawl {name} is one of repos; expected one of pages, or of a job", code=2)
            await servers.retry(crawl.retries + 1)
            return bool(await servers.call(servers.servers[0].workers()))

    works = asyncio.run(tell())
    who = "those who work on it" if works else "whoever works on it next: run its command"
    print(f"What failed in {name} is asked for again by {who}")


def forget(
    name: CrawlName,
    *,
    fleet: Servers = (),
    objects: ObjectStore = None,
    yes: Annotated[bool, Parameter(negative=(), help="Delete it; without this, only say what would be.")] = False,
) -> None:
    """Delete a crawl."""
    if objects is None:
        raise CommandError("fleet forget needs --objects: the rows are there", code=2)
    print(asyncio.run(_forget(name, fleet, objects, really=yes)))


async def find_crawl(fleet: FleetStores, name: str) -> FleetCrawl:
    """The crawl of this name, on all servers. Raises CommandError."""
    found = [await fleet.call(server.find(name)) for server in fleet.servers]
    crawl = found[0]
    if crawl is None:
        raise CommandError(f"the fleet has no crawl {name}; its name is the last step of its --out", code=2)
    if crawl.system not in WORDS:
        expected = "use the release that began it"
        raise CommandError(f"the crawl {name} is one of {crawl.system}, unknown here; {expected}", code=2)
    if crawl.servers != len(found) or any(each is None or each.id != crawl.id for each in found):
        wanted = f"{count(crawl.servers, 'server')}, in their order"
        raise CommandError(f"the crawl {name} lies on {wanted}: give --fleet for each", code=2)
    await check_order(fleet, name)
    return crawl


async def _status(name: str, urls: tuple[str, ...]) -> dict[str, object]:
    async with open_fleet(urls, name) as fleet:
        crawl = await find_crawl(fleet, name)
        view, holders = await fleet.view(), await fleet.holders()
        workers = await fleet.call(fleet.servers[0].workers())
    parts = Counter(each.holder for each in holders if each.holder and each.seconds > 0)
    return {
        "name": name,
        "system": crawl.system,
        "done": crawl.done,
        "parts": crawl.parts,
        "lease": crawl.seconds,
        WORDS[crawl.system].key: view.fetched,
        **({"failed": view.failed} if WORDS[crawl.system].failed else {}),
        "waiting": view.waiting,
        "busy": view.busy,
        "free": crawl.parts - parts.total(),
        "workers": [
            {
                "name": each.name,
                "machine": each.machine,
                "release": each.release,
                "parts": parts[each.name],
                "seen": round(each.seen, 1),
                "draining": each.draining,
                "weight": each.weight,
                **(msgspec.json.decode(each.report, type=dict[str, int]) if each.report else {}),
            }
            for each in workers
        ],
    }


def _words(found: dict[str, object]) -> list[str]:
    parts, busy, waiting = found["parts"], found["busy"], found["waiting"]
    state = "done" if found["done"] else f"{busy} of {parts} parts have work"
    words = WORDS[str(found["system"])]
    kept, workers = found[words.key], found["workers"]
    assert isinstance(kept, int)  # noqa: S101 - for the type checker
    assert isinstance(waiting, int)  # noqa: S101 - likewise
    assert isinstance(workers, list)  # noqa: S101 - likewise
    failed = f", {found['failed']:,} {words.failed}" if found.get("failed") else ""
    left = f"{count(waiting, words.waiting)} {'waits' if waiting == 1 else 'wait'}"
    lines = [f"{found['name']}: {count(kept, words.kept)}{failed}, {left}; {state}"]
    if not workers:
        return [*lines, "nobody works on it"]
    wide = max(8, *(len(each["release"]) for each in workers))
    lines.append(f"{'worker':40} {'release':>{wide}} {'parts':>6} {'in flight':>9} {'seen':>8}")
    for each in workers:
        notes = [", draining"] * each["draining"] + [", slow: others have its parts"] * (each["weight"] < FULL / 2)
        seen = f"{each['seen']:.0f} s ago{''.join(notes)}"
        inflight = each.get("inflight", 0)
        lines.append(f"{each['name']:40} {each['release']:>{wide}} {each['parts']:>6} {inflight:>9} {seen:>8}")
    return lines


async def _forget(name: str, urls: tuple[str, ...], objects: str, *, really: bool) -> str:
    async with open_fleet(urls, name) as fleet:
        crawl = await find_crawl(fleet, name)
        check_place(crawl, objects)
        held = [each for each in await fleet.holders() if each.holder and each.seconds > 0]
        if held:
            who = ", ".join(sorted({each.holder for each in held})[:3])
            drain_first = again("fleet drain", name, *fleet_flags(urls))
            raise CommandError(f"{who} works on {name}; drain first: {drain_first}", code=2)
        async with open_place(objects, prefix_of(crawl)) as place:
            keys = [found.key async for found in place.objects.list(place.bucket, place.prefix.rstrip("/"))]
            if not really:
                return f"{name}: {count(len(keys), 'object')} and all that is known would be deleted; say --yes"
            for server in fleet.servers:
                await fleet.call(server.forget())
            for key in keys:
                await place.objects.delete(place.bucket, key)
    return f"{name} is forgotten, with {count(len(keys), 'object')}"
