"""The command to go on with is the one that was given: every flag with its value, and no secret."""

from pathlib import Path

from command_line import called, commands, here, meant, run, site
from scripted_server import ScriptedServer

from sanderling.cli.options import Watched
from sanderling.cli.polling.flags import PollFlags
from sanderling.cli.polling.place import PollingFolder
from sanderling.cli.polling.summary import again as poll_again
from sanderling.cli.sequence.flags import SequenceFlags
from sanderling.cli.sequence.place import SequenceFolder
from sanderling.cli.sequence.summary import again as crawl_again
from sanderling.events import analysis

LISTS = Path(analysis.__file__).parent / "data"
WATCHED = Watched(metrics_port=0, metrics_bind="127.0.0.2", log_format="json", log_level="error", dashboard=0)
WATCHING = [
    *("--metrics-port", "0", "--dashboard", "0"),
]


def test_events_consume(tmp_path: Path) -> None:
    given = ["events", "consume", "--out", str(tmp_path / "a b"), "--drain", "--batches", "2", "--port", "0", *WATCHING]
    for name in ("lexicon", "intents", "aspects"):
        given += [f"@{name}", str(LISTS / f"{name}.txt")]

    done = called(*given)

    assert done.code == 0, done.err
    (onward,) = commands(done.out)
    assert meant(*onward) == meant(*given[:-6])


def test_pages_crawl_without_the_limit_that_was_reached(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer(site(3)) as server:
            given = ["--out", str(tmp_path / "out"), "--private", "--no-parquet", "--rps", "7", *WATCHING]
            done = await here("pages", "crawl", server.url(), *given, "--max-pages", "1")

        onward, _ = commands(done.out)
        assert meant(*onward) == meant("pages", "crawl", "--resume", *given)

    run(main)


def test_repos_crawl(tmp_path: Path) -> None:
    dids = tmp_path / "dids.txt"
    dids.write_text("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa http://127.0.0.1:1\n")
    place = ["--out", str(tmp_path / "out"), "--did-file", str(dids)]
    given = ["repos", "crawl", *place, "--private", "--patience", "1", "--workers", "3", *WATCHING]

    done = called(*given)

    (onward,) = (each for each in commands(done.out) if each[1] == "crawl")
    assert meant(*onward) == meant(*given)


def test_polling_run_and_full() -> None:
    given = PollFlags(PollingFolder(out=Path("a b")))

    assert poll_again(given, WATCHED).split()[1:] == ["polling", "run", "--out", "'a", "b'", *WATCHING]
    assert poll_again(given, WATCHED, "run --once").startswith("sanderling polling run --once ")


def test_sequence_crawl() -> None:
    assert crawl_again(SequenceFlags(SequenceFolder(out=Path("x"))), WATCHED).split()[3:] == ["--out", "x", *WATCHING]
