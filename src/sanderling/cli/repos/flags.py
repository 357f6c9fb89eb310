"""The flags of `sanderling repos crawl`: how hosts are asked, and what is kept."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.client import make_transport
from sanderling.cli.command_error import CommandError
from sanderling.cli.flag_files import listing
from sanderling.cli.flags import SETTING, Patient
from sanderling.cli.limits import make_limiter
from sanderling.clock import Clock
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport
from sanderling.formats.repo import Cids
from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.repos.hosts import CLOSE_AFTER, LARGE_RPS
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.plc import EndpointError, host_at
from sanderling.repos.rules import RepoRules

MOST_BODY = 100 * 2**20  # bytes of a repo; the largest known has seventy million
LONGEST = 1200.0  # seconds for one of those, on a slow line
# Bytes that bodies may hold at once: five of the largest repos, or fifty of ten megabytes. Reading one takes three
# times its size for a moment, as many at once as there are cores.
BODIES = 512 * 2**20
RPS = 5.0  # to a host of 100 to 999 repos at most
LONGEST_OPEN = 60.0  # seconds that a failing host is not asked at all


def _listed(_type: object, value: str, *, delimiter: str | None = None) -> list[str]:
    """The words of a variable that holds several."""
    del delimiter  # commas and blanks
    return [word for word in re.split(r"[\s,]+", value) if word]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RepoNetwork(Patient):
    """How hosts are asked."""

    workers: Annotated[int, Parameter(env_var="WORKERS", validator=Number(gte=1, lte=10_000))] = 50
    """Requests in flight at most, to all hosts together."""

    rps: Annotated[float | None, Parameter(env_var="DEFAULT_PDS_RPS", validator=Number(gt=0, lte=1000))] = None
    """Requests a second to a host of 100 to 999 repos at most, 5 by default; smaller ones get 2, larger ones 10."""

    skip_pds: Annotated[
        tuple[str, ...], Parameter(env_var="SKIP_PDS", env_var_split=_listed, negative=()), SETTING
    ] = ()
    """Hosts to leave alone, as https://host.example."""

    leave_out: Path | None = None
    """A file of DIDs and hosts that are never asked for, one per line."""

    def left_out(self) -> RepoLeaveOut:
        """The DIDs and hosts to leave alone. Raises CommandError."""
        try:
            skipped = [host_at(url, plain=True) for url in self.skip_pds]
        except EndpointError as error:
            raise CommandError(f"skip-pds: {error}", code=2) from None
        listed = RepoLeaveOut() if self.leave_out is None else listing("--leave-out", self.leave_out, RepoLeaveOut.read)
        return listed.and_hosts(skipped)

    def transport(self, clock: Clock) -> Transport[Http]:
        """The client and the limiter that go with the flags. Raises CommandError."""
        rules = HttpRules(
            total=LONGEST,
            most_raw=MOST_BODY,
            most_decoded=MOST_BODY,
            connections=self.workers,
            connections_per_host=RepoRules().per_host,
        )
        limiter = self.limiter(clock)
        return make_transport(rules, limiter, BODIES, self.contact, private=self.private, clock=clock)

    def limiter(self, clock: Clock) -> Limiter:
        """A limiter for hosts of repos: it stands back where a host is blocked anyway."""
        most = max(LARGE_RPS, self.most(RPS))
        pace = PaceRules.up_to(most)
        breaker = BreakerRules(consecutive=CLOSE_AFTER, longest=LONGEST_OPEN)
        return make_limiter(LimiterRules(pace=pace, breaker=breaker, strategy=self.pace), clock)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFlags:
    """What is archived, and how."""

    segment_size: Annotated[str, Parameter(env_var="SEGMENT_SIZE"), SETTING] = "2GB"
    """How large a segment grows: bytes, or with KB, MB, GB or TB."""

    zstd_level: Annotated[int, Parameter(env_var="ZSTD_LEVEL", validator=Number(gte=1, lte=19)), SETTING] = 3
    """How hard to compress, from 1 to 19."""

    page_size: Annotated[int, Parameter(env_var="PAGE_SIZE", validator=Number(gte=1, lte=1_000_000)), SETTING] = 50_000
    """DIDs to read from the directory at once."""

    cids: Annotated[Cids, SETTING] = "strip"
    """Whether to keep entries called `cid` in records."""

    directory: str | None = None
    """Which DIDs exist and where: sqlite:PATH, chdb:PATH or clickhouse://…; by default directory.db in the folder."""

    did_file: Path | None = None
    """A file of lines `did https://host` instead of a directory."""

    since_archive: Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)] = ()
    """The folder of an earlier archive: repos that have not changed since are left out; may be repeated."""

    def rules(self, asking: RepoNetwork) -> RepoRules:
        """The rules of the crawl that go with the flags."""
        return RepoRules(
            workers=asking.workers,
            usual_rps=asking.most(RPS),
            page_size=self.page_size,
            patience=asking.patience,
            leave_out=asking.left_out(),
            level=self.zstd_level,
            cids=self.cids,
        )
