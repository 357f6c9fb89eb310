"""What people set for `polling run` and `polling set`, with the names of seed 004."""

from pathlib import Path
from typing import Any, Literal

from sanderling.fetch.options import RequestOptions
from sanderling.forms import Seconds, Url
from sanderling.observe.alerts import AlertOptions
from sanderling.observe.options import ObserveOptions
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.redact import Secret


class PollingOptions(RequestOptions, ObserveOptions, AlertOptions, table="polling", title="What is polled"):
    """What `polling run` takes."""

    url: Url = option("", "The web server of FPVTrackside, as in http://localhost:8080.", argument="URL")
    out: Path = option(REQUIRED, "The folder for what is polled; a run that was stopped goes on there.")
    documents: Path | None = option(None, "A TOML file of JSON documents to poll, in place of a Trackside.")
    database: Secret | None = option(None, "A PostgreSQL database (postgres://…) in place of a file in the folder.")
    schema: str = option("sanderling", "The schema in that database.")
    full_interval: Seconds = option(
        10.0, "Time between two discoveries, and between two polls of what describes an event.", low=0.1,
        seed="ingest-full-interval",
    )  # fmt: skip
    race_active: Seconds = option(0.2, "Time between two polls of the race that runs.", low=0.05,
                                  seed="ingest-race-active")  # fmt: skip
    race_idle: Seconds = option(5.0, "Time between two polls of any other race.", low=0.1, seed="ingest-race-idle")
    results_interval: Seconds = option(
        2.0, "Time between two polls of the results; 0: never.", low=0, seed="ingest-results-interval"
    )
    concurrency: int = option(1, "Requests in flight at most.", low=1, high=64, seed="ingest-concurrency")
    burst: int = option(2, "Due targets taken each 200 ms at most.", low=1, high=1000, seed="ingest-burst")
    enabled: bool = option(default=True, help="Poll; false only serves what is known.", seed="ingest-enabled")
    next_race: Literal["second", "idle"] = option(
        "second", "How often the next race is polled: each second, or as any other that does not run."
    )
    once: bool = option(default=False, help="Poll each target once, and end.")
    duration: Seconds | None = option(None, "Stop after this time.", low=0.1)
    port: int = option(8700, "The port of the API; 0 takes any.", low=0, high=65535)
    bind: str = option("127.0.0.1", "The address of the API; others than this machine's need a token.")
    token: Secret | None = option(None, "The admin's token; by default one is written into the folder.")
    follower_token: Secret | None = option(None, "A token that only reads.")
    origin: tuple[str, ...] = option((), "A page of this origin may read, as in https://example.org.")
    private: bool = option(default=True, help="Request private addresses too: your own machine and network.")
    timeout: Seconds = option(10.0, "How long the upstream may be silent within a response.", low=0.1, high=3600)

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, Any]

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        object.__setattr__(self, "given", values)
        if bool(self.url) == (self.documents is not None):
            raise OptionError("expected either URL, as in http://localhost:8080, or --documents FILE")


class SetOptions(Options):
    """Options of `polling set`."""

    folder: Path = option(REQUIRED, "The folder of a run, as --out named it.", argument="FOLDER")
    values: tuple[str, ...] = option((), "What to set, as in raceIdleMs=3000; without any, all are listed.",
                                     argument="KEY=VALUE")  # fmt: skip
