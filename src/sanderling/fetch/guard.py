"""Which addresses may be called.

Host names come from directories that strangers write to, and a name may lead anywhere: to our own database, to the
cloud's metadata service that hands out our credentials, to a mail server. So nothing is called but http and https, on
public addresses, on ports where HTTP may live, unless the rules say otherwise.

The networks are listed here and not asked of `ipaddress`, whose `is_private` and `is_global` change between releases of
Python. The list is that of IANA's special-purpose registries, and what they leave out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from sanderling.ids import DEFAULT_PORT, Host, HostError, host_of

Address = IPv4Address | IPv6Address

SCHEMES = ("http", "https")

# Where something else than HTTP listens. Many of these read a request line by line and skip what they do not know, so
# that a stranger's url could write a mail or a key: browsers refuse most of them for that reason. The databases are
# added because a crawler, unlike a browser, stands right beside them.
_SERVICES = {
    "echo, discard, daytime, chargen, time or finger": (7, 9, 13, 19, 37, 79),
    "FTP, TFTP or rsync": (20, 21, 69, 873, 989, 990),
    "SSH, telnet or a remote desktop": (22, 23, 512, 513, 514, 3389, 5900, 6000),
    "mail": (25, 109, 110, 143, 465, 587, 993, 995),
    "DNS, NTP or SNMP": (53, 123, 161, 853),
    "Kerberos or LDAP": (88, 389, 636),
    "RPC, SMB or another way to files": (111, 135, 137, 139, 445, 548, 2049, 3260),
    "news or chat": (119, 563, 5060, 5061, 5222, 6665, 6666, 6667, 6668, 6669, 6697),
    "routing, printing or a tunnel": (179, 515, 1723),
    "a queue": (1883, 2181, 4222, 5672, 9092),
    "a database": (1433, 1521, 3306, 5432, 6379, 9042, 11211, 26379, 27017),
}
NOT_HTTP = {port: service for service, ports in _SERVICES.items() for port in ports}


@dataclass(frozen=True, slots=True)
class GuardRules:
    """What may be called beyond the public web. The defaults suit urls from strangers."""

    private: bool = False  # also one's own networks: loopback, private, link-local; for one's own test servers
    raw_addresses: bool = False  # urls whose host is an address; public hosts have names, and certificates for them
    ports: frozenset[int] = frozenset()  # these and no others; if none are given, all but NOT_HTTP

    def __post_init__(self) -> None:
        for port in self.ports:
            if not 1 <= port <= 65535:
                raise ValueError(f"ports has {port}, expected numbers from 1 to 65535")


class Refused(Exception):  # noqa: N818 - it is our decision and no error, and reads so in an except clause
    """Our own rules say that this may not be called. The message has no user info, path or query of the url."""


class HeldBack(Exception):  # noqa: N818 - as above
    """Nothing may be sent for now: somebody else may be asking the host."""


# (network, what it is, whether it may be one's own and so is opened by GuardRules.private). The first that matches
# counts. Metadata services come first: they give the machine's credentials to whoever asks, and no test server lives
# there. What is no single machine (multicast, broadcast, 0.0.0.0) stays refused as well.
OWN, NEVER = True, False
_TABLE: tuple[tuple[str, str, bool], ...] = (
    ("169.254.169.254/32", "a cloud's metadata service", NEVER),  # AWS, Azure, Google and most others
    ("169.254.170.2/32", "a cloud's metadata service", NEVER),  # AWS, for containers
    ("169.254.170.23/32", "a cloud's metadata service", NEVER),  # AWS, for pods
    ("169.254.0.23/32", "a cloud's metadata service", NEVER),  # Tencent
    ("100.100.100.200/32", "a cloud's metadata service", NEVER),  # Alibaba
    ("192.0.0.192/32", "a cloud's metadata service", NEVER),  # Oracle
    ("168.63.129.16/32", "a cloud's metadata service", NEVER),  # Azure; looks public, and is not
    ("fd00:ec2::254/128", "a cloud's metadata service", NEVER),  # AWS
    ("fd00:ec2::23/128", "a cloud's metadata service", NEVER),  # AWS, for pods
    ("fd20:ce::254/128", "a cloud's metadata service", NEVER),  # Google
    ("fd00:c1::a9fe:a9fe/128", "a cloud's metadata service", NEVER),  # Oracle
    ("fe80::a9fe:a9fe/128", "a cloud's metadata service", NEVER),  # OpenStack
    ("127.0.0.0/8", "loopback", OWN),
    ("10.0.0.0/8", "private", OWN),
    ("172.16.0.0/12", "private", OWN),
    ("192.168.0.0/16", "private", OWN),
    ("169.254.0.0/16", "link-local", OWN),
    ("100.64.0.0/10", "shared by the customers of a provider", OWN),
    ("198.18.0.0/15", "for benchmarks", OWN),
    ("192.0.2.0/24", "for documentation", OWN),
    ("198.51.100.0/24", "for documentation", OWN),
    ("203.0.113.0/24", "for documentation", OWN),
    ("0.0.0.0/8", "unspecified", NEVER),  # 0.0.0.0 is this machine, to connect to
    ("192.0.0.0/24", "reserved for protocols", NEVER),
    ("192.88.99.0/24", "a relay of 6to4", NEVER),
    ("224.0.0.0/4", "multicast", NEVER),
    ("240.0.0.0/4", "reserved", NEVER),  # and broadcast
    ("::1/128", "loopback", OWN),
    ("fc00::/7", "unique-local", OWN),
    ("fe80::/10", "link-local", OWN),
    ("fec0::/10", "site-local", OWN),
    ("2001:db8::/32", "for documentation", OWN),
    ("3fff::/20", "for documentation", OWN),
    ("2001:2::/48", "for benchmarks", OWN),
    ("::/128", "unspecified", NEVER),
    ("2001::/23", "reserved for protocols", NEVER),  # Teredo among them, which no server is reached by any more
    ("ff00::/8", "multicast", NEVER),
    # All that is public lies within 2000::/3. IPv4-compatible addresses, the private NAT64 and the discard network are
    # some of what lies outside.
    ("::/3", "not public", NEVER),
    ("4000::/2", "not public", NEVER),
    ("8000::/1", "not public", NEVER),
)
NETWORKS = tuple((ip_network(network), what, own) for network, what, own in _TABLE)

# (network, where in the address the IPv4 address ends): mapped, NAT64, 6to4. The packets go to the IPv4 address, so
# that is what is judged. NAT64 must not be refused altogether: it is how an IPv6-only machine reaches IPv4 hosts.
EMBEDS = ((IPv6Network("::ffff:0:0/96"), 0), (IPv6Network("64:ff9b::/96"), 0), (IPv6Network("2002::/16"), 80))

# Names that are never those of the public web: RFC 6761, 6762 and 8375, and what ICANN keeps for private use.
LOCAL_NAMES = re.compile(r"(.*\.)?(localhost|local|internal|home\.arpa|lan|localdomain)|[^.\[]*")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20})://")


def check_url(url: str, rules: GuardRules) -> Host:
    """The host of `url`; Refused unless that may be called, as far as can be told without resolving it."""
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES:
        # Only what stands before :// is shown: before a lone colon it may be a user's name.
        raise Refused(f"url with {f'scheme {scheme}' if found else 'no scheme'}: only http and https are called")
    try:
        host = host_of(url)
    except HostError as error:
        # Its message is made for this: short, and without user info, path and query.
        raise Refused(f"url that cannot be trusted: {error}") from None
    _check_host(host, scheme, rules)
    return host


def check_name(host: Host, rules: GuardRules) -> None:
    """Raise Refused for a name of one's own network: a proxy looks hosts up, and nobody can check their address."""
    name, _ = _split(host, 0)
    if not rules.private and LOCAL_NAMES.fullmatch(name):
        raise Refused(f"host {name} is a name of the proxy's own network: private is off")


@lru_cache(maxsize=4096)  # of what may be called; a refusal is worked out anew, and with its reason
def _check_host(host: Host, scheme: str, rules: GuardRules) -> None:
    name, port = _split(host, DEFAULT_PORT[scheme])
    _check_port(port, name, rules)
    address = _parsed(name.strip("[]"))
    if address is None:
        return
    if not rules.raw_addresses:
        raise Refused(f"host {name} is an address: only names are called, as raw_addresses is off (--private calls it)")
    _check(address, rules)


def check_address(address: str, rules: GuardRules) -> None:
    """Raise Refused unless `address`, which a host was resolved to, may be called."""
    parsed = _parsed(address)
    if parsed is None:
        # Not shown: nobody knows what it is.
        fault = "has a zone id, which names an interface of ours" if "%" in address else "is no IP address"
        raise Refused(f"address of {len(address)} characters {fault}: only plain addresses are called")
    _check(parsed, rules)


def check_addresses(addresses: Iterable[str], rules: GuardRules) -> list[str]:
    """All of `addresses`, those of one host, in their order; Refused unless each may be called.

    One bad address spoils the host. To give a public one beside a private one is how an attacker gets past a check that
    looks at the first, and a host that does so by mistake cannot be told from one that means it.
    """
    resolved = list(addresses)
    if not resolved:
        raise Refused("host without any address: there is nothing to call")
    for address in resolved:
        check_address(address, rules)
    return resolved


def _split(host: Host, default: int) -> tuple[str, int]:
    """Name and port of a canonical host; the name of an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and not port.endswith("]") else (host, default)


def _check_port(port: int, name: str, rules: GuardRules) -> None:
    if rules.ports and port not in rules.ports:
        raise Refused(f"port {port} of {name}: only {', '.join(map(str, sorted(rules.ports)))} are in ports")
    if not rules.ports and port in NOT_HTTP:
        raise Refused(f"port {port} of {name}: {NOT_HTTP[port]} lives there, not HTTP, and ports does not name it")


def _parsed(text: str) -> Address | None:
    """The address; None if it is none, or has a zone id."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def _check(address: Address, rules: GuardRules) -> None:
    meant = _embedded(address)
    shown = str(address) if meant == address else f"{address}, which leads to {meant},"
    network, what, own = next((row for row in NETWORKS if meant in row[0]), (None, "public", OWN))
    if network is not None and not (own and rules.private):
        reason = "private is off" if own else "no rule allows that"
        raise Refused(f"address {shown} is {what} ({network}): {reason}")


def _embedded(address: Address) -> Address:
    """The IPv4 address within, where the packets go; else the address itself."""
    for network, ends in EMBEDS:
        if address in network:
            return IPv4Address(int(address) >> ends & 0xFFFFFFFF)
    return address
