"""Ask for one id, whoever wants to know: the main lane, the lane of what was missed, a probe."""

from dataclasses import dataclass

from sanderling.apis.numbered import Answer, NumberedApi, unanswered
from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.flow.memory import Memory
from sanderling.ids import Host
from sanderling.limit import BackoffRules, BreakerRules, Limiter, LimiterRules, PaceRules, Permit
from sanderling.outcome import Outcome
from sanderling.sequence.measures import Measures
from sanderling.task import Reply, Task

# Ids fail by themselves, up to half of them, and for ever: that the host fails is known when all of so many do.
BREAKER = BreakerRules(consecutive=20)


def limits(pace: PaceRules) -> LimiterRules:
    """What a crawl asks of its limiter. Trying again is the crawl's: an id that waits holds no worker."""
    return LimiterRules(pace=pace, breaker=BREAKER, backoff=BackoffRules(attempts=1))


@dataclass(slots=True)
class Asker:
    """All there is to ask with."""

    api: NumberedApi
    fetcher: Fetcher
    limiter: Limiter
    memory: Memory
    clock: Clock
    measures: Measures

    @property
    def host(self) -> Host:
        """Who is asked."""
        return self.api.task(0, 1).host

    async def ask(self, number: int, malformed: int = 0, permit: Permit | None = None) -> Answer:
        """What came of it. Without a permit it waits for its turn."""
        answers: list[Answer] = []

        def read(reply: Reply, general: Outcome) -> Outcome:
            answers.append(self.api.read(number, reply, general, self.clock.wall()))
            return answers[-1].outcome

        started = self.clock.now()
        fetched = await self.fetcher.fetch(self.api.task(number, malformed + 1), permit, read)
        self._let_go(fetched.reply)
        # A fetch that sent nothing, or whose body was not to be read, has no answer of the API's.
        answer = answers[-1] if answers and answers[-1].outcome is fetched.outcome else unanswered(fetched.outcome)
        if fetched.requests:
            self.measures.remark(number, answer)
            self.measures.request(answer, fetched.reply.latency if fetched.reply else self.clock.now() - started)
        return answer

    async def available(self, task: Task) -> bool | None:
        """Whether the API says that it is switched on; None if it does not say."""
        fetched = await self.fetcher.fetch(task)
        self._let_go(fetched.reply)
        return None if fetched.reply is None else self.api.available(fetched.reply)

    def _let_go(self, reply: Reply | None) -> None:
        if reply is not None:
            self.memory.release(reply.url)
