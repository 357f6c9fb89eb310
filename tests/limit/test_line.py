from sanderling.limit.line import Line, Waiter


def line_of(*jobs: str) -> tuple[Line, list[Waiter]]:
    line, waiters = Line(), [Waiter((), (), job, 0.0) for job in jobs]
    for waiter in waiters:
        line.push(waiter)
    return line, waiters


def served(line: Line, cost: float = 1.0) -> str:
    """The jobs in the order they are served, until nobody is left."""
    order = ""
    while (head := line.head) is not None:
        order += head.job
        line.serve(cost)
    return order


def test_nobody_is_next_in_an_empty_line() -> None:
    line = Line()

    assert line.head is None
    assert not line
    line.serve(1.0)
    assert len(line) == 0


def test_first_come_first_served_within_a_job() -> None:
    line, waiters = line_of("a", "a", "a")

    for waiter in waiters:
        assert line.head is waiter
        line.serve(1.0)

    assert not line


def test_jobs_take_turns() -> None:
    assert served(line_of("a", "a", "a", "b", "b", "c")[0]) == "abcaba"


def test_the_head_stays_the_head_whoever_comes() -> None:
    line, (first,) = line_of("a")
    assert line.head is first

    line.push(Waiter((), (), "b", 0.0))

    assert line.head is first


def test_a_job_that_was_away_has_not_saved_up_turns() -> None:
    line, _ = line_of("a", "b", *"a" * 20)
    order = ""
    for _ in range(12):
        assert line.head is not None
        order += line.head.job
        line.serve(1.0)

    for _ in range(5):
        line.push(Waiter((), (), "b", 0.0))

    assert order == "ab" + "a" * 10
    assert served(line).startswith("babababab")


def test_a_job_pays_for_what_it_was_given() -> None:
    line, _ = line_of(*"aaaa", *"bbbbbbbb")

    order = ""
    while (head := line.head) is not None:
        order += head.job
        line.serve(3.0 if head.job == "a" else 1.0)

    assert order == "abbbabbbabba"


def test_who_leaves_is_skipped_wherever_it_stands() -> None:
    line, waiters = line_of("a", "a", "a", "b")
    assert line.head is waiters[0]

    line.leave(waiters[1])
    line.leave(waiters[0])

    assert len(line) == 2
    assert {line.head, waiters[2], waiters[3]} == {waiters[2], waiters[3]}
    assert sorted(served(line)) == ["a", "b"]


def test_a_line_that_everyone_left_is_empty() -> None:
    line, waiters = line_of("a", "b", "a")

    for waiter in reversed(waiters):
        line.leave(waiter)

    assert not line
    assert line.head is None
