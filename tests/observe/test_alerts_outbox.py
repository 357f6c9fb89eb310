"""Which alert is next, when, and which are dropped: arithmetic."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sanderling.observe.alerts import Alert, AlertRules, Level, Outbox

RULES = AlertRules(most=3, interval=2, sparse_interval=60)


def alert(kind: str = "news", level: Level = Level.INFO, *, ping: bool = False, patience: float | None = None) -> Alert:
    return Alert(kind, kind.title(), level=level, ping=ping, patience=patience)


def outbox_of(*alerts: Alert, rules: AlertRules = RULES) -> Outbox:
    outbox = Outbox(rules)
    for each in alerts:
        outbox.put(each, 0, 0)
    return outbox


def taken(outbox: Outbox, now: float) -> str | None:
    found = outbox.take(now)
    return None if found is None else found.alert.kind


def test_they_go_in_their_order_one_per_interval() -> None:
    outbox = outbox_of(alert("a"), alert("b"))

    assert [taken(outbox, now) for now in (0, 0, 1.9, 2, 9)] == ["a", None, None, "b", None]


def test_it_says_when_the_next_is_due() -> None:
    outbox = outbox_of(alert("a"), alert("b"))

    outbox.take(0)

    assert outbox.due() == 2
    outbox.take(2)
    assert outbox.due() is None


def test_it_remembers_when_an_alert_was_said() -> None:
    outbox = Outbox(RULES)
    outbox.put(alert(), now=5, at=1_800_000_000)

    found = outbox.take(7)

    assert found is not None
    assert found.at == 1_800_000_000


def test_the_oldest_status_is_dropped_first() -> None:
    outbox = outbox_of(alert("a"), alert("old", Level.STATUS), alert("new", Level.STATUS), alert("b"))

    assert [taken(outbox, now) for now in (0, 2, 4)] == ["a", "new", "b"]
    assert outbox.dropped == 1


def test_where_there_is_no_status_the_oldest_is_dropped() -> None:
    outbox = outbox_of(alert("a"), alert("b"), alert("c"), alert("d"))

    assert [taken(outbox, now) for now in (0, 2, 4)] == ["b", "c", "d"]


def test_what_calls_people_is_dropped_last() -> None:
    outbox = outbox_of(alert("call", ping=True), alert("b"), alert("c"), alert("d"))

    assert [taken(outbox, now) for now in (0, 2, 4)] == ["call", "c", "d"]


def test_a_status_that_finds_no_room_is_itself_dropped() -> None:
    outbox = outbox_of(alert("a"), alert("b"), alert("c"), alert("d", Level.STATUS))

    assert [taken(outbox, now) for now in (0, 2, 4)] == ["a", "b", "c"]


def test_one_sparse_alert_goes_per_minute_whatever_its_kind() -> None:
    outbox = outbox_of(alert("a", patience=100), alert("b", patience=100))

    assert [taken(outbox, now) for now in (0, 2, 59.9, 60)] == ["a", None, None, "b"]


def test_a_sparse_alert_does_not_hold_up_the_others() -> None:
    outbox = outbox_of(alert("a", patience=10), alert("b", patience=10), alert("c"))

    assert [taken(outbox, now) for now in (0, 2)] == ["a", "c"]


def test_a_sparse_alert_whose_turn_does_not_come_is_dropped_and_counted() -> None:
    outbox = outbox_of(alert("a", patience=5), alert("b", patience=5))
    outbox.take(0)

    assert outbox.due() == 5
    assert taken(outbox, 5) is None
    assert (outbox.due(), outbox.dropped) == (None, 1)


def test_a_sparse_alert_may_go_in_its_last_instant() -> None:
    outbox = outbox_of(alert("a", patience=5))

    assert taken(outbox, 5) == "a"


def test_a_sparse_alert_that_waited_too_long_for_the_sender_is_dropped() -> None:
    outbox = outbox_of(alert("a", patience=5))

    assert taken(outbox, 5.1) is None
    assert outbox.dropped == 1


ALERTS = st.builds(
    Alert,
    kind=st.text("abc", min_size=1, max_size=3),
    title=st.just("T"),
    level=st.sampled_from(Level),
    ping=st.booleans(),
    patience=st.none() | st.floats(0, 20),
)
MOVES = st.lists(st.one_of(ALERTS, st.floats(0, 40)), max_size=60)


@given(MOVES, st.integers(1, 5), st.floats(0, 5), st.floats(0, 60))
def test_nothing_is_lost_uncounted_and_nothing_is_sent_too_early(
    moves: list[Alert | float], most: int, interval: float, sparse_interval: float
) -> None:
    rules = AlertRules(most=most, interval=interval, sparse_interval=sparse_interval)
    outbox, now, said = Outbox(rules), 0.0, 0
    sent: list[tuple[float, Alert]] = []

    for move in moves:
        if isinstance(move, Alert):
            outbox.put(move, now, now)
            said += 1
        else:
            now += move
            if (found := outbox.take(now)) is not None:
                sent.append((now, found.alert))
        assert len(outbox) <= most
        assert said == len(sent) + len(outbox) + outbox.dropped

    times = [at for at, _ in sent]
    sparse = [at for at, each in sent if each.patience is not None]
    assert all(later >= earlier + interval for earlier, later in pairwise(times))
    assert all(later >= earlier + sparse_interval for earlier, later in pairwise(sparse))


@given(st.lists(ALERTS, max_size=20), st.floats(0, 5), st.floats(0, 60))
def test_whoever_comes_when_it_is_due_empties_it_in_as_many_steps_as_there_were_alerts(
    alerts: list[Alert], interval: float, sparse_interval: float
) -> None:
    outbox = outbox_of(*alerts, rules=AlertRules(interval=interval, sparse_interval=sparse_interval))

    for _ in alerts:
        if (due := outbox.due()) is not None:
            outbox.take(max(0, due))

    assert outbox.due() is None
    assert len(outbox) == 0
