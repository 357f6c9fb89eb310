"""What the doctor says of a machine: by numbers, and by really writing."""

from pathlib import Path

import pytest
from looping import in_loop

from sanderling.cli.doctor import machine as doctor_machine
from sanderling.cli.doctor.findings import FAIL, OK, WARN, CheckError, aside, skew
from sanderling.cli.doctor.machine import clocks, findings, open_files, python, space, steady, terminal, writable
from sanderling.testing import FakeClock

GB = 10**9


@pytest.mark.parametrize(("free", "state"), [(5 * GB, OK), (5 * GB - 1, WARN), (5 * 10**8 - 1, FAIL)])
def test_a_disk_that_is_nearly_full_is_worth_a_word(free: int, state: str) -> None:
    found = space(free, 100 * GB)

    assert found.state == state
    assert bool(found.advice) is (state != OK)


@pytest.mark.parametrize(
    ("soft", "hard", "state", "advice"),
    [
        (768, 768, OK, ""),
        (-1, -1, OK, ""),
        (256, -1, WARN, "ulimit -n 4096"),
        (256, 1024, WARN, "ulimit -n 1024"),
        (256, 300, WARN, "ulimit -n 300, after an administrator has raised the hard limit of 300"),
    ],
)
def test_a_limit_of_open_files_comes_with_how_to_raise_it(soft: int, hard: int, state: str, advice: str) -> None:
    found = open_files(soft, hard, needed=768)

    assert (found.state, found.advice) == (state, advice)


@pytest.mark.parametrize(
    ("wall", "passed", "state"),
    [(1.8e9, 0.1, OK), (1.8e9, 0.2, WARN), (1.8e9, -3600.0, WARN), (0.0, 0.1, FAIL)],
)
def test_a_clock_that_jumps_or_was_never_set_is_said(wall: float, passed: float, state: str) -> None:
    assert steady(wall, passed, measured=0.1).state == state


@in_loop
async def test_the_clock_is_watched_for_a_moment() -> None:
    class Set(FakeClock):
        """Somebody sets it while we look."""

        async def sleep(self, seconds: float) -> None:
            self.advance(seconds)
            self.set_wall(self.wall() + 7)

    found = await clocks(Set())

    assert (found.state, found.found) == (WARN, "it jumped by 7.00 s within 0.1 s")


@pytest.mark.parametrize(
    ("theirs", "state", "said"),
    [
        (1000.4, OK, "within 0.5 s of ours"),
        (1002.9, OK, "within 2.4 s of ours"),
        (1003.1, WARN, "3 s ahead of ours"),
        (100.0, WARN, "900 s behind ours"),
    ],
)
def test_another_clock_may_be_off_by_as_long_as_the_answer_took_and_a_little(
    theirs: float, state: str, said: str
) -> None:
    found = skew("clock", theirs, before=1000.0, after=1001.0)

    assert (found.state, found.found) == (state, said)


def test_a_home_is_written_to_and_nothing_stays(tmp_path: Path) -> None:
    assert writable(tmp_path).state == OK
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_can_be_made_is_well_and_one_that_is_a_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert "is not there yet, and can be made" in writable(tmp_path / "a" / "b").found
    assert (writable(tmp_path / "file").state, (tmp_path / "a").exists()) == (FAIL, False)


def test_a_home_that_cannot_be_written_to_is_found_out_by_writing() -> None:
    # Nobody can, not even root.
    found = writable(Path("/proc/self"))

    assert (found.state, "cannot be written to" in found.found) == (FAIL, True)
    assert found.advice


@pytest.mark.parametrize(("found", "state"), [((3, 11), OK), ((3, 14), OK), ((3, 10), FAIL)])
def test_a_python_that_is_too_old_is_said(found: tuple[int, ...], state: str) -> None:
    assert python(found, "x").state == state


def test_a_terminal_without_utf_8_gets_plain_lines_and_that_is_said() -> None:
    assert "plain lines" in terminal("ascii", {"TERM": "vt100"}).found
    assert terminal("utf-8", {"NO_COLOR": "1"}).found == "utf-8, NO_COLOR"


def test_every_extra_says_what_it_is_for_and_all_are_in_the_package() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    found = {each.what: each for each in findings()}

    for extra, (_, use) in doctor_machine.EXTRAS.items():
        assert f"\n{extra} = [" in text
        assert use in f"{found[extra].found} {found[extra].advice}"


@in_loop
async def test_what_a_check_in_a_thread_raises_is_raised_here() -> None:
    def work() -> None:
        raise CheckError("it is gone", "look for it")

    with pytest.raises(CheckError, match="it is gone"):
        await aside(work)
