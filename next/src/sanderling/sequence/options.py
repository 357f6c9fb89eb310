"""What people set for `sequence crawl`: the flags of seed 000 by their names, and our own."""

from pathlib import Path
from typing import Any, Literal

from sanderling.fetch.options import RequestOptions
from sanderling.forms import Durations
from sanderling.limit import LimitOptions
from sanderling.observe.alerts import AlertOptions
from sanderling.observe.options import ObserveOptions
from sanderling.options import REQUIRED, OptionError, option
from sanderling.records.handover import HandoverOptions

LARGEST_ID = 2**63 - 1


class TargetOptions(HandoverOptions, table="sequence", title="Where records go"):
    """Places for records besides the folder."""

    database: str = option(
        "", "Write records to this database too: postgres://… or sqlite:FILE; a new folder starts at its latest id."
    )
    raw: str = option("", "Write the JSON of records to ClickHouse: clickhouse://…, host:8123 or chdb:FOLDER.")
    queue: str = option("", "The RabbitMQ between `sequence crawl` and `sequence store`: amqp://user:password@host/.")
    store_queue: str = option("InstanceStore", "The name of its queue of records.")
    retry_queue: str = option("InstanceRetry", "The name of its queue of refused and hidden ids.")


class SequenceOptions(TargetOptions, RequestOptions, ObserveOptions, AlertOptions, table="sequence", title="Which ids"):
    """What `sequence crawl` takes."""

    api: str = option(
        "", "The address of a record with {id} in it, a description (.toml, .py), or the name of one.", argument="API"
    )
    out: Path = option(REQUIRED, "The folder for the records; a run that was stopped goes on there.")
    base: str = option("", "Where the API of a description is: its address up to the path.")
    id: str = option("", "Where the id is in a record, as a path of JMESPath.", plan=True)
    time: str = option("", "Where a record says when it came to be, as a path of JMESPath.", plan=True)
    begin: int | None = option(None, "The first id.", low=0, high=LARGEST_ID)
    until: int | None = option(None, "The last id; the run ends when each id has been decided.", low=0, high=LARGEST_ID)
    target: int | None = option(None, "Start --buffer ids before this one.", low=0, high=LARGEST_ID)
    buffer: int = option(10_000, "How far before --target, or before the latest record, to start.", low=0)
    from_latest: bool = option(
        default=False, help="Start --buffer ids before the latest record, whatever position was saved."
    )
    dev: bool = option(default=False, help="Take some ids only, for a quick look.", plan=True)
    dev_skip: int = option(4, "With --dev, ids that are left out after each.", low=0, high=10**9, plan=True)
    workers: int = option(25, "Requests in flight at the start.", low=1, high=10_000)
    min_workers: int = option(5, "Requests in flight at least, where there is work.", low=1, high=10_000)
    max_workers: int = option(250, "Requests in flight at most.", low=1, high=10_000)
    rps: float | None = option(
        40.0,
        "Requests per second at most; less where the host allows less. 40 is what the original allows one address.",
        low=1e-4,
    )
    limits: LimitOptions = option(LimitOptions(initial_rps=8.0), "Where a host's rate begins and may go.")
    scaling: Literal["guarded", "atlas"] = option(
        "guarded", "How the number of workers is found: guarded follows what arrives, atlas is the seed's own law."
    )
    prometheus: str = option("", "The Prometheus that scrapes us; readings are counted in the process without it.")
    revisit: Durations = option(
        "", "Request each record again so long after it was stored, as in 36h,30d: its newest state is kept."
    )

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, Any]

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - checked by each option
        super().__init__(**values)
        object.__setattr__(self, "given", values)
        if not self.min_workers <= self.max_workers:
            raise OptionError(f"--min-workers is {self.min_workers} and --max-workers {self.max_workers}")
        if not self.dev and "dev_skip" in values and "dev" not in values:
            raise OptionError("--dev-skip needs --dev")
        if self.until is not None and self.begin is not None and self.until < self.begin:
            raise OptionError(f"--until is {self.until}, before --begin {self.begin}")

    @property
    def first_workers(self) -> int:
        """Workers to begin with, within the bounds."""
        return min(self.max_workers, max(self.min_workers, self.workers))

    @property
    def stride(self) -> int:
        """From one id to the next."""
        return self.dev_skip + 1 if self.dev else 1


class StoreOptions(TargetOptions, ObserveOptions, table="sequence", title="What is stored"):
    """What `sequence store` takes."""

    folder: Path | None = option(None, "The folder of a sequence; none with --queue.", argument="FOLDER")
    once: bool = option(default=False, help="With --queue, end when the queue is empty.")
