"""Libraries that a plain installation does not have: which extra of the package brings each, and how each is loaded.

Every import of one goes through `load`, when it is needed and not before: a command that needs none runs without any.
"""

import importlib
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "aio_pika": "rabbitmq",
    "aiormq": "rabbitmq",
    "asyncpg": "postgres",
    "chdb": "embedded",
    "clickhouse_connect": "clickhouse",
    "duckdb": "duckdb",
    "lxml": "xpath",
    "numpy": "onnx",
    "obstore": "s3",
    "onnxruntime": "onnx",
    "playwright": "render",
    "pyarrow": "parquet",
    "redis": "redis",
}


# What the scheme of a URL needs, and what people call it.
SCHEMES = {
    **dict.fromkeys(("amqp", "amqps"), ("aio_pika", "RabbitMQ")),
    "chdb": ("chdb", "chDB"),
    **dict.fromkeys(("clickhouse", "clickhouses"), ("clickhouse_connect", "ClickHouse")),
    **dict.fromkeys(("postgresql", "postgres"), ("asyncpg", "PostgreSQL")),
    **dict.fromkeys(("redis", "rediss"), ("redis", "Redis")),
    **dict.fromkeys(("s3", "s3+http", "s3+https"), ("obstore", "S3")),
}


class MissingExtraError(ModuleNotFoundError):
    """A library is not installed. The message says what needs it, and the command that installs it."""


def have(library: str) -> bool:
    """Whether a library is installed."""
    return find_spec(library) is not None


def load(module: str, use: str) -> Any:  # noqa: ANN401 - a module
    """A library, or a module of ours that imports one; `use` is what needs it. Raises MissingExtraError."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise MissingExtraError(missing(library, use), name=library) from None


def missing_for(url: str) -> str:
    """What to say where the library that a URL needs is not installed; empty if nothing is missing."""
    library, use = SCHEMES.get(url.partition(":")[0].lower(), ("", ""))
    return missing(library, use) if library and not have(library) else ""


def missing(library: str, use: str) -> str:
    """What to say where a library is not installed."""
    return f"{use} needs {library}, which is not installed: {install(library)}"


def install(library: str) -> str:
    """The command that installs a library."""
    return f"pip install 'sanderling[{EXTRAS[library]}]'"
