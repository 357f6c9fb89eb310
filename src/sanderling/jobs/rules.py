"""How a job goes about it."""

from dataclasses import dataclass, field

from sanderling.apis.auth import FormLogin
from sanderling.crawls.session import HostPatterns
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import WriterRules


@dataclass(frozen=True, slots=True)
class JobRules(EngineRules):
    """The engine's numbers, and where to log in."""

    hosts: HostPatterns = field(default_factory=dict)  # the client has the rest of what is set
    writing: WriterRules | None = None  # when a batch is written, if not as usual

    @property
    def logins(self) -> tuple[FormLogin, ...]:
        """The forms to log in with."""
        return tuple(each.login for each in self.hosts.values() if each.login is not None)
