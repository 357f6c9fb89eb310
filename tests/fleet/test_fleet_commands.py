"""What is done to a shared crawl on purpose: workers that are asked to end, other crawls of its name, commands."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_machines import NAME, run
from fleet_oracle import asked_again, read_rows, taken_over
from fleet_postgres import postgres_of_our_own
from fleet_scene import LEASE, TURN, Scene, scene, small_web, soak
from services.process import private_folder

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path, small_web()) as made:
        yield made


@soak
def test_a_worker_that_is_asked_to_end_gives_its_hosts_back_at_once(fleet: Scene) -> None:
    first, *others = fleet.start("a", "b")
    fleet.wait_for(first, *others)
    first.signal(signal.SIGTERM)
    assert first.wait() in {0, 3, 130}
    ended = time.monotonic()

    log = fleet.finish(codes=(0, 3, 130))

    fleet.check(log, silence=TURN)
    assert max(taken_over(log, first.name, ended).values()) < 2 * LEASE
    assert asked_again(log) == {}


def test_another_crawl_of_the_same_name_is_refused_and_says_what_differs(fleet: Scene) -> None:
    fleet.wait_for(*fleet.start("a"))
    other = [fleet.hosts.web.url(0, "/tree/5")]

    strangers = {
        "depth": fleet.crawl.start("x", *fleet.shared, "--depth", "3"),
        "keep": fleet.crawl.start("y", *fleet.shared, "--keep", "html"),
        "seeds": fleet.crawl.start("z", *fleet.shared, seeds=other),
    }

    for what, stranger in strangers.items():
        assert stranger.wait() == 2, stranger.said()
        assert what in stranger.said()
        assert fleet.hosts.asked_by(stranger.name) == 0


@soak
@pytest.mark.parametrize("other", ['{"format": 999}', '{"ledger": "999"}'])
def test_a_crawl_that_another_release_began_with_other_formats_is_refused(fleet: Scene, other: str) -> None:
    first, *_ = fleet.start("a")
    fleet.wait_for(first)
    first.kill()
    said = f"(said::jsonb || '{other}')::text"
    changed = fleet.database.ask(f"UPDATE fleet.fleet_crawl SET said = {said} RETURNING name")  # noqa: S608 - ours
    assert changed == [(NAME,)]

    (second,) = fleet.start("b")

    assert second.wait() == 2, second.said()
    assert "release" in second.said()
    assert fleet.hosts.asked_by("b") == 0


@soak
def test_the_same_name_in_another_schema_is_another_crawl(fleet: Scene, tmp_path: Path) -> None:
    fleet.wait_for(*fleet.start("a"))
    flags = ("--fleet", f"{fleet.database.url}?schema=other", "--objects", f"file:{tmp_path / 'others'}")

    fleet.wait_for(fleet.crawl.start("apart", *flags))

    assert len(fleet.status()["workers"]) == 1


@soak
def test_a_crawl_with_a_bound_of_pages_ends_when_it_has_them(fleet: Scene) -> None:
    fleet.start("a", "b", flags=("--max-pages", "30"))

    fleet.finish()

    assert fleet.wrong_ends == []
    assert 30 <= read_rows(fleet.pull()).total() <= 35  # each may have some more in flight


@soak
def test_a_fleet_that_is_drained_ends_and_goes_on_when_it_is_started_again(fleet: Scene) -> None:
    machines = fleet.start("a", "b")
    fleet.wait_for(*machines)

    done = run("fleet", "drain", NAME, "--fleet", fleet.fleet)

    assert done.returncode == 0, done.stderr
    assert {machine.wait() for machine in machines} == {3}
    fleet.start("c")
    log = fleet.finish(codes=(0, 3))
    fleet.check(log)
    assert asked_again(log) == {}


@soak
def test_a_crawl_is_pulled_while_it_runs_and_again_when_it_is_done(fleet: Scene) -> None:
    fleet.wait_for(*fleet.start("a", "b"))
    for _ in range(3):
        fleet.hosts.wait(60)
        assert set(read_rows(fleet.pull()).values()) <= {1}

    fleet.check(fleet.finish())


@soak
@pytest.mark.parametrize("gone", [0, 1])
def test_a_crawl_on_two_databases_survives_that_either_is_away(fleet: Scene, gone: int) -> None:
    with private_folder() as folder, postgres_of_our_own(Path(folder)) as second:
        fleet.more = (f"{second.url}?schema=fleet",)
        fleet.wait_for(*fleet.start("a", "b"))
        server = (fleet.database, second)[gone]
        server.stop(signal.SIGQUIT)
        time.sleep(1.5 * LEASE)
        server.start()

        fleet.check(fleet.finish())


@soak
def test_what_is_forgotten_leaves_nothing_behind(fleet: Scene, tmp_path: Path) -> None:
    fleet.wait_for(*fleet.start("a", "b"))
    refused = run("fleet", "forget", NAME, *fleet.shared, "--yes")
    assert refused.returncode == 2, refused.stderr
    fleet.check(fleet.finish())

    fleet.start("late")
    fleet.finish()
    assert fleet.hosts.asked_by("late") == 0

    done = run("fleet", "forget", NAME, *fleet.shared, "--yes")

    assert done.returncode == 0, done.stderr
    assert [path for path in (tmp_path / "objects").rglob("*") if path.is_file()] == []
    assert run("fleet", "status", NAME, "--fleet", fleet.fleet, "--json").returncode != 0
