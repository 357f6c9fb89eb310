import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sanderling.clock import SystemClock
from sanderling.events.analysis.onnx import OnnxModel
from sanderling.events.analysis.phobert import PhobertTokens
from sanderling.extras import MissingExtraError, load, missing_for
from sanderling.stores.analytics_migrate import migrate
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.clickhouse import open_clickhouse
from sanderling.stores.documents import Schema
from sanderling.stores.instances import open_instances
from sanderling.stores.objects import open_objects
from sanderling.stores.polling_open import open_polling
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


def test_a_module_of_no_extra_that_is_missing_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as told:
        load("no_such_module", "Nothing")

    assert not isinstance(told.value, MissingExtraError)


def test_a_url_needs_nothing_that_is_installed_or_not_known() -> None:
    assert [url for url in ("sqlite:a", "https://a/", "host:6379", "") if missing_for(url)] == []
