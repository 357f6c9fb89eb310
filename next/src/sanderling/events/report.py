"""What is shown of a run, and the metrics of seed 002 by their names."""

from typing import TYPE_CHECKING

from sanderling.events.consume import Consumer
from sanderling.events.queues import DEAD, PARKED
from sanderling.observe.report import Fact, Hint, HostReport, Report, count, gauge, histogram, text

if TYPE_CHECKING:
    from sanderling.events.options import EventsOptions
    from sanderling.readers.pool import ReaderFacts


def make_report(
    consumer: Consumer, options: "EventsOptions", readers: "ReaderFacts", api: str, now: float, *, running: bool
) -> Report:
    """The report of a run."""
    figures, feedings = consumer.figures, consumer.feedings
    rates = {name: found for name, found in figures.rates(now).items() if sum(found)}
    held = sum(len(each.held) for each in feedings)
    waiting = {each.queue.name: each.counts.get("", 0) for each in feedings}
    parked = {each.queue.name: each.counts.get(PARKED, 0) for each in feedings}
    dead = {each.queue.name: each.counts.get(DEAD, 0) for each in feedings}
    posts = sum(number for name, number in figures.items.items() if name.endswith(",success"))
    items = sum(figures.items.values())
    metric = "analytics_"
    facts: tuple[Fact, ...] = (
        count("stored", posts, "Posts stored."),
        count("errors", items - posts, "Items that failed, stored as errors."),
        count("events_received", figures.received, "Messages taken.", metric=f"{metric}events_received"),
        count("events_processed", dict(figures.processed), "Batches stored, by platform.", by="platform",
              metric=f"{metric}events_processed", more=True),
        count("events_failed", figures.dead, "Messages that became dead letters.", metric=f"{metric}events_failed"),
        count("repeats", figures.known, "Messages whose batch was stored already."),
        count("items_processed", dict(figures.items), "Items by platform and how they ended.", by="platform,status",
              metric=f"{metric}items_processed", more=True),
        count("errors_by_code", dict(figures.codes), "Items that failed, by code.", by="platform,error_code",
              metric=f"{metric}errors_by_code", more=True),
        count("errors_by_category", dict(figures.categories), "Items that failed, by category.",
              by="platform,error_category", metric=f"{metric}errors_by_category", more=True),
        gauge("success_rate", {name: 100 * good / (good + bad) for name, (good, bad) in rates.items()},
              "Percent of the items of ten minutes that are posts.", by="platform", metric=f"{metric}success_rate"),
        gauge("error_rate", {name: 100 * bad / (good + bad) for name, (good, bad) in rates.items()},
              "Percent of them that failed.", by="platform", metric=f"{metric}error_rate", more=True),
        histogram("event_processing_duration", figures.took.value(), "Seconds from a message to its rows.",
                  metric=f"{metric}event_processing_duration_seconds"),
        histogram("batch_fetch_duration", figures.fetching.value(), "Seconds to fetch a batch.",
                  metric=f"{metric}batch_fetch_duration_seconds"),
        histogram("batch_parse_duration", figures.reading.value(), "Seconds to read and judge a batch.",
                  metric=f"{metric}batch_parse_duration_seconds"),
        count("batches_fetched", figures.fetched, "Batches fetched.", metric=f"{metric}batches_fetched", more=True),
        count("object_errors", figures.object_errors, "Failures of the object store.",
              metric=f"{metric}minio_connection_errors", more=True),
        gauge("broker_connected", int(not any(each.queue.name in consumer.troubles for each in feedings)),
              "Whether the queues can be used.", metric=f"{metric}rabbitmq_connection_status", more=True),
        gauge("pool_size", options.database_pool_size, "Connections to the database, at most.",
              metric=f"{metric}database_connection_pool_size", more=True),
        count("odd", figures.odd, "Batches with something odd about them, such as their size."),
        count("project_unknown", figures.unknown_projects, "Items whose project is not known."),
        gauge("waiting", waiting, "Messages that wait, by queue.", by="queue"),
        gauge("held", held, "Messages that stay in their queue: their format is off, or they are no canaries."),
        gauge("parked", parked if any(parked.values()) else {}, "Held ones beyond the bound, in durable queues beside.",
              by="queue"),
        gauge("dead_letters", dead if any(dead.values()) else {}, "Messages that cannot be processed, by queue.",
              by="queue"),
        gauge("in_hand", consumer.in_hand, "Batches in work.", more=True),
        count("reader_failures", figures.retried, "Batches whose reader ended.", more=True),
        count("reader_seconds", round(readers.cpu, 3), "CPU that readers used.", more=True),
        text("api", api, "Where the API is."),
        text("metrics", f"http://{options.metrics_bind}:{options.metrics_port}/metrics" if options.metrics_port else "",
             "Where the metrics are.", more=True),
    )  # fmt: skip
    troubles = [f"{service} is away: {why}" for service, why in consumer.troubles.items()]
    resting = [each.queue.name for each in feedings if each.resting >= 0]
    if running and resting:
        troubles.append(f"{', '.join(resting)}: all that is there is switched off; looked at every half minute")
    hosts = tuple(
        HostReport(host=name, waiting=waiting[name], state="down" if name in consumer.troubles else "ok",
                   why=consumer.troubles.get(name, ""))
        for name in waiting
    )  # fmt: skip
    out = str(options.out)
    hints = [Hint("see the posts", ("export", out, "--to", "posts.csv"))] if posts and options.database is None else []
    if any(parked.values()):
        where = ("--broker", "env:AMQP_URL") if options.broker is not None else ("--out", out)
        hints.append(Hint("put back what is parked", ("events", "replay", "--parked", *where)))
    if items > posts:
        hints.append(Hint("see what may be tried again", ("tasks", out, "retryable")))
    return Report(
        system="events",
        doing=f"processing {consumer.in_hand} batches" if running and consumer.in_hand else "waiting" * running,
        facts=facts,
        hosts=hosts,
        troubles=tuple(troubles),
        hints=tuple(hints),
    )
