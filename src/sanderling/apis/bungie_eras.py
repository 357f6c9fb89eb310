"""Whether an instance was played from its beginning: which field says so, and how far it can be believed.

The API has changed its mind three times, so the start of the instance decides. From Beyond Light to the Witch Queen the
phase was always wrong and the flag not there yet; for a season after that the flag was false once the team had died.
"""

from datetime import UTC, datetime

BEYOND_LIGHT = datetime(2020, 11, 10, 17, tzinfo=UTC).timestamp()
WITCH_QUEEN = datetime(2022, 2, 22, 17, tzinfo=UTC).timestamp()
HAUNTED = datetime(2022, 5, 24, 17, tzinfo=UTC).timestamp()

# Two raids of the first years begin in other phases than 0 as well: Scourge of the Past in 1, Leviathan in 2.
SCOURGE = frozenset({548750096, 2812525063})
LEVIATHAN = frozenset(
    {
        # Normal, guided games, prestige.
        *(2693136600, 2693136601, 2693136602, 2693136603, 2693136604, 2693136605),
        *(89727599, 287649202, 1699948563, 1875726950, 3916343513, 4039317196),
        *(417231112, 508802457, 757116822, 771164842, 1685065161, 1800508819),
        *(2449714930, 3446541099, 3857338478, 3879860661, 3912437239, 4206123728),
    }
)


def missing_field(started: float, *, phase: int | None, flag: bool | None) -> str:
    """The field that a report of that time must have and has not; "" if it has it."""
    if started >= WITCH_QUEEN:
        return "activityWasStartedFromBeginning" if flag is None else ""
    return "startingPhaseIndex" if phase is None else ""


def fresh(started: float, activity: int, *, phase: int | None, flag: bool | None, deathless: bool) -> bool | None:
    """Whether it was played from its beginning; None if nobody can know."""
    if started >= HAUNTED:
        return flag
    if started >= WITCH_QUEEN:
        return flag if flag or deathless else None
    if started >= BEYOND_LIGHT or phase is None:
        return None
    if activity in SCOURGE:
        return phase <= 1
    return phase == 0 or (phase == 2 and activity in LEVIATHAN)
