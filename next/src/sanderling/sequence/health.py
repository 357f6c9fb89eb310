"""Whether the host is well: when a failure is the id's own, and what is sent while it is the host's."""

from math import inf

from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.observe.log import log
from sanderling.sequence.description import IdAnswer, Meaning

DOUBTFUL = 3  # failures in a row, after which a record that is known shows whether the host is well
LONGEST_CHECK = 15.0  # seconds between two such requests
RECENT = 30.0  # a good answer so many seconds ago shows that a failure is the id's own
NEW_SHAPE = 10  # new records in a row that cannot be read: the API has changed


class HostHealth:
    """What the answers say of the host. Times are seconds of one clock."""

    def __init__(self, alerts: Alerts) -> None:
        self.away_since: float | None = None  # since when it fails, whatever is requested
        self.quiet_until = -inf  # nothing is sent before
        self.quiet_why = ""
        self.shape_trouble = ""  # what is new about the shape of records
        self.checking = False  # a request for a known record is out
        self._alerts = alerts
        self._failed_in_row = 0
        self._bad_in_row = 0
        self._last_good = -inf
        self._check_wait = 1.0

    @property
    def in_doubt(self) -> bool:
        """Whether nothing but a known record is to be requested."""
        return self.away_since is not None or self._failed_in_row >= DOUBTFUL

    def was_well(self, sent: float) -> bool:
        """Whether something was answered well at about the time of a request."""
        return self._last_good > sent - RECENT

    def is_to_blame(self, sent: float, now: float) -> bool:
        """Whether a failure of a request is the host's."""
        return self.away_since is not None or now - sent > RECENT

    def heard(self, now: float, *, failing: bool, refused: bool) -> None:
        """An answer came."""
        if failing:
            self._failed_in_row += 1
        elif not refused:
            self._failed_in_row, self._last_good = 0, now
            if self.away_since is not None:
                self.away_since = None
                self.be_quiet(-inf, "")

    def be_quiet(self, until: float, why: str) -> None:
        """Send nothing for a while."""
        self.quiet_until, self.quiet_why = until, why

    def check_failed(self, answer: IdAnswer, sent: float, now: float) -> None:
        """A record that is known is not given: nothing but this is requested until it is."""
        if self.away_since is None:
            self.away_since = now
            self._check_wait = 1.0
            if answer.meaning is Meaning.BAD_FORMAT:
                self._say_new_shape(answer)
            else:
                self._alerts.post(Alert("The API fails", answer.detail, Level.WARNING))
        self.be_quiet(sent + self._check_wait, f"the API fails: {answer.detail}")
        self._check_wait = min(LONGEST_CHECK, 2 * self._check_wait)

    def heard_new(self, answer: IdAnswer) -> None:
        """A new id was answered: can records still be read?"""
        if answer.meaning is Meaning.BAD_FORMAT:
            self._bad_in_row += 1
            if self._bad_in_row >= NEW_SHAPE:
                self._say_new_shape(answer)
        elif answer.meaning is Meaning.FOUND:
            self._bad_in_row, self.shape_trouble = 0, ""

    def _say_new_shape(self, answer: IdAnswer) -> None:
        """Records cannot be read any more: said once, until one can be read again."""
        if not self.shape_trouble:
            self.shape_trouble = f"records have a new shape: id {answer.number}: {answer.detail}"
            log.warning("new_shape", say=f"{self.shape_trouble}. Nothing is lost: such ids are asked again.")
            self._alerts.post(Alert("The API has changed its records", self.shape_trouble, Level.WARNING))
