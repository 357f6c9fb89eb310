"""Whether a rise in workers has paid: beyond the knee of a host's curve, more workers only wait longer. Pure."""

from dataclasses import dataclass

from sanderling.sequence.scaling import Readings


@dataclass(frozen=True, slots=True)
class Trial:
    """A rise, and what there was before it."""

    before: int
    after: int
    rate: float
    errors: float


@dataclass(slots=True)
class Ceiling:
    """Workers that a rise has shown to be enough, and what more of them had brought."""

    workers: int
    tried: int
    rate: float
    errors: float
    left: int  # periods


class Knee:
    """Remembers a rise until the next period has shown what it brought; then, if that was little, where to stay.

    A rise must bring at least `gain` of what it would in proportion, and at most `errors`, a share of the requests.
    Otherwise there are no more workers than before it, for `hold` periods.
    """

    def __init__(self, gain: float, errors: float, hold: int) -> None:
        self._gain = gain
        self._errors = errors
        self._hold = hold
        self._trial: Trial | None = None
        self._ceiling: Ceiling | None = None

    def __repr__(self) -> str:
        return f"<Knee, trial {self._trial}, ceiling {self._ceiling}>"

    @property
    def ceiling(self) -> int | None:
        """The most workers for now; None if there is no such bound."""
        return None if self._ceiling is None else self._ceiling.workers

    def rise(self, before: int, after: int, readings: Readings) -> None:
        """There will be more workers from now on; the readings are those of the time before."""
        self._trial = Trial(before, after, readings.rate, readings.errors)

    def forget(self) -> None:
        """The period was none to judge by."""
        self._trial = None

    def judge(self, readings: Readings, workers: int, *, at_head: bool, throttled: bool) -> str:
        """See whether the last rise has paid, and whether a ceiling is still right. What was found, if it was not.

        At the head a rise cannot show in the rate: there is no more to be had than the upstream makes. And where the
        limiter set the pace, neither a rate that did not grow nor refusals are the doing of the workers.
        """
        trial, self._trial = self._trial, None
        if self._ceiling is not None:
            self._ceiling.left -= 1
            if self._ceiling.left < 0 or self._was_wrong(self._ceiling, readings, at_head=at_head):
                self._ceiling = None
        if trial is None or trial.after != workers or throttled:
            return ""
        why = self._in_vain(trial, readings, at_head=at_head)
        if not why:
            return ""
        self._ceiling = Ceiling(trial.before, trial.after, readings.rate, readings.errors, self._hold)
        return f"{trial.after} workers instead of {trial.before} brought {why}"

    def _in_vain(self, trial: Trial, readings: Readings, *, at_head: bool) -> str:
        # Errors that were there before are not the doing of those who came later.
        if readings.errors > max(self._errors, 2 * trial.errors):
            return f"{readings.errors:.1%} errors"
        if at_head or trial.rate == 0:
            return ""
        gain, in_proportion = readings.rate / trial.rate - 1, trial.after / trial.before - 1
        return "" if gain >= self._gain * in_proportion else f"{gain:+.0%} records a second"

    def _was_wrong(self, ceiling: Ceiling, readings: Readings, *, at_head: bool) -> bool:
        """Whether stepping back did not help: the host had become slow, or failed, for reasons of its own."""
        if ceiling.errors > self._errors:
            return readings.errors > ceiling.errors / 2
        if at_head or ceiling.rate == 0:
            return False
        return 1 - readings.rate / ceiling.rate > (1 - ceiling.workers / ceiling.tried) / 2
