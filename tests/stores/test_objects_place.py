import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores.objects import EXPECTED_PLACE, ObjectError, ObjectFault, open_objects, read_place


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("s3://bucket", ("s3:", "bucket", "")),
        ("s3://bucket/", ("s3:", "bucket", "")),
        ("s3://bucket/a/b/", ("s3:", "bucket", "a/b")),
        ("s3://my.bucket/a%20b/%C3%A9%40", ("s3:", "my.bucket", "a b/\u00e9@")),
        ("s3+http://me:hidden@host:9000/bucket", ("s3+http://me:hidden@host:9000", "bucket", "")),
        ("s3+http://me:hid%2Fden@host:9000/bucket/a/b", ("s3+http://me:hid%2Fden@host:9000", "bucket", "a/b")),
        ("s3+https://[::1]/bucket/a", ("s3+https://[::1]", "bucket", "a")),
        ("file:/folder", ("file:/folder", "objects", "")),
        ("file:///folder/in", ("file:///folder/in", "objects", "")),
        ("file:folder", ("file:folder", "objects", "")),
    ],
)
def test_an_address_has_a_store_a_bucket_and_a_prefix(address: str, expected: tuple[str, str, str]) -> None:
    assert read_place(address) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", "names no bucket"),
        ("hidden", "names no bucket"),
        ("file:", "names no bucket"),
        ("file://", "names no bucket"),
        ("redis://u:hidden@host/0", "names no bucket"),
        ("http://u:hidden@host/bucket", "names no bucket"),
        ("s3:hidden", "names no bucket"),
        ("s3:///hidden", "names no bucket"),
        ("s3+http:///hidden", "names no bucket"),
        ("s3+http://u:hidden@host", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/é", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/bucket/a//b", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/bucket/../b", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/bucket/%2e%2e/b", "has a bucket or a prefix that cannot exist"),
        ("s3+http://u:hidden@host/bucket/%00", "has a bucket or a prefix that cannot exist"),
        ("s3://bucket:99/a", "has a bucket or a prefix that cannot exist"),
        ("s3://u:hidden@bucket/a", "@ behind its host"),
        ("s3+http://u:1/hidden@host/bucket", "@ behind its host"),
        ("s3+http://u:1/hidden/x@host/bucket", "@ behind its host"),
        ("s3+http://u:1?hidden@host/bucket", "@ behind its host|cannot exist"),
        ("s3+http://u:hidden@host/bucket#hidden", "behind its host"),
        ("s3+http://[hidden/bucket", "is no URL"),
    ],
)
def test_what_is_no_address_is_refused_and_not_quoted(address: str, expected: str) -> None:
    with pytest.raises(
        ObjectError, match=rf"^the address of the objects .*({expected}).*; expected s3://bu"
    ) as refused:
        read_place(address)
    assert refused.value.fault is ObjectFault.UNUSABLE
    assert str(refused.value).endswith(EXPECTED_PLACE)
    assert "hidden" not in str(refused.value)


@given(
    bucket=st.from_regex(r"[a-z0-9][a-z0-9.-]{0,62}", fullmatch=True),
    steps=st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\\/"), min_size=1)),
)
def test_any_prefix_comes_back_from_an_address(bucket: str, steps: list[str]) -> None:
    prefix = "/".join(step + "_" for step in steps)[:200].rstrip("/")
    for start, url in (("s3://", "s3:"), ("s3+https://u:hidden@host/", "s3+https://u:hidden@host")):
        assert read_place(f"{start}{bucket}/{quote(prefix)}") == (url, bucket, prefix)


def test_what_is_read_is_what_opens(tmp_path: Path) -> None:
    for address in (f"file:{tmp_path}", "s3+http://u:hidden@127.0.0.1:9000/bucket/a", "s3://bucket"):
        objects = open_objects(read_place(address)[0], {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hidden"})
        assert "hidden" not in repr(objects)
        asyncio.run(objects.close())
