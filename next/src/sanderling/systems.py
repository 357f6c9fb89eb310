"""The one table of systems: their names, by which files their folders are known, and which commands run them.

Nothing else knows which systems there are. A system's module is imported only when its command runs; it defines
`open_run`, `records`, `tasks`, `verify` and `forget`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sanderling.files import FolderError, disk_errors

# Files that only folders of the second edition have.
_SECOND = ("ledger.db", "frontier.db", "progress.db", "limiter.json")


@dataclass(frozen=True, slots=True)
class Command:
    """What people type after `sanderling`. Its options are imported when it is typed, its code when it runs."""

    words: str  # as in "pages crawl"
    help: str  # one sentence
    options: str  # "module:Class"
    group: str = "Run"  # in --help: Run, Inspect, Export or Maintain
    function: str = ""  # "module:function" of (options, context); none: a run of the system
    example: str = ""  # a whole command that can be pasted, without the program's name


@dataclass(frozen=True, slots=True)
class System:
    """One row: a system, its folder and its commands."""

    name: str
    help: str
    marks: tuple[str, ...]  # a folder that has one of these files is the system's
    module: str
    runs: tuple[Command, ...]
    # For `try FILE`: a JMESPath that finds something in the TOML files which describe its upstreams, and
    # "module:function" of (file, what was typed, options of requests, context).
    described: str = ""
    tries: str = ""

    def load(self) -> ModuleType:
        """The system's own module."""
        return import_module(self.module)


SYSTEMS: tuple[System, ...] = (
    System(
        "pages",
        "Documents of hosts, by links and sitemaps.",
        ("pages.json",),
        "sanderling.crawl.system",
        (
            Command(
                "pages crawl",
                "Collect the pages of sites, by their links and sitemaps.",
                "sanderling.crawl.options:PagesOptions",
                example="pages crawl https://example.org/ --out example --depth 3",
            ),
        ),
    ),
    System(
        "jobs",
        "Records of sites and APIs, by a file of Python.",
        ("job.json",),
        "sanderling.crawl.system",
        (
            Command(
                "run",
                "Collect what a job says, which is a file of Python.",
                "sanderling.crawl.options:JobOptions",
                function="sanderling.cli.run:run_job_file",
                example="run examples/shop.py --out shop",
            ),
        ),
    ),
    System(
        "polling",
        "Documents of an upstream, each requested again and again at its own cadence.",
        ("polling.json",),
        "sanderling.polling.system",
        (
            Command(
                "polling run",
                "Poll the documents of an upstream, and tell followers what changes.",
                "sanderling.polling.options:PollingOptions",
                example="polling run http://localhost:8080 --out races",
            ),
            Command(
                "polling set",
                "List the settings of a run, or change them while it runs.",
                "sanderling.polling.options:SetOptions",
                "Maintain",
                "sanderling.cli.polling_set:polling_set",
                "polling set races raceIdleMs=3000",
            ),
        ),
    ),
    System(
        "sequence",
        "Records of APIs whose ids only grow.",
        ("sequence.db",),
        "sanderling.sequence.system",
        (
            Command(
                "sequence crawl",
                "Follow ids as they come to be: each record once, what is missing is asked again.",
                "sanderling.sequence.options:SequenceOptions",
                example="sequence crawl https://api.example.org/things/{id} --begin 1 --out things",
            ),
            Command(
                "sequence store",
                "Write the records of a folder to a database.",
                "sanderling.sequence.options:StoreOptions",
                "Export",
                "sanderling.sequence.store_command:store_records",
                "sequence store things --database sqlite:things.db",
            ),
        ),
        described="url",
        tries="sanderling.sequence.trying:try_description",
    ),
    System(
        "events",
        "Batches that crawlers announce by messages, as rows of posts and errors.",
        ("events.json",),
        "sanderling.events.system",
        (
            Command(
                "events consume",
                "Make rows of batches of posts, which messages announce or files hold.",
                "sanderling.events.options:EventsOptions",
                example="events consume batch.json --out posts",
            ),
            Command(
                "events publish",
                "Put messages into a queue, each confirmed.",
                "sanderling.events.options:PublishOptions",
                function="sanderling.events.commands:publish",
                example="events publish messages.jsonl --out posts",
            ),
            Command(
                "events replay",
                "Put parked messages, or dead ones, back into their queue.",
                "sanderling.events.options:ReplayOptions",
                "Maintain",
                "sanderling.events.commands:replay",
                "events replay --parked --out posts",
            ),
            Command(
                "events migrate",
                "Give the tables of a database the columns of events, or take them away.",
                "sanderling.events.options:MigrateOptions",
                "Maintain",
                "sanderling.events.commands:migrate",
                "events migrate --database env:DATABASE_URL",
            ),
        ),
    ),
    System(
        "repos",
        "Archives of ATProto repos, host by host.",
        ("repos.json",),
        "sanderling.repos.system",
        (
            Command(
                "repos crawl",
                "Archive the repos of all accounts of a directory, as fast as each host allows.",
                "sanderling.repos.options:ReposOptions",
                example="repos crawl --did-file accounts.txt --out archive",
            ),
            Command(
                "repos directory",
                "Fill a file with all accounts and their hosts, from the log of did:plc.",
                "sanderling.repos.options:DirectoryOptions",
                function="sanderling.repos.commands:directory",
                example="repos directory archive/directory.db",
            ),
            Command(
                "repos get",
                "Print the records of one account, from an archive or from its host.",
                "sanderling.repos.options:GetOptions",
                "Inspect",
                "sanderling.repos.get:get",
                "repos get did:plc:z72i7hdynmk6r22z27h6tvur --out archive",
            ),
            Command(
                "repos inspect",
                "Print header, index and collections of segments, and check every checksum.",
                "sanderling.repos.options:InspectOptions",
                "Inspect",
                "sanderling.repos.commands:inspect",
                "repos inspect archive/segment_0001.rca",
            ),
            Command(
                "repos status",
                "Print the progress that Redis has, or the folder.",
                "sanderling.repos.options:ProgressOptions",
                "Inspect",
                "sanderling.repos.commands:status",
                "repos status --redis-address localhost:6379",
            ),
            Command(
                "repos replay",
                "Write the records of an archive to ClickHouse, Parquet or JSON Lines.",
                "sanderling.repos.options:RepoReplayOptions",
                "Export",
                "sanderling.repos.replay:replay",
                "repos replay --input-dir archive --to parquet:records",
            ),
            Command(
                "repos reset",
                "Remove the segments and the progress of an archive.",
                "sanderling.repos.options:ResetOptions",
                "Maintain",
                "sanderling.repos.commands:reset",
                "repos reset --output-dir archive --redis-address localhost:6379",
            ),
        ),
    ),
)


def load_name(place: str) -> Any:  # noqa: ANN401 - a class or a function
    """What "module:name" names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def system_of(folder: Path, systems: Iterable[System] = SYSTEMS) -> System:
    """The system that writes into `folder`. Raises FolderError if there is none."""
    with disk_errors(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else None
    if names is None:
        found = "is a file" if folder.exists() else "does not exist"
        raise FolderError(f"{folder} {found}", "give the folder that --out named")
    check_edition(folder)
    for system in systems:
        if names.intersection(system.marks):
            return system
    marks = ", ".join(mark for system in systems for mark in system.marks)
    raise FolderError(
        f"{folder} is no folder of Sanderling: it has none of the files {marks}", "give the folder that --out named"
    )


def check_edition(folder: Path) -> None:
    """Raise FolderError for a folder that an earlier release wrote."""
    for name in _SECOND:
        if (folder / name).exists():
            raise FolderError(
                f"{folder} was written by Sanderling 0.2: it has {name}",
                'export it with that release (pip install "sanderling<0.3"), or choose another folder',
            )
