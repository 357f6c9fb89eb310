"""The flags of `sanderling polling run`, and what each group of them makes."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.apis.json_documents import BRACES
from sanderling.apis.json_source import JsonSource
from sanderling.apis.polled import PolledSource
from sanderling.apis.polled_replies import LARGEST
from sanderling.apis.trackside import Trackside
from sanderling.cli.client import check_reach, make_transport
from sanderling.cli.command_error import CommandError
from sanderling.cli.flag_files import secret, section
from sanderling.cli.flags import SETTING, ReachFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.polling.place import USUAL, PollingFolder
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import Clock
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules
from sanderling.polling.change_sinks import ChangeQueueSink, ChangeSink, WebhookSink
from sanderling.polling.settings import PREFIX, Keys, SettingError
from sanderling.stores.queue import QueueError, open_queue

WEBHOOK, SECRET = "SANDERLING_POLLING_WEBHOOK", "SANDERLING_POLLING_WEBHOOK_SECRET"  # variables that hold secrets
BODIES = 256 * 2**20  # bytes that documents may hold at once
RPS = 100.0  # at most; how many the host allows is learned
CONNECTIONS = 512  # what is live is not bounded by them: 100 requests a second that all hang take 500


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PollingUpstream(ReachFlags):
    """Whom to ask."""

    trackside: Annotated[str | None, Parameter(env_var="SANDERLING_TRACKSIDE")] = None
    """The web server of a race timing program: http://host:8080."""

    source: Path | None = None
    """A TOML file that describes any other JSON API in a section [source]."""

    timeout: Annotated[float, Parameter(validator=Number(gt=0, lte=600)), SETTING] = 5.0
    """Seconds that an answer may take."""

    def describe(self) -> PolledSource:
        """The source. Raises CommandError."""
        if (self.trackside is None) == (self.source is None):
            found = (
                "both are given; expected one of them"
                if self.trackside
                else "neither is given; to try: sanderling demo polling"
            )
            raise CommandError(f"--trackside or --source says whom to ask, and {found}", code=2)
        where = "--trackside" if self.source is None else f"--source: {self.source}"
        described: Trackside | JsonSource
        try:
            if self.source is None:
                described = Trackside(self.trackside or "")
                urls = [described.base]
            else:
                described = JsonSource.from_settings(section("--source", self.source, "source"))
                urls = [BRACES.sub("", each.url) for each in described.documents.values()]
        except ValueError as error:
            raise CommandError(f"{where}: {error}", code=2) from None
        check_reach(where, urls, private=self.private)
        return described

    def transport(self, clock: Clock) -> Transport[Http]:
        """The client and its limiter. Raises CommandError."""
        rules = HttpRules(
            connect=min(self.timeout, 10.0),
            first_byte=self.timeout,
            idle=self.timeout,
            total=self.timeout,
            most_raw=LARGEST,
            most_decoded=LARGEST,
            connections=CONNECTIONS,
            connections_per_host=CONNECTIONS,
        )
        return make_transport(rules, self.limiter(clock), BODIES, self.contact, private=self.private, clock=clock)

    def limiter(self, clock: Clock) -> Limiter:
        """The limiter. What is polled is planned: it begins at the full rate, and learns from refusals only."""
        return make_limiter(LimiterRules.contract(self.most(RPS)), clock)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PollingPace:
    """How often. A setting of polling that is given here stays until somebody changes it."""

    set: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = ()
    """A setting of polling, as in raceActiveMs=250ms; may be repeated. `polling settings` lists them."""

    disabled: Annotated[bool, Parameter(negative=())] = False
    """Poll nothing: only serve what is there, and what is asked for."""

    def checked(self, source: PolledSource) -> dict[str, str]:
        """The settings that are given, by key. Raises CommandError for those that this source cannot have."""
        keys = Keys(source.kinds)
        found: dict[str, str] = {}
        for flag, key, text in self._given():
            try:
                canonical, value = keys.checked(full_key(key), text)
            except SettingError as error:
                raise CommandError(f"{flag}: {error}", code=2) from None
            found[canonical] = value
        return found

    def _given(self) -> Iterator[tuple[str, str, str]]:
        """Flag, key and text of each."""
        for each in self.set:
            key, equals, text = each.partition("=")
            if not equals:
                raise CommandError(f"--set: found {each[:60]!r}, expected KEY=VALUE", code=2)
            yield "--set", key.strip(), text.strip()
        if self.disabled:
            yield "--disabled", "enabled", "false"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSinks:
    """Who is told what changed, and for how long: by a webhook, through a queue."""

    webhook_file: Annotated[Path | None, SETTING] = None
    """A file that holds the address changes are posted to, instead of SANDERLING_POLLING_WEBHOOK."""

    webhook_secret_file: Annotated[Path | None, SETTING] = None
    """A file that holds the secret these are signed with, instead of SANDERLING_POLLING_WEBHOOK_SECRET."""

    queue: str | None = None
    """A queue that changes are published to: amqp://… or sqlite:FOLDER."""

    queue_name: Annotated[str, SETTING] = "polling_changes"
    """What it is called there."""

    keep_changes: Annotated[int, Parameter(validator=Number(gte=1000, lte=10**9)), SETTING] = 100_000
    """How many changes are kept for those who come back."""

    def sinks(self, clock: Clock, environment: Mapping[str, str] = os.environ) -> dict[str, ChangeSink]:
        """Where changes go, by the name under which it is remembered how far. Raises CommandError."""
        found: dict[str, ChangeSink] = {}
        url = secret("webhook-file", self.webhook_file, WEBHOOK, environment)
        signed = secret("webhook-secret-file", self.webhook_secret_file, SECRET, environment)
        try:
            if url:
                found["webhook"] = WebhookSink(url, clock, signed.encode())
            if self.queue is not None:
                found["queue"] = ChangeQueueSink(open_queue(self.queue, self.queue_name, clock))
        except ValueError as error:
            raise CommandError(f"the address of the webhook: {error}", code=2) from None
        except QueueError as error:
            raise CommandError(f"--queue: {error}", code=2) from None
        return found


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyFlags:
    """Whether others may poll as well, each in its turn."""

    standby: Annotated[bool, Parameter(negative=())] = False
    """Wait while another process polls this PostgreSQL, and take over when it ends or is cut off."""

    def check(self, place: PollingFolder, *, once: bool) -> None:
        """Raise CommandError where nobody can take turns."""
        if self.standby and place.url.partition(":")[0] not in ("postgresql", "postgres"):
            raise CommandError("--standby is for a database that several machines reach: --database postgresql://…", 2)
        if self.standby and once:
            raise CommandError("--once ends by itself and --standby waits for its turn; expected one of them", code=2)


@dataclass(frozen=True, slots=True)
class PollFlags:
    """All flags of polling, but for those that watch it."""

    place: PollingFolder = USUAL
    upstream: PollingUpstream = field(default_factory=PollingUpstream)
    pace: PollingPace | None = field(default_factory=PollingPace)  # None leaves all settings as they are
    serving: Serving = UNSERVED
    telling: ChangeSinks = field(default_factory=ChangeSinks)
    turns: StandbyFlags = field(default_factory=StandbyFlags)

    @property
    def standby(self) -> bool:
        """Whether others may poll as well, each in its turn."""
        return self.turns.standby


def full_key(key: str) -> str:
    """The key of a setting, whether or not it was given with the part that all of them have."""
    return key if key.lower().startswith(PREFIX) else f"{PREFIX}{key}"
