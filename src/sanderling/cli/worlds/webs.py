"""`sanderling world`: serve a simulated world on this machine, for people to try things against."""

import asyncio
import json as jsonlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console
from rich.text import Text

from sanderling.cli.command_error import CommandError
from sanderling.clock import SystemClock
from sanderling.worlds import pds as fleets
from sanderling.worlds.pds import FleetServer
from sanderling.worlds.pds_hosts import FleetHost, PdsHost
from sanderling.worlds.server import HostTally, U, WorldPortError, WorldServer
from sanderling.worlds.site import ALL, SiteHost, SiteServer, World

ROW = "{:<15} {:<23} {:>5}  {}"  # 100 columns with the longest words
ASKED = "{:<15} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>10}"
HEADS = ("host", "asked", "2xx", "3xx", "4xx", "5xx", "forbidden", "at once")


def site(*, seed: int, json: bool, hosts: int = 8, port: int = 0) -> None:
    """Serve a small web of simulated hosts, until Ctrl-C: ordinary, slow, with quotas, failing, lying, trapping.

    Each host has a port of its own on 127.0.0.1, and nothing leaves this machine. Prints what each is like and where.
    When it ends it says what each was asked.

    Example: sanderling world site --hosts 3 --port 9000
    """
    _check_ports(port, hosts + len(ALL))
    server = SiteServer(World.make(seed, ordinary=hosts), SystemClock(), first_port=port)
    _run(server, partial(_show_site, server, as_json=json), as_json=json)


def pds(  # noqa: PLR0913 - a flag each
    *, seed: int, json: bool, hosts: int = 20, repos: int = 2000, large: int = 0, signed: bool = False, port: int = 0
) -> None:
    """Serve a fleet of simulated ATProto hosts, until Ctrl-C: healthy, limited, failing, cutting, lying, dead.

    Each host has a port of its own on 127.0.0.1, and so have a relay and a PLC directory; nothing leaves this machine.
    Repos are made as they are asked for. Prints what each host is like and where. When it ends it says what each was
    asked.

    Example: sanderling world pds --hosts 5 --repos 100
    """
    if repos < hosts:
        raise CommandError(f"--repos: {repos} for {hosts} hosts, expected at least one each", code=2)
    _check_ports(port, hosts + len(fleets.ALL) + 2)
    fleet = fleets.Fleet.make(seed, hosts, repos, large=large * 10**6, signed=signed)
    server = FleetServer(fleet, SystemClock(), first_port=port)
    _run(server, partial(_show_fleet, server, as_json=json), as_json=json)


def _check_ports(first: int, count: int) -> None:
    if first and first + count > 65536:
        raise CommandError(f"--port: {count} consecutive ports from {first} on go beyond 65535", code=2)


def _run(server: WorldServer[U], show: Callable[[], None], *, as_json: bool) -> None:
    try:
        asyncio.run(_serve(server, show))
    except KeyboardInterrupt:
        if not as_json:
            sys.stderr.writelines(f"{line}\n" for line in _asked(server.tallies))
        raise


async def _serve(server: WorldServer[U], show: Callable[[], None]) -> None:
    try:
        async with server:
            show()
            sys.stdout.flush()
            await asyncio.Event().wait()
    except WorldPortError as error:
        raise CommandError(f"--port: {error}; choose another") from None


def _show_site(server: SiteServer, *, as_json: bool) -> None:
    if as_json:
        for host in server.world.hosts:
            print(jsonlib.dumps(_described(host)))
        return
    console, hosts = Console(highlight=False), server.world.hosts
    pages = sum(host.pages for host in hosts)
    console.print(Text(f"{len(hosts)} simulated hosts with {pages:,} pages to find.\n", "bold"), soft_wrap=True)
    console.print(Text(ROW.format("host", "address", "pages", "what it is like"), "dim"), soft_wrap=True)
    for host in hosts:
        count = f"{host.pages:,}{'+' * host.endless}"
        console.print(ROW.format(_short(host.name), _address(host), count, host.character.sentence), soft_wrap=True)
    console.print("\nThe front page of the first links to all the others. Try in another terminal:\n")
    console.print(f"    sanderling fetch {_address(hosts[0])} --private", soft_wrap=True)
    console.print(f"    sanderling pages crawl {_address(hosts[0])} --private --out crawl", soft_wrap=True)
    if ports := _in_a_row(hosts):
        console.print(f"    sanderling pages crawl http://127.0.0.1:{ports}/ --private --out all", soft_wrap=True)
    console.print("\nCtrl-C ends it, and shows what each was asked.")


def _show_fleet(server: FleetServer, *, as_json: bool) -> None:
    fleet = server.fleet
    if as_json:
        for place in fleet.hosts:
            print(jsonlib.dumps(_described_place(place)))
        return
    console = Console(highlight=False)
    repos = sum(host.size for host in fleet.pds)
    console.print(Text(f"{len(fleet.pds)} simulated hosts with {repos:,} repos.\n", "bold"), soft_wrap=True)
    console.print(Text(ROW.format("host", "address", "repos", "what it is like"), "dim"), soft_wrap=True)
    for place in fleet.hosts:
        size = f"{place.size:,}" if isinstance(place, PdsHost) else ""
        console.print(ROW.format(_short(place.name), place.origin, size, place.character.sentence), soft_wrap=True)
    did, origin = next(iter(fleet.directory()))
    console.print("\nTry in another terminal:\n")
    for url in (
        f"{fleet.plc.origin}/export?after=0&count=3",
        f"{origin}/xrpc/com.atproto.sync.listRepos?limit=3",
        f"{origin}/xrpc/com.atproto.sync.getLatestCommit?did={did}",
    ):
        console.print(f"    curl '{url}'", soft_wrap=True)
    console.print(f"    sanderling repos directory --plc {fleet.plc.origin} --private", soft_wrap=True)
    console.print("    sanderling repos crawl --private", soft_wrap=True)
    console.print("\nCtrl-C ends it, and shows what each was asked.")


def _in_a_row(hosts: tuple[SiteHost, ...]) -> str:
    """The ports as a shell writes them all at once; empty if they are not consecutive."""
    ports = [int(host.tree.origin.rpartition(":")[2]) for host in hosts]
    return f"{{{ports[0]}..{ports[-1]}}}" if ports == list(range(ports[0], ports[0] + len(ports))) else ""


def _described(host: SiteHost) -> dict[str, object]:
    return {
        "host": host.name,
        "address": _address(host),
        "character": host.character.word,
        "words": host.character.sentence,
        "pages": host.pages,
        "endless": host.endless,
        "expected": {end.name: count for end, count in host.expected().items()},
    }


def _described_place(place: FleetHost) -> dict[str, object]:
    ends = Counter(end.category or "archived" for end in place.expected().values())
    return {
        "host": place.name,
        "address": place.origin,
        "character": place.character.word,
        "words": place.character.sentence,
        "repos": place.size if isinstance(place, PdsHost) else 0,
        "expected": dict(ends),
    }


def _asked(tallies: dict[str, HostTally]) -> Iterator[str]:
    """What each host was asked, as lines."""
    asked = {name: tally for name, tally in tallies.items() if tally.asked}
    yield f"\n{sum(tally.asked for tally in asked.values()):,} requests to {len(asked)} hosts."
    if asked:
        yield ASKED.format(*HEADS)
    for name, tally in asked.items():
        hundreds = [sum(n for status, n in tally.answered.items() if status // 100 == kind) for kind in (2, 3, 4, 5)]
        yield ASKED.format(_short(name), tally.asked, *hundreds, tally.forbidden, tally.most_inflight)


def _address(host: SiteHost) -> str:
    return f"{host.tree.origin}/"


def _short(name: str) -> str:
    return name.removesuffix(".example")
