"""All items of the limited API as a job, for `sanderling run`; bench/limited_api.py puts in its address."""

from collections.abc import Iterator
from typing import Any

from sanderling import Job

job = Job("items", start=[f"https://api.example/item/{number}" for number in range(400)], rps=100)


@job.read
def item(reply: Any) -> Iterator[object]:  # noqa: ANN401 - a reply
    yield reply.json()
