"""Messages that parts of a fleet send each other, as one part reads them."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.fleet_mail import FULL, FleetInbox
from sanderling.stores.fleet import InboxMessage


def message(number: int) -> InboxMessage:
    return InboxMessage(0, number, b"%d\n" % number)


@given(st.lists(st.sampled_from(("arrive", "read", "cancelled", "commit")), max_size=60))
def test_each_message_is_read_whoever_is_cancelled_and_none_twice(steps: list[str]) -> None:
    inbox, positions, arrived, read = FleetInbox(), dict[str, int](), 0, list[bytes]()
    for step in steps:
        if step == "arrive":
            arrived += 1
            inbox.add([message(arrived)])
        elif step == "commit":
            inbox.durable = dict(positions)
        else:
            lines, after = inbox.read(positions)
            if step == "read":
                read += [lines] if lines else []
                positions = after
    while (found := inbox.read(positions))[0]:
        read.append(found[0])
        positions = found[1]

    assert read == [b"%d\n" % number for number in range(1, arrived + 1)]


def test_what_a_commit_has_is_forgotten_and_what_it_has_not_is_not_brought_again() -> None:
    inbox = FleetInbox()
    inbox.add([message(1), message(2)])
    _, positions = inbox.read({})
    inbox.durable = positions
    _, positions = inbox.read(positions)

    assert set(positions) == {"2"}
    assert inbox.taken == {2}


def test_one_that_cannot_read_is_brought_no_more() -> None:
    inbox = FleetInbox()
    inbox.add([message(number) for number in range(FULL)])
    assert inbox.is_full

    positions = dict[str, int]()
    for _ in range(3):
        _, positions = inbox.read(positions)
    assert not inbox.is_full
