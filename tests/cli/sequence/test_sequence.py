"""The crawl of ids as a person runs it, against a real game: its flags, exit codes and words."""

import asyncio
import json
import re
import sys
from pathlib import Path

import msgspec
import pytest
from command_line import called, commands, here, run, sanderling
from scripted_server import ScriptedServer, answer
from sequence_commands import begin, flags, raids, served, stored

from sanderling.cli import reach
from sanderling.cli.options import WATCHED
from sanderling.cli.sequence.flags import PrometheusFlags, SequenceFlags, SequencePace, SequenceUpstream
from sanderling.cli.sequence.place import SequenceFolder, SequenceStores
from sanderling.cli.sequence.summary import again
from sanderling.clock import SystemClock
from sanderling.formats.instance import Instance, Message, encode
from sanderling.stores.queue import Letter, open_queue

KEYS = [
    *("complete", "seconds", "api", "host", "cursor", "newest", "behind", "lag", "workers", "answers", "gaps"),
    *("skipped_ids", "missed", "published", "stored", "queued", "trouble", "out"),
]
REPORT = "/Platform/Destiny2/Stats/PostGameCarnageReport/{id}/"


def test_a_game_is_followed_and_what_came_of_it_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            until = server.game.first + 20
            done = await sanderling(
                "sequence", "crawl", *flags(tmp_path, server), *begin(server), "--until", str(until)
            )

            assert done.code == 0, done.err
            rows, wanted = stored(tmp_path), raids(server.game, until)
            assert [number for number in rows if number <= until] == wanted
            assert all(server.game.raid(number) for number in rows)
            assert f"Followed bungie at {server.url().removeprefix('http://')} for " in done.out
            assert f"{len(rows)} of them wanted." in done.out
            assert f"Stored {len(rows)} records in {tmp_path / 'out' / 'rows.db'}; 0 records in the queue." in done.out
            (onward, status, _) = commands(done.out)
            assert "--target" not in onward
            assert "--until" not in onward
            told = await here(*status)
            assert (told.code, f"{len(rows):,} queued, 0 wait there, {len(rows):,} stored" in told.out) == (0, True)

    run(main)


def test_as_json_there_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            until = server.game.first + 10
            given = (*flags(tmp_path, server), *begin(server), "--until", str(until), "--json")
            done = await here("sequence", "crawl", *given)

        summary = json.loads(done.out)
        assert (done.code, done.err) == (0, "")
        assert list(summary) == KEYS
        assert (summary["complete"], summary["api"], summary["gaps"], summary["missed"]) == (True, "bungie", 0, {})
        assert summary["cursor"] > until
        assert summary["stored"] == summary["published"] == summary["answers"]["success"]

    run(main)


def test_it_goes_on_where_it_was_and_asks_nothing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            game = server.game
            first = await here(
                *("sequence", "crawl", *flags(tmp_path, server), *begin(server)), *("--until", str(game.first + 6))
            )
            second = await here(
                *("sequence", "crawl", *flags(tmp_path, server)), *("--until", str(game.first + 20), "--json")
            )

            assert (first.code, second.code) == (0, 0), second.err
            last = json.loads(second.out)["cursor"]
            assert server.tally.ids is not None
            assert {server.tally.ids[number] for number in range(game.first, last)} == {1}
            assert stored(tmp_path) == raids(game, last - 1)

    run(main)


def test_without_a_store_records_wait_in_the_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            until = server.game.first + 12
            given = (*flags(tmp_path, server), *begin(server), "--until", str(until), "--no-store", "--json")
            done = await here("sequence", "crawl", *given)
            queue = open_queue(f"sqlite:{tmp_path / 'out'}", "instance_store", SystemClock())
            depth = await queue.depth()
            await queue.close()

            summary = json.loads(done.out)
            assert (done.code, summary["stored"], summary["published"]) == (0, None, depth.ready)
            assert depth.ready >= len(raids(server.game, until))
            assert not (tmp_path / "out" / "rows.db").exists()
            # Whoever stores does so whenever they like; a crawl in the same folder is one.
            later = await here("sequence", "crawl", *flags(tmp_path, server), "--until", str(until), "--json")
            assert (later.code, set(raids(server.game, until)) - set(stored(tmp_path))) == (0, set())

    run(main)


def test_all_that_is_queued_is_stored_before_it_ends(tmp_path: Path) -> None:
    """Also of a run that has nothing else to do: many times what the workers of the store take at once."""
    numbers, raw = range(1000, 3000), msgspec.Raw(b"{}")

    async def main() -> None:
        async with served() as server:
            given = (*flags(tmp_path, server), "--until", str(server.game.first), "--json")
            await here("sequence", "crawl", *given, *begin(server))
            queue = open_queue(f"sqlite:{tmp_path / 'out'}", "instance_store", SystemClock())
            messages = [Message(str(each), "bungie", 1.0, Instance(str(each)), raw) for each in numbers]
            await queue.publish([Letter(each.id, encode(each)) for each in messages])
            await queue.close()
            done = await here("sequence", "crawl", *given)

        assert done.code == 0, done.err
        assert set(numbers) <= set(stored(tmp_path))
        assert json.loads(done.out)["queued"] == {"ready": 0, "taken": 0, "delayed": 0, "dead": 0}

    run(main)


def test_it_begins_a_little_before_the_latest_that_is_stored(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            game = server.game
            given = (*flags(tmp_path, server), "--json")
            await here("sequence", "crawl", *given, *begin(server), "--until", str(game.first + 9))
            (tmp_path / "out" / "sequence.db").unlink()
            latest = stored(tmp_path)[-1]
            done = await here("sequence", "crawl", *given, "@buffer", "4", "--until", str(latest + 2))

            assert done.code == 0, done.err
            assert server.tally.ids is not None
            assert [server.tally.ids[latest - 4 + number] for number in range(-1, 3)] == [1, 2, 2, 2]
            assert stored(tmp_path) == raids(game, stored(tmp_path)[-1])

    run(main)


def test_dev_mode_leaves_ids_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            until = server.game.first + 30
            given = (*flags(tmp_path, server), *begin(server), "--until", str(until), "--dev", "@dev-skip", "9")
            done = await here("sequence", "crawl", *given)

            assert done.code == 0, done.err
            assert server.tally.ids is not None
            assert sorted(server.tally.ids)[:4] == [server.game.first + 10 * number for number in range(4)]

    run(main)


@pytest.mark.parametrize("described", ["by flags", "by a file"])
def test_any_json_api_can_be_followed(tmp_path: Path, described: str) -> None:
    async def main() -> None:
        async with served() as server:
            url, until = server.url() + REPORT, server.game.first + 12
            settings = {"missing": "ErrorCode = 1653", "keep_if": "Response.activityDetails.mode = 4"}
            settings |= {"timestamp": "Response.period", "id": "Response.activityDetails.instanceId"}
            if described == "by a file":
                lines = [
                    f"{key} = {json.dumps(value)}" for key, value in {"name": "game", "url": url, **settings}.items()
                ]
                (tmp_path / "api.toml").write_text("\n".join(["[api]", *lines]))
                api = ["--api-file", str(tmp_path / "api.toml")]
            else:
                (tmp_path / "headers").write_text("Authorization: Bearer 123\nAccept: application/json\n")
                names = {"keep_if": "@keep-if", "timestamp": "@timestamp", "id": "--id-path"}
                api = ["--url", url, "@header-file", str(tmp_path / "headers")]
                api += [word for key, value in settings.items() for word in (names.get(key, f"--{key}"), value)]
            out = ("--out", str(tmp_path / "out"), "--private", "--json")
            done = await here("sequence", "crawl", *api, *out, *begin(server), "--until", str(until))

            assert done.code == 0, done.err
            assert json.loads(done.out)["api"] == (
                "game" if described == "by a file" else "127-0-0-1-" + url.split(":")[2].split("/")[0]
            )
            assert [number for number in stored(tmp_path) if number <= until] == raids(server.game, until)

    run(main)


def test_alerts_go_to_a_webhook_whose_address_nobody_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        hook = ScriptedServer({"/api/hush?wait=true": [answer(204)] * 3})
        async with served() as server, hook:
            monkeypatch.setenv("SANDERLING_DISCORD_WEBHOOK", hook.url("/api/hush"))
            until = server.game.first + 5
            done = await here("sequence", "crawl", *flags(tmp_path, server), *begin(server), "--until", str(until))

            assert done.code == 0, done.err
            assert {(request.method, request.path) for request in hook.requests} == {("POST", "/api/hush?wait=true")}
            assert "hush" not in done.out + done.err

    run(main)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "nothing is stored yet, so there is no id to go on from: name the first with --begin"),
        (["--api", "other"], "--api"),
        (["--workers", "300"], "workers 300, max-workers 250: expected them not to decrease"),
        (["@min-workers", "30"], "min-workers 30, workers 25"),
        (["--rps", "0"], "--rps. Must be > 0"),
        (["--target", "-1"], "--target. Must be >= 0"),
        (["--begin", "5", "--target", "7"], "--begin and --target both say where to begin; expected one of them"),
        (["@without", "sense"], "WITHOUT. Choose from"),
        (["--base", "ftp://a.example"], "--base: base of bungie: expected http://host"),
        (["--base", "https://a.example", "--url", "https://a.example/{id}"], "--base goes with --api bungie"),
        (
            ["--id-path", "id", "--url", "https://a.example/item"],
            "--url: url of a-example: expected {id} where the id goes",
        ),
        (["--id-path", "id", "--url", "nowhere/{id}"], "--url: url of json does not start with http"),
        (["--id-path", "id", "--url", "http://127.0.0.1:9/{id}"], "; --private allows your own machine and network"),
        (["--base", "https://[::1]"], "; --private allows your own machine and network"),
        (["--api-file", "HOME"], "HOME: host 10.0.0.7 is an address"),
        (["--missing", "a = 1"], "--missing goes with --url, which is not given"),
        (["--id-path", "id", "--url", "https://a.example/{id}", "@keep-if", "((("], "--url: setting 'keep_if'"),
        (
            ["--id-path", "id", "--url", "https://a.example/{id}", "@header", "Authorization: mine"],
            "Authorization is a secret",
        ),
        (["--id-path", "id", "--url", "https://a.example/{id}", "@header", "nonsense"], "is not like 'Name: value'"),
        (
            ["--url", "https://a.example/{id}", "--missing", "error"],
            "  --id-path id             where a record has its own id",
        ),
        (["--api-file", "UNSURE"], "UNSURE: nothing tells a record of a from an error that comes with a 200"),
        (["--url", "https://a.example/{id}", "--api-file", "NONE"], "--url and --api-file both describe an API"),
        (["--api-file", "NONE"], "--api-file: cannot read NONE (FileNotFoundError)"),
        (["--api-file", "BROKEN"], "--api-file: BROKEN is no TOML"),
        (["--api-file", "EMPTY"], "--api-file: EMPTY has no section [api]"),
        (["@key-file", "NONE"], "key-file: cannot read NONE"),
        (["--contact", "me"], "--contact: contact is 'me'"),
        (["--queue", "mysql://there"], "--queue: 'that' is no queue"),
        (["--rows", "mysql://there"], "--rows: 'mysql' is no kind of store"),
        (["--raw", "mysql://there"], "--raw: 'mysql' is no ClickHouse"),
        (["@webhook-file", "BROKEN"], "webhook-file and webhook-template-file go together"),
        (["@discord-file", "BROKEN"], "alerts: the webhook's URL"),
        (["@prometheus", "nowhere"], "prometheus: "),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.setenv("BUNGIE_API_KEY", "key")
    (tmp_path / "BROKEN").write_text("not = [toml")
    (tmp_path / "EMPTY").write_text("# nothing")
    (tmp_path / "HOME").write_text('[api]\nname = "a"\nurl = "https://10.0.0.7/{id}"\nid = "id"')

    (tmp_path / "UNSURE").write_text('[api]\nname = "a"\nurl = "https://a.example/{id}"\nmissing = "error"')

    def placed(text: str) -> str:
        return re.sub("NONE|BROKEN|EMPTY|HOME|UNSURE", lambda found: str(tmp_path / found[0]), text)

    done = called("sequence", "crawl", "--out", str(tmp_path / "out"), *map(placed, arguments))

    assert (done.code, done.out) == (2, "")
    assert placed(says) in done.err


def test_bungie_itself_wants_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUNGIE_API_KEY", raising=False)

    done = called("sequence", "crawl", "--out", str(tmp_path / "out"), "--target", "1")

    assert (done.code, "bungie wants a key: put it into BUNGIE_API_KEY" in done.err) == (2, True)


def test_a_folder_that_follows_another_api_is_left_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            await here("sequence", "crawl", *flags(tmp_path, server), *begin(server), "--until", str(server.game.first))
            other = await here(
                *("sequence", "crawl", "--out", str(tmp_path / "out")),
                *("--url", "https://a.example/{id}", "--id-path", "id"),
            )

        assert (other.code, "this folder follows bungie, not a-example" in other.err) == (2, True)

    run(main)


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--queue=amqp://me:hunter2@127.0.0.1:1/", "--queue: "),
        ("--rows=postgresql://me:hunter2@127.0.0.1:1/db", "--rows: "),
        ("--raw=clickhouse://me:hunter2@127.0.0.1:1/db", "--raw: "),
    ],
)
def test_a_server_that_is_not_there_is_waited_for_and_then_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, says: str
) -> None:
    monkeypatch.setattr(reach, "PATIENCE", 2.0)
    monkeypatch.setattr(reach, "AGAIN", 0.3)

    given = ("--out", str(tmp_path / "out"), "--base", "http://127.0.0.1:1", "--private", "--target", "1")
    done = called("sequence", "crawl", *given, flag)

    first, *_, last = done.err.splitlines()
    assert done.code == 1
    assert (first.startswith(says), "; trying for " in first) == (True, True)
    assert says in last
    assert "hunter2" not in done.err


def test_the_same_command_again_goes_on_where_it_was(tmp_path: Path) -> None:
    """As a service does that is restarted."""

    async def main() -> None:
        async with served() as server:
            first = server.game.first
            for last in (first + 20, first + 40):
                done = await here(
                    "sequence", "crawl", *flags(tmp_path, server), "--begin", str(first), "--until", str(last)
                )
                assert done.code == 0, done.err

        assert server.tally.ids is not None
        assert min(server.tally.ids) == first
        assert max(server.tally.ids[number] for number in range(first, first + 20)) == 1, "none was asked for again"

    run(main)


def test_a_target_begins_there_each_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            first = server.game.first
            for _ in range(2):
                there = ("--target", str(first + 5), "@buffer", "5", "--until", str(first + 10))
                await here("sequence", "crawl", *flags(tmp_path, server), *there)

        assert server.tally.ids is not None
        assert server.tally.ids[first] == 2

    run(main)


def test_ids_that_a_target_leaves_out_are_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as server:
            first = server.game.first
            given = flags(tmp_path, server)
            await here("sequence", "crawl", *given, *begin(server), "--until", str(first + 2))
            there = ("--target", str(first + 500), "@buffer", "0", "--until", str(first + 501))
            done = await here("sequence", "crawl", *given, *there)

        assert done.code == 0, done.err
        assert re.search(rf"--target: ids from {first // 1000}[0-9]+ to {first + 499} are left out", done.err)

    run(main)


def test_no_secret_is_in_the_command_to_go_on_with(tmp_path: Path) -> None:
    given = SequenceFlags(
        SequenceFolder(out=tmp_path),
        SequenceUpstream(base="http://127.0.0.1:1", key_file=Path("key")),
        SequencePace(begin=5, without=("knee", "slew"), workers=30),
        SequenceStores(queue="amqp://me:hunter2@127.0.0.1/", rows="postgresql://me:hunter2@127.0.0.1/db"),
        PrometheusFlags(prometheus="http://me:hunter2@127.0.0.1:9090"),
        store=False,
    )

    shown = again(given, WATCHED)

    assert "hunter2" not in shown
    assert "knee" not in shown, "what is set is set for the next run, too"
    assert "--workers 30" in shown
    assert "--no-store" in shown
    assert "--begin 5" in shown


def test_rules_that_are_switched_off_are_off() -> None:
    rules = SequencePace(without=("one-window", "pacing")).rules()

    assert (rules.guard.one_window, rules.guard.pacing, rules.guard.slew) == (False, False, True)
    assert not rules.look.pacing
    assert SequencePace().rules().look.pacing
    assert (SequencePace(dev=True).rules().stride, SequencePace(dev=True, dev_skip=0).rules().stride) == (5, 1)


def test_the_limiter_never_tries_again_by_itself() -> None:
    """An id that waits for another try must not hold a worker meanwhile."""
    limiter = SequenceUpstream().limiter(SystemClock())

    assert limiter.rules.backoff.attempts == 1
    assert limiter.rules.pace.max_rps == 250


def test_the_command_loads_no_world() -> None:
    """The simulated game is nothing that a crawl needs, and takes time to load."""
    load = "import sys, sanderling.cli.sequence.crawl"
    code = f"{load}; sys.exit(any(name.startswith('sanderling.worlds') for name in sys.modules))"

    async def main() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        assert await process.wait() == 0

    run(main)
