"""How a crawl of repos goes about it."""

from dataclasses import dataclass, field

from sanderling.engine.writer import WriterRules
from sanderling.formats.repo import Cids, Limits
from sanderling.repos.leave_out import RepoLeaveOut


@dataclass(frozen=True, slots=True)
class RepoRules:
    """Numbers of a crawl."""

    workers: int = 50  # requests in flight
    usual_rps: float = 5.0  # to a host of middle size
    page_size: int = 50_000
    level: int = 3  # of zstd
    cids: Cids = "strip"
    limits: Limits = field(default_factory=Limits)
    patience: float = 600.0  # seconds with a host, or a repo, that gives us nothing but refusals and failures
    first_patience: float = 15.0  # seconds with a host that never answered: most likely it does not exist
    again: tuple[float, ...] = (2.0, 10.0, 30.0)  # seconds until a repo that failed is asked for again
    per_host: int = 10  # in flight
    leave_out: RepoLeaveOut = field(default_factory=RepoLeaveOut)
    writing: WriterRules | None = None  # when what came of repos is written, if not as usual
