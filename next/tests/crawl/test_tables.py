"""Each row of the tables of a job's manual, through a reader process: one job that uses all of them."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, job_options, lines, rows, served

from sanderling.crawl.library import run_job
from sanderling.crawl.system import tasks, verify
from sanderling.files import Exit
from sanderling.jobs import Job, JobError, Reply

pytestmark = pytest.mark.real

PAGES = """
from dataclasses import dataclass
from datetime import date
from sanderling import Job, Request

def first(arguments):
    assert __file__.endswith("tables.py")
    yield "BASE/list/" + str(arguments["start"])
    yield Request("BASE/form", form={"q": "x y"}, read="form")

job = Job("tables", start=first, hosts=("HOST",), arguments={"start": 1}, max_depth=3, skip=("/skipped/*",))
opened = []

@dataclass
class Item:
    name: str
    price: float

@job.start
def open_what_is_needed():
    opened.append(1)

@job.end
def close_it():
    with open("ENDED", "a") as file:
        file.write("ended ")

@job.before
def sign(request):
    return request.with_headers(X_Signature="s")

@job.after
def judge(reply):
    if reply.header("X-Limit"):
        return job.refused(0.1)
    if b"nothing here" in reply.body:
        return job.missing("it says so")

@job.each
def clean(record):
    if isinstance(record, dict) and record.get("drop"):
        return job.drop
    if isinstance(record, dict):
        record["cleaned"] = True

@job.page("/list/{n}")
def listing(page, n):
    yield {
        "row": "page",
        "css": page.css("h1").text,
        "text": page.css("h1::text").get(),
        "attr": page.css("a.item::attr(href)").getall(),
        "attrs": page.css("a.item").attrs("href"),
        "xpath": page.xpath("//h1/text()").get(),
        "re": page.re(r"Price (\\d+)"),
        "re_first": page.css("p").re_first(r"Price (\\d+)"),
        "urljoin": page.urljoin("x"),
        "links": list(page.links())[:1],
        "markdown": "words" in page.markdown(),
        "captured": n, "args": page.args, "depth": page.depth, "status": page.status,
    }
    yield {"drop": True}
    yield [1, 2]
    yield from page.follow_all("a.item")
    yield page.follow(page.css("a.odd")[0], read="odd", data={"carried": [1]}, priority=5)
    yield "/skipped/1"
    yield "/fits/nothing"
    yield page.follow("http://elsewhere.invalid/", read="odd")
    yield Request("/key", key="one", read="odd")
    yield Request("/key?again=1", key="one", read="odd")

@job.page("/item/*", status=(404,))
def item(page):
    if page.status == 404:
        return {"row": "missing"}
    return Item(page.css("h1").text, 1.5)

@job.read
def odd(reply):
    return [{"row": "odd", "data": reply.data, "when": date(2026, 1, 2)}]

@job.read(record=dict)
async def form(reply):
    yield {"row": "form", "said": reply.json(), "opened": len(opened)}
"""


def answers() -> Site:
    limited: list[int] = []

    def form(request: web.Request) -> Answer:
        said = f'{{"method": "{request.method}", "signed": "{request.headers.get("X-Signature")}"}}'
        return 200, {"Content-Type": "application/json"}, said

    def refusing(request: web.Request) -> Answer:
        limited.append(1)
        return 200, {**HTML, **({"X-Limit": "1"} if len(limited) == 1 else {})}, "<h1>Three</h1>"

    first = (
        "<h1>One</h1><p>Some words. Price 12</p><a class=item href=/item/1>x</a><a class=item href=/item/2>x</a>"
        "<a class=item href=/item/3>x</a><a class=item href=/item/4>x</a><a class=odd href=/odd>x</a>"
    )
    return Site(
        {
            "/list/1": first,
            "/item/1": "<h1>First</h1>",
            "/item/2": (404, HTML, "no"),
            "/item/3": refusing,
            "/item/4": "nothing here",
            "/odd": "x",
            "/key": "x",
            "/form": form,
        }
    )


async def test_every_row_of_the_tables(tmp_path: Path) -> None:
    site, out, file = answers(), tmp_path / "out", tmp_path / "tables.py"
    async with served(site):
        file.write_text(
            PAGES.replace("ENDED", str(tmp_path / "ended"))
            .replace("BASE", site.base)
            .replace("HOST", site.base.partition("//")[2])
        )
        code, _ = await crawl(job_options(out, file, readers=1, set={"start": "1"}))
        listed = [each async for each in tasks(out, "left_out", None, None)]
    found = {each.get("row", each.get("name")): each for each in lines(out / "records.jsonl")}

    assert code == Exit.FAILED
    page = found["page"]
    assert {name: page[name] for name in ("css", "text", "xpath", "re", "re_first", "captured", "depth", "status")} == {
        "css": "One", "text": "One", "xpath": "One", "re": ["12"], "re_first": "12", "captured": "1", "depth": 0,
        "status": 200,
    }  # fmt: skip
    assert page["attr"] == page["attrs"] == ["/item/1", "/item/2", "/item/3", "/item/4"]
    assert (page["urljoin"], page["links"]) == (f"{site.base}/list/x", [f"{site.base}/item/1"])
    assert (page["markdown"], page["args"], page["cleaned"]) == (True, {"start": 1}, True)
    assert (found["First"]["price"], found["Three"]["run"]) == (1.5, 1)
    assert found["odd"]["when"] == "2026-01-02"
    assert found["missing"]["cleaned"]
    assert found["form"]["said"] == {"method": "POST", "signed": "s"}
    assert found["form"]["opened"] == 1
    assert "drop" not in found
    assert (tmp_path / "ended").read_text() == "ended ended "  # in the reader, and here for the async function
    counts = Counter(site.requests)
    assert counts == {
        "/list/1": 1,
        "/item/1": 1,
        "/item/2": 1,
        "/item/3": 2,
        "/item/4": 1,
        "/odd": 1,
        "/key": 1,
        "/form": 1,
    }
    assert [each.key for each in listed] == ["http://elsewhere.invalid/"]
    assert [each["value"] for each in lines(out / "records.jsonl") if "value" in each] == [[1, 2]]
    failed = rows(out, "failed.jsonl")
    assert {url: row["detail"] for url, row in failed.items() if row["end"] == "failed"} == {
        f"{site.base}/item/4": "it says so"
    }
    assert not (await verify(out)).faults


REQUESTS = """
from sanderling import Job, Request
from sanderling.jobs import PageNumber

job = Job(
    "requests", read="more", key=lambda request: "once" if "twice" in request.url else None, max_records=MOST,
    start=[Request("BASE/get", params={"q": 1}, headers={"X-A": "b"}), Request("BASE/page", paging=PageNumber())],
    max_requests=50, rps=400,
)

@job.read
def other(reply):
    yield {"said": reply.json(), "data": reply.data, "url": reply.url}

@job.read
def more(reply):
    if "/page" in reply.url:
        return [{"item": each} for each in reply.json()]
    return [
        reply.follow("/put", method="PUT", body="text", read="other"),
        reply.follow("/json", json={"a": [1]}, read="other", data={"carried": True}, priority=1),
        reply.follow("/form", form={"a": "x y"}, read="other"),
        reply.follow("/twice/1", read="other"), reply.follow("/twice/2", read="other"),
    ]
"""


async def test_every_argument_of_a_request_and_of_a_job(tmp_path: Path) -> None:
    bodies: list[str] = []

    class Echo(Site):
        async def __call__(self, request: web.BaseRequest) -> web.Response:
            bodies.append(f"{request.method} {request.path_qs} {(await request.read()).decode()}")
            return await super().__call__(request)

    def paged(request: web.Request) -> Answer:
        return 200, JSON, "[1, 2]" if request.query["page"] == "1" else "[]"

    site, out, file = Echo({"*": (200, JSON, "{}")}), tmp_path / "out", tmp_path / "requests.py"
    site.pages |= {"/page?page=1": paged, "/page?page=2": paged}
    async with served(site):
        for most in (1, 100):
            file.write_text(REQUESTS.replace("BASE", site.base).replace("MOST", str(most)))
            code, run = await crawl(job_options(out, file))
            assert len(lines(out / "records.jsonl")) < 8
            assert run.parts.limiter.limits.max_rps == 400
    assert code == Exit.DONE
    found = lines(out / "records.jsonl")
    assert [each["item"] for each in found if "item" in each] == [1, 2]
    assert {"GET /get?q=1 ", "PUT /put text", 'POST /json {"a":[1]}', "POST /form a=x+y"} <= set(bodies)
    assert len([each for each in bodies if "twice" in each]) == 1
    assert next(each["data"] for each in found if each.get("url", "").endswith("/json")) == {"carried": True}
    sent = site.heads[site.requests.index("/get?q=1")]
    assert {name.lower(): value for name, value in sent.items()}["x-a"] == "b"
    assert not (await verify(out)).faults


JOB = "from sanderling import Job\njob = Job"
READ = "\n@job.read\ndef r(reply): ..."
BAD: dict[str, tuple[str, str]] = {
    "no Python": ("def (", "SyntaxError"),
    "an import that is missing": ("import nothing_of_that_name", "ModuleNotFoundError"),
    "no job": ("x = 1", "no job"),
    "two jobs": (JOB + '("a", start="x")\nother = Job("b", start="x")', "2 jobs"),
    "no function": (JOB + '("a", start="https://a.example/")', "no function"),
    "a start that is no URL": (JOB + '("a", start="x")' + READ, "URL"),
    "a start that no function reads": (
        JOB + '("a", start="https://a.example/x")\n@job.page("/y")\ndef r(page): ...',
        "no page of a",
    ),
    "a start without hosts": (JOB + '("a", start=lambda a: [])' + READ, "no hosts"),
    "a script without a guard": (
        "import asyncio\nfrom sanderling import run_job\n" + JOB + '("a", start="https://a.example/")' + READ
        + '\nasyncio.run(run_job(job, "x"))',
        "__name__",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
async def test_a_file_that_is_wrong_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    file = tmp_path / "wrong.py"
    file.write_text(text)
    with pytest.raises(JobError, match=said):
        await crawl(job_options(tmp_path / "out", file))


async def test_another_job_or_other_arguments_need_another_folder(tmp_path: Path) -> None:
    text = JOB + '("NAME", start="BASE/a", arguments={"n": 1})' + READ
    site, file = Site({"/a": "x"}), tmp_path / "a.py"
    async with served(site):
        file.write_text(text.replace("BASE", site.base))
        await crawl(job_options(tmp_path / "out", file))
        with pytest.raises(Exception, match="arguments"):
            await crawl(job_options(tmp_path / "out", file, set={"n": "2"}))
        file.write_text(text.replace("BASE", site.base).replace("NAME", "OTHER"))
        with pytest.raises(Exception, match="job="):
            await crawl(job_options(tmp_path / "out", file))


async def test_a_function_that_is_gone_waits_until_it_is_back(tmp_path: Path) -> None:
    text = (
        'from sanderling import Job, Request\njob = Job("a", start="BASE/a", max_requests=LIMIT)\n'
        '@job.read\ndef r(reply):\n    yield Request("/b", read="NAME")\n\n'
        '@job.read\ndef NAME(reply):\n    yield {"b": 1}\n'
    )
    site, file, out = Site({"/a": "x", "/b": "x"}), tmp_path / "a.py", tmp_path / "out"
    async with served(site):
        text = text.replace("BASE", site.base)
        for name, limit, expected in (("one", "1", Exit.DONE), ("two", "9", Exit.WAITING), ("one", "9", Exit.DONE)):
            file.write_text(text.replace("NAME", name).replace("LIMIT", limit))
            code, _ = await crawl(job_options(out, file))
            assert code == expected
    assert site.requests == ["/a", "/b"]
    assert len(lines(out / "records.jsonl")) == 1


job = Job("here", start="http://127.0.0.1/", hosts=("127.0.0.1",))


@job.read
async def seen(reply: Reply) -> Any:
    await asyncio.sleep(0)
    return {"status": reply.status}


async def test_from_python(tmp_path: Path) -> None:
    site = Site({"/": "x"})
    async with served(site):
        own = Job("here", start=site.base + "/")
        own.read(seen)
        done = await run_job(own, tmp_path, private=True, policy="none")
    assert (done.exit, done.kept, done.failed, done.waiting) == (Exit.DONE, 1, 0, 0)
    assert lines(done.records)[0]["status"] == 200


def marked(request: web.Request) -> Answer:
    """What /in answers to who has one of the secrets, and /token to who asks for one."""
    said = {request.headers.get("Authorization"), request.headers.get("X-Key"), request.query.get("key")}
    said.add(request.cookies.get("key"))
    right = {"Bearer s3cret", "Basic YW5uOnMzY3JldA==", "s3cret", "Bearer new", "Session new"}
    return (200, JSON, "{}") if said & right else (401, JSON, "{}")


JSON = {"Content-Type": "application/json"}
TOKEN = '{"access_token": "new", "session": "new", "expires_in": "7200"}'
AUTH = {
    "a bearer": 'Bearer("env:S")',
    "a user": 'Basic("ann", "env:S")',
    "a key": 'ApiKey("X-Key", "env:S")',
    "a key in the query": 'ApiKey("key", "env:S", "query")',
    "a key in a cookie": 'ApiKey("key", "env:S", "cookie")',
    "a client": 'OAuth2("BASE/token", "id", "env:S", scopes=("a", "b"))',
    "a client in a header": 'OAuth2("BASE/token", "id", "env:S", client_in="header")',
    "a log-in": 'Login("BASE/token", "body.session", json={"p": "env:S"}, prefix="Session ")',
}


@pytest.mark.parametrize("kind", AUTH)
async def test_each_kind_of_auth_is_sent_to_the_hosts_of_the_job_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("S", "s3cret")
    site, other, file = Site({"/token": (200, JSON, TOKEN), "*": marked}), Site({"*": "x"}), tmp_path / "a.py"
    text = "from sanderling.jobs import *\njob = Job('a', start='BASE/in', hosts='*.test', auth=AUTH)"
    async with served(site, other):
        text = text.replace("AUTH", AUTH[kind]).replace("BASE", site.base).replace("*.test", site.base[7:])
        text += f"\n@job.read\ndef r(reply):\n    yield {{'status': reply.status}}\n    yield Request('{other.base}/')"
        file.write_text(text)
        code, _ = await crawl(job_options(tmp_path / "out", file))
    assert code == Exit.DONE  # what is left out has not failed
    assert [each["status"] for each in lines(tmp_path / "out" / "records.jsonl")] == [200]
    assert not other.requests
    names = ["/token"] * kind.startswith(("a client", "a log-in"))
    assert [target.partition("?")[0] for target in site.requests] == [*names, "/in"]
    assert not any(b"s3cret" in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
