"""What people set for the commands of `repos`: the flags of seed 001 by their names, and our own."""

from pathlib import Path
from typing import Annotated, Any

from sanderling.fetch.options import RequestOptions
from sanderling.forms import Bytes, Form, Seconds, SecretOrText, Url
from sanderling.limit import LimitOptions
from sanderling.observe.alerts import AlertOptions
from sanderling.observe.options import ObserveOptions
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.readers.automatic import AUTO, ReaderCount
from sanderling.redact import Secret

OUT = Path("data/rca")
PLC = "https://plc.directory"
LARGE_RPS, LEAST_RPS = 10.0, 0.5


def _address(text: str) -> str:
    """HOST:PORT, as the seed writes it."""
    host, _, port = text.rpartition(":")
    if not host or "/" in host or "@" in host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError
    return text


Address = Annotated[str, Form(_address, "HOST:PORT", "HOST:PORT")]


class ServiceOptions(Options, table="repos", title="Servers"):
    """Where progress and directory are; all commands of the seed share these."""

    redis_address: Address | None = option(
        None, "The Redis that keeps the progress; without it the folder does.", variable="REDIS_ADDRESS"
    )
    clickhouse_address: SecretOrText | None = option(
        None, "The ClickHouse to use, by HTTP: HOST:8123, clickhouse://HOST:8123/DATABASE, or chdb:PATH.",
        variable="CLICKHOUSE_ADDRESS",
    )  # fmt: skip
    clickhouse_username: str = option("default", "Its user.", variable="CLICKHOUSE_USERNAME")
    clickhouse_password: SecretOrText = option("", "The password of that user.", variable="CLICKHOUSE_PASSWORD")

    @property
    def clickhouse(self) -> tuple[str, str, str]:
        """Address, user and password of the ClickHouse. Raises SecretError."""
        return _revealed(self.clickhouse_address or ""), self.clickhouse_username, _revealed(self.clickhouse_password)


def _revealed(value: Secret | str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


class ReposOptions(RequestOptions, ServiceOptions, ObserveOptions, AlertOptions, table="repos", title="Which repos"):
    """What `repos crawl` takes."""

    out: Path = option(
        OUT, "The folder for the archive; a crawl that was stopped goes on there.", seed="output-dir",
        variable="OUTPUT_DIR",
    )  # fmt: skip
    workers: int = option(50, "Requests in flight at most.", low=1, high=10_000, variable="WORKERS")
    default_pds_rps: float = option(
        5.0, "Requests per second to a host of 100 to 999 accounts; smaller ones get 2, larger ones 10.", low=1e-3,
        variable="DEFAULT_PDS_RPS",
    )  # fmt: skip
    segment_size: Bytes = option(2 << 30, "How large a segment grows.", low=1, variable="SEGMENT_SIZE")
    zstd_level: int = option(3, "How well records are compressed.", low=1, high=19, variable="ZSTD_LEVEL")
    page_size: int = option(50_000, "DIDs that are read from the directory at once.", low=1, variable="PAGE_SIZE")
    skip_pds: tuple[str, ...] = option((), "Never request this host; repeat it for several.", variable="SKIP_PDS")
    resume: bool = option(
        default=False, help="Go on with a crawl that was stopped, or say that there is none; it goes on without, too."
    )
    leave_out: Path | None = option(None, "A file of DIDs and hosts that are never requested, one a line.")
    directory: Path | None = option(
        None, "A directory that repos directory has filled; directory.db in the folder by default."
    )
    did_file: Path | None = option(None, "Request these accounts only: a file of lines DID HOST.")
    max_repo_size: Bytes = option(100 << 20, "A larger repo is not archived.", low=1 << 10, high=1 << 32)
    patience: Seconds = option(
        600.0,
        "How long a host may go without a good response before its accounts wait for another run; "
        "0: until ten requests in a row have failed, as in the seed.",
        low=0,
    )
    block_on_429: bool = option(default=False, help="With --patience 0, a 429 counts as such a failure too.")
    no_verify: bool = option(default=False, help="Do not check the hashes of blocks, as in the seed.")
    cids: bool = option(default=False, help="Keep the keys cid of records, which the seed drops.", plan=True)
    refresh: bool = option(
        default=False, help="When the crawl before has ended: ask each account again, and fetch what has changed."
    )
    ledger: SecretOrText | None = option(
        None, "Keep what is known in PostgreSQL, where several processes, each with its own --out, share the crawl."
    )
    name: str = option("", "The schema there; the name of --out by default.")
    readers: ReaderCount = option(AUTO, "Processes that parse repos; 0 parses them in this one.", low=AUTO, high=256)
    limits: LimitOptions = option(
        LimitOptions(
            initial_rps=LARGE_RPS, min_rps=LEAST_RPS, max_rps=LARGE_RPS, consecutive_fail_threshold=10,
            min_samples_to_trip=20,
        ),
        "Where a host's rate begins and may go.",
    )  # fmt: skip

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, Any]

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        object.__setattr__(self, "given", values)
        named = [name for name in ("directory", "did_file", "clickhouse_address") if getattr(self, name) is not None]
        if len(named) > 1:
            typed = " and ".join(self.fields[name].typed_as for name in named)
            raise OptionError(f"{typed} both say which accounts there are; give one of them")


class RepoReplayOptions(ServiceOptions, ObserveOptions, table="repos", title="What is written where"):
    """What `repos replay` takes."""

    input_dir: Path = option(OUT, "The folder of the archive.", variable="INPUT_DIR")
    collections: tuple[str, ...] = option(
        (), "Only these collections, as in app.bsky.feed.post; repeat it, or use commas.", variable="COLLECTIONS"
    )
    to: str = option(
        "", "parquet:FOLDER, jsonl:FILE, or chdb:PATH; by default the table repo_records of --clickhouse-address."
    )
    leave_out: Path | None = option(None, "A file of DIDs and hosts that are not written, one a line.")
    readers: ReaderCount = option(AUTO, "Processes that read segments; 0 reads them in this one.", low=AUTO, high=256)

    @property
    def wanted(self) -> frozenset[str]:
        """The collections, none for all."""
        return frozenset(name.strip() for each in self.collections for name in each.split(",") if name.strip())


class InspectOptions(ServiceOptions, table="repos", title="What is shown"):
    """What `repos inspect` takes."""

    place: Path = option(REQUIRED, "A segment, or a folder of them.", argument="SEGMENT")
    json: bool = option(default=False, help="Print it as one line of JSON.")


class ProgressOptions(ServiceOptions, table="repos", title="What is shown"):
    """What `repos status` takes."""

    out: Path = option(OUT, "The folder of the archive.", seed="output-dir", variable="OUTPUT_DIR")
    json: bool = option(default=False, help="Print it as one line of JSON.")


class ResetOptions(ServiceOptions, table="repos", title="What is removed"):
    """What `repos reset` takes."""

    out: Path = option(
        OUT, "The folder whose segments and progress are removed.", seed="output-dir", variable="OUTPUT_DIR"
    )


class GetOptions(RequestOptions, table="repos", title="Which repo"):
    """What `repos get` takes."""

    account: str = option(REQUIRED, "A DID, or a handle such as alice.example.org.", argument="DID|HANDLE")
    out: Path | None = option(None, "Take it from the archive in this folder; without it, from its host.")
    collections: tuple[str, ...] = option((), "Only these collections; repeat it, or use commas.")
    leave_out: Path | None = option(None, "A file of DIDs and hosts that are never requested or printed, one a line.")
    max_repo_size: Bytes = option(100 << 20, "A larger repo is not read.", low=1 << 10, high=1 << 32)
    cids: bool = option(default=False, help="Keep the keys cid of records.")
    plc: Url = option(f"{PLC}/", "The directory of did:plc.")


class DirectoryOptions(RequestOptions, ObserveOptions, table="repos", title="The directory"):
    """What `repos directory` takes."""

    file: Path = option(REQUIRED, "The directory, a file that is made, or brought up to date.", argument="FILE")
    plc: Url = option(f"{PLC}/", "Whose log of operations it is filled from.")
    import_: Path | None = option(None, "Fill it from this export instead, lines of JSON; - is standard input.")
    lines: int | None = option(None, "Stop after so many operations.", low=1)
