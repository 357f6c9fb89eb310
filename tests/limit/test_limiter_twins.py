"""The line does as its slow, obvious twin does."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.line import Line, Waiter


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
