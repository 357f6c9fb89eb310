"""The store of `events` in a SQL database; `analytics_writing` has what is written, `analytics_questions` what is read.

In SQLite a batch waits for the disk. That a message was sent does not: the power may take the last of it, and then it
is sent once more.
"""

# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from functools import partial
from typing import TypeVar

from sanderling.stores import analytics_questions as questions
from sanderling.stores import analytics_writing as writing
from sanderling.stores.analytics import (
    AnalyticsBatch,
    AnalyticsError,
    BatchResult,
    CommentRow,
    ErrorFilter,
    ErrorRow,
    EventFilter,
    Granularity,
    KeywordCount,
    OutboxMessage,
    PostFilter,
    PostPage,
    PostRow,
    PostSummary,
    Processed,
    Replayable,
    Sort,
    StoredError,
    StoredPost,
    Trend,
)
from sanderling.stores.analytics_questions import (
    AT,
    BY,
    COUNTERS,
    Question,
    bounded,
    columns,
    meant,
    next_to_replay,
    read_row,
)
from sanderling.stores.analytics_rows import (
    COMMENT_COLUMNS,
    ERROR_COLUMNS,
    POST_COLUMNS,
    RefusedRowsError,
    RehearsedError,
    rehearsal,
)
from sanderling.stores.database import Claim, Database, Row, Transaction
from sanderling.stores.polling_rows import LARGEST, SMALLEST, is_text

SENDING = Claim("sending", 1396788803)  # "SANC"
R = TypeVar("R", bound=Row)

MOST_BYTES = 64 << 20  # of the texts of one answer
# Messages of the outbox that are counted one by one. It is asked each second, and grows while the broker is away.
COUNTED = 10_000
OUTBOX_DEPTH = f"""SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT {COUNTED + 1}) AS counted),
    (SELECT min(number) FROM outbox), (SELECT max(number) FROM outbox)"""


class ReplyBudget:
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


class AnalyticsStore:
    """See `analytics_open`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = database.dialect

    async def keep(self, batch: AnalyticsBatch) -> BatchResult:
        """Write all of it in one transaction, durably; nothing if the event was processed and is not replayed."""
        try:
            return await self._database.write(partial(writing.keep, batch=batch))
        except RefusedRowsError:
            return await self._database.write(partial(writing.keep_carefully, batch=batch))

    async def rehearse(self, batch: AnalyticsBatch) -> None:
        """Write it under ids of its own and take it back: whether batches can be kept now."""

        async def work(db: Transaction) -> None:
            await writing.keep(db, rehearsal(batch))
            raise RehearsedError

        with suppress(RehearsedError, RefusedRowsError):
            await self._database.write(work)

    async def replay(self, chosen: EventFilter, *, exchange: str, routing_key: str, most: int = 1_000) -> int:
        """Mark events and put their messages into the outbox, in one transaction; how many. Others may do so, too."""
        found = next_to_replay(meant(chosen, self._dialect), most)
        work = partial(writing.replay, found=found, exchange=exchange, routing_key=routing_key)
        return await self._database.write(work)

    async def forget_errors(self, before: float, most: int = 10_000) -> int:
        """Remove errors that are older, up to so many at a time; how many that were."""
        return await self._database.write(partial(writing.forget_errors, before=before, most=bounded(most)))

    async def forget_events(self, before: float, most: int = 10_000) -> int:
        """Remove records of events that were processed before, up to so many at a time; how many that were."""
        return await self._database.write(partial(writing.forget_events, before=before, most=bounded(most)))

    def claim(self) -> AbstractAsyncContextManager[bool]:
        """Whether we may send from the outbox now."""
        return self._database.claim(SENDING)

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put them in, in one transaction."""
        if messages:
            await self._database.write(partial(writing.add, messages=messages))

    async def sent(self, numbers: Sequence[int]) -> None:
        """Forget these. A crash may take the last of it: then they are sent once more."""
        if numbers:
            await self._database.write(partial(writing.sent, numbers=numbers), durable=False)

    @property
    def connections(self) -> int:
        """How many connections to it are open."""
        return self._database.connections

    async def close(self) -> None:
        """Let go."""
        await self._database.close()

    def __repr__(self) -> str:
        return f"<AnalyticsStore {self._database.place}>"

    # --- what is read ---

    async def _ask(self, *asked: Question) -> list[list[Row]]:
        """The rows that each question gives, all of one moment."""
        together = len(asked) > 1 or asked[0].wide
        return await self._database.read(partial(self._answers, asked=asked), together=together)

    async def _answers(self, db: Transaction, asked: Sequence[Question]) -> list[list[Row]]:
        return [await self._rows(db, each) for each in asked]

    async def _rows(self, db: Transaction, asked: Question) -> list[Row]:
        if not asked.wide:
            return await db.fetch(asked.sql, *asked.values)
        budget = ReplyBudget(self._database.place)
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
        asked = questions.counted_events(meant(chosen, self._dialect))
        ((events,),), ((without,),) = await self._ask(*asked)
        return Replayable(events, without)

    async def waiting(self, after: int, most: int) -> list[OutboxMessage]:
        """The next ones after a number: up to 10,000, fewer if they are large."""
        (rows,) = await self._ask(questions.waiting(after, most, self._dialect))
        return [OutboxMessage(number=n, exchange=e, routing_key=k, body=b, created_at=at) for n, e, k, b, at in rows]

    async def depth(self) -> int:
        """How many messages wait. Of more than 10,000 it says how many numbers they span, without counting them."""
        (((counted, first, last),),) = await self._ask(Question(OUTBOX_DEPTH))
        return int(last - first + 1 if counted > COUNTED else counted)

    async def posts(self, chosen: PostFilter, *, sort: Sort, descending: bool, offset: int, most: int) -> PostPage:
        """A page of up to 10,000 posts. One whose publication is unknown counts as published first of all.

        Raises ValueError for what cannot be sorted by.
        """
        which = meant(chosen, self._dialect)
        page = questions.page_of_posts(which, sort, (descending, offset, most), self._dialect)
        rows, ((total,),) = await self._ask(page, questions.counted("post_analytics", which))
        return PostPage([_post(row) for row in rows], total)

    async def post(self, number: int) -> tuple[StoredPost, list[CommentRow]] | None:
        """One post, with its comments: the most liked first, 10,000 of them at most."""
        if not SMALLEST <= number <= LARGEST:
            return None
        post = f"SELECT id, {columns(POST_COLUMNS, self._dialect)} FROM post_analytics WHERE id = ?"
        comments = f"""SELECT {columns(COMMENT_COLUMNS, self._dialect)} FROM post_comments WHERE post_id = ?
            ORDER BY likes DESC, comment_id LIMIT {questions.MOST_ROWS}"""
        found, below = await self._ask(*(Question(sql, (number,), wide=True) for sql in (post, comments)))
        # The place of a comment's post among those of its batch is not stored.
        return (
            (_post(found[0]), [read_row(CommentRow, COMMENT_COLUMNS, row, post=0) for row in below]) if found else None
        )

    async def errors(self, chosen: ErrorFilter, *, offset: int, most: int) -> tuple[list[StoredError], int]:
        """A page of up to 10,000 errors, the newest first, and how many there are."""
        which = meant(chosen, self._dialect)
        sql = f"""SELECT id, {columns(ERROR_COLUMNS, self._dialect)} FROM crawl_errors WHERE {which.sql}
            ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"""
        page = Question(sql, (*which.values, bounded(most), max(0, min(offset, LARGEST))), wide=True)
        rows, ((total,),) = await self._ask(page, questions.counted("crawl_errors", which))
        return [StoredError(id=row[0], row=read_row(ErrorRow, ERROR_COLUMNS, row[1:])) for row in rows], total

    async def ping(self) -> None:
        """Answer, if it can."""
        await self._ask(Question("SELECT 1"))

    async def summary(self, chosen: PostFilter) -> PostSummary:
        """All of them together."""
        which = meant(chosen, self._dialect)
        halves = ", ".join(f"sum({name} >> 32), sum({name} & 4294967295)" for name in COUNTERS)
        flags = ", ".join(f"sum(CASE WHEN {name} THEN 1 ELSE 0 END)" for name in ("is_viral", "is_kol"))
        by = ", ".join(BY)
        sql = f"""SELECT {by}, count(*), sum(overall_sentiment_score), sum(impact_score), {flags}, {halves}
            FROM post_analytics WHERE {which.sql} GROUP BY {by} LIMIT {questions.MOST_GROUPS + 1}"""
        (rows,) = await self._ask(Question(sql, which.values))
        return questions.summed(rows)

    async def trends(self, chosen: PostFilter, granularity: Granularity) -> list[Trend]:
        """By time of publication, or of analysis where that is unknown; periods without posts are left out.

        Raises ValueError for an unknown granularity.
        """
        questions.first_day(0, granularity)
        which = meant(chosen, self._dialect)
        sql = f"""SELECT {self._dialect.day.format(AT)} AS day, overall_sentiment, count(*),
            sum(overall_sentiment_score), sum(impact_score) FROM post_analytics WHERE {which.sql}
            GROUP BY 1, 2 ORDER BY 1, 2 LIMIT {questions.MOST_GROUPS + 1}"""
        (rows,) = await self._ask(Question(sql, which.values))
        return questions.trended(rows, granularity)

    async def keywords(self, chosen: PostFilter, most: int) -> list[KeywordCount]:
        """The most frequent keywords."""
        asked = questions.frequent_keywords(meant(chosen, self._dialect), most, self._dialect)
        (rows,) = await self._ask(asked)
        return [KeywordCount(*row) for row in rows]

    async def error_counts(self, chosen: ErrorFilter) -> Mapping[str, int]:
        """Errors by code, the most frequent first, of the 1,000 most frequent."""
        which = meant(chosen, self._dialect)
        sql = f"""SELECT error_code, count(*) FROM crawl_errors WHERE {which.sql} GROUP BY error_code
            ORDER BY count(*) DESC, error_code LIMIT {questions.MOST_CODES}"""
        (rows,) = await self._ask(Question(sql, which.values))
        return {row[0]: row[1] for row in rows}


def _post(row: Row) -> StoredPost:
    return StoredPost(id=row[0], row=read_row(PostRow, POST_COLUMNS, row[1:]))
