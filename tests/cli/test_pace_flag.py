"""--pace: which law moves the pace of hosts, from the command line to the limiter and back to whoever looks."""

from pathlib import Path

import pytest
from command_line import QUICK, called, commands, here, page, paths, run, site
from known_reports import SEQUENCE, published, sequence, standing
from scripted_server import ScriptedServer, answer

from sanderling.cli.repos.flags import RepoNetwork
from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.clock import SystemClock
from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules
from sanderling.testing import FakeClock


def test_a_crawl_is_paced_by_what_was_asked_for_and_says_so(tmp_path: Path) -> None:
    out = str(tmp_path / "out")

    async def main() -> None:
        async with ScriptedServer(site(3)) as server:
            flags = ("--pace", "aimd", "--max-pages", "2", *QUICK)
            done = await here("pages", "crawl", server.url(), "--out", out, *flags)
            assert done.code == 0, done.err
            (again,) = (each for each in commands(done.out) if "--resume" in each)
            assert again[again.index("--pace") + 1] == "aimd"
            status = published(tmp_path / "out")
            assert status is not None
            assert status.pace == "aimd"
            assert ", paced by aimd" in status.doing
            assert ", paced by aimd" in called("status", out).out
            assert "Paced by aimd." in called("why", server.url(), "--out", out).out

            resumed = await here("pages", "crawl", "--resume", "--out", out, *QUICK)
            assert resumed.code == 0, resumed.err
            last = published(tmp_path / "out")
            assert last is not None
            assert last.pace == "governor"
            assert paths(tmp_path / "out") == ["/", "/0", "/1", "/2"]
            assert "aced by" not in called("status", out).out + called("why", server.url(), "--out", out).out

    run(main)


def test_what_failed_is_asked_again_by_that_law_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer({"/": [page("/gone")], "/gone": [answer(410), page()]}) as server:
            await here("pages", "crawl", server.url(), "--out", str(tmp_path / "out"), *QUICK)
            flags = ("--retry", "--private", "--pace", "aimd")
            done = await here("pages", "failed", str(tmp_path / "out"), *flags)
            assert done.code == 0, done.err
            status = published(tmp_path / "out")
            assert status is not None
            assert status.pace == "aimd"

    run(main)


@pytest.mark.parametrize("law", ["governor", "aimd"])
def test_sequence_and_repos_have_it_too(law: str) -> None:
    limiters = [SequenceUpstream(pace=law).limiter(SystemClock()), RepoNetwork(pace=law).limiter(SystemClock())]  # type: ignore[arg-type]

    assert [limiter.rules.strategy for limiter in limiters] == [law, law]


def test_a_report_names_the_law_that_is_not_the_usual_one() -> None:
    assert "paced by" not in SEQUENCE.doing
    assert sequence(standing(pace="aimd")).doing.endswith(", paced by aimd")


@pytest.mark.parametrize("command", [("pages", "crawl", "--out", "x"), ("repos", "crawl"), ("sequence", "crawl")])
def test_any_other_law_is_refused_with_those_there_are(command: tuple[str, ...]) -> None:
    done = called(*command, "--pace", "contract")

    assert done.code == 2
    assert "--pace" in done.err
    assert "governor" in done.err
    assert "aimd" in done.err


@pytest.mark.parametrize("command", [("polling", "run"), ("fetch",), ("repos", "directory")])
def test_what_is_planned_or_asked_once_has_no_such_choice(command: tuple[str, ...]) -> None:
    done = called(*command, "--pace", "aimd")

    assert done.code == 2
    assert "--pace" in done.err


def test_what_one_law_has_learned_the_other_can_take_up() -> None:
    def made(strategy: str) -> Limiter:
        rules = LimiterRules(pace=PaceRules(initial_rps=4, max_rps=50), strategy=strategy)  # type: ignore[arg-type]
        return Limiter(rules, clock=FakeClock(0.0))

    for before, after in (("governor", "aimd"), ("aimd", "governor")):
        first, second = made(before), made(after)
        permit = first.try_acquire("a.example")
        assert permit is not None
        first.feedback(permit, Feedback(429, 0.1, retry_after=60))
        second.restore(first.save())
        assert second.ready_at("a.example") == pytest.approx(60, abs=1)
