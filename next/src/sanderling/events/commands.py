"""`events publish`, `events replay` and `events migrate`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, redirect_stdout
from pathlib import Path
from typing import Protocol, TextIO

from sanderling.events.options import MigrateOptions, PublishOptions, ReplayOptions
from sanderling.events.queues import DEAD, PARKED
from sanderling.files import Exit, FolderError, disk_errors
from sanderling.formats.envelope import EXCHANGE, KEY, QUEUE, EnvelopeError, read_envelope
from sanderling.options import OptionError
from sanderling.redact import redact
from sanderling.stores.broker import BrokerAway
from sanderling.stores.queue_file import FILE, QueueFile

AT_ONCE = 200  # messages that are confirmed together


class Prints(Protocol):
    """What a command prints by."""

    out: TextIO

    def print(self, text: str) -> None:
        """Print a line."""


def publish(options: PublishOptions, context: Prints) -> Exit:
    """Publish messages, each confirmed; one that is none of ours ends it, and is named."""
    if (options.out is None) == (options.broker is None):
        raise OptionError("expected --out FOLDER or --broker env:NAME")
    number = asyncio.run(_publish(options))
    context.print(f"{number:,} messages are in the queue")
    return Exit.DONE


def _lines(options: PublishOptions) -> Iterator[bytes]:
    for path in options.files or (Path("-"),):
        with ExitStack() as stack, disk_errors(path):
            source = sys.stdin.buffer if path == Path("-") else stack.enter_context(path.open("rb"))
            for number, line in enumerate(source, 1):
                if not line.strip():
                    continue
                try:
                    read_envelope(line.strip())
                except EnvelopeError as error:
                    raise OptionError(f"{path}, line {number}: {error}") from None
                yield line.strip()


async def _publish(options: PublishOptions) -> int:
    number, waiting = 0, list[bytes]()
    async with AsyncExitStack() as stack:
        put = await _target(options, stack)
        try:
            for line in _lines(options):
                waiting.append(line)
                if len(waiting) == AT_ONCE:
                    await put(waiting)
                    number, waiting = number + len(waiting), []
        except OptionError as error:
            await put(waiting)
            raise OptionError(f"{error}; {number + len(waiting):,} messages before it were published") from None
        except BrokerAway as error:
            advice = "type the same command again: what comes twice is stored once"
            raise FolderError(str(error), advice, Exit.LATER) from None
        await put(waiting)
    return number + len(waiting)


async def _target(options: PublishOptions, stack: AsyncExitStack) -> Callable[[list[bytes]], Awaitable[None]]:
    """What publishes: to a folder, to a queue that is named, else to the exchange."""
    name = options.queue_name
    if options.broker is None:
        file = await stack.enter_async_context(QueueFile(options.out or Path()))
        return lambda bodies: file.put(name or QUEUE, bodies)
    from sanderling.stores.rabbitmq import OutgoingMessage, QueuePublisher  # noqa: PLC0415 - an extra

    publisher = await stack.enter_async_context(QueuePublisher(options.broker.reveal()))
    if not name:
        await publisher.declare(EXCHANGE)
    to, exchange = (name, "") if name else (KEY, EXCHANGE)
    return lambda bodies: publisher.publish(to, [OutgoingMessage(body) for body in bodies], exchange)


def replay(options: ReplayOptions, context: Prints) -> Exit:
    """Put back what was parked, or the dead letters."""
    if (options.out is None) == (options.broker is None):
        raise OptionError("expected --out FOLDER or --broker env:NAME")
    suffix = PARKED if options.parked else DEAD
    number = asyncio.run(_replay(options, suffix))
    context.print(f"{number:,} messages are back in {options.queue_name}")
    return Exit.DONE


async def _replay(options: ReplayOptions, suffix: str) -> int:
    name = options.queue_name
    if options.out is not None:
        if not (options.out / FILE).exists():
            raise FolderError(f"{options.out} has no queue", "give the folder that --out named, or --broker")
        async with QueueFile(options.out) as file:
            return await file.replay(name, suffix)
    from sanderling.stores.rabbitmq import OutgoingMessage, QueueConsumer, QueuePublisher  # noqa: PLC0415 - an extra

    assert options.broker is not None  # noqa: S101 - checked before
    url = options.broker.reveal()
    try:
        async with QueuePublisher(url) as publisher:
            left = number = await publisher.count(name + suffix) or 0
            if not left:
                return 0
            async with QueueConsumer(url, name + suffix, AT_ONCE) as consumer:
                while left > 0 and (taken := await consumer.take(min(left, AT_ONCE), 5.0)):
                    await publisher.publish(name, [OutgoingMessage(each.body) for each in taken])
                    await consumer.done(taken)
                    left -= len(taken)
            return number - left
    except BrokerAway as error:
        raise FolderError(str(error), "type the same command again", Exit.LATER) from None


def migrate(options: MigrateOptions, context: Prints) -> Exit:
    """Bring the tables of a database to a revision by Alembic."""
    try:
        from alembic import command  # noqa: PLC0415 - an extra
        from alembic.config import Config  # noqa: PLC0415
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415
    except ImportError:
        raise FolderError("migrations need Alembic", 'pip install "sanderling[migrate]"') from None
    url = options.database.reveal()
    if not url.startswith(("postgres://", "postgresql://")):
        raise OptionError(f"--database: found {redact(url)[:60]!r}, expected postgres://…")
    if options.to == "base" and not options.yes:
        raise OptionError(
            "base drops crawl_errors and the columns that were added; make a backup with pg_dump, and add --yes"
        )
    config = Config(stdout=context.out)
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("sqlalchemy.url", f"postgresql+asyncpg://{url.partition('://')[2]}".replace("%", "%%"))
    try:
        with redirect_stdout(context.out):
            (command.upgrade if options.to == "head" else command.downgrade)(config, options.to)
    except (OSError, SQLAlchemyError) as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
        raise FolderError(
            f"the migration has changed nothing: {said}", "check what --database names", Exit.LATER
        ) from None
    context.print(f"the tables are at {options.to}")
    return Exit.DONE
