"""Where the objects of a fleet are, however it is spelled."""

import pytest

from sanderling.cli.fleet.flags import place_of


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3+http://KEY:SECRET@10.0.0.1:9000/rows/below", "s3+http://10.0.0.1:9000/rows/below"),
        ("s3+http://sanderling@10.0.0.1:9000/rows", "s3+http://10.0.0.1:9000/rows"),
        ("s3+https://KEY:SE/CR@ET@s3.example/rows?x=1", "s3+https://s3.example/rows"),
        ("s3://rows/below", "s3://rows/below"),
        ("file:/folder", "file:/folder"),
    ],
)
def test_a_place_is_the_same_whoever_comes(url: str, place: str) -> None:
    assert (place_of(url), place_of(place)) == (place, place)
