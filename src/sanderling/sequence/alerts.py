"""The alerts of a crawl of ids: one small function for each."""

from sanderling.observe.alerts import Alert, Field, Level, duration

# Ids that are given up come in crowds: one alert of them a minute, and none that is older than this.
WARNING_PATIENCE = 5.0
PATIENCE = 10.0


def starting_up() -> Alert:
    """We begin."""
    return Alert("starting_up", "Starting up...")


def workers_starting(count: int, period: int, number: int) -> Alert:
    """A period begins, at that id."""
    fields = (Field("Count", f"{count}"), Field("Period", f"{period}"), Field("Current Instance Id", _id(number)))
    return Alert("workers_starting", "Workers Starting", fields)


def workers_stopped(count: int, number: int) -> Alert:
    """The crawl was asked to end; every id below that one has its fate."""
    fields = (Field("Count", f"{count}"), Field("Current Instance Id", _id(number)))
    return Alert("workers_stopped", "Workers Stopped", fields)


def status_update(lag: float | None, missing: float, errors: float, workers: int) -> Alert:
    """How the last period went. `missing` and `errors` are fractions of its requests."""
    fields = (
        Field("Lag Behind Head (P20)", duration(lag)),
        Field("404 Percentage", _percent(missing)),
        Field("Error Percentage", _percent(errors)),
        Field("Workers Used", f"{workers}"),
    )
    return Alert("status_update", "Status Update", fields, Level.STATUS)


def high_404(rate: float, count: float) -> Alert:
    """Nearly nothing is found: this may be a gap."""
    fields = (Field("Rate", _percent(rate)), Field("Count", f"{count:.0f}"))
    return Alert("high_404_rate", "High 404 Rate Detected", fields, Level.WARNING)


def gap_skipped(previous: int, new: int, size: int) -> Alert:
    """A gap was found; its ids are among the missed now."""
    fields = (
        Field("Previous Id", _id(previous)),
        Field("New Starting Id", _id(new)),
        Field("Minimum Block Size", f"{size}"),
    )
    return Alert("gap_skipped", "Gap Mode Block Skip", fields, Level.SERIOUS, ping=True)


def runaway(number: int, waited: float) -> Alert:
    """Nothing exists behind that id, and has not for long: the API stands still, or we are somewhere it never was."""
    fields = (Field("Last Instance Id", _id(number)), Field("Time Waited", duration(waited)))
    return Alert("runaway", "Runaway Error", fields, Level.CRITICAL, ping=True)


def unresolved_warning(number: int, elapsed: float) -> Alert:
    """An id was asked for a few times in vain."""
    fields = _unresolved(number, elapsed)
    title = "Unresolved Instance (Warning)"
    return Alert("unresolved_warning", title, fields, Level.WARNING, patience=WARNING_PATIENCE)


def unresolved(number: int, elapsed: float) -> Alert:
    """An id was given up; from now on it is asked for rarely."""
    return Alert("unresolved", "Unresolved Instance", _unresolved(number, elapsed), Level.ERROR, patience=PATIENCE)


def api_disabled(api: str) -> Alert:
    """The API says that it is switched off; nothing is asked until it is back."""
    return Alert("api_disabled", "API Disabled", (Field("API", api),), Level.WARNING)


def api_back(api: str, elapsed: float) -> Alert:
    """The API is switched on again."""
    return Alert("api_back", "API Back", (Field("API", api), Field("Time Elapsed", duration(elapsed))))


def _unresolved(number: int, elapsed: float) -> tuple[Field, ...]:
    return (Field("Instance Id", _id(number)), Field("Time Elapsed", duration(elapsed)))


def _id(number: int) -> str:
    """Between backticks, so that a chat does not turn it into a telephone number."""
    return f"`{number}`"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3f}%"
