"""`sanderling world site` and `sanderling world pds`: many hosts, each at a port of its own."""

from collections import Counter
from collections.abc import Iterator, Mapping

from sanderling.cli.command_error import CommandError
from sanderling.cli.worlds.world import ServedWorld
from sanderling.clock import SystemClock
from sanderling.worlds import pds as fleets
from sanderling.worlds.pds import FleetServer
from sanderling.worlds.pds_hosts import PdsHost
from sanderling.worlds.server import HostTally
from sanderling.worlds.site import ALL, SiteServer, World

ROW = "{:<15} {:<23} {:>5}  {}"  # 100 columns with the longest words
ASKED = "{:<15} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>10}"
HEADS = ("host", "asked", "2xx", "3xx", "4xx", "5xx", "forbidden", "at once")


def site(*, seed: int, hosts: int = 8, port: int = 0) -> ServedWorld:
    """A small web of simulated hosts: ordinary, slow, with quotas, failing, lying, trapping."""
    _check_ports(port, hosts + len(ALL))
    server = SiteServer(World.make(seed, ordinary=hosts), SystemClock(), first_port=port)
    return ServedWorld(server, lambda: _site_json(server), lambda: _site_lines(server), lambda: _asked(server.tallies))


def pds(
    *, seed: int, hosts: int = 20, repos: int = 2000, large: int = 0, signed: bool = False, port: int = 0
) -> ServedWorld:
    """A fleet of simulated ATProto hosts: healthy, limited, failing, cutting, lying, dead; a relay and a PLC directory.

    Repos are made as they are asked for.
    """
    if repos < hosts:
        raise CommandError(f"--repos: {repos} for {hosts} hosts, expected at least one each", code=2)
    _check_ports(port, hosts + len(fleets.ALL) + 2)
    fleet = fleets.Fleet.make(seed, hosts, repos, large=large * 10**6, signed=signed)
    server = FleetServer(fleet, SystemClock(), first_port=port)
    return ServedWorld(
        server, lambda: _fleet_json(server), lambda: _fleet_lines(server), lambda: _asked(server.tallies)
    )


def _check_ports(first: int, count: int) -> None:
    if first and first + count > 65536:
        raise CommandError(f"--port: {count} consecutive ports from {first} on go beyond 65535", code=2)


def _site_json(server: SiteServer) -> Iterator[dict[str, object]]:
    for host in server.world.hosts:
        yield {
            "host": host.name,
            "address": f"{host.tree.origin}/",
            "character": host.character.word,
            "words": host.character.sentence,
            "pages": host.pages,
            "endless": host.endless,
            "expected": {end.name: count for end, count in host.expected().items()},
        }


def _site_lines(server: SiteServer) -> Iterator[str]:
    hosts = server.world.hosts
    yield f"{len(hosts)} simulated hosts with {sum(host.pages for host in hosts):,} pages to find."
    yield ""
    yield ROW.format("host", "address", "pages", "what it is like")
    for host in hosts:
        count = f"{host.pages:,}{'+' * host.endless}"
        yield ROW.format(_short(host.name), f"{host.tree.origin}/", count, host.character.sentence)
    yield from ("", "The front page of the first links to all the others. Try in another terminal:", "")
    first, ports = f"{hosts[0].tree.origin}/", [int(host.tree.origin.rpartition(":")[2]) for host in hosts]
    yield f"    sanderling fetch {first} --private"
    yield f"    sanderling pages crawl {first} --private --out crawl"
    if ports == list(range(ports[0], ports[0] + len(ports))):  # as a shell writes them all at once
        yield f"    sanderling pages crawl http://127.0.0.1:{{{ports[0]}..{ports[-1]}}}/ --private --out all"


def _fleet_json(server: FleetServer) -> Iterator[dict[str, object]]:
    for host in server.fleet.hosts:
        yield {
            "host": host.name,
            "address": host.origin,
            "character": host.character.word,
            "words": host.character.sentence,
            "repos": host.size if isinstance(host, PdsHost) else 0,
            "expected": dict(Counter(end.category or "archived" for end in host.expected().values())),
        }


def _fleet_lines(server: FleetServer) -> Iterator[str]:
    fleet = server.fleet
    yield f"{len(fleet.pds)} simulated hosts with {sum(host.size for host in fleet.pds):,} repos."
    yield ""
    yield ROW.format("host", "address", "repos", "what it is like")
    for host in fleet.hosts:
        size = f"{host.size:,}" if isinstance(host, PdsHost) else ""
        yield ROW.format(_short(host.name), host.origin, size, host.character.sentence)
    did, origin = next(iter(fleet.directory()))
    yield from ("", "Try in another terminal:", "")
    yield f"    curl '{fleet.plc.origin}/export?after=0&count=3'"
    yield f"    curl '{origin}/xrpc/com.atproto.sync.listRepos?limit=3'"
    yield f"    curl '{origin}/xrpc/com.atproto.sync.getLatestCommit?did={did}'"
    yield f"    sanderling repos directory --plc {fleet.plc.origin} --private"
    yield "    sanderling repos crawl --private"


def _asked(tallies: Mapping[str, HostTally]) -> Iterator[str]:
    """What each host was asked, as lines."""
    asked = {name: tally for name, tally in tallies.items() if tally.asked}
    yield f"{sum(tally.asked for tally in asked.values()):,} requests to {len(asked)} hosts."
    if asked:
        yield ASKED.format(*HEADS)
    for name, tally in asked.items():
        hundreds = [sum(n for status, n in tally.answered.items() if status // 100 == kind) for kind in (2, 3, 4, 5)]
        yield ASKED.format(_short(name), tally.asked, *hundreds, tally.forbidden, tally.most_inflight)


def _short(name: str) -> str:
    return name.removesuffix(".example")
