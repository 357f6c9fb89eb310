"""The client of every command that asks hosts."""

import asyncio

import pytest
from scripted_server import ScriptedServer, answer

from sanderling.cli.client import make_http
from sanderling.cli.command_error import CommandError
from sanderling.fetch.guard import Refused
from sanderling.fetch.http import Http, HttpRules
from sanderling.task import Reply, Task


async def asked(http: Http, server: ScriptedServer) -> Reply:
    async with http:
        return await http.send(Task(server.url("/")))


def test_it_says_whom_to_reach_and_asks_our_own_machine_only_if_it_may() -> None:
    async def main() -> str:
        async with ScriptedServer({"/": [answer(200)]}) as server:
            with pytest.raises(Refused):
                await asked(make_http(HttpRules(), None, private=False), server)
            await asked(make_http(HttpRules(), "https://example.org/crawler", private=True), server)
        (request,) = server.requests
        return request.headers["user-agent"]

    assert asyncio.run(main()).endswith(" (+https://example.org/crawler)")


def test_what_is_no_contact_is_refused_with_its_flag() -> None:
    with pytest.raises(CommandError, match=r"^--contact: contact is 'me', expected an address like ") as caught:
        make_http(HttpRules(), "me", private=False)

    assert caught.value.code == 2
