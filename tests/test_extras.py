import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import called

from sanderling import extras
from sanderling.clock import SystemClock
from sanderling.events.analysis.onnx import OnnxModel, PhobertTokens
from sanderling.extras import MissingExtraError, load, missing_for
from sanderling.stores.analytics_open import migrate, open_analytics
from sanderling.stores.clickhouse import open_clickhouse
from sanderling.stores.documents import Schema
from sanderling.stores.instances import open_instances
from sanderling.stores.objects import open_objects
from sanderling.stores.polling_store import open_polling
from sanderling.stores.queue import open_queue
from sanderling.stores.topic import open_topic

POSTGRES, RABBITMQ = "postgresql://127.0.0.1:1/x", "amqp://127.0.0.1:1/"


def _model() -> None:
    OnnxModel(Path("none.onnx"), PhobertTokens.__new__(PhobertTokens))


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("asyncpg", "postgres", lambda: asyncio.run(open_instances(POSTGRES))),
        ("asyncpg", "postgres", lambda: asyncio.run(open_polling(POSTGRES, Schema(()), "a", asyncio.to_thread))),
        ("asyncpg", "postgres", lambda: asyncio.run(open_analytics(POSTGRES, asyncio.to_thread))),
        ("asyncpg", "postgres", lambda: asyncio.run(migrate(POSTGRES))),
        ("aio_pika", "rabbitmq", lambda: open_queue(RABBITMQ, "letters", SystemClock())),
        ("aio_pika", "rabbitmq", lambda: open_topic(RABBITMQ, {})),
        ("obstore", "s3", lambda: open_objects("s3+http://127.0.0.1:1")),
        ("chdb", "embedded", lambda: open_clickhouse("chdb:")),
        ("clickhouse_connect", "clickhouse", lambda: open_clickhouse("clickhouse://127.0.0.1:1/")),
        ("onnxruntime", "onnx", _model),
    ],
)
def test_what_is_not_installed_is_said_with_what_to_install(
    library: str, extra: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("sanderling.stores.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # which means: not there

    with pytest.raises(MissingExtraError, match=rf"needs {library}, .* pip install 'sanderling\[{extra}\]'"):
        use()


def test_a_crawl_that_hands_on_says_what_is_missing_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDERLING_EVENTS_DATABASE", POSTGRES)
    monkeypatch.setattr(extras, "have", lambda library: library != "asyncpg")

    done = called(
        "pages", "crawl", "http://127.0.0.1:1/", "--private", "--out", f"{tmp_path / 'x'}", "--events-job", "a-b-0"
    )

    assert done.code == 2
    assert "SANDERLING_EVENTS_DATABASE: PostgreSQL needs asyncpg" in done.err
    assert not (tmp_path / "x").exists()


def test_a_command_that_was_copied_without_its_secret_is_not_run(tmp_path: Path) -> None:
    url = "https://api.example/{id}?key=***"

    done = called("sequence", "crawl", "--url", url, "--id-path", "id", "--begin", "1", "--out", f"{tmp_path / 'x'}")

    assert (done.code, done.out) == (2, "")
    assert "--url has *** in it, which stands for a secret; put the secret there" in " ".join(done.err.split())
    assert not (tmp_path / "x").exists()


def test_a_module_of_no_extra_that_is_missing_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as told:
        load("no_such_module", "Nothing")

    assert not isinstance(told.value, MissingExtraError)


def test_a_url_needs_nothing_that_is_installed_or_not_known() -> None:
    assert [url for url in ("sqlite:a", "https://a/", "host:6379", "") if missing_for(url)] == []
