"""A batch as a library reads it."""

import json
import sys

import pytest

from sanderling.events.batches import read_batch

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

POST = {"meta": {"id": "1", "platform": "TIKTOK", "fetch_status": "success"}, "content": {"text": "tide"}}
FAILED = {"meta": {"id": "2", "fetch_status": "error", "error_code": "TIMEOUT"}}


@pytest.mark.parametrize("pack", [bytes, zstd.compress])
def test_every_item_is_a_post_or_an_error(pack: type[bytes]) -> None:
    posts, errors = read_batch(pack(json.dumps([POST, FAILED, 7]).encode()), platform="youtube")

    assert [(post.id, post.platform, post.text) for post in posts] == [("1", "tiktok", "tide")]
    first, second = errors
    assert (first.code, first.platform, second.content_id != "") == ("TIMEOUT", "youtube", True)


def test_what_is_no_batch_is_said_with_its_name() -> None:
    with pytest.raises(ValueError, match=r"batch_7\.json"):
        read_batch(b"\x00\x01", name="batch_7.json")
