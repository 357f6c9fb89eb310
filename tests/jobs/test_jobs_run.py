"""A job from its start to its records: further work, order, budgets, scope, names that are gone, and going on."""

from collections.abc import Iterator
from pathlib import Path

from small_api import API, api, run

from sanderling import Job, Request
from sanderling.jobs.reply import JobReply

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
