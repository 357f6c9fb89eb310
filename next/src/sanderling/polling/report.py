"""What is shown of a run."""

from sanderling.observe.report import Hint, HostReport, Report, count, gauge, seconds, text
from sanderling.polling.feed import Feed
from sanderling.polling.scheduler import Scheduler

LATELY = 60.0  # seconds


def make_report(
    scheduler: Scheduler, feed: Feed, host: str, url: str, out: str, now: float, *, targets: int, running: bool
) -> Report:
    """The report of a run, from what its parts know."""
    figures = scheduler.figures
    late = sorted(figures.lateness)
    interval = scheduler.settings.raceActiveMs
    behind = sorted({kind for (kind, _), each in figures.late.items() if now - each.at < LATELY})
    troubles = list(scheduler.faults)
    if scheduler.away:
        troubles.append(f"{host} cannot be polled: {scheduler.away}")
    if scheduler.unsaved:
        troubles.append(f"what came is not stored yet: {scheduler.unsaved}")
    if behind:
        troubles.append(
            f"{host} takes {figures.latency * 1000:.0f} ms a response:"
            f" {', '.join(behind)} are polled less often than set"
        )
    if not scheduler.settings.enabled:
        doing = "polling is off (scheduler.enabled)"
    elif scheduler.active:
        doing = f"polling race {scheduler.active} every {interval} ms"
    else:
        doing = f"polling {targets} targets"
    return Report(
        system="polling",
        doing=doing if running else "",
        facts=(
            text("event", scheduler.event, "The event that is open upstream."),
            text("active_race", scheduler.active, "The race that runs."),
            text("next_race", scheduler.following, "The race that comes next."),
            gauge("targets", targets, "Documents that are polled."),
            gauge("live_targets", len(scheduler.live), "Of those, polled to the instant."),
            count("polls", dict(figures.polls), "Polls by how they ended.", by="end"),
            count("live_polls", figures.live, "Polls of live targets."),
            count("missed", figures.missed, "Live polls that were left out, as the upstream was too slow."),
            seconds("live_late", late[len(late) * 99 // 100] if late else None, "How late 99 % of live polls left."),
            count("documents", figures.stored, "Documents stored that had changed."),
            gauge("position", feed.position, "The position of the newest change."),
            gauge("followers", feed.followers, "Who follows the stream."),
            text("api", url, "Where the API is."),
        ),
        hosts=(HostReport(host=host, latency=figures.latency, state="down" if scheduler.away else "ok",
                          why=scheduler.away or "polled at the cadence that is set"),),
        troubles=tuple(troubles),
        hints=hints(out),
    )  # fmt: skip


def hints(out: str) -> tuple[Hint, ...]:
    """What to type next."""
    return (
        Hint("see each target", ("tasks", out, "due")),
        Hint("see and change the settings", ("polling", "set", out)),
    )
