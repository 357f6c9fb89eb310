"""What a crawl of repos reports, from its status."""

from typing import Any

import pytest

from sanderling.observe.report import Progress
from sanderling.repos.report import report
from sanderling.repos.status import RepoStatus


def status(**changes: Any) -> RepoStatus:  # noqa: ANN401 - fields of the status
    """A crawl that has settled 10 of the 110 DIDs that were left, in 100 seconds."""
    fields: dict[str, Any] = {
        "seconds": 100.0,
        "ended": {"archived": 8, "not_found": 2, "timeout": 5},
        **dict.fromkeys(("records", "bytes_read", "bytes_written", "segment", "segment_bytes"), 0),
        "waiting": 100,
        "inflight": 3,
        "known": 150,
        "before": 40,
        "hosts_known": 0,
        "hosts_blocked": 0,
        "hosts": (),
        "pid": 7,
        "wall": 1100.0,
    }
    return RepoStatus(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, 1000.0),  # 100 DIDs, a tenth of one a second
        ({"seconds": 0.0}, None),
        ({"ended": {"timeout": 5}}, None),  # nothing was settled
        ({"before": 140}, 0.0),
    ],
)
def test_the_time_left_is_what_is_not_settled_at_the_pace_of_the_run(
    changes: dict[str, Any], left: float | None
) -> None:
    made = report(status(**changes))

    assert made.time_left == made.facts.eta == left


def test_how_far_it_is_and_how_repos_ended() -> None:
    made = report(status())

    assert made.progress == Progress(done=50, whole=150, what="DIDs")
    assert (made.process.pid, made.process.started, made.process.seconds) == (7, 1000.0, 100.0)
    assert made.doing == "archiving from 0 hosts; 100 repos left"
    assert dict(made.lines)["ended"] == "8 archived, 5 timeout, 2 not_found"
