"""Twenty plays of five minutes each, with faults drawn at random: `make soak`. The same seed draws the same faults.

SANDERLING_PLAYS=N plays N of them; SANDERLING_SEED=S begins with the seed S, to see one again.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from fleet_clocks import WrongClock, clocks
from fleet_hosts import Manners, Web
from fleet_machines import NAME, Machine, run
from fleet_scene import LEASE, TURN, Scene, or_skip, scene, soak

PLAYS = int(os.environ.get("SANDERLING_PLAYS", "20"))
FIRST = int(os.environ.get("SANDERLING_SEED", "1"))
SECONDS = 300.0
RPS = 2.0  # so that the hosts have pages for all of the play
MOST = 6  # workers at a time
OFF = 600.0  # seconds of a clock that is wrong; S3 itself refuses whoever is off by a quarter of an hour
AFTER = 900.0  # seconds for what is left when the faults are over
ODD = (
    Manners(crawl_delay=0.5),
    Manners(quota=40, retry_after=3),
    Manners(quota=90, retry_after=int(2 * LEASE)),
    Manners(slow=0.4),
    Manners(failing=(30, 40)),
    Manners(trap=True),
)

Fault = Callable[["Play"], str]


@dataclass(slots=True)
class Play:
    """A crawl, what is wrong just now, and what has been done to it."""

    fleet: Scene
    rng: Random
    clock: Callable[[str], WrongClock]
    begun: float = field(default_factory=time.monotonic)
    names: Iterator[str] = field(default_factory=lambda: (f"w{number}" for number in range(1000)))
    frozen: dict[int, float] = field(default_factory=dict)  # process and until when
    mended_at: float = 0.0
    wrong: list[WrongClock] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def awake(self) -> list[Machine]:
        """Those that run, and are not asleep."""
        return [each for each in self.fleet.crawl.running() if each.process.pid not in self.frozen]

    def some(self) -> Machine:
        """One of those that run and are awake; one that is started, if there is none."""
        return self.rng.choice(self.awake() or [self.join()])

    def join(self) -> Machine:
        """Start one more; now and then with a clock that is wrong, but runs as fast as it should."""
        name, clock = next(self.names), None
        if self.rng.random() < 0.3:
            clock = self.clock(name).set(self.rng.choice((-OFF, OFF)))
            self.wrong.append(clock)
        (machine,) = self.fleet.start(name, clock=clock)
        return machine

    def note(self, what: str) -> None:
        """Keep what was done, for whoever reads of a play that failed."""
        self.told.append(f"{time.monotonic() - self.begun:6.1f} s ({time.monotonic():.2f}): {what}")

    def tend(self) -> None:
        """Wake who has slept enough, mend what was cut, and see that somebody works."""
        now = time.monotonic()
        for machine in self.fleet.crawl.running():
            if self.frozen.get(machine.process.pid, now) < now:
                machine.thaw()
                del self.frozen[machine.process.pid]
                self.note(f"{machine.name} wakes")
        if self.fleet.net is not None and self.fleet.net.cuts and now > self.mended_at:
            self.fleet.net.mend()
            self.note("all is joined again")
        if len(self.awake()) < 2:
            self.note(f"{self.join().name} is started, since few are left")

    def heal(self) -> None:
        """End all faults."""
        for machine in self.fleet.crawl.running():
            machine.thaw()
        self.frozen.clear()
        if self.fleet.net is not None:
            self.fleet.net.mend()
        while len(self.awake()) < 2:
            self.join()
        self.note("the faults are over")


def kill_one(play: Play) -> str:
    machine = play.some()
    machine.kill()
    return f"{machine.name} is killed"


def kill_all(play: Play) -> str:
    for machine in play.fleet.crawl.running():
        machine.kill()
    play.frozen.clear()
    return "all are killed"


def freeze_one(play: Play) -> str:
    machine, seconds = play.some(), play.rng.uniform(0.2, 3) * LEASE
    machine.freeze()
    play.frozen[machine.process.pid] = time.monotonic() + seconds
    return f"{machine.name} sleeps for {seconds:.1f} s"


def end_one(play: Play) -> str:
    machine = play.some()
    machine.signal(signal.SIGTERM)
    return f"{machine.name} is asked to end"


def drain_one(play: Play) -> str:
    workers = play.fleet.status()["workers"]
    if not workers:
        return "nobody is drained, since nobody is there"
    worker = play.rng.choice(workers)["name"]
    run("fleet", "drain", NAME, worker, "--fleet", play.fleet.fleet)
    return f"{worker} is drained"


def join_some(play: Play) -> str:
    room = MOST - len(play.fleet.crawl.running())
    return "joined: " + ", ".join(play.join().name for _ in range(play.rng.randint(0, max(0, room))))


def restart_database(play: Play) -> str:
    how, away = play.rng.choice((signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)), play.rng.uniform(0, 2) * LEASE
    play.fleet.database.stop(how)
    time.sleep(away)
    play.fleet.database.start()
    return f"the database was away for {away:.1f} s, by {how.name}"


def cut_one(play: Play) -> str:
    net, s3 = play.fleet.net, play.fleet.s3_node
    assert net is not None
    assert s3 is not None
    # Not from the hosts: what waits in the cable comes all at once when it is mended, which looks like haste.
    machine, far = play.some(), play.rng.choice((play.fleet.database.address, s3.address))
    way = play.rng.choice(("both ways", "to it", "from it"))
    if way != "from it":
        net.cut(machine.name, far)
    if way != "to it":
        net.cut(far, machine.name)
    play.mended_at = time.monotonic() + play.rng.uniform(0.3, 3) * LEASE
    return f"{machine.name} is cut off from {far}, {way}"


def set_clocks(play: Play) -> str:
    ahead = play.rng.choice((-OFF, -60.0, 0.0, 60.0, OFF))
    for clock in play.wrong:
        clock.set(ahead)
    return f"{len(play.wrong)} clocks are set {ahead:g} s ahead"


FAULTS: list[Fault] = [
    kill_one,
    kill_all,
    freeze_one,
    end_one,
    drain_one,
    join_some,
    restart_database,
    cut_one,
    set_clocks,
]
WEIGHTS = [3, 1, 4, 2, 1, 3, 2, 4, 1]


@soak
@pytest.mark.timeout(SECONDS + AFTER + 300)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + PLAYS))
def test_a_play_of_random_faults_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    with ExitStack() as stack:
        make = stack.enter_context(or_skip(clocks(tmp_path)))
        web = Web((Manners(),) * 14 + ODD, 280)
        fleet = stack.enter_context(scene(tmp_path, web, cuts=True, rps=RPS))
        play = Play(fleet, rng, make)
        for _ in range(3):
            play.join()
        while time.monotonic() - play.begun < SECONDS:
            until = time.monotonic() + rng.uniform(2, 20)
            while time.monotonic() < until:
                play.tend()
                time.sleep(0.05)
            (fault,) = rng.choices(FAULTS, WEIGHTS)
            play.note(fault(play))
        play.heal()
        print(f"seed {seed}", *play.told, sep="\n")  # noqa: T201 - shown if it fails

        # Who comes while it is cut off from the database is to come again: 75.
        fleet.check(fleet.finish(codes=(0, 3, 75, 130), seconds=AFTER), silence=TURN)
