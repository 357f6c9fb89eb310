"""DIDs and hosts that are listed are never asked for, and are counted as left out."""

from pathlib import Path

import pytest
from fleet_crawl import crawl_fleet
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Fetcher, Sends
from sanderling.formats.list_file import ListError
from sanderling.ids import Host
from sanderling.limit import Limiter
from sanderling.outcome import Code
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.rules import RepoRules
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

ANN = "did:plc:abcdefghijklmnopqrstuvwx"


def read(folder: Path, text: str) -> RepoLeaveOut:
    (folder / "out.txt").write_text(text)
    return RepoLeaveOut.read(folder / "out.txt")


def test_a_list_has_dids_and_hosts(tmp_path: Path) -> None:
    listed = read(tmp_path, f"# who wrote to us\n{ANN}  # in May\n\nPDS.example.\nhttps://other.example:8443/\n")

    assert listed == RepoLeaveOut(frozenset({ANN}), frozenset({Host("pds.example"), Host("other.example:8443")}))


@pytest.mark.parametrize(
    ("did", "url", "left"),
    [
        (ANN, "https://any.example", 1),
        ("did:web:bob.example", "https://pds.example", 1),
        ("did:web:bob.example", "http://pds.example", 1),
        ("did:web:bob.example", "https://pds.example:8443", 0),
        ("did:web:bob.example", "what an old archive says", 0),
    ],
)
def test_a_repo_is_left_out_for_its_did_or_its_host(did: str, url: str, left: int) -> None:
    assert RepoLeaveOut(frozenset({ANN}), frozenset({Host("pds.example")})).has(did, url) == left


@pytest.mark.parametrize(
    "line", ["did:plc", "did:PLC:x", "https://pds.example/xrpc", "a b", "https://u:secret@a.example"]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ListError, match=r"out\.txt, line 2: .*expected") as caught:
        read(tmp_path, f"{ANN}\n{line}\n")
    assert "secret" not in str(caught.value)


class Asked:
    """Notes whom the fleet is asked for."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def through(self, network: FleetNetwork) -> Sends:
        asked = self.urls

        class Noting:
            async def send(self, task: Task) -> Reply:
                asked.append(task.url)
                return await network.send(task)

        return Noting()


def test_what_is_listed_is_not_asked_for_and_counted(tmp_path: Path) -> None:
    fleet = Fleet.make(3, hosts=3, repos=60, others=())
    directory = dict(fleet.directory())
    dids = sorted(directory)[:5]
    host = directory[max(directory)]
    asked = Asked()
    listed = RepoLeaveOut(frozenset(dids)).and_hosts([host])

    done = crawl_fleet(tmp_path / "out", fleet, rules=RepoRules(page_size=100, leave_out=listed), through=asked.through)

    out = {did for did, url in directory.items() if listed.has(did, url)}
    assert len(out) > 5
    assert (done.complete, done.view.failed[AtprotoCategory.LEFT_OUT]) == (True, len(out))
    assert not [url for url in asked.urls if any(did in url for did in out)]
    assert not out & set(done.archive)
    assert done.view.completed == len(directory) - len([did for did in out if did not in dids])


def test_no_redirect_leads_to_a_host_that_is_listed() -> None:
    class Leading:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def send(self, task: Task) -> Reply:
            self.asked.append(task.url)
            return Reply(302, (("Location", "https://pds.example/x"),), b"", task.url, 0.1)

    async def main() -> tuple[Code, list[str]]:
        leading, clock = Leading(), LoopClock()
        http = RepoLeaveOut(hosts=frozenset({Host("pds.example")})).before(leading)
        fetched = await Fetcher(http, Limiter(clock=clock), clock=clock).fetch(Task("https://a.example/x"))
        return fetched.outcome.code, leading.asked

    assert run_virtual(main()) == (Code.REFUSED, ["https://a.example/x"])


def test_a_did_stays_left_out_and_a_host_only_as_long_as_it_is_listed(tmp_path: Path) -> None:
    """The word of a person counts for this archive, whoever forgets the flag; that of a host is about the host."""
    fleet = Fleet.make(3, hosts=3, repos=60, others=())
    directory = dict(fleet.directory())
    did, host = min(directory), directory[max(directory)]
    listed = RepoLeaveOut(frozenset({did})).and_hosts([host])

    crawl_fleet(tmp_path / "out", fleet, rules=RepoRules(page_size=100, leave_out=listed))
    clear(tmp_path / "out")
    again = crawl_fleet(tmp_path / "out", fleet)

    assert again.view.failed.get(AtprotoCategory.LEFT_OUT) == 1
    assert did not in again.archive
    assert set(again.archive) == {each for each, end in fleet.expected().items() if end.archived} - {did}


def clear(folder: Path) -> None:
    """Begin with the first DID again, as the command does after a crawl that is complete."""
    progress = SqliteProgress(folder / "progress.db")
    progress.record([], [], cursor="", segment=progress.view().segment)
    progress.close()
