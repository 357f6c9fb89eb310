"""The window of errors and the line do as their slow, obvious twins do."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import WindowRules
from sanderling.limit.line import Line, Waiter
from sanderling.limit.window import ErrorWindow


class SlowWindow:
    """Every answer with its bucket, counted anew each time."""

    def __init__(self, rules: WindowRules, now: float) -> None:
        self.rules = rules
        self.answers: list[tuple[int, int, int]] = []
        self.latest = int(now / rules.bucket)

    def totals(self, now: float, answers: int = 0, failures: int = 0) -> tuple[int, int]:
        self.latest = max(self.latest, int(now / self.rules.bucket))
        self.answers.append((self.latest, answers, failures))
        size = round(self.rules.span / self.rules.bucket)
        kept = [each for each in self.answers if each[0] > self.latest - size]
        return sum(each[1] for each in kept), sum(each[2] for each in kept)


@given(
    st.sampled_from([WindowRules(), WindowRules(5, 5), WindowRules(1, 0.3), WindowRules(0.3, 0.1), WindowRules(7, 2)]),
    st.floats(0, 1e6),
    st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.05, 0.1, 1.0, 2.0, 29.0, 1000.0]), st.booleans())),
)
def test_the_window_of_errors_counts_like_its_twin(
    rules: WindowRules, now: float, steps: list[tuple[float, bool]]
) -> None:
    window, twin, latest = ErrorWindow(rules, now), SlowWindow(rules, now), now

    for passed, failed in steps:
        now += passed
        latest = max(latest, now)
        window.record(now, failures=failed)
        assert window.totals(now) == twin.totals(now, 1, int(failed))

    assert window.totals(latest + rules.span + rules.bucket) == (0, 0)


class SlowLine:
    """Everyone in one list; each time anew, whose job was given least."""

    def __init__(self) -> None:
        self.everyone: list[Waiter] = []
        self.tags: dict[str, float] = {}
        self.time = 0.0
        self.head: Waiter | None = None

    def push(self, waiter: Waiter) -> None:
        if not any(each.job == waiter.job for each in self.everyone if each is not self.head):
            self.tags[waiter.job] = max(self.tags.get(waiter.job, 0.0), self.time)
        self.everyone.append(waiter)

    def may_be_next(self) -> list[Waiter]:
        """The first of each job that was given least; the same one until it leaves."""
        if self.head is not None or not self.everyone:
            return [] if self.head is None else [self.head]
        least = min(self.tags[waiter.job] for waiter in self.everyone)
        first: dict[str, Waiter] = {}
        for waiter in self.everyone:
            first.setdefault(waiter.job, waiter)
        return [waiter for job, waiter in first.items() if self.tags[job] == least]

    def serve(self, waiter: Waiter, cost: float) -> None:
        self.time = self.tags[waiter.job]
        self.tags[waiter.job] += cost
        self.leave(waiter)
        if not self.everyone:
            self.tags, self.time = {}, 0.0

    def leave(self, waiter: Waiter) -> None:
        self.everyone.remove(waiter)
        if waiter is self.head:
            self.head = None


LINE_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.sampled_from("abc"), st.just(0.0)),
        st.tuples(st.just("serve"), st.just(""), st.sampled_from([0.5, 1.0, 5.0])),
        st.tuples(st.just("leave"), st.just(""), st.integers(0, 20).map(float)),
    ),
    max_size=80,
)


@given(LINE_STEPS)
def test_a_line_serves_like_its_twin(steps: list[tuple[str, str, float]]) -> None:
    line, twin = Line(), SlowLine()

    for step, job, number in steps:
        if step == "push":
            waiter = Waiter((), (), job, 0.0)
            line.push(waiter)
            twin.push(waiter)
        elif step == "leave" and twin.everyone:
            waiter = twin.everyone[int(number) % len(twin.everyone)]
            line.leave(waiter)
            twin.leave(waiter)
        elif step == "serve" and twin.everyone:
            assert line.head is not None
            twin.serve(line.head, number)
            line.serve(number)
        assert len(line) == len(twin.everyone)
        assert line.head in (twin.may_be_next() or (None,))
        twin.head = line.head
