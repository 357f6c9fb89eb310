"""What people and upstreams get wrong: one sentence each, and nothing is lost."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fetch.servers import says, upstream
from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.options import OptionError
from sanderling.sequence import system
from sanderling.sequence.law import Readings
from sanderling.sequence.opening import open_run, read_description
from sanderling.sequence.options import LARGEST_ID, SequenceOptions, StoreOptions
from sanderling.sequence.readings import MetricsError, Prometheus
from sanderling.sequence.store_command import store_records
from sanderling.sequence.targets import read_message

URL = 'url = "https://x.example/{id}"\n'
FILES: dict[str, tuple[str | bytes, str]] = {
    "empty.toml": ("", "url"),
    "syntax.toml": ("url = \n", "line 1"),
    "bytes.toml": (b"url = '\xff'\n", "not TOML"),
    "key.toml": (URL + "wrong = 1\n", "wrong"),
    "type.toml": ("url = 5\n", "Expected `str`, got `int` - at `$.url`"),
    "batch.toml": (URL + 'batch = "many"\n', "$.batch"),
    "both.toml": ('url = "https://x.example/{id}/{ids}"\n', "expected one with {id}, or with {ids}"),
    "path.toml": (URL + 'time = "a["\n', "time: found 'a['"),
    "stride.toml": (URL + "stride = 0\n", "stride is 0; expected 1 to"),
    "head.toml": (URL + 'head = { url = "newest" }\n', "head.url is 'newest'"),
    "headtype.toml": (URL + 'head = "newest"\n', "$.head"),
    "syntax.py": ("description = (\n", "line 1: SyntaxError"),
    "raises.py": ("import json\n\n1 / 0\n", "line 3: ZeroDivisionError"),
    "nothing.py": ("x = 1\n", "found no `description`"),
    "other.py": ("description = {'url': 'https://x.example/{id}'}\n", "expected one of type Description"),
}


@pytest.mark.parametrize("name", FILES)
def test_descriptions(tmp_path: Path, name: str) -> None:
    content, said = FILES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(OptionError) as error:
        read_description(str(path))
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("api", "base", "said"),
    [
        ("nothing", "", "expected an address with {id}"),
        ("destiny2", "", "--base is missing"),
        ("destiny2", "game.example", "expected https://"),
        ("https://x.example/{id}", "", ""),
    ],
)
def test_addresses(api: str, base: str, said: str) -> None:
    if not said:
        assert read_description(api, base, "id").id == "id"
        return
    with pytest.raises(OptionError, match=said.replace("{", r"\{")):
        read_description(api, base)


@pytest.mark.parametrize(
    "given",
    [
        {"begin": 2**63}, {"begin": -1}, {"begin": 5, "until": 4}, {"workers": 0}, {"min_workers": 9, "max_workers": 8},
        {"dev_skip": 3}, {"revisit": "36"}, {"revisit": "soon"}, {"revisit": "36h,"}, {"scaling": "fast"},
        {"buffer": -1}, {"rps": 0.0},
    ],
)  # fmt: skip
def test_options(given: dict[str, object]) -> None:
    if given == {"revisit": "36"}:
        assert SequenceOptions(out=Path("x"), **given).revisit == "36"  # seconds
        return
    with pytest.raises(OptionError):
        SequenceOptions(out=Path("x"), **given)


def opened(out: Path, **given: object) -> None:
    """Begin or go on, and stop at once."""

    async def act() -> None:
        async with open_run(SequenceOptions(out=out, **given), SystemClock()) as run:
            run.stop()
            await run.run()

    asyncio.run(act())


def test_folders_of_something_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    opened(out, api="https://x.example/{id}", begin=5, id="id")

    wrong = [
        ({"api": "https://y.example/{id}"}, "follows https://x.example/{id}, not"),
        ({"api": "https://x.example/{id}", "id": "key"}, "was begun with --id id, not key"),
    ]
    for given, said in wrong:
        with pytest.raises(FolderError, match=said.replace("{", r"\{")):
            opened(out, **given)
    with closing(sqlite3.connect(out / "sequence.db")) as db:
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(FolderError, match="has format 9, expected"):
        opened(out)
    with closing(sqlite3.connect(out / "sequence.db")) as db, db:
        db.execute("PRAGMA user_version = 2")
        db.execute("UPDATE state SET value = X'00'")
    with pytest.raises(FolderError, match="damaged"):
        opened(out)
    with pytest.raises(OptionError, match="expected an id"):
        asyncio.run(system.show(out, "9" * 40))
    with pytest.raises(OptionError, match="API is missing"):
        opened(tmp_path / "new")
    with pytest.raises(OptionError, match="--begin or --target is missing"):
        opened(tmp_path / "new", api="https://x.example/{id}")


def test_the_end_of_all_ids_is_an_end(tmp_path: Path) -> None:
    played = play(tmp_path, 300, lambda clock: IdWorld(clock, first=LARGEST_ID - 20, back=500))

    assert played.exit is Exit.DONE
    assert max(played.counts) == LARGEST_ID
    assert asyncio.run(system.verify(tmp_path)).faults == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"\xff\xfe", b'{"id": "5"}', b'{"record": {}}', b'{"id": "-1", "record": {}}',
     b'{"id": "' + b"9" * 40 + b'", "record": {}}', b'{"id": 5, "record": {}}',
    b'{"id": "5", "visit": "x", "deleted": true}',
     b"[" * 100_000],
)  # fmt: skip
def test_messages_of_the_queue(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_message(body)


def test_where_records_go_must_be_said() -> None:
    for given in ({}, {"folder": Path("x")}, {"queue": "amqp://localhost/"}):
        with pytest.raises(OptionError, match="is missing"):
            store_records(StoreOptions(**given), None)  # type: ignore[arg-type]


MATRIX = b'{"data": {"result": [{"values": [[0, "%s"], [60, "%s"]]}]}}'


@pytest.mark.real
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (says("500 No"), "500"),
        (says(body=b"<html>"), "JSON"),
        (says(body=b'{"data": 5}'), "data"),
        (says(body=MATRIX % (b"-3", b"1")), "expected nothing below zero"),
        (says(body=MATRIX % (b"one", b"1")), "Prometheus"),
        (says(body=MATRIX % (b"NaN", b"+Inf")), ""),
        (says(body=b'{"data": {"result": []}}'), ""),
    ],
)
async def test_a_prometheus_that_is_away_or_lies(reply: bytes, said: str) -> None:
    async with upstream(reply) as host, Prometheus(host.url, SystemClock()) as prometheus:
        if not said:
            assert await prometheus.read(60.0) == Readings()
            return
        with pytest.raises(MetricsError, match=said):
            await prometheus.read(60.0)


@pytest.mark.real
async def test_a_prometheus_that_is_not_there() -> None:
    async with Prometheus("http://127.0.0.1:9/", SystemClock()) as prometheus:
        with pytest.raises(MetricsError):
            await prometheus.read(60.0)
