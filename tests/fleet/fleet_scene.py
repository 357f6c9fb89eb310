"""A crawl that machines share, with everything around it, and the oracle at its end."""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pytest
from fleet_clocks import WrongClock
from fleet_hosts import Entry, Manners, Web
from fleet_machines import NAME, Crawl, Hosts, Machine, Place, crawl_of, hosts_at, run, wait_until
from fleet_network import Network, Node, network
from fleet_oracle import forbidden, read_rows, too_early, too_fast, two_senders, wrong_rows
from fleet_postgres import Postgres, postgres_of_our_own
from services import s3
from services.process import Missing, private_folder

SOAK = "SANDERLING_SOAK" in os.environ
RPS = 8.0
LEASE = 4.0 if SOAK else 3.0
TURN = 1.0  # seconds that it takes to hand a host on and back in order, at least
LATE = 1.0  # seconds that a busy machine may be late with a request that has leave
soak = pytest.mark.skipif(not SOAK, reason="takes long: make soak")

Made = TypeVar("Made")


@contextmanager
def or_skip(manager: AbstractContextManager[Made]) -> Iterator[Made]:
    """What it gives, or a skipped test with the reason why this machine cannot have it."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(manager)
        except Missing as why:
            pytest.skip(str(why))
        yield made


def small_web(
    hosts: int = 18, pages: int = 16 if SOAK else 12, net: str = "127.77", *, odd: Sequence[Manners] = ()
) -> Web:
    """So many ordinary hosts, and some odd ones."""
    return Web((Manners(),) * hosts + tuple(odd), pages, net)


# No host takes longer than some 20 s, so that the test does not either.
ODD = (Manners(crawl_delay=0.6), Manners(quota=9, retry_after=2), Manners(slow=0.3), Manners(failing=(7, 10)))


@dataclass(slots=True)
class Scene:
    """A crawl, what it crawls, and what its machines meet in."""

    hosts: Hosts
    crawl: Crawl
    database: Postgres
    objects: str
    folder: Path
    net: Network | None = None
    s3_node: Node | None = None
    rps: float = RPS
    more: tuple[str, ...] = ()  # further servers that the machines meet in
    wrong_ends: list[str] = field(default_factory=list)

    @property
    def shared(self) -> tuple[str, ...]:
        """The flags that name what the machines meet in."""
        servers = (word for url in (self.fleet, *self.more) for word in ("--fleet", url))
        return (*servers, "--objects", self.objects)

    @property
    def fleet(self) -> str:
        """Where the machines meet."""
        return f"{self.database.url}?schema=fleet"

    def start(self, *names: str, clock: WrongClock | None = None, flags: Sequence[str] = ()) -> list[Machine]:
        """Start the crawl on some more machines."""
        return [self.crawl.start(self.place(name, clock), *self.shared, *flags) for name in names]

    def place(self, name: str, clock: WrongClock | None = None) -> Place:
        """A machine of its own: in a namespace of its own if there is a network."""
        environment = dict(clock.environment) if clock else {}
        if self.net is None:
            return Place(name, environment=environment)
        node = self.net.node()
        return Place(node.address, node.before, environment, by_contact=False)

    def wait_for(self, *machines: Machine, requests: int = 3) -> None:
        """Until each of these machines has sent some requests."""
        names = ", ".join(machine.name for machine in machines)
        wait_until(
            lambda: all(self._sends(machine, requests) for machine in machines),
            f"{requests} requests of each of {names}",
        )

    def _sends(self, machine: Machine, requests: int) -> bool:
        assert machine.runs(), f"it ended with {machine.wait()}\n{machine.said()}"
        return self.hosts.asked_by(machine.name) >= requests

    def shares(self) -> list[int]:
        """How many parts of the crawl each worker has."""
        return sorted(worker["parts"] for worker in self.status()["workers"])

    def status(self) -> dict[str, Any]:
        """What `fleet status` says."""
        done = run("fleet", "status", NAME, "--fleet", self.fleet, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def finish(self, *, codes: Collection[int] = (0,), seconds: float = 150.0) -> list[Entry]:
        """Wait until all machines have ended by themselves; the hosts' log."""
        ended = self.crawl.finish(seconds)
        self.wrong_ends = [
            f"{machine.name} ended with {ended[machine.name]}\n{machine.said()}"
            for machine in self.crawl.machines
            if ended.get(machine.name, 0) not in codes
        ]
        return self.hosts.log()

    def pull(self) -> Path:
        """The whole crawl as a folder, which `verify` finds right."""
        folder = self.folder / "pulled"
        done = run("fleet", "pull", NAME, *self.shared, "--out", folder)
        assert done.returncode == 0, done.stdout + done.stderr
        proved = run("verify", folder)
        assert proved.returncode == 0, proved.stdout + proved.stderr
        return folder

    def wrong_output(self) -> list[str]:
        """What is wrong with the rows."""
        folder = self.pull()
        return wrong_rows(self.hosts.web.known(), read_rows(folder))

    def rates(self, pace: float = 1.0) -> dict[str, float]:
        """How many requests a second each host allows."""
        web = self.hosts.web
        return {
            web.address(number): (min(self.rps, 1 / manners.crawl_delay) if manners.crawl_delay else self.rps) * pace
            for number, manners in enumerate(web.manners)
        }

    def check(self, log: Sequence[Entry], *, pace: float = 1.0, silence: float = LEASE, late: float = LATE) -> None:
        """All that must hold, whatever happened.

        `pace` is that of the fastest clock, `late` how many seconds a request may have been on its way. Where hosts are
        handed on in order, and back, nobody is silent for a lease.
        """
        broken = {
            "exit codes": self.wrong_ends,
            "two senders": two_senders(log, silence),
            "too fast": too_fast(log, self.rates(pace), late),
            "before a Retry-After": too_early(log, late, pace),
            "against robots.txt": forbidden(log),
            "rows": self.wrong_output(),
        }
        said = [f"{promise}: {each}" for promise, found in broken.items() for each in found]
        assert not said, f"{len(said)} broken promises\n" + "\n".join(said[:40]) + f"\n{self._who(log)}"

    @staticmethod
    def _who(log: Sequence[Entry]) -> str:
        return f"requests by sender: {dict(Counter(each.sender for each in log))}"


@contextmanager
def scene(
    folder: Path,
    web: Web,
    *,
    database: Postgres | None = None,
    cuts: bool = False,
    environment: Mapping[str, str] = MappingProxyType({}),
    rps: float = RPS,
) -> Iterator[Scene]:
    """A scene on this machine; with `cuts` in a network that can be cut, with objects in an S3 of its own.

    The database is one of its own, with that environment, unless it is given.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(private_folder()))
        net = stack.enter_context(or_skip(network())) if cuts else None
        before: tuple[str, ...] = ()
        objects, s3_node = f"file:{folder / 'objects'}", None
        if net is not None:
            town, s3_node = net.node(serves_hosts=True), net.node()
            before, web = town.before, Web(web.manners, web.pages, f"10.{net.slot}", 8000)
            server = stack.enter_context(or_skip(s3.start(_made(home / "s3"), s3_node.address, s3_node.before)))
            objects = "s3+" + server.url
        if database is None:
            place = net.node() if net else None
            own = Postgres(_made(home / "postgres"), *((place.address, place.before) if place else ()))
            own.environment = environment
            database = stack.enter_context(or_skip(postgres_of_our_own(own.folder, own)))
        hosts = stack.enter_context(hosts_at(web, folder, before))
        flags = ("--rps", f"{rps:g}", "--lease", f"{LEASE:g}")
        crawl = stack.enter_context(crawl_of(hosts, folder, *flags))
        yield Scene(hosts, crawl, database, objects, folder, net, s3_node, rps)


def _made(folder: Path) -> Path:
    """The folder, which others may enter."""
    folder.mkdir()
    folder.parent.chmod(0o755)
    return folder
