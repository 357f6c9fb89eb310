"""What people set for the commands of `events`, with the names of seed 002."""

from pathlib import Path
from typing import Any, Literal

from sanderling.events.work import BUILT_IN
from sanderling.forms import Seconds
from sanderling.observe.alerts import AlertOptions
from sanderling.observe.options import ObserveOptions
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.readers.automatic import AUTO, ReaderCount
from sanderling.redact import Secret


class EventsOptions(ObserveOptions, AlertOptions, table="events", title="What is consumed"):
    """What `events consume` takes."""

    files: tuple[Path, ...] = option((), "Batches to process, as crawlers write them; the run ends with the last.",
                                     argument="FILE")  # fmt: skip
    out: Path = option(REQUIRED, "The folder of the run; without servers its queue and its rows are there.")
    broker: Secret | None = option(None, "RabbitMQ (amqp://…) in place of the queue in the folder.")
    queue_name: tuple[str, ...] = option(
        (), "A queue to consume; may be given twice. By default analytics.data.collected, and analytics_queue if there."
    )
    bind: bool = option(default=False, help="Bind queues that exist to smap.events, too.")
    objects: str = option("", "Where batches lie: s3:, https://HOST (S3), or a folder. By default, objects in --out.")
    database: Secret | None = option(None, "PostgreSQL (postgres://…) in place of a file in the folder.")
    new_mode: bool = option(default=True, help="Process events that name a batch.", variable="NEW_MODE_ENABLED")
    legacy_mode: bool = option(
        default=True, help="Process messages of the older forms.", variable="LEGACY_MODE_ENABLED"
    )
    canary: float = option(1.0, "The share of new events to process; the others are held.", low=0, high=1)
    workers: int = option(5, "Batches at once.", low=1, high=64, variable="MAX_CONCURRENT_BATCHES",
                          seed="max-concurrent-batches")  # fmt: skip
    prefetch: int = option(1, "Messages that each worker may have.", low=1, high=100,
                           variable="RABBITMQ_PREFETCH_COUNT", seed="rabbitmq-prefetch-count")  # fmt: skip
    tries: int = option(5, "How often an object that is not there is looked for, after 1, 2, 4 … s.", low=1, high=12)
    pipeline: str = option(BUILT_IN, "What judges posts, as module:function.")
    job_ids: Literal["safe", "seed"] = option(
        "safe", "How a job's id names its project: safe knows none where two are possible, seed is seed 002's function."
    )
    results: bool = option(default=False, help="Publish analyze.result to results.inbound after each batch.")
    drain: bool = option(default=False, help="End when the queues are empty.")
    duration: Seconds | None = option(None, "Stop after this time.", low=0.1)
    readers: ReaderCount = option(AUTO, "Processes that read and judge; 0 does it in this one.", low=AUTO, high=256)
    database_pool_size: int = option(20, "Connections to PostgreSQL, at most; as many are opened as are used.", low=1,
                                     high=1000, variable="DATABASE_POOL_SIZE")  # fmt: skip
    database_max_overflow: int = option(10, "Connections beyond these.", low=0, high=1000,
                                        variable="DATABASE_MAX_OVERFLOW")  # fmt: skip
    async_database_pool_size: int = option(10, "Connections for the API, at most.", low=1, high=1000,
                                           variable="ASYNC_DATABASE_POOL_SIZE")  # fmt: skip
    port: int | None = option(None, "Serve the API at this port.", low=0, high=65535)
    api_bind: str = option("127.0.0.1", "The address of the API; others than this machine's need a token.")
    token: Secret | None = option(None, "The admin's token; by default one is written into the folder.")
    follower_token: Secret | None = option(None, "A token that only reads.")
    metrics_port: int | None = option(9090, "Serve metrics for Prometheus at this port; 0: nowhere.", low=0, high=65535)

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, Any]

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - checked by the options
        super().__init__(**values)
        object.__setattr__(self, "given", values)
        if len(set(self.queue_name)) < len(self.queue_name):
            raise OptionError("--queue-name: a queue is given twice; give it once")
        if ":" not in self.pipeline:
            raise OptionError(f"--pipeline: found {self.pipeline[:60]!r}, expected module:function")


class PublishOptions(Options, table="events", title="What is published"):
    """What `events publish` takes."""

    files: tuple[Path, ...] = option((), "Messages, one in each line; - is standard input.", argument="FILE")
    out: Path | None = option(None, "The folder of a run, into whose queue they go.")
    broker: Secret | None = option(None, "RabbitMQ (amqp://…) in place of a folder.")
    queue_name: str = option("", "A queue there; by default the exchange smap.events with data.collected.")


class ReplayOptions(Options, table="events", title="What comes again"):
    """What `events replay` takes."""

    out: Path | None = option(None, "The folder of a run whose queue is meant.")
    broker: Secret | None = option(None, "RabbitMQ (amqp://…) in place of a folder.")
    queue_name: str = option("analytics.data.collected", "The queue to which they go back.")
    parked: bool = option(default=False, help="Put back what was parked beside it, in its order.")
    dead: bool = option(default=False, help="Put back what could not be processed, after it was mended.")

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        if self.parked == self.dead:
            raise OptionError("expected --parked or --dead")


class MigrateOptions(Options, table="events", title="What is migrated"):
    """What `events migrate` takes."""

    to: Literal["head", "base"] = option("head", "head adds our columns and tables, base takes them away.",
                                         argument="REVISION")  # fmt: skip
    database: Secret = option(REQUIRED, "PostgreSQL (postgres://…).")
    yes: bool = option(default=False, help="Do what takes something away.")
