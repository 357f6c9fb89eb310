from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats import cbor
from sanderling.formats.car import Span
from sanderling.formats.cid import Cid
from sanderling.formats.mst import LONGEST_KEY, build, height, read_node, walk, write_node
from sanderling.formats.parsed import Kind, Limits, RepoError

RECORD = Cid.of(b"record")
keys = st.binary(min_size=1, max_size=6) | st.builds(lambda number: b"a/%d" % number, st.integers(0, 2000))
maps = st.dictionaries(keys, st.builds(Cid.of, st.binary(max_size=2)), max_size=60)


def stored(nodes: dict[Cid, bytes]) -> tuple[bytes, dict[bytes, Span]]:
    """The nodes one after the other, and where each is."""
    spans: dict[bytes, Span] = {}
    data = b""
    for cid, block in nodes.items():
        spans[cid] = len(data), len(data) + len(block)
        data += block
    return data, spans


def keys_below(root: Cid, nodes: dict[Cid, bytes], limits: Limits | None = None) -> list[tuple[bytes, bytes]]:
    data, spans = stored(nodes)
    return [(key, record) for key, record, _ in walk(data, spans, root, limits=limits or Limits())]


def obvious(root: Cid | None, nodes: dict[Cid, bytes]) -> Iterator[tuple[bytes, Cid]]:
    """The walk as the definition has it: recursive, by the CBOR decoder, and believing everything."""
    if root is None:
        return
    node: Any = cbor.decode(nodes[root])
    yield from obvious(node["l"], nodes)
    key = b""
    for entry in node["e"]:
        key = key[: entry["p"]] + entry["k"]
        yield key, entry["v"]
        yield from obvious(entry["t"], nodes)


@given(maps)
def test_what_is_built_is_walked_in_order(records: dict[bytes, Cid]) -> None:
    root, nodes = build(records.items())

    assert keys_below(root, nodes) == sorted(records.items()) == list(obvious(root, nodes))


@given(maps, st.randoms(use_true_random=False))
def test_the_tree_follows_from_its_keys_alone(records: dict[bytes, Cid], rng: Random) -> None:
    shuffled = list(records.items())
    rng.shuffle(shuffled)

    assert build(shuffled) == build(records.items())


@given(maps)
def test_each_level_holds_the_keys_of_its_height(records: dict[bytes, Cid]) -> None:
    root, nodes = build(records.items())
    pending = [(root, max(map(height, records), default=0))]

    while pending:
        cid, level = pending.pop()
        node = read_node(nodes[cid])
        key = b""
        for prefix, suffix, tree, _ in node.entries:
            assert prefix == 0 or key[:prefix] + suffix != key
            key = key[:prefix] + suffix
            assert height(key) == level
            pending += [(Cid(tree), level - 1)] if tree else []
        pending += [(Cid(node.left), level - 1)] if node.left else []


@pytest.mark.parametrize(
    ("key", "level"),
    [
        (b"", 0),
        (b"asdf", 0),
        (b"blue", 1),
        (b"2653ae71", 0),
        (b"88bfafc7", 2),
        (b"2a92d355", 4),
        (b"884976f5", 6),
        (b"app.bsky.feed.post/454397e440ec", 4),
        (b"app.bsky.feed.post/9adeb165882c", 8),
    ],
)
def test_heights_are_those_of_the_network(key: bytes, level: int) -> None:
    assert height(key) == level


# Roots that the network's other implementations publish for their tests, all of this one record.
_KNOWN = Cid.parse("bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454")


@pytest.mark.parametrize(
    ("tree", "root"),
    [
        ((), "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm"),
        (("com.example.record/3jqfcqzm3fo2j",), "bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu"),
        (("com.example.record/3jqfcqzm3fx2j",), "bafyreih7wfei65pxzhauoibu3ls7jgmkju4bspy4t2ha2qdjnzqvoy33ai"),
        (
            (
                "com.example.record/3jqfcqzm3fp2j",
                "com.example.record/3jqfcqzm3fr2j",
                "com.example.record/3jqfcqzm3fs2j",
                "com.example.record/3jqfcqzm3ft2j",
                "com.example.record/3jqfcqzm4fc2j",
            ),
            "bafyreicmahysq4n6wfuxo522m6dpiy7z7qzym3dzs756t5n7nfdgccwq7m",
        ),
    ],
)
def test_roots_are_those_of_the_network(tree: tuple[str, ...], root: str) -> None:
    found, _ = build((key.encode(), _KNOWN) for key in tree)

    assert found.text == root


@given(maps, st.data())
def test_a_node_with_a_byte_changed_is_the_same_to_both_readers(records: dict[bytes, Cid], data: st.DataObject) -> None:
    """The reader of bytes must refuse all that is no DAG-CBOR, and take for its value what the decoder takes."""
    _, nodes = build(records.items())
    block = bytearray(data.draw(st.sampled_from(list(nodes.values()))))
    block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))

    try:
        node = read_node(bytes(block))
    except RepoError as error:
        assert error.kind in {Kind.MST_NODE, Kind.MST_PREFIX}  # noqa: PT017 - either is fine
        return

    read = cbor.decode(bytes(block))
    assert read == {
        "e": [{"k": suffix, "p": prefix, "t": tree, "v": record} for prefix, suffix, tree, record in node.entries],
        "l": node.left,
    }


PLAIN = write_node(Cid.of(b"left"), [(b"a/b", RECORD, None)])


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"ae\x81", b"ae\x98\x01"),
        (b"ae\x81", b"ae\x99\x00\x01"),
        (b"ae\x81", b"ae\x9a\x00\x00\x00\x01"),
        (b"ae\x81", b"ae\x9b" + bytes(7) + b"\x01"),
        (b"ak\x43", b"ak\x58\x03"),
        (b"ak\x43", b"ak\x59\x00\x03"),
        (b"ap\x00", b"ap\x18\x00"),
        (b"ap\x00", b"ap\x19\x00\x00"),
        (b"ap\x00", b"ap\x1a\x00\x00\x00\x00"),
        (b"ap\x00", b"ap\x1b" + bytes(8)),
        (b"at\xf6", b"at\xf7"),
        (b"at\xf6", b"at\xf4"),
        (b"av\xd8\x2a\x58\x25\x00", b"av\xd8\x2a\x58\x25\x01"),
        (b"av\xd8\x2a\x58\x25\x00", b"av\xd9\x00\x2a\x58\x25\x00"),
        (b"av\xd8\x2a\x58\x25\x00", b"av\xd8\x2a\x59\x00\x25\x00"),
        (b"al\xd8\x2a", b"al\xd8\x2b"),
    ],
)
def test_a_node_has_one_form(good: bytes, bad: bytes) -> None:
    assert read_node(PLAIN).left == Cid.of(b"left")
    assert PLAIN.count(good) == 1

    with pytest.raises(RepoError, match="no MST node"):
        read_node(PLAIN.replace(good, bad))


def node_of(*stored: tuple[int, bytes]) -> bytes:
    """A node of these prefixes and suffixes, true or not."""
    entries: list[cbor.Value] = [{"k": suffix, "p": prefix, "t": None, "v": RECORD} for prefix, suffix in stored]
    return cbor.encode({"e": entries, "l": None})


def test_a_prefix_may_be_shorter_than_it_could_be() -> None:
    block = node_of((0, b"a/aa"), (1, b"/ab"), (0, b"a/ac"))

    assert [key for key, _ in keys_below(Cid.of(block), {Cid.of(block): block})] == [b"a/aa", b"a/ab", b"a/ac"]


@pytest.mark.parametrize("size", [0, 1, 23, 24, 255, 256, LONGEST_KEY])
def test_keys_of_every_length(size: int) -> None:
    assert read_node(node_of((0, b"k" * size))).entries[0][1] == b"k" * size


def test_long_keys_that_are_repeated_cost_no_memory() -> None:
    """Two megabytes of entries that each say "a thousand bytes of the one before, and one more"."""
    with pytest.raises(RepoError, match="a key of 1025 bytes"):
        read_node(node_of((0, b"k" * LONGEST_KEY), (LONGEST_KEY, b"x")))


@pytest.mark.parametrize("depth", [1, 5, 128])
def test_depth_is_counted_from_the_root(depth: int) -> None:
    blocks = [write_node(None, [(b"a/b", RECORD, None)])]
    while len(blocks) < depth:
        blocks.append(write_node(Cid.of(blocks[-1]), []))
    nodes = {Cid.of(block): block for block in blocks}
    root = Cid.of(blocks[-1])

    assert keys_below(root, nodes, Limits(depth=depth)) == [(b"a/b", RECORD)]
    if depth > 1:
        with pytest.raises(RepoError, match=f"mst_depth at byte 0: a tree of more than {depth - 1} levels"):
            keys_below(root, nodes, Limits(depth=depth - 1))
