"""WARC records come out as they went in, and a file that is cut or is none says so."""

import gzip
import zlib
from pathlib import Path

import pytest

from sanderling.formats.cdxj import CdxEntry, cdx_line, find_captures, surt
from sanderling.formats.warc import WarcError, make_record, read_message, read_records

DAY = "2026-01-02T03:04:05Z"
URI = [("WARC-Target-URI", "http://a.example/")]
TWO = [make_record("response", DAY, b"HTTP/1.1 200 OK\r\n\r\nfirst", URI), make_record("metadata", DAY, b"", URI)]


@pytest.mark.parametrize("packed", [True, False])
def test_records_come_out_as_they_went_in(tmp_path: Path, *, packed: bool) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(TWO if packed else (zlib.decompress(each, 31) for each in TWO)))

    first, second = read_records(path)

    assert (first.kind, first.url, first.block) == ("response", "http://a.example/", b"HTTP/1.1 200 OK\r\n\r\nfirst")
    assert (second.offset, second.end) == (first.end, path.stat().st_size)


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_cut_anywhere_says_so_unless_it_is_cut_between_two(tmp_path: Path, *, packed: bool) -> None:
    whole = TWO if packed else [zlib.decompress(each, 31) for each in TWO]
    data, path, silent = b"".join(whole), tmp_path / "x.warc", []

    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        try:
            list(read_records(path))
            silent.append(size)
        except WarcError:
            pass

    assert silent == [len(whole[0])]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no WARC at all\r\n\r\n", "has no WARC record at byte 0"),
        (b"1\n2\n" * 9000, r"has no WARC record at byte 0: found .*, expected WARC/1\.0"),
        (gzip.compress(b"".join(zlib.decompress(each, 31) for each in TWO)), "expected a member for each"),
        (TWO[0][:40] + b"\0" * 20 + TWO[0][60:], "is damaged at byte 0"),
        (b"WARC/1.1\r\nContent-Length: many\r\n\r\n", "Content-Length 'many'"),
        (b"WARC/1.1\r\n" + b"x" * (2 << 20), "is cut"),
    ],
)
def test_what_is_no_warc_is_refused_with_its_place(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "x.warc").write_bytes(data)

    with pytest.raises(WarcError, match=said):
        list(read_records(tmp_path / "x.warc"))


def test_what_is_no_message_in_chunks_is_left_as_it_is() -> None:
    body = read_message(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot in chunks").body

    assert body == b"not in chunks"
    assert read_message(b"").status == 0


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://EXAMPLE.com/Path/To/?b=2&a=1", "com,example)/path/to?a=1&b=2"),
        ("http://www2.example.com:8080/x/", "com,example:8080)/x"),
        ("http://example.com/x?sid=0123456789abcdef0123456789abcdef&z=1", "com,example)/x?z=1"),
        ("http://127.0.0.1:8000/a/b", "1,0,0,127:8000)/a/b"),
        ("http://example.com/%7Euser/ä", "com,example)/~user/%c3%a4"),
        ("http://example.com/a/../b//c?q2=1&q=a+b", "com,example)/b/c?q=a+b&q2=1"),
        ("http://example.com/(a(4hqa0555fwsecu455xqckv45))/mileg.aspx", "com,example)/mileg.aspx"),
    ],
)
def test_keys_are_those_of_replay_software(url: str, key: str) -> None:
    assert surt(url) == key


def test_every_line_of_an_index_is_found_by_halving(tmp_path: Path) -> None:
    urls = [f"http://a.example/{number:b}" for number in range(40)]
    written = sorted(cdx_line(DAY, CdxEntry(url, "text/html", "200", "sha1:X", "1", "2", "f")) for url in urls)
    (tmp_path / "x.cdxj").write_bytes(b"".join(written))

    assert [[entry.url for _, entry in find_captures(tmp_path / "x.cdxj", url)] for url in urls] == [[u] for u in urls]
    assert list(find_captures(tmp_path / "x.cdxj", "http://a.example/none")) == []
    assert next(find_captures(tmp_path / "x.cdxj", urls[0]))[0] == DAY
