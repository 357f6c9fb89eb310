"""Options of every run: what it prints, and its metrics."""

from typing import Literal

from sanderling.options import Options, option


class ObserveOptions(Options, table="", title="Screen, logs and metrics"):
    """How a run shows what it does."""

    quiet: bool = option(default=False, help="Show nothing while it runs; errors and the end are printed.")
    json: bool = option(default=False, help="Print the report at the end as one line of JSON.")
    color: bool = option(default=True, help="Use colors on a terminal; the variable NO_COLOR turns them off too.")
    log: Literal["text", "json"] = option("text", "How logs are written to standard error.")
    verbose: bool = option(default=False, help="Log each request and each decision as well.")
    metrics_port: int | None = option(None, "Serve metrics for Prometheus at this port.", low=1, high=65535)
    metrics_bind: str = option("127.0.0.1", "The address at which metrics are served.")
