"""`sanderling world`: serve a simulated world on this machine, for people to try things against."""

import asyncio
import json as jsonlib
import sys
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from sanderling.cli import CommandError
from sanderling.clock import SystemClock
from sanderling.worlds.site import ALL, SiteHost, World
from sanderling.worlds.site_server import PortError, SiteServer
from sanderling.worlds.site_tally import Tally

ROW = "{:<15} {:<23} {:>5}  {}"  # 100 columns with the longest words
ASKED = "{:<15} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>10}"
HEADS = ("host", "asked", "2xx", "3xx", "4xx", "5xx", "forbidden", "at once")


def site(
    *,
    hosts: Annotated[
        int,
        Parameter(
            validator=Number(gte=1, lte=200), help="How many ordinary hosts, beside one of each other character."
        ),
    ] = 8,
    port: Annotated[
        int,
        Parameter(
            validator=Number(gte=0, lte=65535), help="The first of consecutive ports; 0 takes any that are free."
        ),
    ] = 0,
    seed: Annotated[int, Parameter(help="Another number makes another world; the same number the same.")] = 1,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object per host.")] = False,
) -> None:
    """Serve a small web of simulated hosts, until Ctrl-C: ordinary, slow, with quotas, failing, lying, trapping.

    Each host has a port of its own on 127.0.0.1, and nothing leaves this machine. Prints what each is like and where.
    When it ends it says what each was asked.

    Example: sanderling world site --hosts 3 --port 9000
    """
    if port and port + hosts + len(ALL) > 65536:
        raise CommandError(f"--port: {hosts + len(ALL)} consecutive ports from {port} on go beyond 65535", code=2)
    server = SiteServer(World.make(seed, ordinary=hosts), SystemClock(), first_port=port)
    try:
        asyncio.run(_serve(server, as_json=json))
    except KeyboardInterrupt:
        if not json:
            sys.stderr.writelines(f"{line}\n" for line in _asked(server.tallies))
        raise


async def _serve(server: SiteServer, *, as_json: bool) -> None:
    try:
        async with server:
            _show(server, as_json=as_json)
            await asyncio.Event().wait()
    except PortError as error:
        raise CommandError(f"--port: {error}; choose another") from None


def _show(server: SiteServer, *, as_json: bool) -> None:
    if as_json:
        for host in server.world.hosts:
            print(jsonlib.dumps(_described(host)))
        sys.stdout.flush()
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
    sys.stdout.flush()


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


def _asked(tallies: dict[str, Tally]) -> Iterator[str]:
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
