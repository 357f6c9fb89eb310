"""Any ledger that is taken apart says, read as one, what it said before."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from frontier_urls import FINE, GONE, fresh
from hypothesis import given
from hypothesis import strategies as st

from sanderling.ids import partition_of
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, JobProgress, RequestFrontier
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, RetryUrl
from sanderling.stores.frontier_split import split_ledger
from sanderling.stores.frontier_visits import UrlVisits, VisitedFrontier

HOSTS = [f"h{each}.example" for each in range(12)]
SHARED = ("code", "reader", "meta", "tally")  # which every part has, or sums of its own


def of_pages(path: Path, chance: Random) -> None:
    """A ledger in which all has happened that can."""
    with closing(VisitedFrontier(path)) as ledger:
        ledger.wall = lambda: 1000.0
        ledger.note(plan="{}", moved_hosts='["x.example"]', crawl=2, requests=9)
        for commit in range(chance.randrange(1, 5)):
            found = [
                FoundUrl(f"https://{host}/{chance.randrange(30)}", host, chance.randrange(4))
                for host in chance.choices(HOSTS, k=chance.randrange(1, 40))
            ]
            wants = [(host, 0, 50) for host in HOSTS]
            queued = [each for some in ledger.take(wants) for each in some if chance.random() < 0.5]
            ended, again = [], []
            for each in queued:
                kind = chance.choice(
                    [End.FETCHED, End.UNCHANGED, End.MOVED, End.FAILED, End.REFUSED, End.LEFT_OUT, None]
                )
                if kind is None:
                    again.append(RetryUrl(each.id, each.url, 2, 2000.0, GONE))
                else:
                    kept = kind in (End.FETCHED, End.UNCHANGED, End.MOVED)
                    more: dict[str, Any] = {"row": b"{}", "etag": f'"{each.id}"', "links": ("https://h1.example/",)}
                    more["moved_to"] = "https://h2.example/" if kind is End.MOVED else None
                    ended.append(
                        Ended(
                            id=each.id,
                            url=each.url,
                            end=kind,
                            outcome=FINE if kept else GONE,
                            depth=each.depth,
                            **(more if kept else {}),
                        )
                    )
            ledger.keep_robots(f"https://{chance.choice(HOSTS)}", 200, b"User-agent: *", 5.0)
            visits = [UrlVisits(each.id, 9.0, 8.0, 1.0, 2.0, 1, 0, 1, None) for each in ended if each.row is not None]
            ledger.commit_visits(ended, found, commit, again, visits)
            if chance.random() < 0.5:
                ledger.set_aside(chance.choice(HOSTS), GONE, 3000.0)


def of_job(path: Path, chance: Random) -> None:
    with closing(RequestFrontier(path, ("a", "b"))) as ledger:
        ledger.wall = lambda: 1000.0
        at = 0
        for _ in range(chance.randrange(1, 5)):
            found = [
                FoundRequest(
                    f"https://{host}/{number}", host, 1, number.to_bytes(16), chance.choice("ab"), number % 3 - 1, b"{}"
                )
                for host in chance.choices(HOSTS, k=20)
                for number in [chance.randrange(30)]
            ]
            wants = [(host, priority, 0, 9) for host in HOSTS for priority in (-1, 0, 1)]
            queued = [each for some in ledger.take_requests(wants) for each in some if chance.random() < 0.5]
            ended = [
                EndedRequest(
                    id=each.id,
                    url=each.url,
                    end=End.FETCHED,
                    outcome=FINE,
                    depth=1,
                    priority=each.priority,
                    records=(b"{}",) * chance.randrange(3),
                )
                for each in queued
            ]
            at += sum(3 * len(each.records) for each in ended)
            ledger.commit_requests(ended, found, JobProgress(at, at // 3, 0, 7))


def tables(path: Path) -> dict[str, Counter[Any]]:
    with closing(frontier_file.connect_to_read(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert frontier_reading.tally(db) == frontier_reading.count_ends(db)
        return {name: Counter(db.execute(f"SELECT * FROM {name}")) for name in names}  # noqa: S608 - our own tables


@given(st.sampled_from([of_pages, of_job]), st.integers(0, 2**32), st.sampled_from([1, 2, 8]))
def test_parts_have_together_what_the_ledger_had(make: Any, seed: int, parts: int) -> None:  # noqa: ANN401 - a function
    with fresh() as place:
        make(place / "ledger.db", Random(seed))
        before = tables(place / "ledger.db")
        for part in range(parts):
            split_ledger(
                place / "ledger.db",
                place / f"{part}.db",
                lambda host, part=part: partition_of(host) * parts // 1024 == part,  # type: ignore[misc]
            )
        split = [tables(place / f"{part}.db") for part in range(parts)]
        assert tables(place / "ledger.db") == before

        for name, rows in before.items():
            if name not in SHARED:
                assert sum((each[name] for each in split), Counter()) == rows, name
        for part, each in enumerate(split):
            assert each["reader"] == before["reader"]
            kind = VisitedFrontier if make is of_pages else lambda path: RequestFrontier(path, ("a", "b"))
            with closing(kind(place / f"{part}.db")) as ledger:  # which says if it is damaged
                assert ledger.known == each["url"].total()
                waiting = Counter(row[1] for row in each["url"].elements() if row[3] == 0)
                assert {row[0]: row[3] for row in each["host"] if row[3]} == dict(waiting)
