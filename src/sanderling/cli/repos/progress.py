"""`sanderling status` of a crawl of repos, and `sanderling repos reset`: how far it is, and how to forget it."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from sanderling.apis.atproto import AtprotoCategory
from sanderling.cli.command_error import CommandError, not_begun
from sanderling.cli.flags import SETTING
from sanderling.clock import SystemClock
from sanderling.crawls.parts import number_of_parts, part_folder
from sanderling.extras import load
from sanderling.redact import HIDDEN, redact_url
from sanderling.repos.parts import PROGRESS, JoinedProgress, all_segments, archive_folders
from sanderling.stores.durable import FolderError, Lock, plainly
from sanderling.stores.ports import HostAside, ProgressError, ProgressView, RepoProgress
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.status_file import FILE
from sanderling.words import count, duration, printable, size

CATEGORIES = tuple(category.value for category in AtprotoCategory)
NOTHING = ProgressView(cursor="", completed=0, failed={}, segment=0, total_crawled=0, bytes_written=0)
HOSTS_SHOWN = 5  # that were set aside
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")

# What the categories mean to whoever looks at them.
MEANINGS = {
    AtprotoCategory.NOT_FOUND: "not found at its host",
    AtprotoCategory.DEACTIVATED: "deactivated by its owner",
    AtprotoCategory.TAKENDOWN: "taken down by its host",
    AtprotoCategory.SUSPENDED: "suspended by its host",
    AtprotoCategory.PARSE_ERROR: "no sound repo",
    AtprotoCategory.DID_MISMATCH: "somebody else's repo",
    AtprotoCategory.TOO_LARGE: "larger than we read",
    AtprotoCategory.REFUSED: "not called: our own guard, see --private",
    AtprotoCategory.UNCHANGED: "unchanged since the earlier archive",
    AtprotoCategory.LEFT_OUT: "left out, as --leave-out or skip-pds says",
    AtprotoCategory.INCOMPLETE: "not all of it came",
    AtprotoCategory.RATE_LIMITED: "refused for now: rate limited",
    AtprotoCategory.HTTP_ERROR: "the host said no",
    AtprotoCategory.DNS_ERROR: "no such host, or no DNS",
    AtprotoCategory.UNAVAILABLE: "the host failed",
    AtprotoCategory.CONNECTION_ERROR: "no connection, or it was cut",
    AtprotoCategory.TIMEOUT: "no answer in time",
    AtprotoCategory.LEFT_ALONE: "left alone, as sanderling control says",
    AtprotoCategory.MOVED: "moved to another host meanwhile",
    AtprotoCategory.UNKNOWN: "for a reason without a name",
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFolder:
    """Where a crawl keeps what it has. A command takes one as `*, place: Place = USUAL`."""

    out: Annotated[Path, Parameter(env_var="OUTPUT_DIR")] = Path("data/rca")
    """The folder of the archive."""

    redis_address: Annotated[str | None, Parameter(env_var="REDIS_ADDRESS"), SETTING] = None
    """HOST:PORT, or the URL, of a Redis for the progress; by default it is a file in the folder."""


USUAL = ArchiveFolder()


@contextmanager
def open_progress(place: ArchiveFolder, part: int | None = None) -> Iterator[RepoProgress]:
    """The progress of one process, or of a part, made where there is none. Raises CommandError."""
    try:
        progress = _opened(place, part)
    except ProgressError as error:
        raise CommandError(str(error)) from None
    with closing(progress):
        yield progress


@contextmanager
def open_joined(place: ArchiveFolder) -> Iterator[JoinedProgress]:
    """The progress of all parts, or of one process, as one. Raises CommandError."""
    with ExitStack() as stack:
        parts = _number_of_parts(place.out)
        stores = [stack.enter_context(open_progress(place, part)) for part in range(parts)]
        if not parts or place.redis_address is not None or (place.out / PROGRESS).is_file():
            stores.append(stack.enter_context(open_progress(place)))
        yield JoinedProgress(stores, parts or 1)


def _number_of_parts(folder: Path) -> int:
    try:
        return number_of_parts(folder)
    except FolderError as error:
        raise CommandError(str(error), code=2) from None


def is_begun(place: ArchiveFolder) -> bool:
    """Whether there is progress to look at, as far as that can be told without a server. Raises CommandError."""
    folders = [place.out, *(part_folder(place.out, part) for part in range(_number_of_parts(place.out)))]
    return place.redis_address is not None or any((folder / PROGRESS).is_file() for folder in folders)


def _opened(place: ArchiveFolder, part: int | None) -> Any:  # noqa: ANN401 - a Progress that can be closed
    address = place.redis_address
    if address is None:
        return SqliteProgress((place.out if part is None else part_folder(place.out, part)) / PROGRESS)
    if "://" not in address and not _ADDRESS.fullmatch(address):
        _, login, host = address[:80].rpartition("@")
        found = f"{HIDDEN}@{host}" if login else host
        raise CommandError(f"redis-address: {found!r}, expected HOST:PORT, as in localhost:6379, or a URL", code=2)
    redis = load("sanderling.stores.redis_progress", "redis-address")
    url, prefix = address if "://" in address else f"redis://{address}/0", "" if part is None else f"part:{part:04}:"
    return redis.RedisProgress(url, categories=CATEGORIES, prefix=f"crawler:{prefix}")


def known_progress(place: ArchiveFolder) -> ProgressView:
    """How far the crawl is; nothing is made where there is none. Raises CommandError."""
    if not is_begun(place):
        return NOTHING
    with open_joined(place) as progress, _plainly(place.out):
        return progress.view()


class SavedProgress(NamedTuple):
    """What the progress says: how far it is, and the first hosts that were set aside."""

    view: ProgressView
    aside: tuple[HostAside, ...]

    @property
    def due(self) -> int | None:
        """When the first of what is left is due. What waits for a host that was set aside is due when that host is."""
        waits = [each.due for each in self.aside if each.category != AtprotoCategory.LEFT_ALONE]
        return min(waits) if waits else None if self.aside else self.view.due

    def as_json(self) -> dict[str, object]:
        """What `--json` prints of it."""
        return {**asdict(self.view), "due": self.due, "aside": [each._asdict() for each in self.aside]}


def known_aside(place: ArchiveFolder, view: ProgressView) -> list[HostAside]:
    """The first hosts that were set aside. Raises CommandError."""
    if not view.hosts_aside:
        return []
    with open_joined(place) as progress, _plainly(place.out):
        return progress.aside(HOSTS_SHOWN)


def describe_progress(place: ArchiveFolder) -> tuple[tuple[str, ...], dict[str, object]]:
    """How far a crawl is, in words and as JSON. Raises CommandError."""
    view, wall = known_progress(place), SystemClock().wall()
    if view == NOTHING and not (place.out / FILE).is_file():
        raise not_begun("no crawl of repos has begun", _where(place), "--out", "sanderling repos crawl")
    kept = SavedProgress(view, tuple(known_aside(place, view)))
    where = () if place.redis_address is None else (f"Its progress is in {_where(place)}.", "")
    return (*where, *_table(kept, wall), *hosts_aside(kept.aside, view.hosts_aside, wall), ""), kept.as_json()


def _where(place: ArchiveFolder) -> str:
    return str(place.out) if place.redis_address is None else f"Redis at {redact_url(place.redis_address)}"


def _table(kept: SavedProgress, wall: float) -> Iterator[str]:
    view = kept.view
    permanent = {name: number for name, number in view.failed.items() if _permanent(name)}
    # Accounts of hosts that are left out may move to another host: they are complete only for as long.
    listed = view.total_crawled + sum(permanent.values()) - view.completed
    if 0 < listed <= permanent.get(AtprotoCategory.LEFT_OUT, 0):
        permanent[AtprotoCategory.LEFT_OUT] -= listed
    else:
        listed = 0
    yield f"  {view.total_crawled:>12,}  archived, {size(view.bytes_written)}"
    yield from (f"  {number:>12,}  {describe(name)}" for name, number in permanent.items() if number)
    yield f"  {'-' * 12}"
    yield f"  {view.completed:>12,}  complete"
    if listed:
        yield f"  {listed:>12,}  left out for as long as their host is ({AtprotoCategory.LEFT_OUT})"
    transient = {name: number for name, number in view.failed.items() if name not in permanent}
    if transient:
        yield ""
        yield "Not archived so far, and asked for again by the next run:"
        yield ""
        yield from (f"  {number:>12,}  {describe(name)}" for name, number in transient.items())
        yield from ("", *when_due(kept, wall))
    yield ""
    yield f"Segment: {view.segment or 'none yet'}. " + (
        f"All DIDs up to {view.cursor} were seen to." if view.cursor else "The next run begins with the first DID."
    )


def when_due(kept: SavedProgress, wall: float) -> Iterator[str]:
    """When the first of what is left is due."""
    if kept.due is not None:
        wait = kept.due - wall
        when = f"in {duration(wait)}" if wait > 0 else "now"
        yield f"{count(kept.view.scheduled, 'repo')} left; the first is due {when}."


def hosts_aside(aside: Sequence[HostAside], number: int, wall: float) -> Iterator[str]:
    """The hosts that did not answer, why, and when each is due."""
    if not aside:
        return
    yield f"{count(number, 'host')} set aside, with the repos that wait for {'it' if number == 1 else 'them'}:"
    yield ""
    for each in aside:
        yield f"    {printable(each.host)}  {describe(each.category)}{when_host_due(each, wall)}"
    if number > len(aside):
        yield f"    and {number - len(aside):,} more: see sanderling why HOST"
    yield ""


def when_host_due(aside: HostAside, wall: float) -> str:
    """When a host that was set aside is due, unless that is for somebody to say."""
    if aside.category == AtprotoCategory.LEFT_ALONE:
        return ""
    return f", due in {duration(aside.due - wall)}" if aside.due > wall else ", due now"


def describe(name: str) -> str:
    """A category in words, and its name."""
    return f"{MEANINGS[AtprotoCategory(name)]} ({name})" if name in CATEGORIES else name


def _permanent(name: str) -> bool:
    return name in CATEGORIES and AtprotoCategory(name).permanent


def reset(
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask first.")] = False,
    place: ArchiveFolder = USUAL,
) -> None:
    """Forget how far the crawl of a folder is, and delete its segments."""
    folder, view = place.out, known_progress(place)
    with _alone(folder):
        segments = all_segments(folder) if folder.is_dir() else []
        if view == NOTHING and not segments:
            print(f"Nothing to forget in {printable(_where(place))}.")
            return
        found = f"{count(view.completed, 'complete DID')} and {count(len(segments), 'segment')} in {folder}"
        if not yes:
            _ask(found)
        with open_joined(place) as progress, _plainly(folder):
            # The progress first: what it calls complete and is nowhere would never be asked for again.
            progress.reset()
            for path in segments:
                path.unlink()
    print(f"Forgotten: {printable(found)}.")


def _ask(found: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(f"this would forget {found}; say --yes if that is what you want", code=2)
    print(f"This forgets {printable(found)}. Nothing brings them back.")
    if input("Type yes to go on: ").strip().lower() != "yes":
        raise CommandError("nothing was changed")


@contextmanager
def _plainly(folder: Path) -> Iterator[None]:
    try:
        with plainly(folder):
            yield
    except (FolderError, ProgressError) as error:
        raise CommandError(str(error)) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no crawl is running there, and none can begin."""
    if not folder.is_dir():
        yield
        return
    with ExitStack() as held:
        with _plainly(folder):
            for each in sorted({folder, *archive_folders(folder)}):
                held.callback(Lock(each / "lock").release)
        yield
