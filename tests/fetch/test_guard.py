from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from yarl import URL

from sanderling.fetch.guard import (
    EMBEDS,
    NETWORKS,
    NOT_HTTP,
    GuardRules,
    Refused,
    check_address,
    check_addresses,
    check_url,
)

STRICT = GuardRules()
OWN = GuardRules(private=True, raw_addresses=True)


def words(text: str) -> list[str]:
    return text.split()


# Written out once more, from IANA's registries and the clouds' manuals: the code's own table cannot vouch for itself.
# The first are somebody's own networks, which `private` opens; the others nothing opens.
OWN_NETWORKS = words(
    """
    10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 198.18.0.0/15
    192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 ::1/128 fc00::/7 fe80::/10 fec0::/10 2001:db8::/32 3fff::/20 2001:2::/48
    """
)
NEVER_NETWORKS = words(
    """
    0.0.0.0/8 192.0.0.0/24 192.88.99.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
    ::/128 ::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 200::/7 400::/6 1000::/4 4000::/3 5f00::/16 6000::/3 8000::/3
    a000::/3 c000::/3 e000::/4 f000::/5 f800::/6 fe00::/9 ff00::/8 2001::/32 2001:1::/32 2001:10::/28 2001:20::/28
    2001:30::/28
    """
)
METADATA = words(
    """
    169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 100.100.100.200 192.0.0.192 168.63.129.16
    fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:c1::a9fe:a9fe fe80::a9fe:a9fe
    """
)
PUBLIC = words(
    """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
    172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
    2000::1 2001:200::1 2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001::1 3ffe:ffff::1
    ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
    """
)

Network = IPv4Network | IPv6Network


def within(network: Network) -> st.SearchStrategy[IPv4Address | IPv6Address]:
    first, last = network[0], network[-1]
    return st.integers(int(first), int(last)).map(type(first))


def embeddings(address: IPv4Address) -> list[str]:
    """The address in the forms of IPv6 that lead to it."""
    number = int(address)
    return [
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        str(IPv6Address(0x2002 << 112 | number << 80 | 1)),
    ]


def is_refused(address: str, rules: GuardRules = STRICT) -> bool:
    try:
        check_address(address, rules)
    except Refused:
        return True
    return False


def spellings(address: IPv4Address | IPv6Address) -> list[str]:
    if isinstance(address, IPv4Address):
        return [str(address), *embeddings(address)]
    return [address.compressed, address.exploded, address.exploded.upper()]


@given(st.sampled_from([*OWN_NETWORKS, *NEVER_NETWORKS]).map(ip_network).flatmap(within))
def test_no_address_inside_a_refused_network_passes_in_any_spelling(address: IPv4Address | IPv6Address) -> None:
    # Mapped, NAT64 and 6to4 addresses lie in some of these networks too; those are judged by what they lead to.
    assume(not any(address in network for network, _ in EMBEDS))

    assert [text for text in spellings(address) if not is_refused(text)] == []


@pytest.mark.parametrize("network", [*OWN_NETWORKS, *NEVER_NETWORKS])
def test_a_refused_network_is_refused_to_its_edges(network: str) -> None:
    edges = ip_network(network)

    assert is_refused(str(edges[0]))
    assert is_refused(str(edges[-1]))


@pytest.mark.parametrize("address", METADATA)
@pytest.mark.parametrize("rules", [STRICT, OWN])
def test_a_metadata_service_is_refused_whatever_the_rules(address: str, rules: GuardRules) -> None:
    with pytest.raises(Refused, match="metadata"):
        check_address(address, rules)


@pytest.mark.parametrize("address", ["::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"])
def test_a_metadata_service_is_found_inside_another_address(address: str) -> None:
    with pytest.raises(Refused, match=r"which leads to 169\.254\.169\.254, is a cloud's metadata"):
        check_address(address, OWN)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass_up_to_the_edges_of_the_others(address: str) -> None:
    check_address(address, STRICT)


@given(st.sampled_from(OWN_NETWORKS).map(ip_network).flatmap(within))
def test_ones_own_networks_pass_where_they_are_allowed(address: IPv4Address | IPv6Address) -> None:
    assume(str(address) not in METADATA)

    assert is_refused(str(address))
    check_address(str(address), OWN)


@given(st.sampled_from(NEVER_NETWORKS).map(ip_network).flatmap(within))
def test_what_is_no_single_machine_stays_refused(address: IPv4Address | IPv6Address) -> None:
    assume(not any(address in ip_network(network) for network in OWN_NETWORKS))
    assume(not any(address in network for network, _ in EMBEDS))

    assert is_refused(str(address), OWN)


@given(st.ip_addresses())
def test_what_this_python_does_not_call_global_is_refused(address: IPv4Address | IPv6Address) -> None:
    """Whatever the release knows: it may know less than the table, never more."""
    assume(not any(address in network for network, _ in EMBEDS))

    assert address.is_global or is_refused(str(address))


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_like_itself(address: IPv4Address) -> None:
    refused = is_refused(str(address))

    assert [is_refused(text) for text in embeddings(address)] == [refused] * 3


def test_no_row_of_the_table_is_hidden_by_an_earlier_one() -> None:
    networks = [network for network, _, _ in NETWORKS]

    for place, network in enumerate(networks):
        same = [other for other in networks[:place] if other.version == network.version]
        assert not any(network.subnet_of(other) for other in same)  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fe80::1%1", "2606:4700::1%lo", "::1%"])
@pytest.mark.parametrize("rules", [STRICT, OWN])
def test_a_zone_id_is_refused(address: str, rules: GuardRules) -> None:
    with pytest.raises(Refused, match="zone id"):
        check_address(address, rules)


NO_ADDRESSES = ["", " ", "localhost", "127.1", "0177.0.0.1", "2130706433", "0x7f.1", "1.1.1.1 ", "1.1.1.1/32", "[::1]"]


@pytest.mark.parametrize("address", [*NO_ADDRESSES, "1.1.1", "::1::", "\u0661.1.1.1", "1.1.1.1\n", "\0"])
@pytest.mark.parametrize("rules", [STRICT, OWN])
def test_what_is_no_plain_address_is_refused(address: str, rules: GuardRules) -> None:
    with pytest.raises(Refused, match="no IP address"):
        check_address(address, rules)


@given(st.text() | st.from_regex(r"[0-9a-f:.%/\[\]]{0,45}"), st.booleans(), st.booleans())
def test_garbage_raises_nothing_but_refused(text: str, private: bool, raw: bool) -> None:  # noqa: FBT001
    rules = GuardRules(private=private, raw_addresses=raw)

    for candidate in (text, f"http://{text}", f"https://[{text}]:{text}/"):
        with suppress(Refused):
            check_address(candidate, rules)
        with suppress(Refused):
            check_url(candidate, rules)


def test_the_addresses_of_a_host_keep_their_order() -> None:
    assert check_addresses(iter(["9.9.9.9", "1.1.1.1", "2606:4700::1"]), STRICT) == [
        "9.9.9.9",
        "1.1.1.1",
        "2606:4700::1",
    ]


@pytest.mark.parametrize("bad", ["127.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "nonsense"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_bad_address_spoils_the_host(bad: str, place: int) -> None:
    addresses = ["1.1.1.1", "8.8.8.8"]
    addresses.insert(place, bad)

    with pytest.raises(Refused):
        check_addresses(addresses, STRICT)


def test_a_host_without_an_address_is_refused() -> None:
    with pytest.raises(Refused, match="without any address"):
        check_addresses([], STRICT)


GOOD_URLS = ["http://a.example", "https://a.example/p?q=1#f", "HTTPS://A.EXAMPLE:8443/", "http://xn--n3h.example:80"]


@pytest.mark.parametrize("url", GOOD_URLS)
def test_a_plain_url_passes(url: str) -> None:
    check_url(url, STRICT)


NO_WEB = [
    "ftp://a.example/",
    "file:///etc/passwd",
    "gopher://a.example:70/",
    "ws://a.example",
    "wss://a.example",
    "data://x",
]


@pytest.mark.parametrize(
    "url", [*NO_WEB, "//a.example", "a.example", "", "http:a.example", "http:/a.example", " http://a"]
)
def test_only_http_and_https_are_called(url: str) -> None:
    with pytest.raises(Refused, match="only http and https"):
        check_url(url, OWN)


def test_the_scheme_that_was_found_is_named() -> None:
    with pytest.raises(Refused, match="scheme gopher"):
        check_url("gopher://a.example/", STRICT)


@pytest.mark.parametrize(
    "url", ["http://", "http:///path", "http://?q", "http://a b/", "http://a%00b/", "http://a\\@b/"]
)
def test_a_host_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="cannot be trusted"):
        check_url(url, OWN)


SECRETIVE = [
    "http://alice:hunter2@a.example/?key=s3cr3t",
    "http://alice@a.example:25/?key=s3cr3t",
    "ftp://alice:hunter2@a.example/?key=s3cr3t",
    "alice:hunter2@a.example?key=s3cr3t",
    "http://a.example:25/p?key=s3cr3t",
    "http://127.0.0.1/p?key=s3cr3t",
    "http://a.example:hunter2/?key=s3cr3t",
    "http://2130706433/?key=s3cr3t",
]


@pytest.mark.parametrize("url", SECRETIVE)
def test_a_refusal_never_repeats_user_info_or_query(url: str) -> None:
    with pytest.raises(Refused) as caught:
        check_url(url, STRICT)

    assert not any(secret in str(caught.value) for secret in ("alice", "hunter2", "s3cr3t", "key"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "url", ["http://1.1.1.1", "https://[2606:4700::1]/", "http://1.1.1.1.:8080/", "http://\uff11.1.1.1/"]
)
def test_an_address_as_host_needs_leave(url: str) -> None:
    with pytest.raises(Refused, match=r"raw_addresses is off \(--private calls it\)"):
        check_url(url, STRICT)

    check_url(url, GuardRules(raw_addresses=True))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1", "http://[::1]:8080/", "http://[::ffff:10.0.0.1]/", "http://192.168.1.1."]
)
def test_an_address_as_host_is_judged_like_a_resolved_one(url: str) -> None:
    """Nobody resolves it, so nobody else would."""
    with pytest.raises(Refused, match="private is off"):
        check_url(url, GuardRules(raw_addresses=True))

    check_url(url, OWN)


@pytest.mark.parametrize("port", [22, 25, 587, 6379, 5432, 11211, 6667])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(Refused, match=f"port {port} of "):
        check_url(f"http://a.example:{port}/", OWN)


@pytest.mark.parametrize("port", [80, 443, 3000, 5000, 8000, 8080, 8443, 9000, 65535])
def test_ports_where_http_lives_pass(port: int) -> None:
    check_url(f"http://a.example:{port}/", STRICT)


def test_named_ports_are_the_only_ones() -> None:
    rules = GuardRules(ports=frozenset({443, 25}))

    check_url("https://a.example/", rules)
    check_url("http://a.example:25/", rules)
    with pytest.raises(Refused, match=r"port 80 of .*: only 25, 443 are in ports"):
        check_url("http://a.example/", rules)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_that_is_none_is_an_error(port: int) -> None:
    with pytest.raises(ValueError, match=f"ports has {port}"):
        GuardRules(ports=frozenset({443, port}))


PIECES = [
    "a",
    "example",
    ".",
    ":",
    "@",
    "/",
    "\\",
    "?",
    "#",
    "[",
    "]",
    "::",
    "127.0.0.1",
    "80",
    "25",
    "%",
    "\t",
    " ",
    "\u3002",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@example("127.0.0.1")
@example("a.example:80")
def test_the_client_reads_the_same_host_and_port_as_the_guard(rest: str) -> None:
    """What passes here must not be another host to the client: an address, or a port of the list, above all."""
    url = f"http://{rest}"
    try:
        check_url(url, STRICT)
    except Refused:
        return

    read = URL(url)

    assert read.user is None
    assert read.password is None
    assert read.port not in NOT_HTTP
    assert not looks_like_an_address(read.host or "")


def looks_like_an_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
