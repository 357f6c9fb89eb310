"""The routes of polling, asked over a real socket, with something behind them that is held in memory."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from looping import in_loop
from polling_house import TROUBLE, WALL, Answer, FakeControl, House, a_target, house
from structlog.testing import capture_logs

from sanderling.observe.report import Report
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.report import PollingFacts
from sanderling.stores.documents import SourceRow
from sanderling.stores.polling import PollingStoreError, PollingTarget, Query
from sanderling.web.access import SAFE_HEADERS


def targets_of(answer: Answer) -> list[str]:
    return [target["id"] for target in answer.data["targets"]]


async def all_pages(opened: House, path: str) -> list[list[str]]:
    pages, cursor = [], ""
    while True:
        answer = await opened.ask("GET", f"{path}{cursor}")
        pages.append(targets_of(answer))
        if answer.data["next"] is None:
            return pages
        cursor = f"&cursor={answer.data['next']}"


@in_loop
async def test_a_target_is_shown_with_all_its_columns_and_when_it_runs_next() -> None:
    target = a_target(7, only=("a", "b"), digest=b"\x01\xff", set_seconds=3.0, set_priority=5, until=4e9, etag='"x"')

    async with house(FakeControl([target])) as opened:
        shown = (await opened.ask("GET", "/targets/race/r7")).data

    columns = {*PollingTarget.__struct_fields__} - {"id", "source_id", "digest"}
    stored = msgspec.json.decode(msgspec.json.encode(target))
    assert {name: shown[name] for name in columns} == {name: stored[name] for name in columns}
    assert (shown["row"], shown["id"], shown["digest"]) == (7, "r7", "01ff")
    assert (shown["interval"], shown["weight"], shown["accelerated"], shown["wanted"]) == (3.0, 5, True, True)
    assert shown["next_due"] == WALL + 7
    assert shown["due_in"] == pytest.approx(WALL + 7 - opened.clock.wall(), abs=60)


@in_loop
async def test_targets_are_listed_page_by_page_each_once_and_in_order() -> None:
    # Many are due at the same instant: then their numbers decide.
    control = FakeControl([a_target(number, next_due=WALL + number % 2) for number in range(1, 8)])

    async with house(control) as opened:
        pages = await all_pages(opened, "/targets?limit=3")
        exact = await all_pages(opened, "/targets?limit=7")

    assert pages == [["r2", "r4", "r6"], ["r1", "r3", "r5"], ["r7"]]
    assert exact == [[id_ for page in pages for id_ in page]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["late", "plain", "paused", "other"]),
        ("kind=results", ["other"]),
        ("event=e2", ["plain"]),
        ("event=none", []),
        ("enabled=true", ["late", "plain", "other"]),
        ("enabled=false", ["paused"]),
        ("gone=true", ["gone"]),
        ("gone=any", ["late", "plain", "paused", "gone", "other"]),
        ("due=true", ["late"]),
        ("accelerated=true", ["plain"]),
        ("kind=race&enabled=true&due=true", ["late"]),
    ],
)
@in_loop
async def test_targets_can_be_chosen(query: str, expected: Sequence[str]) -> None:
    far = 4e9
    control = FakeControl(
        [
            a_target(1, source_id="late", next_due=1.0),
            a_target(2, source_id="plain", next_due=far, event="e2", until=far),
            a_target(3, source_id="paused", next_due=far, enabled=False, until=1.0),
            a_target(4, source_id="gone", next_due=far, gone=WALL),
            a_target(5, "results", "other", next_due=far),
        ]
    )

    async with house(control) as opened:
        answer = await opened.ask("GET", f"/targets?{query}")

    assert targets_of(answer) == expected


@pytest.mark.parametrize(
    "cursor", ["x", "%00", "W10", "WzEsIDJd,", "WzEsLTFd", "bnVsbA", "WzEsMTg0NDY3NDQwNzM3MDk1NTE2MTZd", "%C3%A9"]
)
@in_loop
async def test_a_cursor_that_we_did_not_make_is_refused(cursor: str) -> None:
    async with house() as opened:
        answer = await opened.ask("GET", f"/targets?cursor={cursor}")

    assert answer.status == 400
    assert "expected `next` of the page before" in answer.data["detail"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"enabled": False}, {"enabled": False}),
        ({"seconds": 0.05}, {"set_seconds": 0.05, "interval": 0.05}),
        ({"seconds": 366 * 86_400}, {"set_seconds": 31_622_400.0}),
        ({"seconds": None}, {"set_seconds": None, "interval": 10.0}),
        ({"priority": -1000}, {"set_priority": -1000, "weight": -1000}),
        ({"priority": None, "enabled": True}, {"set_priority": None, "enabled": True, "set_seconds": 3.0}),
    ],
)
@in_loop
async def test_an_admin_sets_what_is_given_and_nothing_else(body: object, expected: dict[str, object]) -> None:
    before = a_target(1, set_seconds=3.0, set_priority=4)
    async with house(FakeControl([before])) as opened:
        answer = await opened.ask("PATCH", "/targets/race/r1", body)

    assert answer.status == 200
    assert {name: answer.data[name] for name in expected} == expected
    given = {"enabled", "set_seconds", "set_priority", "interval", "weight", "wanted", "due_in", *expected}
    unchanged = set(PollingTarget.__struct_fields__) - {"id", "source_id", "digest"} - given
    after = opened.control.known["race", "r1"]
    assert all(getattr(after, name) == getattr(before, name) for name in unchanged)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"seconds": 0.049},
        {"seconds": 366 * 86_400 + 1},
        {"seconds": "2"},
        {"priority": 1001},
        {"priority": 1.5},
        {"enabled": None},
        {"enabled": "true"},
        {"set_seconds": 1},
        {"promote": 1},
    ],
)
@in_loop
async def test_what_an_admin_may_not_set_is_refused_and_changes_nothing(body: object) -> None:
    async with house() as opened:
        before = dict(opened.control.known)
        answer = await opened.ask("PATCH", "/targets/race/r1", body)

    assert answer.status == 400
    assert opened.control.known == before


@in_loop
async def test_a_target_is_paused_and_resumed() -> None:
    async with house() as opened:
        paused = await opened.ask("POST", "/targets/race/r1/pause")
        again = await opened.ask("POST", "/targets/race/r1/pause")
        resumed = await opened.ask("POST", "/targets/race/r1/resume")

    assert [answer.data["enabled"] for answer in (paused, again, resumed)] == [False, False, True]


@in_loop
async def test_a_target_is_promoted() -> None:
    async with house() as opened:
        plain = await opened.ask("POST", "/targets/race/r1/promote")
        longer = await opened.ask("POST", "/targets/race/r1/promote", {"seconds": 86_400})
        await opened.ask("POST", "/targets/race/r1/pause")
        paused = await opened.ask("POST", "/targets/race/r1/promote")
        too_long = await opened.ask("POST", "/targets/race/r1/promote", {"seconds": 86_401})

    one = Query(kind="race", source_id="r1")
    assert [answer.data.get("promoted") for answer in (plain, longer, paused)] == [1, 1, 0]
    assert opened.control.promotions == [(one, 0.0), (one, 86_400.0), (one, 0.0)]
    assert too_long.status == 400


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/targets/race/none", None),
        ("GET", "/targets/none/r1", None),
        ("PATCH", "/targets/race/none", {"enabled": True}),
        ("POST", "/targets/race/none/promote", {}),
        ("POST", "/targets/race/none/pause", None),
        ("POST", "/targets/race/none/resume", None),
        ("POST", "/ingest/events/e1/race/none", None),
        ("POST", "/ingest/events/e2/race/r1", None),
        ("POST", "/ingest/events/e1/nothing", None),
        ("POST", "/ingest/events/none/full", None),
        ("POST", "/ingest/events/none/snapshot", None),
        ("GET", "/rows/none", None),
    ],
)
@in_loop
async def test_what_is_not_there_is_not_found(method: str, path: str, body: object) -> None:
    async with house() as opened:
        answer = await opened.ask(method, path, body)

    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert answer.data["status"] == 404
    assert answer.data["detail"]


@in_loop
async def test_many_targets_are_promoted_at_once() -> None:
    async with house() as opened:
        all_of_them = await opened.ask("POST", "/promote")
        some = await opened.ask("POST", "/promote", {"kind": "race", "event": "e1", "seconds": 2})

    assert (all_of_them.data, some.data) == ({"promoted": 3}, {"promoted": 2})
    assert opened.control.promotions == [(Query(), 0.0), (Query(kind="race", event="e1"), 2.0)]


@in_loop
async def test_a_webhook_promotes_each_target_once_and_names_those_that_nobody_knows() -> None:
    named = [{"kind": "race", "id": "r1"}, {"kind": "race", "id": "none"}, {"kind": "race", "id": "r1"}]
    async with house() as opened:
        await opened.ask("POST", "/targets/race/r2/pause")
        answer = await opened.ask("POST", "/hooks/promote", {"targets": [*named, {"kind": "race", "id": "r2"}]})
        again = await opened.ask("POST", "/hooks/promote", {"targets": named})

    assert (answer.status, again.status) == (202, 202)
    assert answer.data == again.data == {"promoted": 1, "unknown": [{"kind": "race", "id": "none"}]}


@in_loop
async def test_a_webhook_promotes_an_event() -> None:
    async with house() as opened:
        answer = await opened.ask("POST", "/hooks/promote", {"event": "e1"})

    assert (answer.status, answer.data) == (202, {"promoted": 3, "unknown": []})
    assert opened.control.promotions == [(Query(event="e1"), 0.0)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"targets": []},
        {"event": "e1", "targets": [{"kind": "race", "id": "r1"}]},
        {"targets": [{"kind": "race", "id": f"r{number}"} for number in range(1001)]},
        {"targets": [{"kind": "race"}]},
        {"targets": ["r1"]},
        {"targets": [{"kind": "race", "id": "a\0b"}]},
        {"event": ""},
    ],
)
@in_loop
async def test_a_webhook_that_says_nothing_clear_promotes_nothing(body: object) -> None:
    async with house() as opened:
        answer = await opened.ask("POST", "/hooks/promote", body)

    assert answer.status == 400
    assert opened.control.promotions == []


@in_loop
async def test_settings_are_listed_changed_and_taken_back() -> None:
    key = "scheduler.raceActiveMs"
    async with house() as opened:
        changed = await opened.ask("PUT", f"/settings/{key}", {"value": "0.25s"})
        listed = await opened.ask("GET", "/settings")
        back = await opened.ask("DELETE", f"/settings/{key}")

    setting = {"key": key, "value": "250", "default": "200", "set": True}
    assert setting.items() <= changed.data.items()
    assert changed.data in listed.data["settings"]
    assert (back.data["value"], back.data["set"]) == ("200", False)


@pytest.mark.parametrize(
    ("method", "key", "body", "said"),
    [
        ("PUT", "scheduler.burst", {"value": "many"}, "'many', expected a whole number"),
        ("PUT", "scheduler.brust", {"value": "1"}, "did you mean scheduler.burst?"),
        ("DELETE", "scheduler.brust", None, "did you mean scheduler.burst?"),
    ],
)
@in_loop
async def test_a_setting_that_cannot_be_is_unprocessable_and_it_is_said_why(
    method: str, key: str, body: object, said: str
) -> None:
    async with house() as opened:
        answer = await opened.ask(method, f"/settings/{key}", body)

    assert answer.status == 422
    assert said in answer.data["detail"]
    assert opened.control.texts == {}


def rows(number: int) -> list[SourceRow]:
    return [SourceRow("laps", f"k{each}", {"event": f"e{each % 2}", "seconds": each / 2}) for each in range(number)]


@in_loop
async def test_rows_are_read_page_by_page() -> None:
    async with house() as opened:
        opened.control.tables["laps"] = rows(5)
        first = (await opened.ask("GET", "/rows/laps?limit=3")).data
        last = (await opened.ask("GET", f"/rows/laps?limit=3&after={first['next']}")).data
        exact = (await opened.ask("GET", "/rows/laps?limit=5")).data
        of_one = (await opened.ask("GET", "/rows/laps?event=e1")).data

    assert first["rows"][1] == {"key": "k1", "values": {"event": "e1", "seconds": 0.5}}
    assert [row["key"] for row in (*first["rows"], *last["rows"])] == ["k0", "k1", "k2", "k3", "k4"]
    assert (first["next"], last["next"], exact["next"]) == ("k2", None, None)
    assert [row["key"] for row in of_one["rows"]] == ["k1", "k3"]


class Busy(FakeControl):
    """Something changes whenever rows are read, just before."""

    async def rows(self, table: str, *, event: str | None, after: str, most: int) -> list[SourceRow]:
        self.tell(self.store.add())
        found = await super().rows(table, event=event, after=after, most=most)
        self.tell(self.store.add())
        return found


@in_loop
async def test_who_follows_from_the_seq_of_the_rows_misses_nothing() -> None:
    async with house(Busy()) as opened:
        read = (await opened.ask("GET", "/rows/laps")).data
        told = (await opened.ask("GET", f"/changes?since={read['seq']}")).data

    assert read["seq"] == 0
    assert [change["seq"] for change in told["changes"]] == [1, 2]


@in_loop
async def test_changes_are_read_after_a_number() -> None:
    async with house() as opened:
        store = opened.control.store
        opened.control.tell(*[store.add(lap=number) for number in range(5)])
        some = (await opened.ask("GET", "/changes?since=1&limit=2")).data
        rest = (await opened.ask("GET", "/changes?since=3")).data
        none = (await opened.ask("GET", "/changes?since=5")).data

    assert [change["seq"] for change in some["changes"]] == [2, 3]
    assert some["changes"][0]["values"] == {"lap": 1}
    assert some["newest"] == rest["newest"] == none["newest"] == 5
    assert [change["seq"] for change in rest["changes"]] == [4, 5]
    assert none["changes"] == []


@in_loop
async def test_changes_that_were_trimmed_are_gone_and_not_passed_over() -> None:
    async with house() as opened:
        store = opened.control.store
        opened.control.tell(*[store.add() for _ in range(5)])
        await store.trim(2)
        answers = [await opened.ask("GET", f"/changes?since={since}") for since in (0, 2, 3, 6)]

    assert [answer.status for answer in answers] == [410, 410, 200, 410]
    assert [(answer.data["oldest"], answer.data["newest"]) for answer in answers if answer.status == 410] == [
        (4, 5)
    ] * 3


@in_loop
async def test_a_number_that_belongs_to_nobody_is_passed_over() -> None:
    async with house() as opened:
        store = opened.control.store
        opened.control.tell(store.add())
        store.newest += 1  # a transaction that was rolled back
        opened.control.tell(store.add())
        hole = await opened.ask("GET", "/changes?since=2")
        before = await opened.ask("GET", "/changes?since=1")

    assert [change["seq"] for change in before.data["changes"]] == [3]
    assert (hole.status, len(hole.data["changes"])) == (200, 1)


@in_loop
async def test_a_change_that_is_committed_and_not_yet_told_is_not_taken_for_the_future() -> None:
    async with house() as opened:
        opened.control.store.add()
        answer = await opened.ask("GET", "/changes?since=1")

    assert (answer.status, answer.data) == (200, {"changes": [], "newest": 1})


@in_loop
async def test_ingestion_runs_what_it_is_asked_to_and_says_what_came_of_it() -> None:
    control = FakeControl([a_target(1, status="error"), a_target(2), a_target(3, "results", "e1")])
    async with house(control) as opened:
        snapshot = (await opened.ask("POST", "/ingest/events/e1/snapshot")).data
        kind = (await opened.ask("POST", "/ingest/events/e1/race")).data
        one = (await opened.ask("POST", "/ingest/events/e1/race/r2")).data
        event = (await opened.ask("POST", "/ingest/events/e1/full")).data
        full = (await opened.ask("POST", "/ingest/full")).data

    assert [each["id"] for each in snapshot["ingested"]] == ["e1"]
    assert ([each["ok"] for each in kind["ingested"]], kind["failed"]) == ([False, True], 1)
    assert one == {"ingested": [{"kind": "race", "id": "r2", "ok": True, "status": "ok", "changes": 1}], "failed": 0}
    assert len(event["ingested"]) == len(full["ingested"]) == 3
    asked = [("e1", ("event", "results")), ("e1", ("race",)), ("race", "r2"), ("e1", None), "full"]
    assert control.ingestions == asked


@in_loop
async def test_everything_is_purged_only_if_that_is_meant() -> None:
    async with house() as opened:
        refused = [await opened.ask("POST", "/ingest/purge", body) for body in (None, {}, {"confirm": False})]
        purged = await opened.ask("POST", "/ingest/purge", {"confirm": True})

    assert [answer.status for answer in refused] == [400, 400, 400]
    assert purged.data == {"removed": {"laps": 3, "targets": 3}}
    assert opened.control.purged == 1


@in_loop
async def test_an_upstream_that_cannot_be_asked_is_a_bad_gateway() -> None:
    async with house() as opened:
        opened.control.trouble = DiscoveryError("TIMEOUT: no answer")
        answer = await opened.ask("POST", "/ingest/full")

    assert (answer.status, "TIMEOUT: no answer" in answer.data["detail"]) == (502, True)


@in_loop
async def test_health_and_readiness_are_for_everyone_and_tell_nothing_else() -> None:
    async with house() as opened:
        stranger = {"Authorization": "Bearer wrong-token-of-a-stranger"}
        fine = [await opened.ask("GET", path, headers=stranger) for path in ("/health", "/ready")]
        opened.control.store_trouble = "postgresql://db.internal: connection refused"
        troubled = [await opened.ask("GET", path, headers=stranger) for path in ("/health", "/ready")]
        opened.control.store_trouble, opened.control.running = "", False
        stopped = await opened.ask("GET", "/ready", headers=stranger)

    assert [(answer.status, answer.data) for answer in fine] == [(200, {"ok": True})] * 2
    assert [answer.status for answer in troubled] == [200, 503]
    assert stopped.status == 503
    assert "db.internal" not in str(troubled)


@in_loop
async def test_the_status_is_that_of_polling() -> None:
    async with house() as opened:
        answer = await opened.ask("GET", "/status")

    assert msgspec.json.decode(answer.body, type=Report[PollingFacts]) == opened.control.status()


EVERY_WAY: list[tuple[str, str, Any]] = [
    ("GET", "/targets", None),
    ("GET", "/targets/race/r1", None),
    ("PATCH", "/targets/race/r1", {"enabled": True}),
    ("POST", "/targets/race/r1/promote", None),
    ("POST", "/promote", None),
    ("POST", "/hooks/promote", {"event": "e1"}),
    ("GET", "/settings", None),
    ("PUT", "/settings/scheduler.burst", {"value": "1"}),
    ("GET", "/rows/laps", None),
    ("GET", "/changes?since=0", None),
    ("POST", "/ingest/events/e1/full", None),
    ("POST", "/ingest/full", None),
    ("POST", "/ingest/purge", {"confirm": True}),
]


@pytest.mark.parametrize(
    ("trouble", "wait"),
    [
        (TROUBLE, "5"),
        (PollingStoreError("the tables are those of version 9", transient=False), "60"),
        (ExceptionGroup("runs", [TROUBLE, TROUBLE]), "5"),
    ],
)
@in_loop
async def test_a_database_in_trouble_is_a_reason_to_come_back_later(trouble: Exception, wait: str) -> None:
    async with house() as opened:
        opened.control.trouble = trouble
        with capture_logs() as lines:
            answers = [await opened.ask(*each) for each in EVERY_WAY]

    assert [(answer.status, answer.headers.get("Retry-After")) for answer in answers] == [(503, wait)] * len(EVERY_WAY)
    assert {line["log_level"] for line in lines} == {"debug"}


@pytest.mark.parametrize(
    "bug", [RuntimeError("secret detail"), TimeoutError(), ExceptionGroup("secret detail", [TROUBLE, ValueError()])]
)
@in_loop
async def test_a_bug_is_told_in_one_line_of_the_log_and_to_nobody_else(bug: Exception) -> None:
    async with house() as opened:
        opened.control.trouble = bug
        with capture_logs() as lines:
            answer = await opened.ask("GET", "/targets/race/r1?")

    assert answer.status == 500
    assert answer.data == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "this is a mistake of ours; the log has more",
    }
    assert [line["event"] for line in lines if line["log_level"] != "debug"] == ["request_failed"]


def test_the_safe_headers_are_these() -> None:
    assert SAFE_HEADERS == {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'",
        "Referrer-Policy": "no-referrer",
        "Server": "sanderling",  # and no version
    }


@in_loop
async def test_every_answer_has_the_safe_headers() -> None:
    async with house() as opened:
        asked = [
            await opened.ask("GET", "/health"),
            await opened.ask("GET", "/none"),
            await opened.ask("DELETE", "/targets"),
            await opened.ask("GET", "/targets?x=1"),
            await opened.ask("GET", "/targets", headers={"Authorization": "Bearer wrong"}),
            await opened.ask("GET", "/targets", headers={"Expect": "nonsense"}),
        ]
        opened.control.trouble = RuntimeError()
        asked.append(await opened.ask("GET", "/targets"))

    assert [answer.status for answer in asked] == [200, 404, 405, 400, 401, 200, 500]
    for answer in asked:
        assert SAFE_HEADERS.items() <= answer.headers.items()


@in_loop
async def test_a_wrong_method_is_told_the_right_ones() -> None:
    async with house() as opened:
        answers = [await opened.ask("DELETE", path) for path in ("/targets/race/r1", "/health", "/hooks/promote")]

    assert [answer.status for answer in answers] == [405] * 3
    assert [answer.headers["Allow"] for answer in answers] == ["GET,PATCH", "GET", "POST"]


@in_loop
async def test_each_request_is_a_line_of_the_log_without_its_query() -> None:
    async with house() as opened:
        with capture_logs() as lines:
            await opened.ask("GET", "/targets?kind=s3cret")
            await opened.ask("GET", "/none?token=s3cret")

    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["log_level"], line["method"], line["path"], line["status"]) for line in requests] == [
        ("debug", "GET", "/targets", 200),
        ("debug", "GET", "/none", 404),
    ]
    assert "s3cret" not in str(lines)
