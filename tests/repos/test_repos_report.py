"""What a crawl of repos reports."""

from known_reports import REPOS

from sanderling.observe.report import HostCondition, Progress


def test_how_far_it_is_and_how_repos_ended() -> None:
    assert REPOS.progress == Progress(done=550, whole=1000, what="DIDs")
    assert REPOS.time_left == REPOS.facts.eta == 100.0
    assert (REPOS.work.kept, REPOS.work.failed, REPOS.counters) == (400, 10, {"archived": 400})
    assert REPOS.doing == "archiving from 1 host; 450 repos left"
    assert dict(REPOS.lines)["ended"] == "400 archived, 50 not_found, 10 timeout"
    assert REPOS.hosts[0].state is HostCondition.SET_ASIDE
