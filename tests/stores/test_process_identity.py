"""A process that was killed is known to have ended at once; one of another machine, or container, is not known."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from known_reports import PAGES

from sanderling.observe.report import Report
from sanderling.pages.report import PagesFacts
from sanderling.stores.process_identity import ProcessIdentity, has_ended, own_process
from sanderling.stores.status_file import is_running, read_status
from sanderling.web.house import HouseReader

pytestmark = pytest.mark.skipif(own_process() is None, reason="only Linux says when a process began")

PROGRAM = """
import msgspec, sys, time
from pathlib import Path
from sanderling.engine.host_report import this_process
from sanderling.observe.report import Report
from sanderling.pages.report import PagesFacts
from sanderling.stores.status_file import write_status

report = msgspec.json.decode(sys.argv[2], type=Report[PagesFacts])
own = this_process(100.0, report.process.wall, running=True, paused=False)
write_status(Path(sys.argv[1]), msgspec.structs.replace(report, process=own))
print("written", flush=True)
time.sleep(600)
"""


def test_one_that_was_killed_does_not_run_whatever_it_said_a_moment_ago(tmp_path: Path) -> None:
    child = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, str(tmp_path), msgspec.json.encode(PAGES).decode()], stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        found = read_status(tmp_path, Report[PagesFacts])
        assert found is not None
        system = HouseReader(tmp_path.parent).system(tmp_path)
        assert system is not None
        wall = system.stamp.changed / 1e9
        alive = is_running(found.process, PAGES.process.wall)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie then
        killed = is_running(found.process, PAGES.process.wall)

    assert (alive, killed) == (True, False)
    assert found.process.pid == child.pid
    assert msgspec.structs.replace(found, process=PAGES.process) == PAGES
    assert not system.running(wall)


def test_who_has_its_number_later_is_not_taken_for_it() -> None:
    own = own_process()
    assert own is not None

    assert has_ended(os.getpid(), msgspec.structs.replace(own, start="1"))
    assert not has_ended(os.getpid(), own)


@pytest.mark.parametrize("process", [None, ProcessIdentity("another boot", "1")])
def test_of_another_machine_nothing_is_known(process: ProcessIdentity | None) -> None:
    assert not has_ended(2**22, process)
