"""Machines that share a crawl, and what happens to them: by the hosts' log and the rows, for each kind of fault."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from fleet_clocks import WrongClock, clocks
from fleet_hosts import Entry, Manners, Web
from fleet_machines import Machine, wait_until
from fleet_oracle import asked_again, longest_silence, taken_over
from fleet_postgres import postgres_on_a_small_disk
from fleet_scene import LATE, LEASE, ODD, SOAK, TURN, Scene, or_skip, scene, small_web, soak
from services.process import private_folder

# An answer is in a commit so many seconds after it came; what is lost before that is asked for once more.
COMMITTED = 3.0
CHEAP = (Manners(crawl_delay=0.4), Manners(slow=0.3))

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path, small_web(odd=ODD if SOAK else CHEAP)) as made:
        yield made


def lost_pages(log: Sequence[Entry], lost: Machine, at: float) -> set[str]:
    """What a machine had asked for, and perhaps not in a commit yet, at a moment."""
    late = (entry for entry in log if entry.sender == lost.name and at - COMMITTED < entry.done and entry.asked <= at)
    return {f"{entry.host}{entry.path}" for entry in late}


def test_an_owner_killed_loses_nothing_and_its_hosts_are_asked_by_others_within_two_leases(fleet: Scene) -> None:
    first, *others = fleet.start("a", "b", "c")
    fleet.wait_for(first, *others)
    at = first.kill()

    log = fleet.finish()

    fleet.check(log)
    waited = taken_over(log, first.name, at)
    assert waited
    assert max(waited.values()) < 2 * LEASE + LATE
    assert asked_again(log).keys() <= lost_pages(log, first, at)


@soak
def test_all_owners_killed_lose_nothing_and_those_that_come_next_go_on(fleet: Scene) -> None:
    machines = fleet.start("a", "b", "c")
    fleet.wait_for(*machines)
    at, *_ = [machine.kill() for machine in machines]
    fleet.start("d", "e")

    log = fleet.finish()

    fleet.check(log)
    assert min(entry.asked for entry in log if entry.sender in "de") < at + 2 * LEASE + 5  # the time to start
    assert asked_again(log).keys() <= set[str]().union(*(lost_pages(log, each, at) for each in machines))


def test_an_owner_that_slept_past_its_lease_changes_nothing_when_it_wakes(fleet: Scene) -> None:
    first, *others = fleet.start("a", "b", "c")
    fleet.wait_for(first, *others)
    at = first.freeze()
    wait_until(lambda: len(taken_over(fleet.hosts.log(), first.name, at)) > 0, "somebody takes over", 4 * LEASE)
    time.sleep(LEASE / 2)
    first.thaw()

    log = fleet.finish()

    fleet.check(log)
    assert max(taken_over(log, first.name, at).values()) < 2 * LEASE + LATE
    assert asked_again(log).keys() <= lost_pages(log, first, at)


@soak
@pytest.mark.parametrize("seconds", [LEASE / 4, LEASE / 2, 0.9 * LEASE, 1.1 * LEASE, 2.1 * LEASE])
def test_owners_that_sleep_in_turn_break_no_promise(fleet: Scene, seconds: float) -> None:
    machines = fleet.start("a", "b", "c")
    fleet.wait_for(*machines)
    for machine in machines:
        machine.freeze()
        time.sleep(seconds)
        machine.thaw()
        time.sleep(0.5)

    fleet.check(fleet.finish())


def test_a_database_that_is_gone_for_longer_than_a_lease_stops_all_until_it_is_back(fleet: Scene) -> None:
    fleet.wait_for(*fleet.start("a", "b"))
    fleet.database.stop(signal.SIGINT)
    at = time.monotonic()
    time.sleep(1.5 * LEASE)
    back = time.monotonic()
    fleet.database.start()

    log = fleet.finish()

    fleet.check(log)
    assert [entry for entry in log if at + LEASE < entry.asked < back] == []


@soak
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_a_database_that_is_restarted_again_and_again_stops_nobody_for_good(fleet: Scene, how: signal.Signals) -> None:
    fleet.wait_for(*fleet.start("a", "b"))
    for _ in range(4):
        fleet.hosts.wait(30)
        fleet.database.stop(how)
        fleet.database.start()

    fleet.check(fleet.finish())


@soak
@pytest.mark.parametrize("meanwhile", ["nothing", "joined", "killed", "slept"])
def test_a_replica_that_lacks_the_last_commits_has_them_asked_for_again(fleet: Scene, meanwhile: str) -> None:
    """The worst is what has moved from one owner to another since the replica last heard: both know of a lease."""
    with private_folder() as folder, fleet.database.replica(Path(folder)) as twin:
        first, second = fleet.start("a", "b")
        fleet.wait_for(first, second)
        twin.starve()
        if meanwhile == "joined":
            fleet.wait_for(*fleet.start("c"))
        elif meanwhile in {"killed", "slept"}:
            at = first.kill() if meanwhile == "killed" else first.freeze()
            wait_until(lambda: len(taken_over(fleet.hosts.log(), first.name, at)) > 0, "somebody takes over", 4 * LEASE)
        fleet.hosts.wait(40)
        fleet.database.stop(signal.SIGKILL)
        if meanwhile == "slept":
            first.thaw()
        twin.replace(fleet.database)

        log = fleet.finish()

        fleet.database = twin
        fleet.check(log, silence=TURN)  # what was handed on in a commit that is lost, goes back


@soak
def test_a_full_database_stops_all_until_there_is_room(tmp_path: Path) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(private_folder()))
        folder.chmod(0o755)
        database = stack.enter_context(or_skip(postgres_on_a_small_disk(folder)))
        fleet = stack.enter_context(scene(tmp_path, small_web(odd=ODD), database=database))
        fleet.wait_for(*fleet.start("a", "b"))
        database.fill()
        at = time.monotonic()
        time.sleep(3 * LEASE)
        back = time.monotonic()
        database.empty()

        log = fleet.finish()

        fleet.check(log)
        assert longest_silence(log, at, back) > LEASE


Cut = Callable[[Scene, str, str], None]


def cut_database(scene: Scene, worker: str, database: str) -> None:
    assert scene.net is not None
    scene.net.part(worker, database)


def lose_questions(scene: Scene, worker: str, database: str) -> None:
    assert scene.net is not None
    scene.net.cut(worker, database)


def lose_answers(scene: Scene, worker: str, database: str) -> None:
    assert scene.net is not None
    scene.net.cut(database, worker)


def cut_objects(scene: Scene, worker: str, database: str) -> None:  # noqa: ARG001 - one shape for all
    assert scene.net is not None
    assert scene.s3_node is not None
    scene.net.part(worker, scene.s3_node.address)


def lose_objects(scene: Scene, worker: str, database: str) -> None:  # noqa: ARG001 - the same
    assert scene.net is not None
    assert scene.s3_node is not None
    scene.net.cut(scene.s3_node.address, worker)


def cut_hosts(scene: Scene, worker: str, database: str) -> None:  # noqa: ARG001 - the same
    assert scene.net is not None
    scene.net.part(worker, scene.net.hosts)


def cut_all(scene: Scene, worker: str, database: str) -> None:
    for cut in (cut_database, cut_objects, cut_hosts):
        cut(scene, worker, database)


CUTS = [cut_database, lose_questions, lose_answers, cut_objects, lose_objects, cut_hosts, cut_all]


@pytest.fixture
def cut_fleet(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path, small_web(odd=ODD), cuts=True) as made:
        yield made


@soak
@pytest.mark.parametrize("cut", CUTS)
def test_a_worker_that_is_cut_off_is_never_a_second_sender(cut_fleet: Scene, cut: Cut) -> None:
    assert cut_fleet.net is not None
    first, *others = cut_fleet.start("a", "b", "c")
    cut_fleet.wait_for(first, *others)
    cut(cut_fleet, first.name, cut_fleet.database.address)
    at = time.monotonic()
    time.sleep(3 * LEASE)
    cut_fleet.net.mend()

    log = cut_fleet.finish()

    # What waits in a cable to the hosts comes all at once when it is mended.
    cut_fleet.check(log, late=3 * LEASE if cut in {cut_hosts, cut_all} else LATE)
    if cut in {cut_database, lose_questions, lose_answers, cut_all}:
        assert max(taken_over(log, first.name, at).values(), default=0.0) < 2 * LEASE + LATE
        assert [
            entry for entry in log if entry.sender == first.name and at + LEASE < entry.asked < at + 3 * LEASE
        ] == []


@soak
@pytest.mark.parametrize("cut", [cut_database, cut_objects])
def test_workers_that_are_cut_off_all_at_once_go_on_when_they_are_joined_again(cut_fleet: Scene, cut: Cut) -> None:
    assert cut_fleet.net is not None
    machines = cut_fleet.start("a", "b", "c")
    cut_fleet.wait_for(*machines)
    for machine in machines:
        cut(cut_fleet, machine.name, cut_fleet.database.address)
    time.sleep(3 * LEASE)
    cut_fleet.net.mend()

    cut_fleet.check(cut_fleet.finish())


@soak
def test_a_cable_that_comes_and_goes_makes_no_second_sender(cut_fleet: Scene) -> None:
    assert cut_fleet.net is not None
    first, *others = cut_fleet.start("a", "b", "c")
    cut_fleet.wait_for(first, *others)
    for _ in range(6):
        cut_database(cut_fleet, first.name, cut_fleet.database.address)
        time.sleep(0.6 * LEASE)
        cut_fleet.net.mend()
        time.sleep(0.2 * LEASE)

    cut_fleet.check(cut_fleet.finish())


@soak
@pytest.mark.parametrize(("ahead", "pace"), [(3600.0, 1.0), (-3600.0, 1.0), (0.0, 1.4), (0.0, 0.7)])
@pytest.mark.parametrize("fault", ["none", "killed", "slept"])
def test_a_worker_with_a_wrong_clock_keeps_every_promise(
    fleet: Scene, tmp_path: Path, ahead: float, pace: float, fault: str
) -> None:
    with or_skip(clocks(tmp_path)) as make:
        wrong = make("wrong").set(ahead, pace)
        (first,) = fleet.start("a", clock=wrong)
        others = fleet.start("b", "c")
        fleet.wait_for(first, *others)
        if fault == "killed":
            first.kill()
        elif fault == "slept":
            first.freeze()
            time.sleep(1.5 * LEASE)
            first.thaw()

        fleet.check(fleet.finish(), pace=max(pace, 1.0))


@soak
@pytest.mark.parametrize("steps", [(-3600.0,), (3600.0,), (3600.0, -3600.0, 0.0)])
def test_a_clock_that_is_set_while_a_worker_runs_changes_nothing(
    fleet: Scene, tmp_path: Path, steps: Sequence[float]
) -> None:
    with or_skip(clocks(tmp_path)) as make:
        wrong = make("wrong")
        (first,) = fleet.start("a", clock=wrong)
        fleet.wait_for(first, *fleet.start("b", "c"))
        play_clock(fleet, wrong, steps)

        fleet.check(fleet.finish())


@soak
@pytest.mark.parametrize("steps", [(-3600.0,), (3600.0,), (3600.0, -3600.0, 0.0)])
def test_the_clock_of_the_database_may_be_set_while_it_runs(tmp_path: Path, steps: Sequence[float]) -> None:
    with ExitStack() as stack:
        wrong = stack.enter_context(or_skip(clocks(tmp_path)))("database")
        for file in (wrong.library, wrong.file, *wrong.file.parents):
            file.chmod(file.stat().st_mode | 0o555)
        fleet = stack.enter_context(scene(tmp_path, small_web(odd=ODD), environment=wrong.environment))
        fleet.wait_for(*fleet.start("a", "b", "c"))
        play_clock(fleet, wrong, steps)
        fleet.hosts.wait(20)
        fleet.crawl.machines[0].kill()

        fleet.check(fleet.finish())


def play_clock(fleet: Scene, wrong: WrongClock, steps: Sequence[float]) -> None:
    """Set a clock to each of these, with some requests between."""
    for ahead in steps:
        fleet.hosts.wait(30)
        wrong.set(ahead)


def test_three_workers_become_twelve_and_then_two(fleet: Scene) -> None:
    most = 12 if SOAK else 5
    machines = fleet.start("a", "b", "c")
    fleet.wait_for(*machines)
    machines += fleet.start(*"defghijkl"[: most - 3])
    wait_until(lambda: is_fair(fleet.shares(), most), f"a fair share for each of {most}", 60)
    for machine in machines[2:]:
        machine.signal(signal.SIGTERM)

    log = fleet.finish(codes=(0, 3, 130))

    fleet.check(log, silence=TURN)
    assert asked_again(log) == {}


def is_fair(shares: Sequence[int], workers: int) -> bool:
    """Whether so many workers have as many parts as each other, but for two."""
    return len(shares) == workers and max(shares) - min(shares) <= 2


@soak
def test_a_worker_ten_times_as_slow_gives_parts_to_the_others(tmp_path: Path) -> None:
    with scene(tmp_path, small_web(pages=80, odd=ODD), rps=2.0) as fleet:
        first, *others = fleet.start("a", "b", "c")
        fleet.wait_for(first, *others)
        with slowed(first):
            wait_until(lambda: is_uneven(fleet.shares()), "fewer parts of the slow one", 60)
            fleet.hosts.wait(300)

        fleet.check(fleet.finish())


@contextmanager
def slowed(machine: Machine) -> Iterator[None]:
    """Have a machine run for a tenth of the time only."""
    over = Event()

    def slow() -> None:
        while not over.is_set() and machine.runs():
            machine.freeze()
            over.wait(0.18)
            machine.thaw()
            over.wait(0.02)

    thread = Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def is_uneven(shares: Sequence[int]) -> bool:
    """Whether one of three has less than half of what each of the others has."""
    return len(shares) == 3 and shares[0] < shares[1] / 2


LONG = (Manners(crawl_delay=1.25 * LEASE), Manners(quota=3, retry_after=int(2 * LEASE)))


@soak
def test_a_retry_after_and_a_crawl_delay_longer_than_the_lease_outlive_their_owner(tmp_path: Path) -> None:
    """The new owner has never spoken with the host, and must not ask before the old one might have."""
    with scene(tmp_path, Web(LONG * 6, 4)) as fleet:
        machines = fleet.start("a", "b", "c")
        wait_until(lambda: len(refused(fleet.hosts.log())) >= 2, "two workers are told to come later")
        time.sleep(1.0)
        for name in sorted(refused(fleet.hosts.log()))[:2]:
            next(machine for machine in machines if machine.name == name).kill()

        fleet.check(fleet.finish())


def refused(log: Sequence[Entry]) -> set[str]:
    """Who was told to come later."""
    return {entry.sender for entry in log if entry.retry_after}
