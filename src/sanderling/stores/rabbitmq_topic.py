"""Messages to the exchanges of a RabbitMQ server: persistent, confirmed, and handed back if nobody waits for them.

An exchange that is not there is made, durable. One that somebody made otherwise, or that we may not make, is used as it
is: whether it passes our messages on is theirs to say.
"""

import os
from collections.abc import Mapping, Sequence

from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractExchange
from aiormq.exceptions import ChannelAccessRefused, ChannelPreconditionFailed

from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.rabbitmq_messages import Parcel, publish, windows
from sanderling.stores.rabbitmq_wire import BrokerRefusedError, Publisher, broker
from sanderling.stores.topic import ids


class RabbitmqTopic:
    """The exchanges at a URL like amqp://user@127.0.0.1:5672/vhost, which is reached when it is needed."""

    def __init__(self, url: str, *, environment: Mapping[str, str] = os.environ) -> None:
        """Raises QueueError."""
        self._broker = broker(url, environment)
        self._publisher = Publisher(self._broker, "sanderling messages")
        self._channel: AbstractChannel | None = None
        self._known: dict[str, AbstractExchange] = {}  # to this channel
        self._theirs: set[str] = set()

    def __repr__(self) -> str:
        return f"<RabbitmqTopic at {self._broker.place}>"

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        """Return when the server has them all on disk; gives those for which there is no queue."""
        named = list(zip(ids(messages), messages, strict=True))
        unroutable = []
        for some in windows(named, lambda each: len(each[1].body)):
            unroutable += await self._send(some)
        return unroutable

    async def close(self) -> None:
        await self._publisher.close()

    async def _send(self, named: Sequence[tuple[str, OutboxMessage]]) -> list[OutboxMessage]:
        while True:
            theirs = len(self._theirs)
            try:
                async with self._publisher.channel() as channel:
                    parcels = [await self._parcel(channel, name, message) for name, message in named]
                    return [named[place][1] for place in await publish(parcels)]
            except BrokerRefusedError:
                # Once more, if that was about making an exchange: it may well be there.
                if len(self._theirs) == theirs:
                    raise

    async def _parcel(self, channel: AbstractChannel, name: str, message: OutboxMessage) -> Parcel:
        packed = Message(
            message.body,
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            message_id=name,
            timestamp=int(message.created_at) or None,
        )
        return Parcel(await self._exchange(channel, message.exchange), message.routing_key, packed)

    async def _exchange(self, channel: AbstractChannel, name: str) -> AbstractExchange:
        if self._channel is not channel:
            self._channel, self._known = channel, {"": channel.default_exchange}
        if name not in self._known:
            self._known[name] = await self._declare(channel, name)
        return self._known[name]

    async def _declare(self, channel: AbstractChannel, name: str) -> AbstractExchange:
        if name in self._theirs:
            return await channel.get_exchange(name, ensure=False)
        try:
            return await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)
        except (ChannelPreconditionFailed, ChannelAccessRefused):
            self._theirs.add(name)
            raise
