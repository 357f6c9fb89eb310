"""Asks for one id and understands the answer: whoever wants to know, the same way."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sanderling.apis.numbered import NumberedAnswer, NumberedApi, Status, unanswered
from sanderling.clock import Clock
from sanderling.engine.ports import Settled
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Permit
from sanderling.limit.memory import Memory
from sanderling.outcome import Outcome
from sanderling.sequence.inquiries import Inquiry, InquiryAnswer
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.recheck import Check
from sanderling.sequence.retries import NewId
from sanderling.task import Blame, Reply, Task

SequenceWork = NewId | Check | Inquiry


@dataclass(slots=True)
class SequenceHandler:
    """All there is to ask with. `disabled` is called with an id whose answer says that the API is switched off."""

    api: NumberedApi
    fetcher: Fetcher
    memory: Memory
    clock: Clock
    measures: SequenceMeasures
    disabled: Callable[[int], object]

    async def __call__(self, work: SequenceWork, permit: Permit, blame: Blame) -> Settled[InquiryAnswer]:
        """What came of it."""
        if work.number is None:
            return await self._ask_api(permit, blame)
        if isinstance(work, Check) and work.failed:
            # It failed before this run, or this hour: that it does so again is no news of the host.
            blame = blame._replace(failures=max(1, blame.failures))
        answer, size = await self._ask(work.number, work.attempt, permit, blame)
        if answer.status is Status.DISABLED:
            self.disabled(work.number)
        # Whether to ask again is the engine's to say where nothing came back, or the host's own failure; else ours.
        decided = work.decided or not answer.outcome.blames_host
        return Settled(answer.outcome, answer, decided=decided, size=size)

    def received(self, work: SequenceWork) -> int | None:
        """Bytes of the answer so far."""
        task = self.api.availability() if work.number is None else self.api.task(work.number, work.attempt)
        return None if task is None else self.memory.held(task.url)

    async def _ask(self, number: int, attempt: int, permit: Permit, blame: Blame) -> tuple[NumberedAnswer, int]:
        """What came of an id, and how many bytes that were."""
        answers: list[NumberedAnswer] = []

        def read(reply: Reply, general: Outcome) -> Outcome:
            answers.append(self.api.read(number, reply, general, self.clock.wall()))
            return answers[-1].outcome

        started = self.clock.now()
        outcome, reply = await self._fetch(replace(self.api.task(number, attempt), blame=blame), permit, read)
        # A body that was not to be read has no answer of the API's.
        answer = answers[-1] if answers and answers[-1].outcome is outcome else unanswered(outcome)
        self.measures.remark(number, answer)
        self.measures.request(answer, reply.latency if reply else self.clock.now() - started)
        return answer, len(reply.body) if reply else 0

    async def _ask_api(self, permit: Permit, blame: Blame) -> Settled[InquiryAnswer]:
        """Whether the API says that it is switched on; None if it does not say."""
        task = self.api.availability()
        assert task is not None  # noqa: S101 - nobody asks it otherwise
        outcome, reply = await self._fetch(replace(task, blame=blame._replace(of_host=True)), permit)
        says = None if reply is None else self.api.available(reply)
        return Settled(outcome, says, decided=True, of_host=True)

    async def _fetch(
        self, task: Task, permit: Permit, read: Callable[[Reply, Outcome], Outcome] | None = None
    ) -> tuple[Outcome, Reply | None]:
        fetched = await self.fetcher.fetch(task, permit, read)
        if fetched.reply is not None:
            self.memory.release(fetched.reply.url)
        return fetched.outcome, fetched.reply
