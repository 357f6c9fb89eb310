"""A job from its start to its records: further work, order, budgets, scope, names that are gone, and going on."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from small_api import API, Api, answer, api, run

from sanderling import Job, JobReply, Reply, Request, Task
from sanderling.jobs import Answers, Bearer, Cursor, NextUrl
from sanderling.jobs.job import JobError
from sanderling.jobs.rules import JobRules
from sanderling.jobs.watchdog import Stuck, read_stuck, write_stuck
from sanderling.stores.control_file import Control
from sanderling.stores.durable import FolderError

PAGES = 3
EACH = 4


def listing() -> dict[str, object]:
    """A list of pages, and the details of each entry."""
    found: dict[str, object] = {}
    for page in range(PAGES):
        ids = [page * EACH + number for number in range(EACH)]
        found[f"/posts?page={page}"] = {"ids": ids, "next": page + 1 if page + 1 < PAGES else None}
        found |= {f"/posts/{each}": {"title": f"post {each}"} for each in ids}
    return found


def posts_job(**options: object) -> Job:
    """A job that walks the list and asks for each entry."""
    job = Job("posts", start=f"{API}/posts?page=0", **options)  # type: ignore[arg-type]

    @job.read
    def posts(reply: JobReply) -> Iterator[Request]:
        for each in reply.json()["ids"]:
            yield Request(f"/posts/{each}", read="detail", data={"id": each})
        if reply.json()["next"] is not None:
            yield reply.follow(f"/posts?page={reply.json()['next']}")

    @job.read
    async def detail(reply: JobReply) -> dict[str, object]:
        return {"id": reply.data["id"], **reply.json()}

    return job


ALL = [{"id": number, "title": f"post {number}"} for number in range(PAGES * EACH)]


def by_id(records: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(records, key=lambda each: int(str(each["id"])))


def test_a_job_walks_a_list_and_asks_for_the_details_of_each_entry(tmp_path: Path) -> None:
    world = api(listing())

    ran = run(posts_job(), tmp_path / "out", world)

    assert by_id(ran.records) == ALL
    assert (ran.complete, ran.failed, len(world.asked)) == (True, [], PAGES * (EACH + 1))
    assert ran.run.requests == len(world.asked)


def test_a_job_that_was_stopped_goes_on_and_asks_for_nothing_twice(tmp_path: Path) -> None:
    world, folder = api(listing()), tmp_path / "out"

    first = run(posts_job(), folder, world, stop_after=0.75)
    second = run(posts_job(), folder, world)
    third = run(posts_job(), folder, world)

    assert not first.complete
    assert 0 < len(first.records) < len(ALL)
    assert by_id(second.records) == by_id(third.records) == ALL
    assert len(world.urls) == len(set(world.urls)) == third.run.requests


def numbered(number: int, **options: object) -> Job:
    """A job that starts with so many requests, each of which is a record."""
    job = Job("numbers", start=[f"{API}/{each}" for each in range(number)], **options)  # type: ignore[arg-type]

    @job.read
    def read(reply: JobReply) -> object:
        return {"id": int(reply.url.rpartition("/")[2])}

    return job


def numbers(number: int) -> Api:
    return api({f"/{each}": {} for each in range(number)})


def test_budgets_are_counted_over_all_runs(tmp_path: Path) -> None:
    world, folder = numbers(60), tmp_path / "out"

    for limit in (10, 10, 25):
        ran = run(numbered(60, max_requests=limit), folder, world)
        assert len(world.asked) == len(ran.records) == ran.run.requests == limit
        assert not ran.complete
    for limit in (26, 40):
        ran = run(numbered(60, max_records=limit), folder, world)
        assert len(ran.records) == ran.run.records == limit
    ran = run(numbered(60), folder, world)

    assert ran.complete
    assert sorted(each["id"] for each in ran.records) == list(range(60))


def test_higher_priorities_come_first_and_equal_ones_as_they_were_found(tmp_path: Path) -> None:
    """Also those that are found late, and those that are more than are loaded at once."""
    job = Job("ranked", start=f"{API}/list")

    @job.read
    def listing(_: JobReply) -> Iterator[Request]:
        yield from (Request(f"/low/{each}", read="leaf", priority=-5) for each in range(300))
        yield from (Request(f"/plain/{each}", read="leaf") for each in range(300))
        yield Request("/more", read="more", priority=10)

    @job.read
    def more(_: JobReply) -> Iterator[Request]:
        yield from (Request(f"/high/{each}", read="leaf", priority=7) for each in range(300))

    @job.read
    def leaf(_: JobReply) -> None:
        return None

    paths = ["/list", "/more", *(f"/{kind}/{each}" for kind in ("low", "plain", "high") for each in range(300))]
    world = api({path: {} for path in paths})
    stopped = run(job, tmp_path / "out", world, rps=200, stop_after=2.0)
    run(job, tmp_path / "out", world, rules=JobRules(per_host=1), rps=200)

    assert not stopped.complete
    assert sorted(world.urls) == sorted(f"{API}{path}" for path in paths)
    asked = [url.removeprefix(API).rpartition("/")[0] for url in world.urls]
    first = {kind: asked.index(kind) for kind in ("/high", "/plain", "/low")}
    assert asked.index("") == 0
    assert set(asked[first["/low"] :]) == {"/low"}
    # What was in flight or in memory when the first urgent one was found may come before it; that is one load at most.
    assert asked[: asked.index("/high")].count("/plain") <= 16
    in_order = [int(url.rpartition("/")[2]) for url in world.urls[-200:]]
    assert in_order == sorted(in_order)


def test_a_host_out_of_scope_is_noted_and_asked_for_once_it_is_within(tmp_path: Path) -> None:
    def job(*hosts: str) -> Job:
        made = Job("scoped", start=f"{API}/list", hosts=("api.example", *hosts))

        @made.read
        def read(reply: JobReply) -> Iterator[object]:
            yield {"url": reply.url}
            if reply.url.endswith("/list"):
                yield Request("https://other.example/a")
                yield Request("/moved", priority=3)

        return made

    moved = answer({}, 302, Location="https://third.example/b")
    world = api({"/list": {}, "https://other.example/a": {}, "/moved": moved, "https://third.example/b": {}})
    first = run(job(), tmp_path / "out", world)
    again = run(job(), tmp_path / "out", world)
    assert len(world.urls) == 2  # the list, and what leads elsewhere
    second = run(job("other.example"), tmp_path / "out", world)
    third = run(job("other.example", "third.example"), tmp_path / "out", world)

    for ran in (first, again):
        assert {each["url"]: (each["end"], each["requests"]) for each in ran.failed} == {
            "https://other.example/a": ("left_out", 0),
            f"{API}/moved": ("left_out", 1),
        }
    assert "third.example is out of scope; hosts of the job: api.example" in first.reasons[f"{API}/moved"]
    assert "other.example is out of scope; hosts of the job: api.example" in first.reasons["https://other.example/a"]
    assert [each["url"] for each in second.records] == [f"{API}/list", "https://other.example/a"]
    assert [each["url"] for each in third.records[2:]] == ["https://third.example/b"]
    assert (third.failed, third.complete, len(world.urls)) == ([], True, 5)


def test_only_2xx_is_read(tmp_path: Path) -> None:
    """Nobody asked on a condition or for a part, so a 304 and a 206 are no answers to read."""
    statuses = (200, 201, 204, 206, 299, 300, 304, 305, 400, 418)
    job = Job("statuses", start=[f"{API}/{each}" for each in statuses])

    @job.read
    def read(reply: JobReply) -> object:
        return {"status": reply.status}

    ran = run(job, tmp_path / "out", api({f"/{each}": answer({}, each) for each in statuses}))

    assert {each["status"] for each in ran.records} == {200, 201, 204, 299}
    failed = dict.fromkeys((each for each in statuses if each >= 300), "HTTP_ERROR")
    assert {each["status"]: each["outcome"] for each in ran.failed} == {206: "INVALID_RESPONSE", **failed}


def test_a_reader_that_is_gone_keeps_its_requests_waiting(tmp_path: Path) -> None:
    def job(name: str) -> Job:
        made = Job("renamed", start=f"{API}/list")

        @made.read
        def listing(_: JobReply) -> Iterator[Request]:
            yield from (Request(f"/{each}", read=name) for each in range(5))

        def leaf(reply: JobReply) -> object:
            return {"url": reply.url, "by": name}

        leaf.__name__ = name
        made.read(leaf)
        return made

    world = api({"/list": {}, **{f"/{each}": {} for each in range(5)}})
    run(job("detail"), tmp_path / "out", world, stop_after=0.05)
    renamed = run(job("details"), tmp_path / "out", world)
    back = run(job("detail"), tmp_path / "out", world)

    assert (renamed.complete, dict(renamed.run.source.gone), renamed.run.source.set_aside) == (False, {"detail": 5}, 5)
    assert renamed.records == []
    assert (back.complete, len(back.records), {each["by"] for each in back.records}) == (True, 5, {"detail"})


def test_the_same_request_is_sent_once_however_it_is_spelled(tmp_path: Path) -> None:
    job = Job("same", start=f"{API}/start", key=lambda request: "one" if "/one/" in request.url else None)

    @job.read
    def start(_: JobReply) -> Iterator[Request]:
        yield Request("/a?x=1&y=2", read="leaf")
        yield Request("/a", params={"y": 2, "x": 1}, read="leaf")
        yield Request("/a?y=2&x=1#part", read="leaf")
        yield Request("/a?y=2&x=1", read="leaf", key="again")
        yield Request("/a?y=2&x=1", read="leaf", method="POST", json={"q": 1})
        yield Request("/a?y=2&x=1", read="leaf", method="POST", json={"q": 2})
        yield Request("/one/1", read="leaf")
        yield Request("/one/2", read="leaf")

    @job.read
    def leaf(reply: JobReply) -> object:
        return {"method": reply.request.method, "body": (reply.request.content or b"").decode(), "url": reply.url}

    world = Api(lambda _: answer({}))
    ran = run(job, tmp_path / "out", world)

    assert [(each["method"], each["body"]) for each in ran.records] == [
        ("GET", ""),
        ("GET", ""),
        ("POST", '{"q":1}'),
        ("POST", '{"q":2}'),
        ("GET", ""),
    ]
    assert ran.records[-1]["url"] == f"{API}/one/1"


def test_a_bad_page_costs_nobody_else_and_a_dead_host_is_left_for_the_next_run(tmp_path: Path) -> None:
    job = Job("mixed", start=[f"{API}/{each}" for each in range(20)] + ["https://dead.example/x"])

    @job.read
    def read(reply: JobReply) -> object:
        return {"url": reply.url}

    answers: dict[str, object] = {f"/{each}": {} for each in range(20)}
    answers |= {"/7": answer({}, 500), "https://dead.example/x": ConnectionRefusedError()}
    first = run(job, tmp_path / "out", api(answers))
    second = run(job, tmp_path / "out", api(answers | {"https://dead.example/x": {}}))

    assert (first.complete, len(first.records), first.run.source.set_aside) == (False, 19, 1)
    assert [(each["url"], each["outcome"], each["requests"]) for each in first.failed] == [
        (f"{API}/7", "HOST_UNAVAILABLE", 4)
    ]
    assert (second.complete, len(second.records)) == (True, 20)


def test_a_folder_is_of_one_job_with_one_set_of_arguments(tmp_path: Path) -> None:
    def job(name: str = "dated") -> Job:
        made = Job(name, start=lambda args: [f"{API}/{args['since']}"], hosts="api.example", arguments={"since": 2020})

        @made.read
        def read(reply: JobReply) -> object:
            return {"since": reply.args["since"]}

        return made

    world = api({"/2020": {}, "/2021": {}})
    ran = run(job(), tmp_path / "out", world, arguments={"since": "2021"})

    assert ran.records == [{"since": 2021}]
    with pytest.raises(FolderError, match=r"other arguments: since was 2021 and is 2020. Go on with those"):
        run(job(), tmp_path / "out", world)
    with pytest.raises(FolderError, match=r"holds the job dated, not other. Choose another folder"):
        run(job("other"), tmp_path / "out", world, arguments={"since": 2021})
    with pytest.raises(JobError, match=r"argument since is 'soon', expected a whole number like 2020"):
        run(job(), tmp_path / "new", world, arguments={"since": "soon"})
    with pytest.raises(JobError, match=r"dated has no argument 'until'; expected one of: since \(int\)"):
        run(job(), tmp_path / "new", world, arguments={"until": "1"})
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").touch()
    with pytest.raises(FolderError, match=r"holds files of something else: mine.txt; choose an empty folder"):
        run(job(), tmp_path / "new", world)


def test_declared_pages_are_walked_and_a_page_that_goes_round_in_circles_fails(tmp_path: Path) -> None:
    job = Job("paged", start=[f"{API}/a?n=2", f"{API}/b"], paging=Cursor(path="next", param="cursor", items="ids"))

    @job.read
    def read(reply: JobReply) -> Iterator[object]:
        yield from ({"id": each} for each in reply.json()["ids"])
        if reply.url == f"{API}/b":
            yield Request("/c", read="header", paging=Cursor(path="next", header="X-Cursor", items="ids"))

    @job.read
    def header(reply: JobReply) -> Iterator[object]:
        yield from ({"id": each} for each in reply.json()["ids"])

    def find(task: Task) -> Reply:
        if task.url.startswith(f"{API}/c"):
            at = dict(task.headers).get("X-Cursor")
            return answer({"ids": [f"c{at}"], "next": {None: "1", "1": "2"}.get(at)})
        name, _, cursor = task.url.removeprefix(f"{API}/").partition("cursor=")
        if name.startswith("a"):
            return answer({"ids": [f"a{cursor}"], "next": {"": "x", "x": "y", "y": None}[cursor]})
        return answer({"ids": [f"b{cursor}"], "next": {"": "x", "x": "x"}[cursor]})

    world = Api(find)
    run(job, tmp_path / "out", world, stop_after=0.25)
    ran = run(job, tmp_path / "out", world)

    assert sorted(each["id"] for each in ran.records) == ["a", "ax", "ay", "b", "c1", "c2", "cNone"]
    assert f"{API}/a?n=2&cursor=x" in world.urls
    (failed,) = ran.failed
    assert "go round in circles" in failed["detail"]
    assert (failed["url"], failed["requests"]) == (f"{API}/b?cursor=x", 1)
    assert len(world.asked) == 8


WALK = 6  # pages
FAILING: dict[str, Reply | dict[str, object]] = {
    "no list": {"error": "oops"},
    "in circles": {"ids": [30], "next": "/posts?page=2"},
    "the page before": {"ids": [20], "next": "/posts?page=4"},
    "no address": {"ids": [30], "next": 7},
    "no http": {"ids": [30], "next": "file:///etc/hosts"},
    "a mistake": {"ids": [{}], "next": "/posts?page=4"},
    "not there": answer({}, 404),
}


@pytest.mark.parametrize("failing", FAILING)
def test_a_walk_that_failed_goes_on_from_the_page_that_failed(failing: str, tmp_path: Path) -> None:
    """With what the walk remembers and what its requests carry; nothing of the page was kept before."""
    pages: dict[str, object] = {
        f"/posts?page={page}": {"ids": [10 * page], "next": f"/posts?page={page + 1}" if page < WALK else None}
        for page in range(1, WALK + 1)
    }
    start = Request(f"{API}/posts?page=1", data={"walk": 1}, priority=5)
    job = Job("walk", start=start, paging=NextUrl("next", items="ids"))

    @job.read
    def read(reply: JobReply) -> Iterator[object]:
        yield from ({"id": int(each), **reply.data} for each in reply.json()["ids"])

    world, folder = (
        api(pages | {"/posts?page=3": [FAILING[failing], FAILING[failing], pages["/posts?page=3"]]}),
        tmp_path / "out",
    )
    first = run(job, folder, world)
    again = run(job, folder, world, retry=True)
    last = run(job, folder, world, retry=True)

    for ran in (first, again):
        assert ran.records == [{"id": 10, "walk": 1}, {"id": 20, "walk": 1}]
        assert [(each["url"], each["requests"]) for each in ran.failed] == [(f"{API}/posts?page=3", 1)]
    assert last.records == [{"id": 10 * page, "walk": 1} for page in range(1, WALK + 1)]
    assert (last.failed, last.complete, len(world.asked)) == ([], True, WALK + 2)


def test_a_next_page_out_of_scope_is_left_out_until_its_host_is_allowed(tmp_path: Path) -> None:
    world = api({"/posts": {"ids": [1], "next": "https://other.example/"}, "https://other.example/": {"ids": [2]}})

    def walk(*hosts: str) -> Job:
        job = Job("scope", start=f"{API}/posts", paging=NextUrl("next", items="ids"), hosts=hosts)
        job.read(ids)
        return job

    def ids(reply: JobReply) -> object:
        return {"ids": reply.json()["ids"]}

    first = run(walk("api.example"), tmp_path / "out", world)
    assert [(each["url"], each["end"]) for each in first.failed] == [("https://other.example/", "left_out")]
    second = run(walk("api.example", "other.example"), tmp_path / "out", world)

    assert first.records == [{"ids": [1]}]
    assert (second.records, second.failed) == ([{"ids": [1]}, {"ids": [2]}], [])


def test_declared_answers_and_credentials_are_used(tmp_path: Path) -> None:
    answers = Answers(refused="error.code = 17", missing="data = null", error="error exists")
    job = Job("declared", start=[f"{API}/{each}" for each in "abc"], answers=answers, auth=Bearer("hunter2"))

    @job.read
    def read(reply: JobReply) -> object:
        return reply.json()

    world = api({
        "/a": [{"error": {"code": 17}}, {"data": 1}],
        "/b": {"data": None},
        "/c": {"data": 1, "error": {"code": 5}},
    })  # fmt: skip
    ran = run(job, tmp_path / "out", world)

    assert ran.records == [{"data": 1}]
    assert {each["url"][-1]: each["outcome"] for each in ran.failed} == {
        "b": "CONTENT_NOT_FOUND",
        "c": "HOST_UNAVAILABLE",
    }
    assert {dict(task.headers)["Authorization"] for task in world.asked} == {"Bearer hunter2"}
    assert b"hunter2" not in b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_a_request_that_is_always_an_error_ends_after_some_tries(status: int, tmp_path: Path) -> None:
    """Whatever status the host gives its errors; also where nothing else is left to ask for."""
    job = Job("errors", start=[f"{API}/{each}" for each in ("bad", "good", "better")], answers=Answers(error="error"))

    @job.read
    def read(reply: JobReply) -> object:
        return reply.json()

    ran = run(job, tmp_path / "out", api({"/bad": answer({"error": 1}, status), "/good": {}, "/better": {}}))

    assert [(each["url"], each["requests"]) for each in ran.failed] == [(f"{API}/bad", 4)]
    assert (ran.complete, len(ran.records)) == (True, 2)


def test_what_was_stuck_is_asked_for_last_and_ended_the_second_time(tmp_path: Path) -> None:
    world, folder = numbers(30), tmp_path / "out"
    run(numbered(30, max_requests=1), folder, world)
    key = f"3 {API}/2"
    stuck = Stuck(1, 0.0, 30.0, "job.py:7 in read", ())
    write_stuck(folder, {key: stuck, f"1 {API}/0": stuck})

    first = run(numbered(30, max_requests=20), folder, world)
    assert f"{API}/2" not in world.urls
    assert read_stuck(folder) == {key: stuck}
    last = run(numbered(30, max_requests=29), folder, world)
    assert (f"{API}/2" not in world.urls, len(last.records), first.complete) == (True, 29, False)
    write_stuck(folder, {key: msgspec.structs.replace(stuck, times=2)})
    ended = run(numbered(30), folder, world)

    assert (ended.complete, len(ended.records), read_stuck(folder)) == (True, 29, {})
    assert ended.reasons == {f"{API}/2": "held the event loop for 30 s, 2 times, last at job.py:7 in read"}


def test_what_was_found_while_draining_waits_for_the_next_run(tmp_path: Path) -> None:
    world, folder = api(listing()), tmp_path / "out"

    drained = run(posts_job(), folder, world, wanted={0.05: Control(ending="drain")})
    assert (drained.complete, world.urls) == (False, [f"{API}/posts?page=0"])
    assert drained.run.source.found_late == EACH + 1

    assert by_id(run(posts_job(), folder, world).records) == ALL
