"""The flags of `sanderling sequence crawl`, and what each group of them makes."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.apis.bungie import Bungie
from sanderling.apis.json_ids import JsonIds
from sanderling.apis.numbered import LARGEST_ID, NumberedApi
from sanderling.cli.alerting import NOBODY, Alerting
from sanderling.cli.client import check_reach, make_transport
from sanderling.cli.command_error import CommandError
from sanderling.cli.events.onward import NOWHERE, Onward
from sanderling.cli.flag_files import read, secret, section
from sanderling.cli.flags import SETTING, Network
from sanderling.cli.limits import make_limiter
from sanderling.cli.sequence.place import EMBEDDED, USUAL, SequenceFolder, SequenceStores
from sanderling.clock import Clock
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport
from sanderling.ids import HostError, host_of
from sanderling.limit import Limiter, PaceRules
from sanderling.observe.prometheus import TOKEN, PrometheusServer
from sanderling.redact import is_secret
from sanderling.sequence.guard import ScalingGuardRules
from sanderling.sequence.inquiries import limits
from sanderling.sequence.lookout import LookRules
from sanderling.sequence.readings import PrometheusRules
from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.state import BUFFER
from sanderling.sequence.system import SequenceRules

KEY = "BUNGIE_API_KEY"  # a variable that holds a secret
BASE = "https://stats.bungie.net"  # where the reports are
MOST_BODY = 32 * 2**20  # bytes of a record; the largest reports have some hundred thousand
BODIES = 256 * 2**20  # bytes that records may hold at once
FIRST_BYTE, TOTAL = 15.0, 30.0  # seconds; who is slower is asked again later, and holds no worker meanwhile
RPS = 250.0  # at most; how many the host allows is learned
SKIP = 4  # ids between two that are asked, in dev mode

# Many APIs answer an error with a 200, which would be stored as a record.
NO_WAY_TO_TELL = """--url: nothing tells a record from an error that comes with a 200. Expected one of
  --id-path id             where a record has its own id
  --record-if created_at   what is true of records only; --record-if . takes every 200 for a record"""

Rule = Literal["one-window", "dead-zone", "slew", "little", "knee", "pacing"]
Id = Number(gte=0, lte=LARGEST_ID)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceUpstream(Network):
    """Whom to ask: an API that is known, or any that is described."""

    api: Literal["bungie"] = "bungie"
    """An API that is known; its key is in BUNGIE_API_KEY."""

    base: Annotated[str | None, Parameter(env_var="SANDERLING_UPSTREAM")] = None
    """Where it is, if not where it usually is: a proxy, or a simulated one."""

    key_file: Annotated[Path | None, SETTING] = None
    """A file that holds the key, instead of BUNGIE_API_KEY."""

    url: str | None = None
    """Any other JSON API: https://host/path/{id}."""

    missing: str | None = None
    """With --url: how it says that there is nothing, as in 'error.code = 404'; by default a 404, a 410 or null."""

    timestamp: Annotated[str | None, SETTING] = None
    """With --url: where a record says when it came to be, as in 'data.created'."""

    keep_if: Annotated[str | None, SETTING] = None
    """With --url: which records to keep, as in 'type = "raid"'; by default all."""

    id_path: str | None = None
    """With --url: where a record has its own id, to be compared; this or --record-if is required."""

    record_if: str | None = None
    """With --url: what is true of records only, as in 'created_at' or 'status = "ok"'; '.' takes every 200 for one."""

    header: Annotated[tuple[str, ...], Parameter(negative=()), SETTING] = ()
    """With --url: headers for each request, 'Name: value'."""

    header_file: Annotated[Path | None, SETTING] = None
    """With --url: a file of such lines, for those that are secret."""

    api_file: Path | None = None
    """A TOML file that describes any other API in a section [api]."""

    def describe(self, environment: Mapping[str, str] = os.environ) -> NumberedApi:
        """The API. Raises CommandError."""
        self._check()
        flag = f"--api-file: {self.api_file}" if self.api_file else "--url" if self.url else "--base"
        try:
            described = self._described(environment)
        except ValueError as error:
            raise CommandError(f"{flag}: {error}", code=2) from None
        check_reach(flag, [described.task(1, 1).url], private=self.private)
        return described

    def _described(self, environment: Mapping[str, str]) -> NumberedApi:
        if self.api_file is not None:
            return JsonIds.from_settings(section("--api-file", self.api_file, "api"))
        if self.url is not None:
            return JsonIds.from_settings(dict(self._settings(self.url)))
        return Bungie(self.base or BASE, self._key(environment))

    def _check(self) -> None:
        described: dict[str, object] = {"--url": self.url, "--missing": self.missing, "timestamp": self.timestamp}
        described |= {"keep-if": self.keep_if, "--id-path": self.id_path, "--record-if": self.record_if}
        described |= {"header-file": self.header_file}
        used = [flag for flag, value in described.items() if value is not None] + ["header"] * bool(self.header)
        if self.api_file is not None and used:
            raise CommandError(f"{used[0]} and --api-file both describe an API; expected one of them", code=2)
        if used and self.url is None:
            raise CommandError(f"{used[0]} goes with --url, which is not given", code=2)
        known = [flag for flag, value in (("--base", self.base), ("key-file", self.key_file)) if value is not None]
        if known and (self.url is not None or self.api_file is not None):
            raise CommandError(f"{known[0]} goes with --api {self.api}, and not with another API", code=2)
        if self.url is not None and self.id_path is None and self.record_if is None:
            raise CommandError(NO_WAY_TO_TELL, code=2)

    def _key(self, environment: Mapping[str, str]) -> str:
        key = secret("key-file", self.key_file, KEY, environment)
        if not key and self.base is None:
            raise CommandError(
                f"{self.api} wants a key: put it into {KEY}, or name its file as key-file in [sequence.crawl]", code=2
            )
        return key

    def _settings(self, url: str) -> Iterator[tuple[str, object]]:
        yield "name", _name(url)
        yield "url", url
        rules = {"id": self.id_path, "record_if": self.record_if, "missing": self.missing, "keep_if": self.keep_if}
        for key, value in {**rules, "timestamp": self.timestamp}.items():
            if value is not None:
                yield key, value
        lines = [] if self.header_file is None else read("header-file", self.header_file).splitlines()
        for name, _ in map(_header, self.header):
            if is_secret(name):
                raise CommandError(f"header: {name} is a secret, which others could see; use header-file", code=2)
        yield "headers", dict(map(_header, [*self.header, *filter(str.strip, lines)]))

    def limiter(self, clock: Clock) -> Limiter:
        """The limiter that goes with the flags."""
        return make_limiter(replace(limits(PaceRules.up_to(self.most(RPS))), strategy=self.pace), clock)

    def transport(self, workers: int, clock: Clock) -> Transport[Http]:
        """The client for so many workers, with the limiter. Raises CommandError."""
        rules = HttpRules(
            first_byte=FIRST_BYTE,
            total=TOTAL,
            most_raw=MOST_BODY,
            most_decoded=MOST_BODY,
            connections=workers,
            connections_per_host=workers,
        )
        return make_transport(rules, self.limiter(clock), BODIES, self.contact, private=self.private, clock=clock)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequencePace:
    """Where to begin and to end, and how fast to go."""

    begin: Annotated[int | None, Parameter(validator=Id)] = None
    """Begin at this id if there is nothing yet; else where the crawl was, or at the latest that is stored."""

    target: Annotated[int | None, Parameter(validator=Id)] = None
    """Begin at this id each time, wherever the crawl was."""

    buffer: Annotated[int, Parameter(validator=Number(gte=0, lte=10**9)), SETTING] = BUFFER
    """Begin so many ids before --target, or before the latest that is stored."""

    until: Annotated[int | None, Parameter(validator=Id)] = None
    """End when every id up to this one has its fate; by default never."""

    workers: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000))] = 25
    """Requests in flight at most, at first."""

    min_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000)), SETTING] = 5
    """The fewest that there may be."""

    max_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000)), SETTING] = 250
    """The most that there may be."""

    dev: Annotated[bool, Parameter(negative=())] = False
    """Ask for some of the ids only, to try things out."""

    dev_skip: Annotated[int | None, Parameter(validator=Number(gte=0, lte=10**9)), SETTING] = None
    """With --dev: how many ids to leave out between two; 4."""

    without: Annotated[tuple[Rule, ...], Parameter(negative=()), SETTING] = ()
    """Switch off rules that keep the workers from overreacting."""

    def rules(self) -> SequenceRules:
        """The rules of the crawl that go with the flags. Raises CommandError."""
        if self.begin is not None and self.target is not None:
            raise CommandError("--begin and --target both say where to begin; expected one of them", code=2)
        if not self.min_workers <= self.workers <= self.max_workers:
            found = f"min-workers {self.min_workers}, workers {self.workers}, max-workers {self.max_workers}"
            raise CommandError(f"{found}: expected them not to decrease in this order", code=2)
        scale = ScaleRules(min_workers=self.min_workers, workers=self.workers, max_workers=self.max_workers)
        guard = replace(ScalingGuardRules(), **{name.replace("-", "_"): False for name in self.without})
        stride = 1 + (SKIP if self.dev_skip is None else self.dev_skip) if self.dev else 1
        return SequenceRules(
            stride=stride, scale=scale, guard=guard, look=LookRules(pacing="pacing" not in self.without)
        )


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusFlags:
    """What the workers are planned by."""

    prometheus: Annotated[str | None, SETTING] = None
    """Plan by the readings of this Prometheus server instead of our own; a token is in SANDERLING_PROMETHEUS_TOKEN."""

    prometheus_match: Annotated[str, SETTING] = ""
    """Which series there are ours, as in 'job="game"'; by default all."""

    def server(self, environment: Mapping[str, str] = os.environ) -> tuple[PrometheusServer, PrometheusRules] | None:
        """The Prometheus that readings come from, if any, and which of its series. Raises CommandError."""
        if self.prometheus is None:
            return None
        try:
            return PrometheusServer(self.prometheus, environment.get(TOKEN, "")), PrometheusRules(self.prometheus_match)
        except ValueError as error:
            raise CommandError(f"prometheus: {error}", code=2) from None


@dataclass(frozen=True, slots=True)
class SequenceFlags:
    """All flags of a crawl, but for those that watch it."""

    place: SequenceFolder = USUAL
    upstream: SequenceUpstream = field(default_factory=SequenceUpstream)
    pace: SequencePace = field(default_factory=SequencePace)
    keeping: SequenceStores = EMBEDDED
    readings: PrometheusFlags = field(default_factory=PrometheusFlags)
    alerting: Alerting = NOBODY
    store: bool = True  # whether what is queued is stored here too
    onward: Onward = NOWHERE


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
        # It is not shown: it may be a secret.
        raise CommandError("header: one of the headers is not like 'Name: value'", code=2)
    return name.strip(), value.strip()


def _name(url: str) -> str:
    """What to call an API that nobody has named: by its host."""
    try:
        host = str(host_of(url.replace("{id}", "1")))
    except (HostError, ValueError):
        return "json"  # what is wrong with the URL is said by whoever takes it apart
    return re.sub("[^a-z0-9]+", "-", host)[:40].strip("-") or "json"
