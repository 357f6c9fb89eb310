"""The flags that several commands take: each has one name, one meaning and one default, wherever it is.

What few ever change is no flag but a `SETTING`: it is set in sanderling.toml, or by its variable, and cannot be typed.
"""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.limits import Law

SETTING = Parameter(show=False)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReachFlags:
    """Who asks, whom it may ask, and how often at most."""

    rps: Annotated[float | None, Parameter(validator=Number(gt=0, lte=100_000))] = None
    """Requests a second to each host at most; by default 8, of repos 5, of polling 100, of sequence 250."""

    contact: str | None = None
    """Where a host's owner can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, and hosts without TLS, which are refused otherwise."""

    def most(self, usual: float) -> float:
        """Requests a second to each host at most, where `usual` is the default of a system."""
        return usual if self.rps is None else self.rps


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Network(ReachFlags):
    """How hosts are asked: by every crawl."""

    pace: Law = "governor"
    """How the pace of a host is found: governor learns what it allows; aimd is the plain law, to compare with."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Patient(Network):
    """The same for a crawl of many hosts, some of which do not answer."""

    patience: Annotated[float, Parameter(validator=Number(gt=0))] = 600.0
    """Seconds to wait for a host that answers no more; the next run asks for what is left first."""
