"""What waits to be written, and when it is due; the rest of the books is seen in the crawls."""

from sanderling.outcome import Code, Outcome
from sanderling.pages.books import BYTES, ROWS, Batch
from sanderling.stores.frontier_rows import Body, End, Ended


def ended(number: int, *, row: bytes = b"{}", body: Body | None = None, moved_to: str | None = None) -> Ended:
    end = End.FETCHED if moved_to is None else End.MOVED
    url = f"http://a.example/{number}"
    return Ended(
        id=number, url=url, end=end, outcome=Outcome(Code.OK, 200), depth=0, row=row, body=body, moved_to=moved_to
    )


def test_a_batch_is_due_when_it_has_many_rows() -> None:
    batch = Batch()
    for number in range(ROWS - 1):
        batch.add(ended(number))
    assert not batch.due

    batch.add(ended(ROWS))
    assert batch.due


def test_a_batch_is_due_when_it_is_large_bodies_included() -> None:
    batch = Batch()
    batch.add(ended(1, row=b"x" * (BYTES // 2)))
    assert not batch.due

    batch.add(ended(2, body=Body.of(b"y" * (BYTES // 2), ".bin")))
    assert batch.due


def test_a_batch_knows_who_moved_where() -> None:
    batch = Batch()
    batch.add(ended(1, moved_to="http://a.example/new"))

    assert batch.moves == {"http://a.example/1": "http://a.example/new"}
