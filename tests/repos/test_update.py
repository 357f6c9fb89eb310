"""The directory, filled over a simulated network: from the log, and from a relay and its hosts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet_crawl import inline
from world_networks import FleetNetwork

from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.limit import Limiter
from sanderling.repos import update as update_module
from sanderling.repos.directory import DirectoryEntry, SqliteDirectory
from sanderling.repos.plc import ImportTally
from sanderling.repos.update import HostListing, RelayListing, UpdateError, UpdateResources, follow_log
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

PLC, RELAY = "http://plc.example", "http://relay.example"
Through = Callable[[Sends], Sends]


def same(network: Sends) -> Sends:
    return network


async def tools(fleet: Fleet, through: Through) -> UpdateResources:
    clock = LoopClock()
    limiter = Limiter(clock=clock)
    fetcher = Fetcher(through(FleetNetwork(fleet, clock)), limiter, clock=clock)
    return UpdateResources(fetcher, limiter, clock, inline, plain=True)


def follow(fleet: Fleet, directory: SqliteDirectory, through: Through = same) -> ImportTally:
    async def main() -> ImportTally:
        return await follow_log(await tools(fleet, through), directory, PLC)

    return run_virtual(main())


def listing(fleet: Fleet, directory: SqliteDirectory, kept: Path, through: Through = same) -> HostListing:
    async def main() -> HostListing:
        return await RelayListing(await tools(fleet, through), directory, RELAY, kept).run()

    return run_virtual(main())


def everything(directory: SqliteDirectory) -> dict[str, str]:
    return dict(directory.page("", 10**6))


class Answers:
    """A network whose answers to some paths are written by hand."""

    def __init__(self, network: Sends, answers: dict[str, list[bytes | int]]) -> None:
        self.asked: list[str] = []
        self._network = network
        self._answers = answers

    async def send(self, task: Task) -> Reply:
        self.asked.append(task.url)
        given = next((answers for part, answers in self._answers.items() if part in task.url), [])
        if not given:
            return await self._network.send(task)
        answer = given.pop(0)
        if isinstance(answer, int):
            return Reply(answer, (), b"", task.url, 0.01)
        return Reply(200, (), answer, task.url, 0.01)


def test_the_log_gives_every_did_its_host_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, directory = Fleet.make(1, hosts=5, repos=60, others=("gone",)), SqliteDirectory(None)
    pages: list[Answers] = []

    def through(network: Sends) -> Sends:
        pages.append(Answers(network, {}))
        return pages[0]

    # Pages of ten, as if the log were long.
    monkeypatch.setattr(update_module, "export", lambda url, after: Task(f"{url}/export?count=10&after={after}"))
    tally = follow(fleet, directory, through)

    assert everything(directory) == dict(fleet.directory())
    assert directory.cursor() == tally.cursor
    assert len(pages[0].asked) > 7
    assert (tally.bad.total(), tally.refused.total()) == (0, 0)


def test_an_update_goes_on_where_the_last_one_ended() -> None:
    fleet, directory = Fleet.make(1, hosts=2, repos=20, others=()), SqliteDirectory(None)
    first = follow(fleet, directory)

    second = follow(fleet, directory)

    assert first.operations > 20
    assert second.operations == 0


def test_a_directory_that_was_made_from_the_older_form_goes_on_by_time() -> None:
    fleet, directory = Fleet.make(1, hosts=2, repos=20, others=()), SqliteDirectory(None)
    directory.apply((), "2022-11-17T00:10:00.000Z")

    tally = follow(fleet, directory)

    assert tally.operations > 10
    assert "T" in directory.cursor()


def test_a_log_that_is_busy_for_a_minute_is_waited_for() -> None:
    fleet, directory = Fleet.make(1, hosts=2, repos=20, others=()), SqliteDirectory(None)

    follow(fleet, directory, lambda network: Answers(network, {"/export": [503] * 5}))

    assert everything(directory) == dict(fleet.directory())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (404, "CONTENT_NOT_FOUND 404"),
        (b"<html>Welcome</html>", "expected operations, found not JSON"),
        (b"{}", "not an"),
    ],
)
def test_what_is_no_log_ends_it_with_a_reason(answer: bytes | int, says: str) -> None:
    fleet, directory = Fleet.make(1, hosts=1, repos=1, others=()), SqliteDirectory(None)

    with pytest.raises(UpdateError, match=says):
        follow(fleet, directory, lambda network: Answers(network, {"/export": [answer]}))


def test_lines_that_are_no_operation_are_counted_and_the_others_kept() -> None:
    fleet, directory = Fleet.make(1, hosts=1, repos=1, others=()), SqliteDirectory(None)
    line = {"did": "did:plc:a", "cid": "bafy", "createdAt": "2024-01-01T00:00:00.000Z", "seq": 7}
    good = json.dumps(line | {"operation": {"type": "create", "service": "http://a.example"}}).encode()

    tally = follow(
        fleet, directory, lambda network: Answers(network, {"after=0": [b"no\n" + good + b"\n[]\n"], "after=7": [b""]})
    )

    assert everything(directory) == {"did:plc:a": "http://a.example"}
    assert (tally.bad.total(), directory.cursor()) == (2, "7")


def test_a_relay_and_its_hosts_give_every_did_that_is_listed(tmp_path: Path) -> None:
    fleet, directory = Fleet.make(1, hosts=5, repos=60, others=("gone", "dead")), SqliteDirectory(None)

    listed = listing(fleet, directory, tmp_path / "kept.json")

    ends = fleet.expected()
    shown = {
        did: host for did, host in fleet.directory() if ends[did].category not in ("not_found", "connection_error")
    }
    assert everything(directory) == shown
    assert (listed.done, listed.failed) == (6, 0)
    assert listed.left_out == {"the relay says offline": 1}
    assert not (tmp_path / "kept.json").exists()


def test_a_host_that_fails_is_named_and_asked_again_by_the_next_run(tmp_path: Path) -> None:
    fleet, directory = Fleet.make(1, hosts=3, repos=30, others=()), SqliteDirectory(None)
    bad = fleet.pds[0]
    broken: dict[str, list[bytes | int]] = {f"{bad.name}/xrpc/com.atproto.sync.listRepos": [b"<html>"]}

    first = listing(fleet, directory, tmp_path / "kept.json", lambda network: Answers(network, broken))
    asked: list[Answers] = []

    def through(network: Sends) -> Sends:
        asked.append(Answers(network, {}))
        return asked[0]

    second = listing(fleet, directory, tmp_path / "kept.json", through)

    assert (first.failed, first.done, second.failed, second.done) == (1, 2, 0, 3)
    assert bad.name in first.shown[0]
    assert [url for url in asked[0].asked if bad.name not in url] == [], "the others were listed already"
    assert len(everything(directory)) > 20


def test_a_listing_in_a_circle_ends(tmp_path: Path) -> None:
    fleet, directory = Fleet.make(1, hosts=1, repos=1, others=()), SqliteDirectory(None)
    page = json.dumps({"repos": [{"did": "did:plc:a"}, {"did": "who?"}], "cursor": "1"}).encode()

    listed = listing(fleet, directory, tmp_path / "k", lambda network: Answers(network, {"listRepos": [page, page]}))

    assert "in a circle" in listed.shown[0]
    assert (directory.count(), listed.bad) == (1, 2)


def test_a_cursor_of_a_megabyte_is_not_sent_back_nor_kept(tmp_path: Path) -> None:
    fleet, directory = Fleet.make(1, hosts=1, repos=1, others=()), SqliteDirectory(None)
    page = json.dumps({"repos": [{"did": "did:plc:a"}], "cursor": "1" * 2**20}).encode()

    listed = listing(fleet, directory, tmp_path / "k", lambda network: Answers(network, {"listRepos": [page, page]}))

    assert (listed.failed, "cursor" in listed.shown[0]) == (1, True)
    assert (tmp_path / "k").stat().st_size < 1000


@pytest.mark.parametrize(
    ("logged", "active", "now"),
    [(True, True, "http://before.example"), (False, True, "HERE"), (False, False, "http://before.example")],
)
def test_a_listing_moves_a_did_only_if_there_is_no_log_and_it_is_active_there(
    tmp_path: Path, now: str, *, logged: bool, active: bool
) -> None:
    fleet, directory = Fleet.make(1, hosts=1, repos=1, others=()), SqliteDirectory(None)
    directory.put([DirectoryEntry("did:plc:a", "http://before.example")])
    directory.apply((), "7" if logged else "")
    page = json.dumps({"repos": [{"did": "did:plc:a", "active": active}]}).encode()

    listing(fleet, directory, tmp_path / "k", lambda network: Answers(network, {"listRepos": [page]}))

    assert everything(directory)["did:plc:a"] == (fleet.pds[0].origin if now == "HERE" else now)
