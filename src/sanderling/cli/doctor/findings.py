"""What `sanderling doctor` finds: values, and the few things that all its checks share."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeVar

import msgspec

from sanderling.stores.analytics_revisions import HEAD, REVISIONS

T = TypeVar("T")

State = Literal["ok", "warn", "fail", "not configured", "not installed"]
OK: State = "ok"
WARN: State = "warn"  # works, but slowly or in part
FAIL: State = "fail"  # does not work
UNSET: State = "not configured"
ABSENT: State = "not installed"  # and need not be

# Seconds by which the clock of another machine may be off before what we keep gets into disorder.
MOST_SKEW = 2.0
MIGRATE = "sanderling events migrate head"


class CheckFinding(msgspec.Struct, frozen=True):
    """One thing that was looked at; `advice` says what to do about it."""

    what: str
    state: State
    found: str
    advice: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is nothing to do."""
        return self.state in (OK, UNSET, ABSENT)


class CheckError(Exception):
    """A check that did not go well: what was found, and what to do about it."""

    def __init__(self, found: str, advice: str = "") -> None:
        super().__init__(found)
        self.advice = advice


def skew(what: str, theirs: float, before: float, after: float) -> CheckFinding:
    """How far a clock is off that said `theirs` between two times of ours; all in Unix seconds."""
    off, unsure = theirs - (before + after) / 2, (after - before) / 2
    if abs(off) <= unsure + MOST_SKEW:
        return CheckFinding(what, OK, f"within {max(abs(off), unsure):.1f} s of ours")
    side = "ahead of" if off > 0 else "behind"
    advice = "set both clocks by NTP; times that are kept there and here do not fit together"
    return CheckFinding(what, WARN, f"{abs(off):,.0f} s {side} ours", advice)


def revision_found(what: str, found: str | None) -> CheckFinding:
    """What to say of the revision that tables of events are at."""
    if found is None:
        return CheckFinding(what, OK, f"no tables yet; they are made, at revision {HEAD}, when it is first used")
    if found == HEAD:
        return CheckFinding(what, OK, f"{found}, the last one")
    if found in REVISIONS:
        return CheckFinding(what, WARN, f"{found}, the last one is {HEAD}", MIGRATE)
    return CheckFinding(
        what, FAIL, f"{found[:40]!a}, this version knows up to {HEAD}", "use a newer version of sanderling"
    )


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns, from a thread that nobody waits for when the command ends: a server may never answer."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(answer: T | None, error: Exception | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(answer)  # type: ignore[arg-type]

    def tell(answer: T | None, error: Exception | None) -> None:
        with suppress(RuntimeError):  # the command has ended
            loop.call_soon_threadsafe(settle, answer, error)

    def run() -> None:
        try:
            answer = work()
        except (CheckError, ModuleNotFoundError) as error:  # the second of an extra
            tell(None, error)
        except Exception as error:
            tell(None, error)
            raise
        else:
            tell(answer, None)

    threading.Thread(target=run, daemon=True, name="doctor").start()
    return await done
