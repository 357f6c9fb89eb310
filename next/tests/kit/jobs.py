"""How the third edition runs jobs: their files (BASE is the address of the API), its words, and its records."""

import json
from pathlib import Path
from typing import Any

WELL, FAILED = 0, 1

LIST = """
from sanderling import Job, Request

job = Job("posts", start="BASE/posts?page=1")


@job.read
def posts(reply):
    for post in reply.json()["data"]:
        yield Request(f"/posts/{post['id']}", read="detail")
    if reply.json()["more"]:
        yield Request(f"/posts?page={reply.json()['page'] + 1}")


@job.read
async def detail(reply):
"""
PAGED = """
from sanderling import Job
from sanderling.jobs import Cursor, OAuth2

job = Job("items", start="BASE/WHERE", paging=Cursor("body.meta.next", param="cursor", items="body.items")AUTH)


@job.read
def items(reply):
    return reply.json()["items"]
"""
ODD = """
from sanderling import Job, Request
from sanderling.jobs import Answers

answers = Answers(
    refused="body.error.code == `17`",
    seconds="body.error.retry_in",
    missing="status == `200` && body && !(body.data) && !(body.error)",
    error="body.error",
    message="body.error.message",
)
job = Job("odd", start="BASE/odd", answers=answers)


@job.read
def listed(reply):
    for name in reply.json()["data"]:
        yield Request(f"/odd/{name}", read="one")


@job.read
def one(reply):
    yield reply.json()["data"]
"""
LOGIN = """
from sanderling import Job
from sanderling.jobs import FormLogin

fields = {"user": "env:USER_NAME", "password": "env:USER_PASSWORD"}
job = Job("table", start="BASE/table?page=0", auth=FormLogin("BASE/login", fields, success="Log out"))


@job.page("/table")
def table(page):
    for row in page.css("tr.row"):
        yield {"id": int(row.css(".id").text), "name": row.css(".name").text}
    yield from page.follow_all("a.next")
"""
SHOP = """
from sanderling import Job

job = Job("shop", start="BASE/list/1")


@job.page("/list/*")
def listing(page):
    yield from page.follow_all("a.item, a.next")


@job.page("/item/{number}")
def item(page, number):
    yield {"id": int(number), "name": page.css(".name").text, "price": page.css(".price").text}
"""
JOBS = {
    "detail": LIST + "    yield reply.json()\n",
    "raising": LIST + "    1 / (reply.json()['id'] % 7 - 3)\n    yield reply.json()\n",
    "paged": PAGED.replace("WHERE", "paged").replace("AUTH", ""),
    "bearer": PAGED.replace("WHERE", "bearer").replace(
        "AUTH", ', auth=OAuth2("BASE/token", "env:CLIENT", "env:SECRET")'
    ),
    "odd": ODD,
    "login": LOGIN,
    "shop": SHOP,
}


def run(file: Path, out: Path, secrets: dict[str, str]) -> tuple[list[object], dict[str, str]]:
    """Begin a job, or go on with it."""
    return ["run", file, "--out", out, "--private", "--rps", 200], secrets


def verify(out: Path) -> list[object]:
    return ["verify", out]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def records(folder: Path) -> list[dict[str, Any]]:
    """What was collected, as the functions yielded it."""
    return [
        {name: value for name, value in row.items() if name not in ("run", "stored")}
        for row in lines(Path(folder) / "records.jsonl")
    ]


def failed(folder: Path) -> list[dict[str, str]]:
    """What failed: url and reason."""
    return [
        {"url": row["url"], "reason": f"{row.get('outcome')} {row.get('detail', '')}"}
        for row in lines(Path(folder) / "failed.jsonl")
    ]
