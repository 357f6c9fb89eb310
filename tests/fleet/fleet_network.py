"""A network of namespaces: machines that are joined by a router, which can lose what one sends to another.

Linux only, and for root; `network()` raises Missing with the reason where it cannot be made. What the router loses, it
loses in silence and in one direction, as a broken switch does: nobody is told, and connections stay open.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from services.process import Missing

NAMES = "sanderling-test"
SLOTS = range(100, 164)  # the second number of the addresses of each network on this machine


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the network."""

    address: str
    namespace: str

    @property
    def before(self) -> tuple[str, ...]:
        """What stands before a command that runs there."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}")


@dataclass(slots=True)
class Network:
    """Machines, and a router between them that this process is joined to as well."""

    slot: int
    router: str
    nodes: list[Node] = field(default_factory=list)
    cuts: set[tuple[str, str]] = field(default_factory=set)

    @property
    def hosts(self) -> str:
        """The addresses of all hosts that are crawled."""
        return f"10.{self.slot}.0.0/17"

    def node(self, *, serves_hosts: bool = False) -> Node:
        """Join one more machine; or the one that has the addresses of all hosts."""
        name = f"{self.router}-{len(self.nodes)}"
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
        node = Node(self._join(("-n", name), ("netns", name)), name)
        if serves_hosts:
            _ip("-n", name, "route", "add", "local", self.hosts, "dev", "lo")
            _ip("-n", self.router, "route", "add", self.hosts, "via", node.address)
        self.nodes.append(node)
        return node

    def cut(self, sender: str, receiver: str) -> None:
        """Lose what the sender sends to the receiver: addresses, or ranges of them."""
        if (sender, receiver) not in self.cuts:
            _ip("-n", self.router, "rule", "add", "from", sender, "to", receiver, "blackhole")
            self.cuts.add((sender, receiver))

    def part(self, one: str, other: str) -> None:
        """Lose what they send to each other."""
        self.cut(one, other)
        self.cut(other, one)

    def mend(self) -> None:
        """Lose nothing any more."""
        for sender, receiver in self.cuts:
            _ip("-n", self.router, "rule", "del", "from", sender, "to", receiver, "blackhole")
        self.cuts.clear()

    def move(self, address: str, node: Node) -> None:
        """Bring what is sent to an address to another machine from now on."""
        _ip("-n", node.namespace, "addr", "replace", f"{address}/32", "dev", "lo")
        _ip("-n", self.router, "route", "replace", f"{address}/32", "via", node.address)

    def join_this_process(self) -> None:
        """So that it can speak with servers in the network."""
        self._join((), ("netns", str(os.getpid())))
        self.nodes.append(Node("", self.router))

    def _join(self, within: Sequence[str], where: Sequence[str]) -> str:
        """Lay a cable from the router to a namespace; the address of its end there."""
        number = len(self.nodes)
        link, subnet = f"s{self.slot}n{number}", f"10.{self.slot}.{128 + number // 64}"
        here, there = f"{subnet}.{number % 64 * 4 + 1}", f"{subnet}.{number % 64 * 4 + 2}"
        _ip("-n", self.router, "link", "add", link, "type", "veth", "peer", "name", f"{link}p", *where)
        _ip("-n", self.router, "addr", "add", f"{here}/30", "dev", link)
        _ip("-n", self.router, "link", "set", link, "up")
        _ip(*within, "addr", "add", f"{there}/30", "dev", f"{link}p")
        _ip(*within, "link", "set", f"{link}p", "up")
        _ip(*within, "route", "add", f"10.{self.slot}.0.0/16", "via", here)
        return there


@contextmanager
def network() -> Iterator[Network]:
    """A network that vanishes on exit."""
    _sweep()
    made = Network(SLOTS[0], f"{NAMES}-{os.getpid()}")
    try:
        _ip("netns", "add", made.router)
        _ip("-n", made.router, "link", "set", "lo", "up")
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
        _run("nsenter", f"--net=/run/netns/{made.router}", "sh", "-c", forward)
        _take_slot(made)
    except (OSError, _Refused) as why:
        _remove(made.router)
        raise Missing(f"no network of namespaces can be made here: {why}") from None
    try:
        yield made
    finally:
        for node in reversed(made.nodes):
            _remove(node.namespace)


def _take_slot(made: Network) -> None:
    """Join this process by a cable whose name nobody else on this machine has taken."""
    why: _Refused | None = None
    for slot in SLOTS:
        made.slot = slot
        try:
            made.join_this_process()
        except _Refused as error:
            why = error
        else:
            return
    raise why or _Refused("no slot")


def _sweep() -> None:
    """Remove what a process left behind that was killed."""
    for path in Path("/run/netns").glob(f"{NAMES}-*"):
        owner = path.name.removeprefix(f"{NAMES}-").partition("-")[0]
        if not Path(f"/proc/{owner}").exists():
            _remove(path.name)


def _remove(namespace: str) -> None:
    subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)  # noqa: S603, S607


class _Refused(Exception):  # noqa: N818 - the machine says no
    """A command of the system failed."""


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - written here
    if done.returncode:
        raise _Refused(f"{' '.join(words)}: {done.stderr.strip()}")
    return done
