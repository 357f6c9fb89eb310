"""What is read from the rows of `events`."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from sanderling.stores import analytics_questions as questions
from sanderling.stores.analytics import (
    AnalyticsError,
    CommentRow,
    ErrorFilter,
    EventFilter,
    Granularity,
    KeywordCount,
    OutboxMessage,
    Page,
    PostFilter,
    Processed,
    Replayable,
    Sort,
    StoredError,
    StoredPost,
    Summary,
    Trend,
)
from sanderling.stores.analytics_questions import Question, meant_errors, meant_events, meant_posts
from sanderling.stores.database import Database, Row, Transaction
from sanderling.stores.polling_rows import LARGEST, SMALLEST, is_text

R = TypeVar("R", bound=Row)

MOST_BYTES = 64 << 20  # of the texts of one answer
# Messages of the outbox that are counted one by one. It is asked each second, and grows while the broker is away.
COUNTED = 10_000
OUTBOX_DEPTH = f"""SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT {COUNTED + 1}) AS counted),
    (SELECT min(number) FROM outbox), (SELECT max(number) FROM outbox)"""  # noqa: S608 - ours


class Budget:
    """How much of an answer was read. It must fit into memory, whatever people have posted."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._left = MOST_BYTES

    def spent(self, row: R) -> R:
        """The row, if there is room for it. Raises AnalyticsError otherwise."""
        self._left -= sum(len(value) for value in row if isinstance(value, str | bytes))
        if self._left < 0:
            message = f"{self._place}: the answer has more than {MOST_BYTES >> 20} MB; ask for fewer rows at once"
            raise AnalyticsError(message, transient=False)
        return row


class AnalyticsReading:
    """What people and whoever sends messages ask."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect = database.dialect

    async def _ask(self, *asked: Question) -> list[list[Row]]:
        """The rows that each question gives, all of one moment."""
        together = len(asked) > 1 or asked[0].wide
        return await self._database.read(partial(self._answers, asked=asked), together=together)

    async def _answers(self, db: Transaction, asked: Sequence[Question]) -> list[list[Row]]:
        return [await self._rows(db, each) for each in asked]

    async def _rows(self, db: Transaction, asked: Question) -> list[Row]:
        if not asked.wide:
            return await db.fetch(asked.sql, *asked.values)
        budget = Budget(self._database.place)
        async with aclosing(db.stream(asked.sql, *asked.values)) as rows:
            return [budget.spent(row) async for row in rows]

    async def processed(self, event_id: str) -> Processed | None:
        """The event, if it is in the rows."""
        if not is_text(event_id):
            return None
        asked = Question("SELECT message, replayed FROM processed_events WHERE event_id = ?", (event_id,))
        (found,) = await self._ask(asked)
        return Processed(found[0][0], bool(found[0][1])) if found else None

    async def replayable(self, chosen: EventFilter) -> Replayable:
        """How many events of a filter `replay` would take, and how many it cannot."""
        asked = questions.counted_events(meant_events(chosen, self.dialect))
        ((events,),), ((without,),) = await self._ask(*asked)
        return Replayable(events, without)

    async def waiting(self, after: int, most: int) -> list[OutboxMessage]:
        """The next ones after a number: up to 10,000, fewer if they are large."""
        (rows,) = await self._ask(questions.waiting(after, most, self.dialect))
        return [OutboxMessage(number=n, exchange=e, routing_key=k, body=b, created_at=at) for n, e, k, b, at in rows]

    async def depth(self) -> int:
        """How many messages wait. Of more than 10,000 it says how many numbers they span, without counting them."""
        (((counted, first, last),),) = await self._ask(Question(OUTBOX_DEPTH))
        return int(last - first + 1 if counted > COUNTED else counted)

    async def posts(self, chosen: PostFilter, *, sort: Sort, descending: bool, offset: int, most: int) -> Page:
        """A page of up to 10,000 posts. One whose publication is unknown counts as published first of all.

        Raises ValueError for what cannot be sorted by.
        """
        meant = meant_posts(chosen, self.dialect)
        page = questions.page_of_posts(meant, sort, (descending, offset, most), self.dialect)
        rows, ((total,),) = await self._ask(page, questions.counted("post_analytics", meant))
        return Page([questions.post_of(row) for row in rows], total)

    async def post(self, number: int) -> tuple[StoredPost, list[CommentRow]] | None:
        """One post, with its comments: the most liked first, 10,000 of them at most."""
        if not SMALLEST <= number <= LARGEST:
            return None
        found, comments = await self._ask(*questions.one_post(number, self.dialect))
        return (questions.post_of(found[0]), [questions.comment_of(row) for row in comments]) if found else None

    async def errors(self, chosen: ErrorFilter, *, offset: int, most: int) -> tuple[list[StoredError], int]:
        """A page of up to 10,000 errors, the newest first, and how many there are."""
        meant = meant_errors(chosen, self.dialect)
        page = questions.page_of_errors(meant, offset, most, self.dialect)
        rows, ((total,),) = await self._ask(page, questions.counted("crawl_errors", meant))
        return [questions.error_of(row) for row in rows], total

    async def ping(self) -> None:
        """Answer, if it can."""
        await self._ask(Question("SELECT 1"))

    async def summary(self, chosen: PostFilter) -> Summary:
        """All of them together."""
        (rows,) = await self._ask(questions.sums(meant_posts(chosen, self.dialect)))
        return questions.summed(rows)

    async def trends(self, chosen: PostFilter, granularity: Granularity) -> list[Trend]:
        """By time of publication, or of analysis where that is unknown; periods without posts are left out.

        Raises ValueError for an unknown granularity.
        """
        questions.first_day(0, granularity)
        (rows,) = await self._ask(questions.days(meant_posts(chosen, self.dialect), self.dialect))
        return questions.trended(rows, granularity)

    async def keywords(self, chosen: PostFilter, most: int) -> list[KeywordCount]:
        """The most frequent keywords."""
        asked = questions.frequent_keywords(meant_posts(chosen, self.dialect), most, self.dialect)
        (rows,) = await self._ask(asked)
        return [KeywordCount(*row) for row in rows]

    async def error_counts(self, chosen: ErrorFilter) -> Mapping[str, int]:
        """Errors by code, the most frequent first, of the 1,000 most frequent."""
        (rows,) = await self._ask(questions.errors_by_code(meant_errors(chosen, self.dialect)))
        return {row[0]: row[1] for row in rows}
