"""What each extra is for: a command that needs it, and what shows that the extra is all that was missing."""

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
    "events consume --model model.onnx": "onnx",
    "events migrate up --database postgresql://127.0.0.1:9/x": "postgres",
    "repos status --redis-address 127.0.0.1:9": "redis",
    "repos crawl --directory chdb:directory": "embedded",
    "repos replay . --to parquet:records": "parquet",
    "pages crawl http://127.0.0.1:9/ --out site --parquet": "parquet",
}

# With the extra, the same library is used: what these say instead comes from the server that is not there, from a file
# that is no model, or from an embedded database that works. The words are part of what is said.
STARTS = {
    "clickhouse": ("doctor --check clickhouse://127.0.0.1:9/", "clickhouse://127.0.0.1:9"),
    "embedded": ("doctor --check chdb:there", "chdb:there"),
    "onnx": ("events consume --drain --out events --model model.onnx", "model.onnx"),
    "parquet": ("repos replay . --to parquet:records", "segment_0001.rca"),
    "postgres": ("events migrate status --database postgresql://127.0.0.1:9/x", "127.0.0.1:9"),
    "rabbitmq": ("doctor --check amqp://127.0.0.1:9/", "amqp://127.0.0.1:9"),
    "redis": ("repos status --redis-address 127.0.0.1:9", "127.0.0.1:9"),
    "repos": ("doctor", "parser of repos"),
    "s3": ("doctor --check s3+http://127.0.0.1:9/bucket", "s3+http://127.0.0.1:9"),
}


def files_for(folder: Path) -> None:
    """The files that the commands name."""
    for name in ("segment_0001.rca", "model.onnx", "vocab.txt"):
        (folder / name).touch()
