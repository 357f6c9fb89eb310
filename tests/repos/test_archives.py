"""A segment is read past what is wrong with it, and whatever is wrong is said with its place."""

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_archives import THREE, Heard, Small, flip, offset_of, write

from sanderling.formats.rca import FOOTER, HEADER, Footer, Header, RcaError
from sanderling.repos.archives import Archive, archives_in
from sanderling.stores.durable import FolderError

DIDS = ["did:plc:ccc", "did:plc:aaa", "did:plc:bbb"]


def read(path: Path) -> tuple[list[str], Heard, int]:
    """DIDs of all sound blocks, what was wrong, and the bytes of a torn end; blocks and heads must agree."""
    heard, again = Heard(), Heard()
    with Archive(path, heard) as archive:
        blocks = [block.did for block in archive.blocks()]
        torn = archive.torn
    with Archive(path, again) as archive:
        assert [head.did for head in archive.heads(check=True)] == blocks
    assert again.places == heard.places
    return blocks, heard, torn


@pytest.mark.parametrize("finalise", [True, False])
def test_blocks_come_in_the_order_of_the_file(tmp_path: Path, finalise: bool) -> None:  # noqa: FBT001 - a case
    path = write(tmp_path / "segment_0001.rca", finalise=finalise)

    assert read(path) == (DIDS, [], 0)


def test_heads_say_what_the_blocks_say(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")

    with Archive(path, Heard()) as archive:
        blocks, heads = list(archive.blocks()), list(archive.heads(check=False))
        assert [archive.head_of(block) for block in blocks] == heads

    assert [(head.did, head.pds, head.rev, head.crawled_at, head.toc) for head in heads] == [
        (block.did, block.pds, block.rev, block.crawled_at, block.toc) for block in blocks
    ]
    assert [head.records for head in heads] == [2, 2, 3]


def test_a_head_may_be_longer_than_what_is_read_at_first(tmp_path: Path) -> None:
    many = Small("did:plc:many", {f"a.{number:04}.{'x' * 60}": {"k": b"{}"} for number in range(2000)})
    path = write(tmp_path / "segment_0001.rca", [many])

    with Archive(path, Heard()) as archive:
        (head,) = archive.heads(check=True)

    assert head.records == 2000


@pytest.mark.parametrize("at", [0, 5, 60, -1], ids=["its size", "its DID", "its contents", "its last byte"])
@pytest.mark.parametrize("number", range(3))
def test_a_bad_block_is_reported_and_the_others_are_read(tmp_path: Path, number: int, at: int) -> None:
    path, bad = write(tmp_path / "segment_0001.rca"), THREE[number]
    offset = offset_of(path, bad)
    flip(path, offset + at % len(bad.block()))

    blocks, heard, torn = read(path)

    assert blocks == [did for did in DIDS if did != bad.did]
    assert heard.places == [("segment_0001.rca", offset)]
    assert torn == 0


def test_without_an_index_a_bad_block_is_passed_by_if_a_sound_one_follows(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca.part", finalise=False)
    offset = offset_of(path, THREE[1])
    flip(path, offset + len(THREE[1].block()) - 1)

    blocks, heard, torn = read(path)

    assert blocks == ["did:plc:ccc", "did:plc:bbb"]
    assert heard.places == [(path.name, offset)]
    assert torn == 0


@given(cut=st.integers(1, len(THREE[2].block()) - 1))
def test_a_torn_end_is_no_fault(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = write(tmp_path_factory.mktemp("torn") / "segment_0001.rca.part", finalise=False)
    path.write_bytes(path.read_bytes()[:-cut])

    assert read(path) == (DIDS[:2], [], len(THREE[2].block()) - cut)


@pytest.mark.parametrize("at", [-1, -FOOTER.size, -FOOTER.size - 3], ids=["magic", "footer", "index"])
def test_with_a_damaged_index_all_blocks_are_still_read(tmp_path: Path, at: int) -> None:
    path = write(tmp_path / "segment_0001.rca")
    flip(path, path.stat().st_size + at)

    blocks, heard, torn = read(path)

    assert blocks == DIDS
    assert len(heard) == 1
    assert torn == 0


def test_a_block_of_another_did_than_the_index_says_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")
    data = path.read_bytes()
    start, end = Header.decode(data[: HEADER.size]).index_offset, len(data) - FOOTER.size
    index = data[start:end].replace(b"did:plc:aaa", b"did:plc:aab")
    footer = Footer.decode(data[end:], end)._replace(crc=zlib.crc32(index))
    path.write_bytes(data[:start] + index + footer.encode())

    blocks, heard, _ = read(path)

    assert blocks == ["did:plc:ccc", "did:plc:bbb"]
    assert heard.places == [("segment_0001.rca", offset_of(path, THREE[1]))]


def test_a_finalised_segment_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")
    last = offset_of(path, THREE[2])
    path.write_bytes(path.read_bytes()[: last + 10])

    blocks, heard, torn = read(path)

    assert blocks == DIDS[:2]
    assert heard.places == [(path.name, 24), (path.name, last)], "its index, and its last block"
    assert torn == 0


@pytest.mark.parametrize("content", [b"", b"REPOARCH", b"x" * 200])
def test_what_is_no_archive_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "segment_0001.rca").write_bytes(content)

    with pytest.raises(RcaError):
        Archive(tmp_path / "segment_0001.rca", Heard())


@given(st.data())
def test_no_damage_makes_it_crash_or_give_a_wrong_repo(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = write(tmp_path_factory.mktemp("damaged") / "segment_0001.rca", finalise=data.draw(st.booleans()))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(HEADER.size, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(HEADER.size, len(whole)))])

    with Archive(path, Heard()) as archive:
        for block in archive.blocks():
            try:
                found = {entry.name: content for entry, _, content in block.contents(lambda _: True)}
            except RcaError:
                continue
            sound = {repo.did: repo for repo in THREE}.get(block.did)
            # Of what has no index, nothing sums up the DID.
            assert sound is None or set(found) == set(sound.records)


@pytest.mark.parametrize("finalise", [True, False])
def test_of_two_blocks_of_a_did_the_last_is_found(tmp_path: Path, finalise: bool) -> None:  # noqa: FBT001 - a case
    old, new = (Small("did:plc:a", {"a.b": {"k": b"{}"}}, crawled_at) for crawled_at in (1, 2))
    path = write(tmp_path / "segment_0001.rca", [old, THREE[0], new], finalise=finalise)

    with Archive(path, Heard()) as archive:
        block, none = archive.find("did:plc:a"), archive.find("did:plc:nobody")

    assert block is not None
    assert block.crawled_at == 2
    assert none is None


def test_segments_come_by_number_and_what_is_no_archive_is_left_alone(tmp_path: Path) -> None:
    names = [
        "segment_10000.rca",
        "segment_9999.rca",
        "segment_0002.rca",
        "segment_0003.rca.part",
        "export.rca",
        "lock",
        "synced",
    ]
    for name in names:
        (tmp_path / name).touch()

    found = [path.name for path in archives_in([tmp_path])]

    assert found == [
        "export.rca",
        "segment_0002.rca",
        "segment_0003.rca.part",
        "segment_9999.rca",
        "segment_10000.rca",
    ]


def test_what_is_given_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")

    assert archives_in([tmp_path, path, path]) == [path]


@pytest.mark.parametrize(("place", "says"), [("gone", "there is no "), ("empty", "holds no .rca")])
def test_a_folder_without_archives_is_said_to_be_one(tmp_path: Path, place: str, says: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(FolderError, match=says):
        archives_in([tmp_path / place])
