"""How a crawl of repos goes about it."""

from dataclasses import dataclass, field

from sanderling.formats.repo import Cids, Limits
from sanderling.repos.leave_out import LeaveOut


@dataclass(frozen=True, slots=True)
class RepoRules:
    """Numbers of a crawl."""

    workers: int = 50  # requests in flight
    usual_rps: float = 5.0  # to a host of middle size
    page_size: int = 50_000
    passes: int = 3  # of each host, the later ones over what failed and may go otherwise
    level: int = 3  # of zstd
    cids: Cids = "strip"
    limits: Limits = field(default_factory=Limits)
    patience: float = 600.0  # seconds with a host that does nothing but refuse us
    per_host: int = 10  # in flight
    leave_out: LeaveOut = field(default_factory=LeaveOut)
