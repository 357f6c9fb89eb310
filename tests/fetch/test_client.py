"""All that a polite request needs, in one object."""

import pytest
from looping import in_loop
from scripted_server import ScriptedServer, Step, answer

from sanderling.fetch.client import Client
from sanderling.outcome import Code
from sanderling.task import Task

Script = dict[str, list[bytes | list[Step]]]


@in_loop
async def test_it_follows_tries_again_and_says_who_asks() -> None:
    script: Script = {"/": [answer(301, Location="/new")], "/new": [answer(500), answer(200, b"tide")]}
    async with ScriptedServer(script) as server, Client(private=True, contact="mailto:me@example.org") as client:
        fetched = await client.fetch(server.url())

    assert (fetched.outcome.code, fetched.requests) == (Code.OK, 3)
    assert fetched.reply is not None
    assert fetched.reply.body == b"tide"
    assert "(+mailto:me@example.org)" in server.requests[0].headers["user-agent"]


@in_loop
async def test_a_host_is_asked_no_faster_than_it_may_be() -> None:
    async with ScriptedServer({"/": [answer(429, Retry_After="3600")]}) as server, Client(private=True) as client:
        first = await client.fetch(Task(server.url()))

        assert (first.outcome.code, first.outcome.retry_after) == (Code.RATE_LIMITED, 3600.0)
        assert client.limiter.snapshot().top[0].rejected == 1
        assert len(server.requests) == 1


@in_loop
async def test_ones_own_machine_is_refused_unless_allowed() -> None:
    async with ScriptedServer({"/": [answer(200)]}) as server, Client() as client:
        fetched = await client.fetch(server.url())

    assert (fetched.outcome.code, server.requests) == (Code.REFUSED, [])


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="contact"):
        Client(contact="me")
