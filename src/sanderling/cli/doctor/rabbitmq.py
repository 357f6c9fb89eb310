"""A RabbitMQ: which version, whether queues can be made there, and whether ours is there."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, cast
from uuid import uuid4

from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity, ChannelPreconditionFailed

from sanderling.cli.doctor.findings import FAIL, OK, WARN, CheckError, CheckFinding
from sanderling.cli.doctor.services import AWAY, Say, Service
from sanderling.stores.queue import QueueError
from sanderling.stores.rabbitmq_wire import Broker, BrokerRefusedError, RabbitmqLink, broker, connect, plainly

# What comes back later waits in quorum queues with a time to live, which earlier versions refuse to make.
OLDEST = (3, 10)
CONNECT = 3.0  # seconds; the client needs some more to give up
GRANT = "rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*', or the names of our queues instead"
_VERSION = re.compile(r"(\d+)\.(\d+)")


async def check_rabbitmq(service: Service, say: Say) -> None:
    """Ask it. Raises CheckError."""
    try:
        server = broker(service.url, os.environ)
        link = await _connected(server)
        try:
            await _ask(link, server, service, say)
        finally:
            await link.close()
    except BrokerRefusedError as error:
        raise CheckError(str(error), "look at user, password and vhost in the URL") from None
    except QueueError as error:
        raise CheckError(str(error), "is it up, and is that its address?") from None


async def _connected(server: Broker) -> RabbitmqLink:
    try:
        async with asyncio.timeout(CONNECT):
            return await connect(server, "sanderling doctor")
    except TimeoutError:
        raise CheckError(f"no RabbitMQ answers at {server.place} within {CONNECT:.0f} s", AWAY) from None


async def _ask(link: RabbitmqLink, server: Broker, service: Service, say: Say) -> None:
    say(version_found(service.what, _properties(link), server.place))
    with plainly(server.place):
        say(await _can_make(link, service))
        if service.name:
            say(await _queue(link, service))


def _properties(link: RabbitmqLink) -> Mapping[str, object]:
    """What the server said of itself; the client has it deep down, and only while it is connected."""
    connection = cast("Any", link.connection)
    properties: Mapping[str, object] = connection.transport.connection.server_properties
    return properties


def version_found(what: str, properties: Mapping[str, object], place: str) -> CheckFinding:
    """What to say of a version."""
    product, said = (_text(properties.get(name)) for name in ("product", "version"))
    found = f"{product or 'a broker without a name'} {said} at {place}".replace("  ", " ")
    number = _VERSION.match(said)
    if product != "RabbitMQ" or number is None:
        return CheckFinding(what, WARN, found, "expected a RabbitMQ; with others nothing was tried")
    if (int(number[1]), int(number[2])) < OLDEST:
        return CheckFinding(what, FAIL, found, f"expected {OLDEST[0]}.{OLDEST[1]} or later")
    return CheckFinding(what, OK, found)


def _text(said: object) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said or "")
    return text[:60]


async def _can_make(link: RabbitmqLink, service: Service) -> CheckFinding:
    """Whether queues can be made: by making one, which is gone with its connection."""
    what = f"{service.what}: queues"
    channel = await link.connection.channel()
    try:
        queue = await channel.declare_queue(f"sanderling-doctor-{uuid4().hex}", exclusive=True, auto_delete=True)
        await queue.delete()
    except ChannelAccessRefused as error:
        return CheckFinding(what, FAIL, f"none can be made: {error}", GRANT)
    return CheckFinding(what, OK, "can be made")


async def _queue(link: RabbitmqLink, service: Service) -> CheckFinding:
    """Whether ours is there, and for us."""
    what = f"{service.what}: {service.name}"
    channel = await link.connection.channel()
    try:
        queue = await channel.declare_queue(service.name, passive=True)
    except ChannelNotFoundEntity:
        return CheckFinding(what, OK, "is not there yet; it is made when it is first used")
    except ChannelAccessRefused as error:
        return CheckFinding(what, FAIL, f"is not for us: {error}", GRANT)
    except ChannelPreconditionFailed as error:
        return CheckFinding(what, FAIL, f"is another one: {error}", "delete it, or choose another name")
    waiting = queue.declaration_result.message_count or 0
    consumers = queue.declaration_result.consumer_count or 0
    return CheckFinding(what, OK, f"{waiting:,} ready, {consumers:,} consumers")
