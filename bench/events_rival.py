"""What many would write: aio-pika and the ORM of SQLAlchemy, one message at a time and a commit for each item.

It reads, unpacks and analyses with our own functions, so that what differs is how rows get into the tables, and how
many messages are under way. It does less than ours: a message that comes twice is written twice over, nothing goes out
because of a batch, and an item that the database refuses takes its message along.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import aio_pika
import msgspec
from aio_pika.abc import AbstractIncomingMessage, AbstractQueue
from events_parts import ANALYSER, LIMIT, Cost, items_of
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.ext.declarative import DeferredReflection
from sqlalchemy.orm import DeclarativeBase, Mapped, relationship, selectinload

from sanderling.events.batches import decode, read_path
from sanderling.events.envelopes import Envelope, EventEnvelope, read_envelope
from sanderling.events.items import read_item
from sanderling.events.posts import CrawlError, Post
from sanderling.events.rows import Numbered, Times, comment_rows, error_rows, post_rows
from sanderling.stores.analytics_rows import TIME_COLUMNS
from sanderling.stores.objects import Objects
from sanderling.worlds.social import SocialBatch

MOST = 64 * 2**20  # bytes of an object


class Base(DeferredReflection, DeclarativeBase):
    """Models whose columns are those that the tables have."""


class PostComment(Base):
    """A comment."""

    __tablename__ = "post_comments"
    post: Mapped["PostAnalytics"] = relationship(back_populates="comments")


class PostAnalytics(Base):
    """A post, and what is known about it."""

    __tablename__ = "post_analytics"
    comments: Mapped[list[PostComment]] = relationship(back_populates="post", cascade="all, delete-orphan")


class ItemError(Base):
    """An item that was not fetched."""

    __tablename__ = "crawl_errors"


def columns(row: msgspec.Struct, *without: str) -> dict[str, Any]:
    """The values of a row, by column; times as dates."""
    found = {name: value for name, value in msgspec.structs.asdict(row).items() if name not in without}
    for name in TIME_COLUMNS.intersection(found):
        if found[name] is not None:
            found[name] = datetime.fromtimestamp(found[name], UTC)
    return found


class Rival:
    """Consumes a queue into a schema. The tables must be there."""

    def __init__(self, engine: AsyncEngine, objects: Objects) -> None:
        self._engine = engine
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)
        self._objects = objects

    @classmethod
    async def open(cls, url: str, schema: str, objects: Objects) -> "Rival":
        """Connect, and learn the columns."""
        address = url.replace("postgresql://", "postgresql+asyncpg://", 1)
        engine = create_async_engine(address, connect_args={"server_settings": {"search_path": schema}})
        async with engine.connect() as connection:
            await connection.run_sync(Base.prepare)  # type: ignore[arg-type]  # it takes this one too
        return cls(engine, objects)

    async def close(self) -> None:
        """Let go."""
        await self._engine.dispose()

    async def consume(self, amqp: str, name: str, batches: Sequence[SocialBatch]) -> Cost:
        """Publish the messages, and work until all are done. To publish them does not count."""
        async with await aio_pika.connect_robust(amqp) as connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1)
            queue = await channel.declare_queue(name, durable=True)
            for batch in batches:
                message = aio_pika.Message(batch.envelope, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channel.default_exchange.publish(message, routing_key=name)
            cpu, wall = time.process_time(), time.perf_counter()
            async with asyncio.timeout(LIMIT):
                await self._work(queue, len(batches))
            cost = Cost(items_of(batches), time.process_time() - cpu, time.perf_counter() - wall)
            await queue.delete(if_unused=False, if_empty=False)
        return cost

    async def _work(self, queue: AbstractQueue, wanted: int) -> None:
        done = 0
        async with queue.iterator() as messages:
            async for message in messages:
                async with message.process():
                    await self._handle(message)
                done += 1
                if done == wanted:
                    return

    async def _handle(self, message: AbstractIncomingMessage) -> None:
        envelope = read_envelope(message.body)
        assert isinstance(envelope, EventEnvelope)
        at = read_path(envelope.path)
        found = await self._objects.get(at.bucket, at.key, MOST)
        items = decode(found.body, metadata=dict(found.metadata), key=at.key).items
        async with self._sessions() as session:
            for index, item in enumerate(items):
                read = read_item(item, envelope.context, index, envelope.default_status)
                if isinstance(read, Post):
                    await self._keep_post(session, read, envelope)
                else:
                    self._keep_error(session, read, index, envelope)
                await session.commit()
                session.expunge_all()

    async def _keep_post(self, session: AsyncSession, post: Post, envelope: Envelope) -> None:
        began = time.time()
        analysis = ANALYSER.analyse(post)
        times = Times(time.time(), round((time.time() - began) * 1000))
        (row,) = post_rows([post], [analysis], envelope.context, times)
        written = PostAnalytics(**columns(row))
        written.comments = [PostComment(**columns(each, "post")) for each in comment_rows([post], [analysis])]
        model: Any = PostAnalytics  # its columns are not known before they are read
        known = await session.scalar(
            select(PostAnalytics)
            .options(selectinload(PostAnalytics.comments))
            .where(model.project_id == row.project_id, model.platform == row.platform, model.post_id == row.post_id)
        )
        if known is None:
            session.add(written)
            return
        # A unit of work inserts before it deletes, and one of the new comments may be an old one.
        known.comments.clear()
        await session.flush()
        written.id = known.id  # type: ignore[attr-defined]  # a column
        await session.merge(written)

    def _keep_error(self, session: AsyncSession, error: CrawlError, index: int, envelope: Envelope) -> None:
        (row,) = error_rows([Numbered(index, error)], envelope.context, time.time())
        session.add(ItemError(**columns(row)))
