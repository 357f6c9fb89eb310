import json
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.repos.plc import (
    KEPT,
    LONGEST_LINE,
    SHOWN,
    EndpointError,
    ImportTally,
    Operation,
    RememberedOperation,
    fold,
    host_at,
    host_now,
    is_did,
    read,
)

DID = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
AT = "2023-04-21T03:21:50.123Z"
AT_MICROSECONDS = 1_682_047_310_123_000


def moved(endpoint: object = "https://host.example") -> dict[str, object]:
    services = {"atproto_pds": {"type": "AtprotoPersonalDataServer", "endpoint": endpoint}, "other": [1]}
    return {"type": "plc_operation", "services": services, "prev": None, "sig": "x"}


CREATED = {"type": "create", "service": "https://old.example", "handle": "a.example", "prev": None, "sig": "x"}
ENDED = {"type": "plc_tombstone", "prev": "bafy", "sig": "x"}


def line(operation: object, **more: object) -> bytes:
    values = {"did": DID, "operation": operation, "cid": "bafyone", "nullified": False, "createdAt": AT}
    return json.dumps(values | more).encode() + b"\n"


def sequenced(seq: object, operation: object) -> bytes:
    values = {"type": "sequenced_op", "seq": seq, "did": DID, "operation": operation, "cid": "bafyone", "createdAt": AT}
    return json.dumps(values).encode() + b"\n"


def all_of(*lines: bytes, plain: bool = False) -> tuple[list[Operation], ImportTally]:
    tally = ImportTally()
    return list(read(lines, tally, plain=plain)), tally


def test_both_formats_are_read() -> None:
    found, tally = all_of(line(moved()), sequenced(7, moved()), b"\n", line(CREATED, nullified=True), line(ENDED))

    assert found == [
        Operation(DID, "bafyone", AT_MICROSECONDS, 0, "https://host.example", nullified=False),
        Operation(DID, "bafyone", AT_MICROSECONDS, 7, "https://host.example", nullified=False),
        Operation(DID, "bafyone", AT_MICROSECONDS, 0, "https://old.example", nullified=True),
        Operation(DID, "bafyone", AT_MICROSECONDS, 0, "", nullified=False),
    ]
    assert (tally.lines, tally.operations, tally.shown) == (5, 4, [])


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "plc_operation", "services": {}},
        {"type": "plc_operation", "services": {"atproto_labeler": {"endpoint": "https://labels.example"}}},
        {"type": "plc_operation", "service": "https://not-of-this-type.example"},
        {"type": "plc_operation", "services": {"atproto_pds": {"type": "x"}}},
        {"type": "plc_tombstone", "service": "https://not-of-this-type.example"},
        moved(""),
    ],
)
def test_an_operation_may_name_no_host(operation: object) -> None:
    (found,), tally = all_of(line(operation))

    assert found.host == ""
    assert not tally.refused


def test_the_cursor_is_where_the_next_export_begins() -> None:
    assert ImportTally().cursor == ""
    assert all_of(line(moved()), line(moved(), createdAt="2023-04-20T03:21:50.123Z"))[1].cursor == AT
    assert all_of(line(moved()), sequenced(12, moved()), sequenced(9, moved()))[1].cursor == "12"


BAD = {
    "not JSON": [b"\xff\n", b"{", b"did host\n", b'{"did": "' + b"\xc3\x28" + b'"}', b'{"x":' * 5000],
    "not an operation": [
        b"[" * 5000, b"[]", b"1", b"{}", line(None), line({"type": "novel"}), line(moved(5)), line(moved(), did=None),
        line(moved(), createdAt="yesterday"), line(moved(), createdAt="2023-04-21T03:21:50"), line(moved(), cid=""),
        line(moved(), nullified="no"), line(moved(), createdAt=0), line(moved(), cid="x" * 201),
        sequenced(-1, moved()), sequenced(2**63, moved()), sequenced("7", moved()), sequenced(10**400, moved()),
    ],
    "not a DID": [line(moved(), did=did) for did in ("plc:aaa", "did:plc:" + "a" * 2048, "did:plc:a b", "")],
    "too long": [line(moved(), note="x" * LONGEST_LINE)],
}  # fmt: skip


@pytest.mark.parametrize(("reason", "bad"), [(reason, bad) for reason, lines in BAD.items() for bad in lines])
def test_a_bad_line_is_counted_and_the_others_are_read(reason: str, bad: bytes) -> None:
    found, tally = all_of(line(moved()), bad, line(ENDED))

    assert len(found) == tally.operations == 2
    assert tally.bad == {reason: 1}
    ((number, shown),) = tally.shown
    assert number == 2
    assert shown.startswith(f"{reason}: ")
    assert len(shown) <= 200


def test_not_every_fault_is_described() -> None:
    _, tally = all_of(*[b"x"] * 1000)

    assert tally.bad.total() == 1000
    assert len(tally.shown) == SHOWN


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([line(moved()), line(ENDED)]))))
def test_whatever_the_lines_are_each_is_an_operation_or_counted(lines: list[bytes]) -> None:
    found, tally = all_of(*lines)

    assert tally.lines == len(lines)
    assert len(found) + tally.bad.total() + sum(each.isspace() for each in lines) == len(lines)


def test_an_endpoint_that_is_refused_is_no_host_and_no_bad_line() -> None:
    (found,), tally = all_of(line(moved("https://host.example/path")))

    assert found.host == ""
    assert tally.refused == {"path": 1}
    assert not tally.bad
    assert tally.shown == [(1, f"{DID}: path: '/path', expected nothing behind the host")]


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("https://host.example", "https://host.example"),
        ("https://host.example/", "https://host.example"),
        ("HTTPS://HOST.Example.:443/", "https://host.example"),
        ("https://host.example:8443", "https://host.example:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://[2001:DB8::1]:80", "https://[2001:db8::1]:80"),
    ],
)
def test_a_host_has_one_spelling(endpoint: str, host: str) -> None:
    assert host_at(endpoint) == host
    assert host_at(host) == host


REFUSED = {
    "not a URL": ["host.example", "https:/host.example", "", " https://host.example", "https://a" + "." * 600, "//h"],
    "scheme": ["ftp://host.example", "file:///etc/passwd", "wss://host.example"],
    "without TLS": ["http://host.example"],
    "user info": ["https://user:secret@host.example", "https://@host.example"],
    "path": [
        "https://host.example/xrpc", "https://host.example//", "https://host.example?x", "https://host.example#x",
        "https://host.example evil", "https://host.example\n", "https://host.example/?",
    ],
    "host": ["https://", "https:///", "https://a..b", "https://127.1", "https://host:99999", "https://ho\\st", "https://%41"],
}  # fmt: skip


@pytest.mark.parametrize(("reason", "endpoint"), [(reason, each) for reason, many in REFUSED.items() for each in many])
def test_what_is_more_than_a_host_or_less_is_refused(reason: str, endpoint: str) -> None:
    with pytest.raises(EndpointError) as refused:
        host_at(endpoint)
    assert refused.value.reason == reason
    assert "secret" not in str(refused.value)


def test_a_host_without_tls_only_if_asked_for() -> None:
    assert host_at("http://127.0.0.1:2583/", plain=True) == "http://127.0.0.1:2583"
    assert all_of(line(moved("http://host.example")), plain=True)[0][0].host == "http://host.example"
    assert all_of(line(moved("http://host.example")))[1].refused == {"without TLS": 1}


@given(st.text(max_size=30), st.booleans())
def test_whatever_an_endpoint_is_it_is_a_host_or_refused(rest: str, plain: bool) -> None:  # noqa: FBT001 - drawn
    for endpoint in (rest, f"https://{rest}", f"http://{rest}"):
        try:
            host = host_at(endpoint, plain=plain)
        except EndpointError:
            continue
        assert host_at(host, plain=plain) == host
        assert host.startswith(("https://", "http://") if plain else "https://")
        assert not set(host.partition("://")[2]) & set("/@?#\\ ")


@pytest.mark.parametrize("text", ["did:plc:z72i7hdynmk6r22z27h6tvur", "did:web:host.example%3A8080", "did:x:a:b"])
def test_a_did(text: str) -> None:
    assert is_did(text)


@pytest.mark.parametrize("text", ["", "did:plc:", "did:PLC:a", "did:plc:a/b", "did:plc:a\n", "did:plc:é", "did:web:a:"])
def test_not_a_did(text: str) -> None:
    assert not is_did(text)


def kept(at: int, host: int, *, nullified: bool = False, seq: int = 0) -> RememberedOperation:
    return RememberedOperation(at, seq, b"%08d" % (100 * at + seq), host, nullified)


def test_the_last_valid_operation_counts() -> None:
    assert host_now(fold([])) == 0
    assert host_now(fold([kept(2, 20), kept(3, 30), kept(1, 10)])) == 30
    assert host_now(fold([kept(1, 10), kept(2, 0)])) == 0, "a tombstone"
    assert host_now(fold([kept(1, 10), kept(2, 20, nullified=True)])) == 10
    assert host_now(fold([kept(1, 10, nullified=True)])) == 0
    assert host_now(fold([kept(1, 10, seq=2), kept(1, 20, seq=1)])) == 10, "of one millisecond"


def test_an_operation_can_be_undone_after_it_was_folded() -> None:
    before = fold([kept(1, 10), kept(2, 20), kept(3, 0)])
    assert host_now(before) == 0

    undone = fold([*before, kept(2, 20, nullified=True), kept(3, 0, nullified=True)])
    assert host_now(undone) == 10

    assert host_now(fold([*undone, kept(2, 20)])) == 10, "once nullified, always nullified"
    assert host_now(fold([*undone, kept(4, 40)])) == 40


operations = st.lists(st.builds(kept, st.integers(0, 12), st.just(1), nullified=st.booleans(), seq=st.integers(0, 1)))


def last_valid(every: Iterable[RememberedOperation]) -> RememberedOperation | None:
    """The obvious twin: keeps all."""
    undone = {each.tag for each in every if each.nullified}
    valid = [each for each in every if each.tag not in undone]
    return max(valid, default=None)


@given(operations, st.randoms(use_true_random=False), st.integers(1, 5))
def test_order_and_repetition_make_no_difference(
    every: list[RememberedOperation], chance: random.Random, parts: int
) -> None:
    every = [each._replace(host=1 + int(each.tag)) for each in every]
    at_once = fold(every)

    arrived = every + chance.sample(every, len(every) // 2)
    chance.shuffle(arrived)
    bit_by_bit: tuple[RememberedOperation, ...] = ()
    for part in range(parts):
        bit_by_bit = fold([*bit_by_bit, *arrived[part::parts]])

    assert bit_by_bit == at_once
    assert len(at_once) <= KEPT
    expected = last_valid(every)
    newest = sorted({each.tag for each in every})[-KEPT:]
    if expected is not None and expected.tag in newest:
        assert host_now(at_once) == expected.host
    else:
        assert host_now(at_once) == 0
