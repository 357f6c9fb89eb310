"""Which field says that an instance was played from its beginning."""

import pytest

from sanderling.apis.bungie_report import BEYOND_LIGHT, HAUNTED, LEVIATHAN, SCOURGE, WITCH_QUEEN, fresh, missing_field

LAST_WISH = 2122313384


def test_the_eras_begin_when_they_began() -> None:
    assert (BEYOND_LIGHT, WITCH_QUEEN, HAUNTED) == (1605027600, 1645549200, 1653411600)


@pytest.mark.parametrize(
    ("started", "phase", "flag", "deathless", "expected"),
    [
        (HAUNTED, 5, True, False, True),
        (HAUNTED, 0, False, True, False),
        (HAUNTED, 0, False, False, False),
        (HAUNTED + 1e8, None, False, True, False),
        # The flag was wrongly false once the team had died.
        (HAUNTED - 1, 0, True, False, True),
        (HAUNTED - 1, 0, False, True, False),
        (HAUNTED - 1, 0, False, False, None),
        (WITCH_QUEEN, 0, True, True, True),
        # Nobody can know.
        (WITCH_QUEEN - 1, 0, True, True, None),
        (BEYOND_LIGHT, 0, True, True, None),
        # The phase, and never the flag.
        (BEYOND_LIGHT - 1, 0, False, False, True),
        (BEYOND_LIGHT - 1, 1, True, True, False),
        (BEYOND_LIGHT - 1, 2, True, True, False),
    ],
)
def test_the_start_decides_which_field_counts(
    started: float,
    phase: int | None,
    flag: bool,  # noqa: FBT001 - a column
    deathless: bool,  # noqa: FBT001 - a column
    expected: bool | None,  # noqa: FBT001 - a column
) -> None:
    assert fresh(started, LAST_WISH, phase=phase, flag=flag, deathless=deathless) is expected


@pytest.mark.parametrize(
    ("activities", "phases"),
    [(SCOURGE, {0, 1}), (LEVIATHAN, {0, 2}), ({LAST_WISH}, {0})],
    ids=["scourge", "levi", "lw"],
)
def test_a_raid_may_begin_in_several_phases(activities: set[int], phases: set[int]) -> None:
    for activity in activities:
        old = BEYOND_LIGHT - 1
        assert {p for p in range(5) if fresh(old, activity, phase=p, flag=None, deathless=False)} == phases


def test_there_are_24_hashes_of_leviathan_and_2_of_scourge() -> None:
    assert (len(LEVIATHAN), len(SCOURGE)) == (24, 2)


@pytest.mark.parametrize(
    ("started", "phase", "flag", "missing"),
    [
        (WITCH_QUEEN, None, True, ""),
        (WITCH_QUEEN, 0, None, "activityWasStartedFromBeginning"),
        (WITCH_QUEEN - 1, 0, None, ""),
        (WITCH_QUEEN - 1, None, True, "startingPhaseIndex"),
        (BEYOND_LIGHT - 1, None, True, "startingPhaseIndex"),
    ],
)
def test_each_era_has_a_field_that_must_be_there(
    started: float,
    phase: int | None,
    flag: bool | None,  # noqa: FBT001 - a column
    missing: str,
) -> None:
    assert missing_field(started, phase=phase, flag=flag) == missing
