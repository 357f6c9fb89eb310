"""Every example of `docs/jobs_language.md` runs, and says what the page says."""

import asyncio
import doctest
import json as json_module
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from sanderling.apis import answers as answers_module
from sanderling.apis import auth as auth_module
from sanderling.apis import paging as paging_module
from sanderling.apis.answers import Answers
from sanderling.apis.auth import Auth
from sanderling.apis.conditions import JsonReply, reply_condition
from sanderling.apis.credentials import Credentials
from sanderling.apis.paging import NextPage, Paging
from sanderling.apis.paging_chain import Chain
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.classify import of_reply
from sanderling.limit import Limiter
from sanderling.outcome import Outcome
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

PAGE = (Path(__file__).parents[1] / "docs" / "jobs_language.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
URL = "https://api.example/posts"
ENVIRONMENT = {"KEY": "k", "TOKEN": "t", "USER": "u", "PASSWORD": "p"}


def replied(document: object, headers: Mapping[str, str] | None = None, url: str = URL) -> Reply:
    return Reply(200, tuple((headers or {}).items()), json_module.dumps(document).encode(), url, 0.1)


def show(task: Task) -> str:
    headers = [f"{name}: {value}" for name, value in task.headers if name != "Content-Type"]
    return " ".join([task.method, task.url, *headers, *([task.body.decode()] if task.body else [])])


def read(answers: Answers, document: object) -> tuple[str, str, float | None]:
    reply = replied(document)
    outcome = answers.read(JsonReply(reply), of_reply(reply.status, reply.headers, wall=0.0), 0.0)
    return outcome.code.value, outcome.detail, outcome.retry_after


def follow(paging: Paging, document: object, headers: Mapping[str, str] | None = None, json: object = None) -> str:
    task = (
        Task(URL)
        if json is None
        else Task(URL, "POST", (("Content-Type", "application/json"),), json_module.dumps(json).encode())
    )
    following = paging.next(paging.begin(task), JsonReply(replied(document, headers)), Chain())
    match following:
        case NextPage():
            return show(following.task)
        case Outcome():
            return f"{following.code.value} {following.detail}"
    return "the end"


def sign(auth: Auth) -> str:
    sent: list[Task] = []

    class World:
        async def send(self, task: Task) -> Reply:
            sent.append(task)
            await asyncio.sleep(0.1)
            return replied({"access_token": "issued", "session": {"token": "opened"}}, url=task.url)

    async def main() -> None:
        clock = LoopClock()
        limiter = Limiter(clock=clock)
        credentials = Credentials(auth, ("api.example",), clock, environment=ENVIRONMENT)
        await credentials.fetch(Fetcher(World(), limiter, clock=clock), Task(URL), await limiter.acquire("api.example"))

    run_virtual(main())
    return show(sent[-1])


NAMES = {
    name: value
    for module in (answers_module, auth_module, paging_module)
    for name, value in vars(module).items()
    if not name.startswith("_")
} | {"read": read, "follow": follow, "sign": sign}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_says_what_the_page_says(example: str) -> None:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(example, dict(NAMES), "jobs_language.md", None, 0)

    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)

    assert result.attempted > 0
    assert result.failed == 0, "".join(said)


def test_every_kind_has_an_example() -> None:
    shown = "\n".join(EXAMPLES)
    kinds = [kind.__name__ for union in (Paging, Auth) for kind in union.__args__]

    assert [name for name in [*kinds, "Answers"] if f"{name}(" not in shown] == []


def test_every_condition_of_the_page_is_one() -> None:
    table = PAGE.partition("## Conditions")[2].partition("##")[0]
    conditions = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)

    assert len(conditions) >= 5
    assert [reply_condition(text) for text in conditions]
