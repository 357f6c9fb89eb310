"""The flags of `sanderling polling run`, and what each group of them makes."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.apis.json_source import JsonSource
from sanderling.apis.polled import PolledSource
from sanderling.apis.polled_replies import LARGEST
from sanderling.apis.trackside import Trackside
from sanderling.cli import CommandError
from sanderling.cli.sequence_flags import read
from sanderling.clock import Clock
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.polling.settings import PREFIX
from sanderling.polling.sinks import QueueSink, Sink, WebhookSink
from sanderling.stores.queue import QueueError, open_queue
from sanderling.web.access import AccessError, Token, token_from

WEBHOOK, SECRET = "SANDERLING_POLLING_WEBHOOK", "SANDERLING_POLLING_WEBHOOK_SECRET"  # variables that hold secrets
CONNECTIONS = 64
SLOWEST_RPS = 0.25


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Whom to ask."""

    trackside: Annotated[str | None, Parameter(env_var="SANDERLING_TRACKSIDE")] = None
    """The web server of a race timing program: http://host:8080."""

    source: Path | None = None
    """A TOML file that describes any other JSON API in a section [source]."""

    timeout: Annotated[float, Parameter(validator=Number(gt=0, lte=600))] = 5.0
    """Seconds that an answer may take."""

    max_rps: Annotated[float, Parameter(validator=Number(gt=0, lte=100_000))] = 100.0
    """Requests a second at most; how many the host allows is learned."""

    contact: str | None = None
    """Where the owner of the host can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, and hosts without TLS, which are refused otherwise."""

    def describe(self) -> PolledSource:
        """The source. Raises CommandError."""
        if (self.trackside is None) == (self.source is None):
            found = "both are given" if self.trackside else "neither is given"
            raise CommandError(f"--trackside or --source says whom to ask, and {found}; expected one of them", code=2)
        try:
            if self.trackside is not None:
                return Trackside(self.trackside)
            return JsonSource.from_settings(_section(self.source or Path()))
        except ValueError as error:
            raise CommandError(f"{'--trackside' if self.trackside else '--source'}: {error}", code=2) from None

    def client(self, memory: Memory, clock: Clock) -> Http:
        """The client. Raises CommandError."""
        try:
            rules = HttpRules(
                contact=self.contact,
                connect=min(self.timeout, 10.0),
                first_byte=self.timeout,
                idle=self.timeout,
                total=self.timeout,
                most_raw=LARGEST,
                most_decoded=LARGEST,
                connections=CONNECTIONS,
                connections_per_host=CONNECTIONS,
            )
        except ValueError as error:
            raise CommandError(f"--contact: {error}", code=2) from None
        return Http(rules, GuardRules(private=self.private, raw_addresses=self.private), clock=clock, memory=memory)

    def limiter(self, clock: Clock) -> Limiter:
        """What is polled is planned, so it begins at the full rate, and learns from refusals only."""
        rps = self.max_rps
        return Limiter(
            LimiterRules(PaceRules(initial_rps=rps, min_rps=min(SLOWEST_RPS, rps), max_rps=rps)), clock=clock
        )


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often. Each flag writes the setting of that name, where it stays until somebody changes it."""

    full_interval: str | None = None
    """How often to look for what there is to poll, and to refresh the whole; 10s."""

    race_active: str | None = None
    """How often a race is asked for while it is flown; 200ms."""

    race_idle: str | None = None
    """How often any other race is asked for; 10s."""

    results_interval: str | None = None
    """How often results are asked for; 2s."""

    concurrency: int | None = None
    """How many requests may be under way at once; 2."""

    burst: int | None = None
    """How many requests may begin within 200 ms; 10."""

    jitter: str | None = None
    """By how much, at most, a run is moved at random; 150ms, and never more than a twentieth of the interval."""

    lease: str | None = None
    """How long a target stays accelerated unless that is renewed; 30s."""

    budget: float | None = None
    """Requests a second that all targets share by how often they change; 0, which is off."""

    set: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = ()
    """Any other setting, as in channelsMs=60s; may be repeated."""

    disabled: Annotated[bool, Parameter(negative=())] = False
    """Poll nothing: only serve what is there, and what is asked for."""

    def settings(self) -> Iterator[tuple[str, str, str]]:
        """Flag, key and text of each setting that is given."""
        given = {
            "fullIntervalMs": ("--full-interval", self.full_interval),
            "raceActiveMs": ("--race-active", self.race_active),
            "raceIdleMs": ("--race-idle", self.race_idle),
            "resultsMs": ("--results-interval", self.results_interval),
            "concurrency": ("--concurrency", self.concurrency),
            "burst": ("--burst", self.burst),
            "jitterMs": ("--jitter", self.jitter),
            "leaseMs": ("--lease", self.lease),
            "adaptiveBudget": ("--budget", self.budget),
        }
        for key, (flag, value) in given.items():
            if value is not None:
                yield flag, f"{PREFIX}{key}", str(value)
        for each in self.set:
            key, equals, text = each.partition("=")
            if not equals:
                raise CommandError(f"--set: found {each[:60]!r}, expected KEY=VALUE", code=2)
            yield "--set", key.strip(), text.strip()
        yield "--disabled", f"{PREFIX}enabled", "false" if self.disabled else "true"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Who is told: by HTTP, by a webhook, through a queue."""

    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None
    """Serve the admin API and the stream of changes on this port; 0 takes any free one."""

    bind: str = "127.0.0.1"
    """The address for that; any other than this machine's own needs a token."""

    token_file: Path | None = None
    """A file that holds the token for it, instead of SANDERLING_TOKEN."""

    webhook_file: Path | None = None
    """A file that holds the address changes are posted to, instead of SANDERLING_POLLING_WEBHOOK."""

    webhook_secret_file: Path | None = None
    """A file that holds the secret these are signed with, instead of SANDERLING_POLLING_WEBHOOK_SECRET."""

    queue: str | None = None
    """A queue that changes are published to: amqp://… or sqlite:FOLDER."""

    queue_name: str = "polling_changes"
    """What it is called there."""

    keep_changes: Annotated[int, Parameter(validator=Number(gte=1000, lte=10**9))] = 100_000
    """How many changes are kept for those who come back."""

    def token(self, environment: Mapping[str, str] = os.environ) -> Token | None:
        """What lets people in. Raises CommandError."""
        try:
            return token_from(environment, self.token_file)
        except AccessError as error:
            raise CommandError(str(error), code=2) from None

    def sinks(self, clock: Clock, environment: Mapping[str, str] = os.environ) -> dict[str, Sink]:
        """Where changes go, by the name under which it is remembered how far. Raises CommandError."""
        found: dict[str, Sink] = {}
        url = environment.get(WEBHOOK, "") if self.webhook_file is None else read("--webhook-file", self.webhook_file)
        secret = (
            environment.get(SECRET, "")
            if self.webhook_secret_file is None
            else read("--webhook-secret-file", self.webhook_secret_file)
        )
        try:
            if url:
                found["webhook"] = WebhookSink(url, clock, secret.encode())
            if self.queue is not None:
                found["queue"] = QueueSink(open_queue(self.queue, self.queue_name, clock))
        except ValueError as error:
            raise CommandError(f"the address of the webhook: {error}", code=2) from None
        except QueueError as error:
            raise CommandError(f"--queue: {error}", code=2) from None
        return found


def _section(path: Path) -> Mapping[str, object]:
    try:
        document = tomllib.loads(read("--source", path))
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"--source: {path} is no TOML: {error}", code=2) from None
    section = document.get("source")
    if not isinstance(section, dict):
        raise CommandError(f"--source: {path} has no section [source]", code=2)
    return section
