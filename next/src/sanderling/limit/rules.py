"""The numbers of a limiter: the 21 fields of seed 003's RateLimitConfig under its names, and four of our own."""

from collections.abc import Iterator

from sanderling.forms import Seconds
from sanderling.ids import HostError, normalise_host_pattern
from sanderling.options import OptionError, Options, option

# Who is told to wait longer gives up; the bound only keeps arithmetic sane.
LONGEST_WAIT = 366 * 86400.0
# Buckets of the error window. More would cost memory, and no decision needs them.
MOST_BUCKETS = 1000


class LimitOptions(Options, table="limits"):
    """Where a host's rate begins and may go, when its circuit opens, and how retries wait.

    Defaults are those of seed 003 where it gives one, else those of its first implementation.
    """

    enabled: bool = option(default=True, help="Pace requests; false is the policy none, for hosts of your own.")
    initial_rps: float = option(2.0, "Requests per second to a new host.", low=1e-4)
    min_rps: float = option(0.25, "Requests per second that the rate does not fall below.", low=1e-4)
    max_rps: float = option(8.0, "Requests per second that the rate does not exceed.", low=1e-4)
    token_bucket_capacity: float = option(
        4.0,
        "Requests that may leave at once after a pause; the governor allows at most those of 50 ms.",
        low=1,
        high=1e6,
    )
    aimd_increase: float = option(0.25, "Requests per second added by each fast success (aimd).", low=1e-4)
    aimd_decrease: float = option(
        0.5, "What is left of the rate after a refusal, a failure or a slow response (aimd).", low=0.01, high=0.99
    )
    latency_target: Seconds = option(1.0, "The latency that counts as fast for a new host (aimd).", low=1e-3)
    latency_degrade_factor: float = option(
        2.0, "A response is slow from this many times the usual latency on (aimd).", low=1, high=1000
    )
    error_rate_threshold: float = option(
        0.5, "The share of failures in the window that opens the circuit.", low=0.01, high=1
    )
    min_samples_to_trip: int = option(10, "Responses in the window before its share of failures counts.", low=1)
    consecutive_fail_threshold: int = option(5, "Failures in a row that open the circuit.", low=1)
    open_state_duration: Seconds = option(15.0, "How long an open circuit rests before it is probed.", low=1e-3)
    half_open_probes: int = option(
        3, "Probes that may be in flight, and must succeed, to close the circuit (aimd).", low=1, high=1000
    )
    retry_base_delay: Seconds = option(0.2, "The longest pause before the second try; it doubles each time.", low=1e-3)
    retry_max_delay: Seconds = option(5.0, "The longest pause before any try.", low=1e-3)
    retry_max_attempts: int = option(3, "Tries of one request, the first included.", low=1, high=1000)
    stats_window: Seconds = option(30.0, "The window over which failures are counted.", low=1e-3)
    stats_bucket: Seconds = option(2.0, "The steps in which that window moves on.", low=1e-3)
    domain_state_ttl: Seconds = option(120.0, "How long a host without requests stays in memory.", low=1e-3)
    shards: int = option(16, "Accepted, without effect: on one event loop nothing contends for a lock.", low=1)

    throttled_after: Seconds = option(0.0, "A request that waited longer counts as throttled.", low=0)
    max_hosts: int = option(100_000, "Hosts in memory.", low=1)
    transient_codes: tuple[int, ...] = option(
        (429, 502, 503, 504), "Statuses that are worth a retry.", low=100, high=999
    )
    permanent_codes: tuple[int, ...] = option(
        (400, 401, 403, 404), "Statuses that are never tried again, transient or not.", low=100, high=999
    )

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, object]

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        object.__setattr__(self, "given", values)
        # A bound that still has its default makes room for one that was set.
        if "min_rps" not in values:
            self.__dict__["min_rps"] = min(self.min_rps, self.max_rps, self.initial_rps)
        if "initial_rps" not in values and self.min_rps <= self.max_rps:
            self.__dict__["initial_rps"] = self.clamp(self.initial_rps)
        if not self.min_rps <= self.initial_rps <= self.max_rps:
            raise OptionError(
                f"min_rps is {self.min_rps:g}, initial_rps {self.initial_rps:g} and max_rps {self.max_rps:g}; "
                "expected min_rps <= initial_rps <= max_rps"
            )
        if self.stats_window < self.stats_bucket:
            raise OptionError(
                f"stats_window is {self.stats_window:g} s and stats_bucket {self.stats_bucket:g} s; "
                "expected a window of at least one bucket"
            )
        if self.stats_window > MOST_BUCKETS * self.stats_bucket:
            raise OptionError(
                f"stats_window is {self.stats_window:g} s and stats_bucket {self.stats_bucket:g} s; "
                f"expected at most {MOST_BUCKETS} buckets in a window"
            )
        if self.retry_max_delay < self.retry_base_delay:
            raise OptionError(
                f"retry_base_delay is {self.retry_base_delay:g} s and retry_max_delay {self.retry_max_delay:g} s; "
                "expected retry_base_delay <= retry_max_delay"
            )

    def over(self, general: "LimitOptions", origin: str) -> "LimitOptions":
        """These limits, and where they say nothing the `general` ones."""
        try:
            return LimitOptions(**{**general.given, **self.given})
        except OptionError as error:
            raise OptionError(f"{origin}: {error}") from None

    def clamp(self, rate: float) -> float:
        """The allowed rate nearest to `rate`."""
        return min(self.max_rps, max(self.min_rps, rate))


def patterns_of(host: str) -> Iterator[str]:
    """The patterns that could name a host, the one that says most first: `api.example.org`, `*.example.org`, `*`."""
    yield host
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name != host:
        yield name
    while name:
        yield f"*.{name}"
        name = "" if name.startswith("[") else name.partition(".")[2]
    yield "*"


def normalise_pattern(text: str) -> str:
    """A pattern of hosts in its one spelling."""
    if text == "*":
        return text
    try:
        return normalise_host_pattern(text)
    except HostError:
        raise OptionError(
            f'[hosts."{text[:60]}"]: expected a host like api.example.org, *.example.org for all below it, or *'
        ) from None
