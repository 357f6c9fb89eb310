"""What each extra is for: commands that need it, and what shows that the extra is all that was missing."""

from pathlib import Path

# A command, and the extra without which it does not begin.
NEEDY = {
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --rows postgresql://127.0.0.1:9/x": "postgres",
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --queue amqp://127.0.0.1:9/": "rabbitmq",
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --raw clickhouse://127.0.0.1:9/": "clickhouse",
    "polling run --trackside http://127.0.0.1:9 --database postgresql://127.0.0.1:9/x": "postgres",
    "events consume --database postgresql://127.0.0.1:9/x": "postgres",
    "events consume --queue amqp://127.0.0.1:9/": "rabbitmq",
    "events consume --objects s3+http://127.0.0.1:9/": "s3",
    "events consume --config onnx.toml": "onnx",
    "events migrate head --database postgresql://127.0.0.1:9/x": "postgres",
    "repos reset --config redis.toml": "redis",
    "repos crawl --directory chdb:directory": "embedded",
    "repos replay . --to parquet:records": "parquet",
    "pages crawl http://127.0.0.1:9/ --out site --parquet": "parquet",
}

# What `doctor --check` is asked about: with the extra it finds that nobody listens there.
CHECKED = {
    "clickhouse": ("clickhouse://127.0.0.1:9/", "nobody listens there"),
    "postgres": ("postgresql://127.0.0.1:9/x", "Connection refused"),
    "rabbitmq": ("amqp://127.0.0.1:9/", "Connection refused"),
    "redis": ("redis://127.0.0.1:9", "Connection refused"),
    "s3": ("s3+http://127.0.0.1:9/bucket", ""),
}
# What others are for: a command, what it says without the extra, and with it.
COMMANDS = {
    "embedded": ("repos replay . --to chdb:records", "pip install 'sanderling[embedded]'", "into chdb:records"),
    "onnx": (
        "events consume --drain --out events --config onnx.toml",
        "pip install 'sanderling[onnx]'",
        "model.onnx: ",
    ),
    "parquet": ("repos replay . --to parquet:records", "pip install 'sanderling[parquet]'", "segment_0001.rca"),
}


def files_for(folder: Path) -> None:
    """The files that the commands name."""
    for name in ("segment_0001.rca", "model.onnx", "vocab.txt"):
        (folder / name).touch()
    (folder / "onnx.toml").write_text("[events.consume]\nmodel = 'model.onnx'\n")
    (folder / "redis.toml").write_text("[repos]\nredis-address = '127.0.0.1:9'\n")
