"""A folder that a fleet's crawl is pulled into: which crawl it is of, and that nobody else has changed it.

    out/pulled.json     the crawl, and what its files were like when the last pull ended
    out/parts.json      there between pulls only: while one is under way, and if it was cut short, nobody takes the
                        folder for a crawl, and so nobody changes it

So what is found in a folder without parts.json is that of a pull; and in one with it, every file must be as it was.
"""

from pathlib import Path

import msgspec

from sanderling.crawls.parts import FILE as PARTS
from sanderling.crawls.parts import FOLDER, PULLED, decide_on_parts, part_folder
from sanderling.stores.durable import FolderError, check_empty, plainly, sync_folder, write_new
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.forgotten import FILE as FORGOTTEN

FORMAT = 1
NOT_OURS = ("lock", "*-shm", "*.draft*")  # which readers leave, too

Stamp = tuple[int, int]  # bytes, and nanoseconds since 1970 of the last change


class PulledFile(msgspec.Struct, frozen=True, kw_only=True):
    """What pulled.json says."""

    name: str
    id: str
    files: dict[str, Stamp] = {}
    complete: bool | None = None  # whether that was all of the crawl; None before the first pull has ended
    format: int = FORMAT


def begin_pull(out: Path, crawl: FleetCrawl) -> bool | None:
    """Have a folder for the crawl, of which nobody takes it for one. Raises FolderError before anything is changed.

    If an earlier pull has come to its end, and nothing was changed since: whether it was complete.
    """
    found = _read(out)
    whole = found is not None and (out / PARTS).exists()
    with plainly(out):
        if found is None:
            _check_new(out, crawl)
            write_new(out / PULLED, [msgspec.json.encode(PulledFile(name=crawl.name, id=crawl.id)), b"\n"])
        else:
            _check_same(out, found, crawl)
            (out / PARTS).unlink(missing_ok=True)
        for part in range(crawl.parts):
            part_folder(out, part).mkdir(parents=True, exist_ok=True)
        sync_folder(out / FOLDER)
        sync_folder(out)
    return found.complete if found is not None and whole else None


def end_pull(out: Path, crawl: FleetCrawl, *, complete: bool) -> None:
    """All of it is there."""
    with plainly(out):
        said = PulledFile(name=crawl.name, id=crawl.id, files=_stamps(out), complete=complete)
        write_new(out / PULLED, [msgspec.json.encode(said), b"\n"])
        decide_on_parts(out, crawl.parts)


def _check_new(out: Path, crawl: FleetCrawl) -> None:
    if (out / PARTS).exists():
        raise FolderError(
            f"{out} holds a crawl that was not pulled from a fleet. Pull {crawl.name} into another folder."
        )
    check_empty(out)


def _check_same(out: Path, found: PulledFile, crawl: FleetCrawl) -> None:
    if found.id != crawl.id:
        same = "another of that name" if found.name == crawl.name else f"{crawl.name}, of id"
        raise FolderError(
            f"{out} was pulled from the crawl {found.name} of id {found.id}; the fleet has {same} {crawl.id}. "
            "Pull it into another folder."
        )
    if (out / PARTS).exists() and (changed := _changed(found.files, _stamps(out))):
        raise FolderError(
            f"{out} was pulled from the crawl {found.name}, and was changed since: {changed}. What was done there "
            "would be lost: pull into another folder."
        )


def _changed(before: dict[str, Stamp], now: dict[str, Stamp]) -> str:
    """Some of the files that are not as they were."""
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _stamps(out: Path) -> dict[str, Stamp]:
    """What can be seen of the files of all parts, and of what was forgotten, without reading them."""
    found = [path for path in sorted(out.glob(f"{FOLDER}/*/*")) if not any(map(path.match, NOT_OURS))]
    stats = [(path, path.stat()) for path in (out / FORGOTTEN, *found) if path.is_file()]
    return {
        str(path.relative_to(out)): (stat.st_size, stat.st_mtime_ns)
        for path, stat in stats
        if stat.st_size or not path.name.endswith("-wal")
    }


def _read(out: Path) -> PulledFile | None:
    path = out / PULLED
    with plainly(path):
        try:
            found = msgspec.json.decode(path.read_bytes(), type=PulledFile)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise FolderError(f"{path} is damaged: {error}. Pull into another folder.") from None
    if found.format > FORMAT:
        raise FolderError(f"{path} is of format {found.format}, this version reads up to {FORMAT}.")
    return found
