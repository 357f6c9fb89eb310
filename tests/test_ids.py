import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sanderling.ids import PARTITIONS, Host, HostError, domain_of, host_of, normalise, partition_of

SCHEMES = st.sampled_from(["http", "https", "ws", "wss"])

# Text made of what hosts are made of, so that hypothesis reaches the parts behind the first refusal.
PLAIN = ["a", "B", "0", "1", "255", "0x", "f", "-", "_", ".", ":", "::", "[", "]", "443", "80", "xn--", "bcher-kva"]
UNICODE = ["\u3002", "\u00fc", "\u00df", "u\u0308", "\u0430", "\uff41", "\u00ad", "\u200d", "\u05d0"]
PIECES = st.sampled_from([*PLAIN, *UNICODE, "@", "%", "/", " ", "\x00"])
HOSTISH = st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join))
LABELS = st.from_regex(r"[a-z0-9_-]{1,12}", fullmatch=True).filter(lambda label: not label.startswith("xn--"))
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(lambda labels: ".".join([*labels, "test"]))


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("example.com", "example.com"),
        ("Example.COM", "example.com"),
        ("  example.com ", "example.com"),
        ("example.com.", "example.com"),
        ("example.com.:443", "example.com"),
        ("localhost", "localhost"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("-a.b--c.example", "-a.b--c.example"),
        ("a-.example", "a-.example"),
        ("r3---sn.example", "r3---sn.example"),
    ],
)
def test_a_name_has_one_spelling(given: str, canonical: str) -> None:
    assert normalise(given) == canonical


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("bu\u0308cher.example", "xn--bcher-kva.example"),
        ("example\u3002com", "example.com"),
        ("example\uff0ecom\uff61", "example.com"),
        ("\uff45xample.com", "example.com"),
        ("stra\u00dfe.example", "xn--strae-oqa.example"),
        # Registered, though IDNA 2008 would not allow it.
        ("xn--n3h.net", "xn--n3h.net"),
    ],
)
def test_unicode_becomes_punycode(given: str, canonical: str) -> None:
    assert normalise(given) == canonical


def test_a_look_alike_is_a_host_of_its_own() -> None:
    cyrillic_a = "\u0430pple.com"

    assert normalise(cyrillic_a) == "xn--pple-43d.com"


@pytest.mark.parametrize(
    ("given", "scheme", "canonical"),
    [
        ("example.com:443", "https", "example.com"),
        ("example.com:443", "wss", "example.com"),
        ("example.com:80", "http", "example.com"),
        ("example.com:80", "ws", "example.com"),
        ("example.com:80", "https", "example.com:80"),
        ("example.com:443", "http", "example.com:443"),
        ("example.com:", "https", "example.com"),
        ("example.com:008443", "https", "example.com:8443"),
        ("example.com:0443", "https", "example.com"),
        ("example.com:65535", "https", "example.com:65535"),
        ("127.0.0.1:443", "https", "127.0.0.1"),
        ("[::1]:80", "http", "[::1]"),
        ("[::1]:80", "https", "[::1]:80"),
    ],
)
def test_only_the_default_port_of_the_scheme_is_dropped(given: str, scheme: str, canonical: str) -> None:
    assert normalise(given, scheme=scheme) == canonical


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("\uff11\uff12\uff17\u30020.0.1", "127.0.0.1"),
        ("2001:DB8:0:0::1", "[2001:db8::1]"),
        ("[2001:DB8::1]", "[2001:db8::1]"),
        ("[2001:DB8::1]:8443", "[2001:db8::1]:8443"),
        ("[::1]:", "[::1]"),
        ("::ffff:102:304", "[::ffff:1.2.3.4]"),
        ("::ffff:1.2.3.4", "[::ffff:1.2.3.4]"),
    ],
)
def test_an_address_has_one_spelling(given: str, canonical: str) -> None:
    assert normalise(given) == canonical


@pytest.mark.parametrize(
    "address", ["127.1", "0x7f.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5", "256.0.0.1"]
)
def test_an_address_that_software_reads_differently_is_refused(address: str) -> None:
    with pytest.raises(HostError, match="ends in a number; expected an address of four plain decimals"):
        normalise(address)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        (".", "is empty"),
        ("...", "is empty"),
        ("\u00ad", "is empty"),
        (":443", "is empty"),
        ("a..b", "label ''"),
        (".example.com", "label ''"),
        ("example.com..", "label ''"),
        ("example.com:0", "1 to 65535"),
        ("example.com:65536", "1 to 65535"),
        ("example.com:http", "1 to 65535"),
        ("example.com:+80", "1 to 65535"),
        ("example.com:\u0664\u0664", "1 to 65535"),
        ("[::1]:x", "1 to 65535"),
        ("[::1", r"expected \[address\]"),
        ("[::1]8443", r"expected \[address\]"),
        ("[]", "expected IPv6"),
        ("[127.0.0.1]", "expected IPv6"),
        ("a:b:c", "expected IPv6"),
        ("2001:db8:::1", "expected IPv6"),
        ("fe80::1%eth0", "zone id"),
        ("[fe80::1%25eth0]", "zone id"),
        ("ex%61mple.com", "percent escape"),
        ("exa mple.com", "space or a control"),
        ("example.com\n", "space or a control"),
        ("exam\x00ple.com", "space or a control"),
        ("exam\x85ple.com", "space or a control"),
        ("https://example.com", "URL or a path"),
        ("example.com/path", "URL or a path"),
        ("example.com\\path", "URL or a path"),
        ("example.com?q", "URL or a path"),
        ("exam!ple.com", "expected letters"),
        ("example.com\uff1a443", "expected letters"),
        ("b\u00fccher_.example", "not allowed"),
        ("-b\u00fccher.example", "hyphen"),
        ("\u2603.net", "not allowed"),
        ("\u00a0.net", "expected letters"),
        ("\ud800.net", "not allowed"),
        ("\ufffe.net", "not allowed"),
    ],
)
def test_what_is_not_a_host_is_refused(given: str, fault: str) -> None:
    with pytest.raises(HostError, match=fault):
        normalise(given)


@pytest.mark.parametrize(
    "label",
    [
        "xn--",
        "xn--zzzzzzzz",  # no such code point
        "xn--a",  # ends within a number
        "xn--abc-",  # plain ASCII in disguise
        "xn--bcher-2pa",  # decodes to an upper-case letter, which no look-up would produce
        "xn--ux-uub",  # to a letter and its accent apart
        "xn--a-83t",  # to a dot
        "xn---bbb",  # a second spelling of xn--bbb
    ],
)
def test_a_label_that_is_nobodys_punycode_is_refused(label: str) -> None:
    with pytest.raises(HostError, match="not the punycode of anything"):
        normalise(f"{label}.example")


def test_lengths_are_those_of_the_dns() -> None:
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])

    assert normalise(longest + ".") == longest
    with pytest.raises(HostError, match="254 characters"):
        normalise("a" + longest)
    with pytest.raises(HostError, match="a label of 64 characters"):
        normalise("a" * 64 + ".example")
    with pytest.raises(HostError, match="as punycode"):
        normalise(".".join(["\u00fc" * 20] * 10))
    with pytest.raises(HostError, match="too long"):
        normalise("\u4e00\u8c61" * 30 + ".example")


@pytest.mark.parametrize("piece", ["a", "a.", ".", "@", "\u00fc", "xn--", ":", "[", "1", "\u00ad", " "])
def test_a_long_text_is_refused_before_anything_is_done_with_it(piece: str) -> None:
    """Two million characters: any work that grows with the square of them would meet the time limit of the suite."""
    with pytest.raises(HostError, match="characters; expected at most 512") as refusal:
        normalise(piece * 2_000_000)

    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("piece", ["a", "a!", "\u2603", "\u00fc", "xn--", ":", "[", "1", "\x00", "\ufdfa"])
def test_a_message_stays_short(piece: str) -> None:
    for length in (240, 512):
        with pytest.raises(HostError) as refusal:
            normalise(piece * (length // len(piece)))
        assert len(str(refusal.value)) < 220


@pytest.mark.parametrize("at", ["@", "\uff20", "\ufe6b"])
@pytest.mark.parametrize("info", ["joe:hunter2", "joe", "joe:hunter2:more", "joe:hunter2@", "joe:hunt/er2"])
def test_user_info_is_refused_and_never_repeated(info: str, at: str) -> None:
    for refused in (normalise, host_of):
        with pytest.raises(HostError, match="example") as refusal:
            refused(f"{info}{at}example.com")
        assert "joe" not in str(refusal.value)
        assert "hunt" not in str(refusal.value)
        assert refusal.value.__cause__ is None


@pytest.mark.parametrize("url", ["https://joe:hunter2@example.com/", "https://:hunter2@h", "ws://joe:hunter2@h"])
def test_a_url_with_user_info_is_refused_by_the_name_of_the_rule(url: str) -> None:
    with pytest.raises(HostError, match="has user info") as refusal:
        host_of(url)

    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "url", ["https://joe:sec/ret@h", "https://joe:sec:x/ret@h", "https://h:sec?ret", "ftp://h/?sec"]
)
def test_half_a_password_is_not_repeated_either(url: str) -> None:
    with pytest.raises(HostError) as refusal:
        host_of(url)

    assert "sec" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com", "example.com"),
        ("HTTPS://Example.com:443/a:b@c?d", "example.com"),
        ("http://example.com:80#x", "example.com"),
        ("http://example.com:443?x", "example.com:443"),
        ("ws://example.com:80/", "example.com"),
        ("wss://example.com.:443/", "example.com"),
        (" https://[2001:db8::1]:8443/ ", "[2001:db8::1]:8443"),
        ("https://example.com/" + "x" * 10_000, "example.com"),
    ],
)
def test_the_host_of_a_url_has_the_default_port_of_its_scheme(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "ftp://example.com",
        "xhttps://example.com",
        "https:example.com",
        "https:/example.com",
        "https://",
        "https:///path",
        "https://?q",
        "https://exa\tmple.com",
        "https://a.example\\@b.example",
    ],
)
def test_a_url_that_names_no_host_is_refused(url: str) -> None:
    with pytest.raises(HostError, match=r"URL .* does not start with|is empty|inside|has user info"):
        host_of(url)


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(HostError, match="scheme 'gopher': expected one of https"):
        normalise("example.com", scheme="gopher")


@settings(deadline=None)  # the first call loads the tables of Unicode
@given(HOSTISH, SCHEMES)
@example("a.\u00ad.b", "https")
@example("\u200d", "https")
@example("xn--\u00e9", "https")
def test_normalising_again_changes_nothing_and_nothing_else_is_raised(text: str, scheme: str) -> None:
    try:
        host = normalise(text, scheme=scheme)
    except HostError:
        return

    assert normalise(host, scheme=scheme) == host
    assert host_of(f"{scheme}://{host}") == host
    assert host.isascii()
    assert host == host.lower()


@given(NAMES, SCHEMES, st.integers(1, 65535))
def test_case_dot_and_default_port_do_not_make_another_host(name: str, scheme: str, port: int) -> None:
    host = normalise(name, scheme=scheme)

    assert normalise(f" {name.upper()}. ", scheme=scheme) == host
    default = {"http": 80, "ws": 80, "https": 443, "wss": 443}[scheme]
    assert (normalise(f"{name}:{port}", scheme=scheme) == host) == (port == default)


@given(st.ip_addresses(v=6))
def test_every_form_of_an_ipv6_address_is_one_host(address: object) -> None:
    host = normalise(str(address))

    assert normalise(address.exploded.upper()) == host  # type: ignore[attr-defined]
    assert normalise(f"[{address}]:443") == host


@settings(deadline=None)  # the same
@given(st.one_of(st.text(), HOSTISH.map("https://{}".format)))
def test_no_url_raises_anything_but_a_host_error(url: str) -> None:
    with contextlib.suppress(HostError):
        assert host_of(url)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("www.example.com:8443", "example.com"),
        ("example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("alice.github.io", "alice.github.io"),
        ("www.alice.github.io", "alice.github.io"),
        ("co.uk", "co.uk"),
        ("com", "com"),
        ("localhost:8000", "localhost"),
        ("db.corp.internal", "db.corp.internal"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[2001:db8::1]:8443", "[2001:db8::1]"),
        ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
        ("www.xn--55qx5d.cn", "www.xn--55qx5d.cn"),
        ("a.www.xn--55qx5d.cn", "www.xn--55qx5d.cn"),
        ("www.city.kobe.jp", "city.kobe.jp"),
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),
    ],
)
def test_the_domain_is_what_someone_registered(host: str, domain: str) -> None:
    assert domain_of(Host(host)) == domain


@settings(deadline=None)  # the first call reads the list of suffixes
@given(NAMES)
def test_a_domain_is_an_end_of_its_host_and_its_own_domain(name: str) -> None:
    host = normalise(name)

    domain = domain_of(host)

    assert f".{host}".endswith(f".{domain}")
    assert domain_of(Host(domain)) == domain


def test_a_host_is_in_the_same_partition_for_ever() -> None:
    """As `printf %s a.example | b2sum` says: the last ten bits."""
    partitions = {"a.example": 416, "b.example": 58, "127.0.0.1:8080": 598, "[::1]": 159, "xn--bcher-kva.example": 433}

    assert {host: partition_of(host) for host in partitions} == partitions


@given(st.from_regex(r"[a-z0-9.:-]*", fullmatch=True))
def test_there_are_1024_partitions(host: str) -> None:
    assert PARTITIONS == 1024
    assert 0 <= partition_of(host) < PARTITIONS
