"""Ids as a library: every record once, from where the last run was, whatever the API does."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from looping import in_loop
from scripted_server import ScriptedServer, Step, answer

from sanderling.apis.numbered import Status
from sanderling.fetch.classify import of_reply
from sanderling.formats.instance import Message
from sanderling.sequence.following import OwnApi, SequenceRecord, following
from sanderling.stores.durable import FolderError
from sanderling.task import Reply, Task

Script = dict[str, list[bytes | list[Step]]]


def said(number: int) -> bytes:
    return answer(200, json.dumps({"n": number}).encode())


def read(reply: Reply) -> object:
    return json.loads(reply.body)["n"]


async def collected(server: ScriptedServer, folder: Path, until: int, most: int = 99) -> list[SequenceRecord]:
    """What is found from the first id on, or from where the folder is."""
    found: list[SequenceRecord] = []
    rules = {"first": 1, "until": until, "rps": 100.0, "private": True}
    async with following(lambda n: Task(server.url(f"/{n}")), read, folder, **rules) as records:  # type: ignore[arg-type]
        async for record in records:
            found.append(record)
            if len(found) == most:
                break
    return found


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b'{"n": 7}', Status.SUCCESS),
        (200, b'{"n": null}', Status.NOT_FOUND),
        (200, b'{"m": 7}', Status.BAD_FORMAT),
        (200, b"half a recor", Status.BAD_FORMAT),
        (404, b"", Status.NOT_FOUND),
        (410, b"", Status.NOT_FOUND),
        (429, b"", Status.RATE_LIMITED),
        (401, b"", Status.ERROR),
        (500, b"", Status.ERROR),
    ],
)
def test_what_an_answer_means(status: int, body: bytes, expected: Status) -> None:
    reply = Reply(status, (), body, "http://a.example/7", 0.1)

    found = OwnApi(lambda n: Task(f"http://a.example/{n}"), read).read(7, reply, of_reply(status, (), wall=0.0), 0.0)

    assert found.status is expected
    assert bool(found.message) is found.outcome.ok is (expected is Status.SUCCESS)
    assert not (expected is Status.ERROR and found.outcome.final), "a failure does not say that an id is done with"


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (lambda document: document.get("n"), b"[]"),
        (lambda document: 1 / document, b"0"),
        (float, b"1" + b"0" * 400),
        (lambda document: document["n"]["m"], b'{"n": []}'),
        (lambda document: document[0], b"[" * 100_000),
        (lambda _: object(), b"{}"),
    ],
)
def test_whatever_reading_a_reply_raises_it_is_malformed(make: Callable[[Any], object], body: bytes) -> None:
    api = OwnApi(lambda n: Task(f"http://a.example/{n}"), lambda reply: make(json.loads(reply.body)))

    found = api.read(7, Reply(200, (), body, "http://a.example/7", 0.1), of_reply(200, (), wall=0.0), 0.0)

    assert found.status is Status.BAD_FORMAT
    assert found.outcome.detail


@in_loop
async def test_the_record_that_somebody_was_at_comes_again_and_no_other(tmp_path: Path) -> None:
    async with ScriptedServer({f"/{n}": [said(n)] for n in range(1, 6)}) as server:
        first = await collected(server, tmp_path / "ids", 5, most=2)
        second = await collected(server, tmp_path / "ids", 5)

    assert [each.id for each in first] == [1, 2]
    assert sorted(each.id for each in second) == [2, 3, 4, 5]


@in_loop
async def test_what_the_block_raises_comes_out_as_it_was(tmp_path: Path) -> None:
    async with ScriptedServer({"/1": [said(1)]}) as server:
        with pytest.raises(KeyError, match="mine"):
            async with following(
                lambda n: Task(server.url(f"/{n}")), read, tmp_path / "ids", first=1, until=1, private=True
            ):
                raise KeyError("mine")


@in_loop
async def test_a_folder_is_followed_once_at_a_time(tmp_path: Path) -> None:
    async with ScriptedServer({"/1": [said(1)]}) as server:

        def task(number: int) -> Task:
            return Task(server.url(f"/{number}"))

        async with following(task, read, tmp_path / "ids", first=1, until=1, private=True):
            with pytest.raises(FolderError):
                async with following(task, read, tmp_path / "ids", first=1, until=1, private=True):
                    pass


@in_loop
async def test_nothing_under_an_id_is_no_record(tmp_path: Path) -> None:
    """Neither a 404 nor a None; both are asked for again later, and do not hold up the others for ever."""
    script: Script = {"/1": [said(1)], "/2": [answer(200, b'{"n": null}')], "/3": [said(3)]}

    async with ScriptedServer(script) as server:
        found = await collected(server, tmp_path / "ids", 3, most=2)

    assert sorted(each.id for each in found) == [1, 3]


class Taker:
    """Takes what it is handed, as long as it wants to."""

    def __init__(self, most: int) -> None:
        self.got: list[int] = []
        self.most = most
        self.stops = 0

    async def hand(self, found: Sequence[Message]) -> bool:
        if len(self.got) >= self.most:
            return False
        self.got += [int(message.id) for message in found]
        return True

    def stop(self) -> None:
        self.stops += 1


@in_loop
async def test_records_are_handed_over_before_they_come_out_and_what_was_not_comes_again(tmp_path: Path) -> None:
    script: Script = {f"/{number}": [said(number)] for number in range(1, 6)}
    async with ScriptedServer(script) as server:
        for most, expected in ((0, []), (99, [1, 2, 3, 4, 5])):
            taker, found = Taker(most), list[int]()
            rules: dict[str, Any] = {"first": 1, "until": 5, "rps": 100.0, "private": True, "hand_over": taker}
            async with following(lambda n: Task(server.url(f"/{n}")), read, tmp_path, **rules) as records:
                async for record in records:
                    assert record.id in taker.got
                    found.append(record.id)
            assert (sorted(found), sorted(taker.got), taker.stops) == (expected, expected, 1)
