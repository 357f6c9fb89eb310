"""Which addresses may be requested.

URLs come from strangers, and a name may lead anywhere: to our own database, to the cloud's metadata service that gives
out the machine's credentials, to a mail server. So only http and https are requested, at public addresses, on ports
where HTTP may live.

The networks are listed here and not asked of `ipaddress`, whose `is_private` and `is_global` change between releases of
Python. The list is that of IANA's special-purpose registries, and what they leave out.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from sanderling.ids import Host, UrlError, host_of

Address = IPv4Address | IPv6Address

# Where something else than HTTP listens. Many of these read a request line by line and skip what they do not know, so
# that a stranger's URL could write a mail or a key; browsers refuse most of them for that reason. A crawler, unlike a
# browser, stands right beside the databases.
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

# (network, what it is, whether it may be one's own, which `private` opens). The first that matches counts. Metadata
# services come first: they give the machine's credentials to whoever asks. What is no single machine (multicast,
# broadcast, 0.0.0.0) stays refused as well.
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
    ("0.0.0.0/8", "unspecified", NEVER),  # to connect to 0.0.0.0 is to connect to this machine
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
_EMBEDS = ((IPv6Network("::ffff:0:0/96"), 0), (IPv6Network("64:ff9b::/96"), 0), (IPv6Network("2002::/16"), 80))

# Names that are never those of the public web: RFC 6761, 6762 and 8375, and what ICANN keeps for private use.
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".home.arpa", ".lan", ".localdomain")


class Refused(Exception):  # noqa: N818 - it is our decision and no error, and reads so in an except clause
    """Our own rules say that this is not requested. The message has no user info, path or query of the URL."""


def check_url(url: str, *, private: bool) -> Host:
    """The host of a normal URL. Raises UrlError for what is none, Refused as far as can be told without resolving."""
    host = host_of(url)
    scheme = url.partition(":")[0]
    if scheme not in ("http", "https") or not url.isascii():
        raise UrlError("the URL is not normal; expected one that normalise_url made")
    _check_host(host, 443 if scheme == "https" else 80, private)
    return host


# Of what may be requested; a refusal is worked out anew, and with its reason.
@lru_cache(maxsize=4096)
def _check_host(host: str, default_port: int, private: bool) -> None:  # noqa: FBT001 - a key of the cache
    name, port = _split(host)
    port = port or default_port
    if port in NOT_HTTP:
        raise Refused(f"port {port} of {name} is that of {NOT_HTTP[port]}, and not of HTTP")
    if (address := _parsed(name.strip("[]"))) is not None:
        _check(address, private=private)


def check_name(host: Host) -> None:
    """Raise Refused for a name of one's own network or an address: what a proxy looks up, nobody here can check."""
    name, _ = _split(host)
    if "." not in name or name.endswith(_LOCAL_ENDS) or _parsed(name.strip("[]")) is not None:
        raise Refused(f"{name} would be looked up by the proxy, in whose network it may be anything")


def check_address(text: str, *, private: bool) -> None:
    """Raise Refused unless this address, which a host was resolved to, may be requested."""
    address = _parsed(text)
    if address is None:
        fault = "names an interface of this machine" if "%" in text else "is no IP address"
        raise Refused(f"the host resolves to what {fault}")
    _check(address, private=private)


def _check(address: Address, *, private: bool) -> None:
    meant = _embedded(address)
    for network, what, own in NETWORKS:
        if meant in network:
            if not (own and private):
                shown = str(address) if meant == address else f"{address}, which leads to {meant},"
                raise Refused(f"address {shown} is {what}")
            return


def is_own(url: str) -> bool:
    """Whether `url` itself says that it is one's own: a literal private address or a local name."""
    name, _ = _split(host_of(url))
    address = _parsed(name.strip("[]"))
    if address is None:
        return name == "localhost" or name.endswith(_LOCAL_ENDS)
    return next((own for network, _, own in NETWORKS if _embedded(address) in network), False)


def _split(host: str) -> tuple[str, int]:
    """Name and port of a host, 0 if it has none; the name of an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and not port.endswith("]") else (host, 0)


def _parsed(text: str) -> Address | None:
    """The address; None if it is none, or has a zone."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def _embedded(address: Address) -> Address:
    """The IPv4 address within, where the packets go; else the address itself."""
    if isinstance(address, IPv6Address):
        for network, ends in _EMBEDS:
            if address in network:
                return IPv4Address(int(address) >> ends & 0xFFFFFFFF)
    return address
