"""Trackside read through a whole simulated day."""

from collections.abc import Iterator

import pytest

from sanderling.apis.polled import Discovered, Wanted
from sanderling.apis.trackside import KINDS, Trackside
from sanderling.stores.documents import Document, Parent, SourceError, SourceRow
from sanderling.task import Reply, Task
from sanderling.worlds.race import RaceDay, demo, hostile

BASE = "http://timing.example"
SOURCE = Trackside(BASE)
READ_FIRST = ("event", "pilots", "rounds", "channels", "race", "results")


class Stored:
    """Rows as a database would hold them, with foreign keys."""

    def __init__(self) -> None:
        self.rows: dict[Parent, SourceRow] = {}

    def write(self, document: Document) -> None:
        missing = [parent for parent in document.needs if parent not in self.rows]
        assert not missing
        for whole in document.whole:
            gone = [
                place
                for place, row in self.rows.items()
                if place.table == whole.table
                and row.values[whole.column] == whole.parent
                and place.key not in whole.keys
            ]
            for place in gone:
                del self.rows[place]
        self.rows |= {Parent(row.table, row.key): row for row in document.rows}


def asked(day: RaceDay, task: Task, now: float) -> Reply:
    path = task.url.removeprefix(BASE)
    answer = day.ask(path, {}, now)
    return Reply(answer.status or 599, (), answer.body, task.url, 0.01)  # a connection that broke has no status


def discovered(day: RaceDay, now: float) -> Discovered:
    asking = SOURCE.discover()
    task = next(asking)
    for _ in range(2):
        try:
            task = asking.send(asked(day, task, now))
        except StopIteration as ended:
            found: Discovered = ended.value
            return found
    raise AssertionError(f"asked a third time, for {task}")


def instants(day: RaceDay, count: int) -> Iterator[float]:
    return (day.over * number / count for number in range(1, count + 2))


def test_every_document_of_a_day_is_read_and_the_race_that_is_flown_is_the_active_one() -> None:
    day, stored, active = RaceDay(11, demo()), Stored(), set[str | None]()

    for now in instants(day, 60):
        found = discovered(day, now)
        for wanted in sorted(found.wanted, key=lambda wanted: READ_FIRST.index(wanted.kind)):
            stored.write(SOURCE.read(wanted, asked(day, SOURCE.task(wanted), now)))
        live = SOURCE.activity(found.event, stored.rows.values()).active
        assert {name.source_id for name in live} == ({day.active(now)} - {None})
        active.add(day.active(now))

    assert len(active) > 2  # races, and pauses between them
    assert {row.table for row in stored.rows.values()} >= {"events", "laps", "detections", "results", "channels"}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_bad_weather_every_answer_is_a_document_or_an_error(seed: int) -> None:
    day = RaceDay(seed, hostile())
    wanted = [Wanted(kind.name, day.heats[0].id if kind.name == "race" else day.event, day.event) for kind in KINDS]
    read, errors = 0, set[str]()

    for now in instants(day, 60):
        for each in wanted:
            try:
                read += bool(SOURCE.read(each, asked(day, SOURCE.task(each), now)))
            except SourceError as error:
                errors.add(error.outcome.code)

    assert read
    assert len(errors) > 1
