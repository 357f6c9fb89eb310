"""A cadence is a contract: what a hundred live targets are asked for, whatever their host and our database do."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from live_polling import LIVE_FROM, Absent, Live, Outage, during, refused_connection, reset, saying, silence

from sanderling.stores.polling import PolledDocument, PollingStoreError
from sanderling.stores.polling_store import PollingStore

LIVE = 100


class Hundred(Live):
    """A hundred live targets at the same interval."""

    def __init__(self, folder: Path, seconds: float, live: int = LIVE) -> None:
        super().__init__(folder, live)
        self.seconds = seconds
        self.settings["scheduler.matchActiveMs"] = f"{seconds * 1000:.0f}ms"
        self.max_rps = 2000.0
        self.upstream.changes = 1e6
        self.versions: dict[str, object] = {}  # what is stored of each, in the end

    def asked(self, name: str, begin: float, end: float) -> list[float]:
        """When a target was asked for."""
        return [at for at in self.upstream.times[f"/match/{name}"] if begin <= at < end]

    def longest(self, begin: float, end: float) -> float:
        """Seconds between two requests for one target at most, of all but those that fail."""
        found = 0.0
        for name in self.upstream.ids:
            times = [begin, *self.asked(name, begin, end), end]
            found = max(found, *(later - earlier for earlier, later in pairwise(times)))
        return found

    async def after(self, store: PollingStore) -> None:
        for table in self.source.schema.tables:
            for row in await store.rows(table.name):
                document = json.loads(cast("str", row.values["record"]))
                self.versions[document["id"]] = document["version"]


@pytest.mark.parametrize("seconds", [0.2, 1.0])
def test_latency_that_climbs_to_two_seconds(tmp_path: Path, seconds: float) -> None:
    """Where an answer takes longer than the interval, points are passed over; after a second none is waited for."""
    polling = Hundred(tmp_path, seconds, LIVE if seconds > 0.2 else LIVE // 2)
    slow = LIVE_FROM + 10.0 * seconds  # when an answer takes as long as the interval
    polling.upstream.latency = lambda now: 0.008 + min(1.992, max(0.0, now - LIVE_FROM) * 0.1)

    polling.poll(LIVE_FROM + 25.0)

    assert polling.longest(LIVE_FROM, slow) <= 1.05 * seconds
    assert polling.longest(slow, LIVE_FROM + 25.0) <= 1.05 * (1.0 + seconds)


@pytest.mark.parametrize(
    ("outage", "seconds"), [(reset, 1.0), (silence, 10.0), (saying(503), 60.0), (reset, 60.0), (silence, 600.0)]
)
def test_the_cadence_is_back_within_an_interval_and_a_second(tmp_path: Path, outage: Outage, seconds: float) -> None:
    polling, begin = Hundred(tmp_path, 1.0), LIVE_FROM + 2.3
    back = begin + seconds
    polling.upstream.outage = during(begin, seconds, outage)

    polling.poll(back + 8.0)

    for name in polling.upstream.ids:
        assert polling.asked(name, back, back + 8.0)[0] - back <= polling.seconds + 1.0
    assert polling.longest(back + polling.seconds + 1.0, back + 8.0) <= 1.1 * polling.seconds


def test_one_that_always_fails_makes_none_of_the_others_late(tmp_path: Path) -> None:
    polling = Hundred(tmp_path, 0.5)
    bad = during(LIVE_FROM, 1e9, saying(500), "/match/live7")
    polling.upstream.outage = lambda path, now: bad(path, now) if path == "/match/live7" else None

    polling.poll(LIVE_FROM + 20.0)

    del polling.upstream.ids["live7"]
    assert polling.longest(LIVE_FROM, LIVE_FROM + 20.0) <= 1.05 * polling.seconds
    assert 0.05 <= polling.upstream.rate(LIVE_FROM, LIVE_FROM + 20.0, "live7") <= 2.1


@pytest.mark.parametrize("takes", [0.0, 7.0])
def test_a_database_that_is_away_for_a_minute_gets_the_newest_of_each(tmp_path: Path, takes: float) -> None:
    """The upstream is gone before the database is back: what is stored then has waited in memory."""
    polling, away, back = Hundred(tmp_path, 1.0), LIVE_FROM + 1.0, LIVE_FROM + 61.0
    polling.upstream.changes = 7.0
    polling.upstream.outage = during(back - 3.0, 1e9, refused_connection)
    polling.wrapped = lambda store: cast("PollingStore", Absent(store, away, back, takes))

    polling.poll(back + takes + 5.0)

    assert polling.longest(away, back - 3.0) <= 1.05 * polling.seconds
    newest = int((back - 3.0 - 0.01) / polling.upstream.changes)
    assert set(polling.versions.values()) == {newest}, "each, as it was last seen"
    ops = polling.system.measures.changes
    assert ops["match", "update"] <= LIVE * (1 + int(away / polling.upstream.changes)), "what changed meanwhile is one"


class Refusing:
    """A database that does not take the documents of one target, for a reason that could be its own."""

    def __init__(self, store: PollingStore, name: str) -> None:
        self._store = store
        self._name = name
        self.refused = 0

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, object]]:
        method: Callable[..., Coroutine[Any, Any, object]] = getattr(self._store, name)
        return method

    async def keep(self, told: PolledDocument) -> object:
        """All but those."""
        await asyncio.sleep(0.001)
        if told.source_id == self._name and asyncio.get_running_loop().time() > LIVE_FROM:
            self.refused += 1
            raise PollingStoreError("value too long")
        return await self._store.keep(told)


def test_a_document_that_the_database_never_takes_costs_the_others_nothing(tmp_path: Path) -> None:
    polling = Hundred(tmp_path, 1.0, live=20)
    polling.upstream.changes = 1.0
    refusing: list[Refusing] = []

    def wrap(store: PollingStore) -> PollingStore:
        refusing.append(Refusing(store, "live7"))
        return cast("PollingStore", refusing[0])

    polling.wrapped = wrap
    polling.poll(LIVE_FROM + 20.0)

    assert refusing[0].refused > 5
    latest = int(LIVE_FROM + 20.0) - 2
    stored = {key: version for key, version in polling.versions.items() if key != "live7"}
    assert len(stored) == 19
    assert min(cast("int", version) for version in stored.values()) >= latest
    assert polling.system.trouble == ""
    bad = next(each for each in polling.system.schedule.entries.values() if each.source_id == "live7")
    assert bad.status == "not stored: value too long"
