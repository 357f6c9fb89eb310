"""What may be requested, as far as can be told without a network."""

import pytest

from sanderling.fetch.guard import NETWORKS, NOT_HTTP, Refused, check_address, check_name, check_url, is_own
from sanderling.ids import Host, UrlError, normalise_url

NEVER = [network for network, _, own in NETWORKS if not own]
OWN = [network for network, _, own in NETWORKS if own]


@pytest.mark.parametrize("network", NEVER, ids=str)
def test_metadata_services_and_what_is_no_machine_are_never_requested(network: object) -> None:
    first = str(network).partition("/")[0]
    for private in (False, True):
        with pytest.raises(Refused):
            check_address(first, private=private)


@pytest.mark.parametrize("network", OWN, ids=str)
def test_ones_own_network_is_requested_only_with_private(network: object) -> None:
    first = str(network).partition("/")[0]
    with pytest.raises(Refused):
        check_address(first, private=False)
    check_address(first, private=True)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::808:808"])
def test_public_addresses_are_requested(address: str) -> None:
    check_address(address, private=False)


@pytest.mark.parametrize(
    "address",
    [
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::ffff:169.254.169.254",
        "fe80::1%eth0",
        "::127.0.0.1",
        "64:ff9b:1::1",
        "not an address",
    ],
)
def test_what_leads_inside_by_another_way_is_refused(address: str) -> None:
    with pytest.raises(Refused):
        check_address(address, private=False)


@pytest.mark.parametrize(
    "typed",
    [
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://127.0.0.1./",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://0/",
    ],
)
def test_spellings_of_loopback_are_refused(typed: str) -> None:
    with pytest.raises(Refused):
        check_url(normalise_url(typed), private=False)


@pytest.mark.parametrize("port", sorted(NOT_HTTP))
def test_ports_of_other_services_are_refused_whatever_is_private(port: int) -> None:
    with pytest.raises(Refused) as caught:
        check_url(f"http://example.org:{port}/", private=True)
    assert str(port) in str(caught.value)


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "example.org", "http://me:pw@example.org/", "http://example.org/ü", "", "http:///x"]
)
def test_what_is_no_normal_url_is_said_to_be_none(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        check_url(url, private=False)
    assert "pw" not in str(caught.value)


def test_a_proxy_is_not_asked_for_names_of_its_own_network() -> None:
    for name in ("localhost", "db", "api.internal", "printer.local", "10.0.0.1", "[::1]:8080"):
        with pytest.raises(Refused):
            check_name(Host(name))
    check_name(Host("example.org:8080"))


def test_one_knows_what_a_person_means_to_be_his_own() -> None:
    assert all(map(is_own, ["http://localhost:80/", "http://127.0.0.1/", "http://[::1]/", "http://nas.local/"]))
    assert not any(map(is_own, ["http://example.org/", "http://169.254.169.254/", "http://93.184.216.34/"]))
