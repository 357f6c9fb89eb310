import struct
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pds_world import archived

from sanderling.formats.rca import (
    HEADER,
    BlockError,
    RcaError,
    RcaHeader,
    RcaReader,
    encode_block,
    encode_index,
    index_entry,
)
from sanderling.formats.repo import RepoCollection

Repo = tuple[str, str, str, int, dict[str, list[tuple[str, bytes]]]]
texts = st.text("abc:./é", max_size=9)
repos = st.tuples(
    texts.map("did:{}".format), texts, texts, st.integers(0, 2**63 - 1),
    st.dictionaries(texts, st.lists(st.tuples(texts, st.binary(max_size=40)), max_size=4), max_size=3),
)  # fmt: skip


def packed(records: list[tuple[str, bytes]]) -> bytes:
    parts = (
        struct.pack("<H", len(rkey.encode())) + rkey.encode() + struct.pack("<I", len(json)) + json
        for rkey, json in records
    )
    return b"".join(parts)


def block_of(repo: Repo, level: int = 3) -> bytes:
    did, pds, rev, crawled_at, collections = repo
    given = [RepoCollection(name, len(each), packed(each)) for name, each in collections.items()]
    return encode_block(did, pds, rev, crawled_at, given, level)


def write(path: Path, repos: list[Repo], *, finish: bool = True) -> Path:
    """A segment of these repos."""
    blocks = [block_of(repo) for repo in repos]
    entries, at = [], HEADER.size
    for block in blocks:
        entries.append(index_entry(block, at))
        at += len(block)
    header = RcaHeader(1_700_000_000_000_000, len(blocks), at) if finish else RcaHeader(1_700_000_000_000_000)
    path.write_bytes(header.encode() + b"".join(blocks) + (encode_index(entries, at) if finish else b""))
    return path


def read(path: Path) -> list[Repo]:
    with RcaReader(path) as reader:
        return [as_repo(block) for block in reader]


def as_repo(block: Any) -> Repo:
    collections: dict[str, list[tuple[str, bytes]]] = {}
    for name, rkey, json in block.records():
        collections.setdefault(name, []).append((rkey, json))
    return (block.did, block.pds, block.rev, block.crawled_at, collections)


def some_repos(count: int) -> list[Repo]:
    rng = Random(1)
    names = [f"did:plc:{number:024}" for number in range(count)]
    rng.shuffle(names)
    return [(name, "https://pds.example", "3k", 5, {"a.b": [("r", b"{}"), ("s", rng.randbytes(9))]}) for name in names]


@settings(max_examples=40)
@given(st.lists(repos, max_size=6), st.booleans())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, given: list[Repo], finish: bool) -> None:
    path = write(tmp_path_factory.mktemp("rca") / "x.rca", given, finish=finish)

    expected = [(*repo[:4], {name: repo[4][name] for name in sorted(repo[4]) if repo[4][name]}) for repo in given]
    assert read(path) == expected
    with RcaReader(path) as reader:
        assert reader.finished == finish
        for did in {repo[0] for repo in expected}:
            found = reader.find(did)
            assert found is not None
            assert as_repo(found) == [repo for repo in expected if repo[0] == did][-1]
        assert reader.find("did:none") is None
        if finish:
            assert reader.verify() == reader.header.repos == len(expected)


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    """By the seed's tables, number by number."""
    path = write(tmp_path / "x.rca", [("did:plc:empty", "https://pds.example.com", "", 7, {})])

    block = struct.pack("<IH13sH23sHqHI", 60, 13, b"did:plc:empty", 23, b"https://pds.example.com", 0, 7, 0, 0)
    index = struct.pack("<IH13sqII", 1, 13, b"did:plc:empty", 64, 60, 0x8D0E5A7C)
    data = path.read_bytes()
    assert data[:64] == struct.pack("<8sHHqIq32s", b"REPOARCH", 1, 0, 1_700_000_000_000_000, 1, 124, bytes(32))
    assert data[64:124] == block
    assert (data[124:143], data[143:155]) == (index[:19], index[19:31])
    assert data[-32:-12] == struct.pack("<qII", 124, 35, 1) + data[-16:-12]
    assert data[-12:] == bytes(4) + b"REPOARCH"


@pytest.mark.parametrize("level", [1, 3, 19])
def test_an_independent_reader_agrees(tmp_path: Path, level: int) -> None:
    """Written from the format's description only."""
    records = {"z": [("1", b"1")], "a": [("1", b'{"x":1}' * 200)], "none": []}
    block = block_of(("did:plc:a", "https://b", "3k", 1, records), level)
    index = encode_index([index_entry(block, 64)], 64 + len(block))
    (tmp_path / "segment_0002.rca").write_bytes(RcaHeader(5, 1, 64 + len(block)).encode() + block + index)
    given = some_repos(5)
    write(tmp_path / "segment_0001.rca", given)

    assert archived(tmp_path) == {"did:plc:a": [2]} | {repo[0]: [2] for repo in given}
    assert read(tmp_path / "segment_0001.rca") == given


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "x.rca", some_repos(2))
    data = path.read_bytes()
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        path.write_bytes(broken)
        if 12 <= at < 20:  # the time of creation has no checksum
            continue
        with pytest.raises(RcaError) as caught, RcaReader(path) as reader:
            reader.verify()
        assert str(caught.value).startswith(f"{path}: byte {caught.value.offset}: ")
        if 64 <= at < reader_start(data):
            assert "did:plc:" in str(caught.value)


def test_an_index_that_is_not_the_blocks_is_refused(tmp_path: Path) -> None:
    given = some_repos(3)
    blocks = sorted(map(block_of, given), key=lambda block: block[6:40])
    sizes = [len(block) for block in blocks]
    places = [64, 64 + sizes[0], 64 + sizes[0] + sizes[1]]
    entries = [index_entry(block, place) for block, place in zip(blocks, places, strict=True)]
    end = 64 + sum(sizes)
    path = tmp_path / "x.rca"

    def refuses(entries: list[bytes], found: str, repos: int = 3) -> None:
        index = struct.pack("<I", repos) + b"".join(entries)
        footer = struct.pack("<qIIII8s", end, len(index), repos, zlib.crc32(index), 0, b"REPOARCH")
        path.write_bytes(RcaHeader(5, repos, end).encode() + b"".join(blocks) + index + footer)
        with pytest.raises(RcaError, match=found), RcaReader(path) as reader:
            reader.verify()

    refuses([entries[1], entries[0], entries[2]], "out of order")
    refuses(entries[:2], "3 repos, and an index of 2")
    refuses(entries[:2], "not in the index", repos=2)
    refuses([entries[0], entries[0], *entries[1:]], "is there twice", repos=4)
    refuses([*entries[:2], entries[2] + b"x"], "goes beyond the index")
    refuses([entries[0], entries[1], index_entry(blocks[2], places[1])], "is there twice")
    renamed = entries[0].replace(b"did:plc:", b"did:plb:")
    refuses([renamed, *entries[1:]], "a block of did:plc:0*, expected did:plb:")


def test_several_repos_of_one_did_in_any_order(tmp_path: Path) -> None:
    """As the seed's writer leaves them."""
    block = block_of(("did:plc:a", "p", "r", 1, {}))
    entries = [index_entry(block, 64 + len(block)), index_entry(block, 64)]
    index = struct.pack("<I", 2) + b"".join(entries)
    end = 64 + 2 * len(block)
    footer = struct.pack("<qIIII8s", end, len(index), 2, zlib.crc32(index), 0, b"REPOARCH")
    path = tmp_path / "x.rca"
    path.write_bytes(RcaHeader(5, 2, end).encode() + 2 * block + index + footer)

    with RcaReader(path) as reader:
        assert reader.verify() == 2
        assert list(reader.places()) == [("did:plc:a", 64, len(block)), ("did:plc:a", 64 + len(block), len(block))]
        with pytest.raises(RcaError, match="no block begins here"):
            reader.block_at(65)


def reader_start(data: bytes) -> int:
    return int.from_bytes(data[24:32], "little")


def test_every_cut_is_refused_or_a_torn_end(tmp_path: Path) -> None:
    given = some_repos(3)
    path = write(tmp_path / "x.rca", given)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(RcaError), RcaReader(path) as reader:
            reader.verify()
    path = write(path, given, finish=False)
    whole = path.read_bytes()
    for size in range(HEADER.size, len(whole)):
        path.write_bytes(whole[:size])
        assert read(path) == given[: len(read(path))]


@pytest.mark.parametrize(
    ("at", "form", "value", "found"),
    [
        (0, "<8s", b"RIFF----", "no .rca file"),
        (8, "<H", 2, ".rca version 2, expected 1"),
        (10, "<H", 1, "reserved bytes"),
        (40, "<B", 1, "reserved bytes"),
        (20, "<I", 9, "a footer with"),
        (24, "<q", 63, "expected both or neither"),
        (24, "<q", 2**40, "an index at"),
        (24, "<q", -5, "expected both or neither"),
        (-8, "<8s", b"REPOARCX", "a footer with"),
        (-32, "<q", 3, "a footer with"),
        (64, "<I", 2**32 - 1, "CRC"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, at: int, form: str, value: Any, found: str) -> None:
    path = write(tmp_path / "x.rca", some_repos(2))
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, at % len(data), value)
    path.write_bytes(data)

    with pytest.raises(RcaError, match=found), RcaReader(path) as reader:
        reader.verify()


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (b"no zstd", "no zstd frame"),
        (b"", "ends early or late"),
        (None, "1 records|early or late"),
    ],
)
def test_right_checksums_over_wrong_contents(tmp_path: Path, frame: bytes | None, found: str) -> None:
    good = block_of(("did:a", "p", "r", 1, {"c": [("k", b"{}")]}))
    toc = struct.pack("<H1sII", 1, b"c", 1, 0)
    body = good[good.index(toc[:3]) :]
    content = body[len(toc) :]
    wrong = content + content if frame is None else frame
    body = struct.pack("<H1sII", 1, b"c", 1, len(wrong)) + wrong
    head = good[4 : good.index(toc[:3]) - 4]
    block = struct.pack("<I", 4 + len(head) + 4 + len(body)) + head + struct.pack("<I", zlib.crc32(body)) + body
    path = tmp_path / "x.rca"
    path.write_bytes(
        RcaHeader(5, 1, 64 + len(block)).encode() + block + encode_index([index_entry(block, 64)], 64 + len(block))
    )

    with pytest.raises(RcaError, match=found), RcaReader(path) as reader:
        reader.verify()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"did": "d" * 65536}, "DID of 65536 bytes"),
        ({"level": 20}, "zstd level 20"),
        ({"level": 0}, "zstd level 0"),
        ({"crawled_at": -1}, "time -1"),
        ({"crawled_at": 2**63}, "time 9223372036854775808"),
        ({"collections": [RepoCollection("a", 1, b""), RepoCollection("a", 1, b"")]}, "'a' twice"),
        ({"collections": [RepoCollection("a" * 65536, 1, b"")]}, "collection of 65536 bytes"),
        ({"collections": [RepoCollection(str(number), 1, b"") for number in range(65536)]}, "65536 collections"),
    ],
)
def test_what_has_no_room_in_a_block(change: dict[str, Any], found: str) -> None:
    usual: dict[str, Any] = {"did": "did:a", "pds": "p", "rev": "r", "crawled_at": 1, "collections": []}
    with pytest.raises(BlockError, match=found):
        encode_block(**(usual | change))
