"""What `sanderling fleet status` says in words."""

import pytest

from sanderling.cli.fleet.commands import _words


@pytest.mark.parametrize(
    ("pages", "waiting", "said"),
    [(1, 1, "sky: 1 page, 1 URL waits; done"), (2_000, 0, "sky: 2,000 pages, 0 URLs wait; done")],
)
def test_one_is_not_many(pages: int, waiting: int, said: str) -> None:
    found = {"name": "sky", "system": "pages", "done": True, "parts": 8, "busy": 0, "workers": []}

    assert _words({**found, "pages": pages, "waiting": waiting}) == [said, "nobody works on it"]
