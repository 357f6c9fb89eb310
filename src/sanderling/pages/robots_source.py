"""What a crawl asks next, as far as robots.txt allows: `pages` and jobs that read pages ask for it before all else."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sanderling.crawls.source import FrontierSource, LedgerWriter
from sanderling.engine.backlog import Loader, Q
from sanderling.engine.classes import Class
from sanderling.engine.rules import EngineRules
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import RobotsHost, RobotsWork
from sanderling.pages.permissions import Permissions, RobotsAnswer
from sanderling.pages.robots import Robots
from sanderling.pages.urls import origin_of
from sanderling.stores.frontier_rows import End, HostNote

R = TypeVar("R", bound=RobotsHost[Any])


class RobotsSource(FrontierSource[R, Q, Q | RobotsWork]):
    """Hosts with what waits for them, and the robots.txt of each origin before anything else of it."""

    def __init__(
        self,
        writer: LedgerWriter,
        loader: Loader[R],
        new_host: type[R],
        permissions: Permissions,
        limiter: Limiter,
        rules: EngineRules,
    ) -> None:
        super().__init__(writer, loader, new_host, rules.patience)
        self._permissions = permissions
        self._limiter = limiter
        self._engine_rules = rules

    # What is next.

    def classes(self, host: R, now: float) -> Sequence[Class]:
        """What is due: items that were not asked for yet, and such as were put off."""
        return () if host.learning else super().classes(host, now)

    def due(self, host: R, now: float) -> float | None:
        """When there is next something to take."""
        return None if host.learning else super().due(host, now)

    def take_untried(self, host: R, now: float) -> Q | RobotsWork | None:
        """An item that was not asked for yet, from the far end of what is known."""
        return None if host.learning else super().take_untried(host, now)

    def check_robots(self, host: R, queued: Q, now: float) -> Q | RobotsWork | None:
        """The item if robots.txt allows it, or robots.txt if that comes first."""
        if host.forbidden is not None:
            self.end(host, queued, host.forbidden, End.FAILED, requests=0)
            return None
        origin = origin_of(queued.url)
        if (shut := host.shut_until(origin, now)) is not None:
            if shut.for_good:
                self.withhold(host)
            else:
                host.put_off(queued, shut.until)
            return None
        known = self._permissions.known(origin)
        if known is None:
            host.put_back(queued)
            host.learning = True
            return RobotsWork(origin)
        if known.allows(queued.url):
            return queued
        refusal = Outcome(Code.REFUSED, detail=known.why(queued.url)[:200])
        self.end(host, queued, refusal, End.REFUSED, requests=0)
        return None

    # What became of it.

    def later(self, host: R, work: Q | RobotsWork, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        if isinstance(work, RobotsWork):
            host.learning = False
            host.wait_for(work.key, due, self._clock.now())
        else:
            super().later(host, work, outcome, due)

    def failed(self, host: R, work: Q | RobotsWork, outcome: Outcome, failures: int, due: float | None) -> None:
        """It failed so many times in a row; without a due time, for good."""
        if isinstance(work, RobotsWork):
            self.learned(host, work.key, outcome, None, self._clock.now())
        else:
            super().failed(host, work, outcome, failures, due)

    def learned(self, host: R, origin: str, outcome: Outcome, answer: object, now: float) -> None:
        """The rules of an origin are known, or are not available."""
        host.learning = False
        if isinstance(answer, RobotsAnswer) and answer.rules is not None:
            host.let_in(origin)
            self._heed(host, origin, answer.rules, asked=outcome.code is not Code.DEFERRED)
        elif outcome.code is Code.REFUSED:  # by our own guard, which does not change its mind
            host.forbidden = outcome
        elif host.shut_out(origin, now, self._engine_rules):
            self._writer.add(HostNote(host.name, outcome))

    def announce(self, sitemaps: Sequence[str], url: str) -> None:
        """The robots.txt of an origin names these sitemaps; a job asks only for what its functions name."""

    def _heed(self, host: R, origin: str, known: Robots, *, asked: bool) -> None:
        """Take notice of what robots.txt says beside its rules, when it was asked for, or met for the first time."""
        scheme = origin.partition("://")[0]
        if not asked and scheme in host.heeded:
            return
        if host.answered is None:
            host.answered = self._clock.now()  # in an earlier run
        host.heeded = tuple(dict.fromkeys((*host.heeded, scheme)))
        if known.delay:
            asks = f"robots.txt asks for {known.delay:g} s between requests"
            self._limiter.cap(host.name, 1 / known.delay, asks)
        self.announce(known.sitemaps, f"{scheme}://{host.name}/")
