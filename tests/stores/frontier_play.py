"""A frontier and a plain dict do the same, and say the same, whatever is done. A subclass says how to open one."""

from collections import Counter
from dataclasses import dataclass, field, replace

from frontier_urls import GONE, HOSTS, failed, fetched, found, url
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_rows import (
    KEPT,
    PAGES,
    REOPENABLE,
    UNFETCHED,
    Aside,
    End,
    Ended,
    Failed,
    QueuedUrl,
    RetryUrl,
    WaitingRow,
    fault_of,
)

OUTCOMES = st.sampled_from([GONE, Outcome(Code.TIMEOUT, detail="late"), Outcome(Code.HOST_UNAVAILABLE, 503)])
TIMES = st.floats(0, 2e9)


@dataclass(frozen=True)
class Twin:
    """What is known of a URL."""

    id: int
    url: str
    end: End = End.WAITING
    again: RetryUrl | None = None
    failed: Failed | None = None
    host: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", self.url.split("/")[2])

    @property
    def queued(self) -> QueuedUrl:
        failures, due = (self.again.failures, self.again.due) if self.again else (0, 0.0)
        return QueuedUrl(self.id, self.url, self.host, 0, failures=failures, due=due)

    def fails(self, end: End, outcome: Outcome, requests: int) -> "Twin":
        fault = fault_of(end, outcome.code)
        why = outcome.code, outcome.status, outcome.detail
        failed = Failed(self.id, self.url, self.host, 0, end, *why, requests, fault)
        return Twin(self.id, self.url, end, failed=failed)

    def row(self, aside: Outcome | None) -> WaitingRow:
        failures = self.again.failures if self.again else 0
        fault, why = ("host", aside) if aside else ("item", self.again.outcome) if self.again else ("", None)
        reason = (str(why.code), why.status, why.detail) if why else ("", 0, "")
        return WaitingRow(self.id, self.url, self.host, 0, fault, *reason, failures)  # type: ignore[arg-type]


class FrontierPlay(RuleBasedStateMachine):
    """What can be done to a frontier, in any order."""

    frontier: Frontier

    def opened(self) -> Frontier:
        """Open it, as it was left."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.frontier = self.opened()
        self.last = 0
        self.twins: dict[str, Twin] = {}  # in the order of ids
        self.asides: dict[str, tuple[Outcome, float]] = {}
        self.hosts: set[str] = set()  # that are known

    def put(self, *twins: Twin) -> None:
        self.twins |= {each.url: each for each in twins}

    def waiting(self, host: str = "") -> list[Twin]:
        return [each for each in self.twins.values() if each.end is End.WAITING and host in each.url]

    def ended(self, twin: Twin, end: End, requests: int) -> tuple[Ended, Twin]:
        if end in KEPT:
            return fetched(twin.queued, end), Twin(twin.id, twin.url, end)
        return failed(twin.queued, end, GONE, requests), twin.fails(end, GONE, requests)

    @rule(numbers=st.lists(st.integers(0, 11), max_size=8))
    def find(self, numbers: list[int]) -> None:
        new = list(dict.fromkeys(url(number) for number in numbers if url(number) not in self.twins))
        assert self.frontier.commit([], found(*numbers), 0) == Counter(each.split("/")[2] for each in new)
        self.put(*(Twin(number, each) for number, each in enumerate(new, self.last + 1)))
        self.last += len(new)
        self.hosts |= {HOSTS[number % 3] for number in numbers}

    @rule(number=st.integers(1, 50))
    def leave_ids_to_others(self, number: int) -> None:
        self.last += number
        self.frontier.note(last_id=self.last)

    @precondition(lambda self: bool(self.waiting()))
    @rule(data=st.data(), watermark=st.integers(0, 99))
    def end(self, data: st.DataObject, watermark: int) -> None:
        some = data.draw(st.lists(st.sampled_from(self.waiting()), unique=True, max_size=6))
        how = [data.draw(st.sampled_from([None, *sorted(set(End) - {End.WAITING, End.LEFT})])) for _ in some]
        pairs = [
            self.ended(twin, end, data.draw(st.integers(1, 9))) for twin, end in zip(some, how, strict=True) if end
        ]
        again = [
            RetryUrl(twin.id, twin.url, data.draw(st.integers(1, 20)), data.draw(TIMES), data.draw(OUTCOMES))
            for twin, end in zip(some, how, strict=True)
            if end is None
        ]
        self.frontier.commit([each for each, _ in pairs], [], watermark, again)
        self.put(*(twin for _, twin in pairs), *(replace(self.twins[each.url], again=each) for each in again))
        assert self.frontier.meta.watermark == watermark

    @rule(host=st.sampled_from(HOSTS), outcome=OUTCOMES, due=TIMES)
    def set_aside(self, host: str, outcome: Outcome, due: float) -> None:
        self.frontier.set_aside(host, outcome, due)
        self.put(*(replace(each, again=None) for each in self.waiting(host)))
        if host in self.hosts:
            self.asides[host] = outcome, due

    @rule(host=st.sampled_from([None, *HOSTS]))
    def clear_aside(self, host: str | None) -> None:
        self.frontier.clear_aside(host)
        for each in HOSTS if host is None else [host]:
            self.asides.pop(each, None)

    @rule()
    def leave(self) -> None:
        left = [each for each in self.waiting() if each.host not in self.asides]
        assert self.frontier.leave() == len(left)
        self.put(*(Twin(each.id, each.url, End.LEFT) for each in left))

    @rule(end=st.sampled_from(sorted(REOPENABLE)))
    def reopen(self, end: End) -> None:
        opened = [each for each in self.twins.values() if each.end is end]
        assert self.frontier.reopen(end) == Counter(each.host for each in opened)
        self.put(*(Twin(each.id, each.url) for each in opened))

    @precondition(lambda self: any(each.end in KEPT for each in self.twins.values()))
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        lost = data.draw(st.sampled_from([each for each in self.twins.values() if each.end in KEPT]))
        assert self.frontier.put_back([lost.id], 0) == 1
        self.put(Twin(lost.id, lost.url))

    @rule()
    def restart(self) -> None:
        self.frontier.close()
        self.frontier = self.opened()

    @invariant()
    def what_waits(self) -> None:
        lists = self.frontier.take([(host, 0, 99) for host in HOSTS])
        assert lists == [[each.queued for each in self.waiting(host)] for host in HOSTS]
        rows = [each.row(self.asides.get(each.host, (None,))[0]) for each in self.waiting()]
        assert sorted(self.frontier.waiting_rows()) == rows
        assert self.frontier.waiting() == Counter(each.host for each in self.waiting())
        hosts = self.frontier.waiting_hosts((-1.0, 0), 99, max((due for _, due in self.asides.values()), default=0.0))
        assert {each.name: each.waiting for each in hosts} == self.frontier.waiting()
        pages = Counter(each.host for each in self.twins.values() if each.end in PAGES)
        assert {each.name: each.fetched for each in hosts} == {each.name: pages[each.name] for each in hosts}
        asides = [
            Aside(host, len(self.waiting(host)), why.code, why.status, why.detail, due)
            for host, (why, due) in self.asides.items()
            if self.waiting(host)
        ]
        assert sorted(self.frontier.aside()) == sorted(asides)

    @invariant()
    def what_ended(self) -> None:
        counts = Counter(each.end for each in self.twins.values())
        assert self.frontier.counts() == {end: counts[end] for end in End}
        ends = self.frontier.ends()
        assert {number: end for number, end in enumerate(ends) if end} == {
            each.id: each.end for each in self.twins.values() if each.end
        }
        hosts = [(url(number), HOSTS[number % 3]) for number in range(13)]
        said_of = {each: self.frontier.end_of(each, host) for each, host in hosts}
        assert said_of == {each: self.twins[each].end if each in self.twins else None for each, _ in hosts}
        assert list(self.frontier.failed()) == [each.failed for each in self.twins.values() if each.end in UNFETCHED]
        assert self.frontier.known == len(self.twins)
        assert self.frontier.hosts_known == len({each.host for each in self.twins.values()})
        reasons = Counter(each.end for each in self.twins.values() if each.end not in (End.WAITING, End.LEFT))
        said: Counter[End] = Counter()
        for (end, _), number in self.frontier.by_code().items():
            said[end] += number
        assert said == reasons
