"""A crawl in parts: hosts are shared out by their partition, and each part is a folder that one process has at a time.

    out/parts.json      how many parts there are
    out/parts/0003/     part 3: all that the folder of a small crawl has, and its inbox

The number of parts is that of the crawl, and does not change. How many processes own them may differ in every run.
"""

from pathlib import Path

import msgspec

from sanderling.ids import PARTITIONS, partition_of
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new

FILE, FOLDER = "parts.json", "parts"
PULLED = "pulled.json"  # of a folder that a fleet's crawl was pulled into
COPIES = "copies"  # of ledgers, in the folder of a worker of a fleet
FORMAT = 1
FEWEST = 8  # parts, so that a crawl that began with two processes can go on with eight


class PartsFile(msgspec.Struct, frozen=True, kw_only=True):
    """What parts.json says."""

    parts: int
    format: int = FORMAT


def number_of_parts(path: Path) -> int:
    """How many parts the crawl in a folder has; 0 if it is not in parts. Raises FolderError.

    Also of what looks like a crawl and is none: the folder of a worker, and of a pull that has not come to its end.
    """
    with plainly(path):
        try:
            found = msgspec.json.decode((path / FILE).read_bytes(), type=PartsFile)
        except (FileNotFoundError, NotADirectoryError):
            if (path / PULLED).exists():
                raise FolderError(f"a pull into {path} is under way, or was cut short: pull again") from None
            if is_of_worker(path):
                name = path.resolve().name
                bring = f"sanderling fleet pull {name} --fleet … --objects … --out {name}-pulled"
                what = "is the folder of a worker of a fleet, and has copies only"
                raise FolderError(f"{path} {what}. Bring the crawl here: {bring}") from None
            return 0
        except msgspec.MsgspecError as error:
            raise FolderError(f"{path / FILE} is damaged: {error}. Restore it from a copy.") from None
    if found.format > FORMAT:
        raise FolderError(f"{path / FILE} is of format {found.format}, this version reads up to {FORMAT}.")
    if not 1 <= found.parts <= PARTITIONS:
        raise FolderError(f"{path / FILE} is damaged: {found.parts} parts, expected 1 to {PARTITIONS}.")
    return found.parts


def is_of_worker(path: Path) -> bool:
    """Whether a folder is that of a worker of a fleet, whose crawl is elsewhere."""
    return next(path.glob(f"{COPIES}/[0-9][0-9][0-9][0-9]"), None) is not None


def enough_parts(processes: int) -> int:
    """How many parts are enough for so many processes, and some more."""
    return min(PARTITIONS, max(FEWEST, 1 << (processes - 1).bit_length()))


def make_parts(path: Path, parts: int) -> int:
    """Make the folder of a crawl in so many parts. It must hold nothing else."""
    with plainly(path):
        for each in range(parts):
            part_folder(path, each).mkdir(parents=True, exist_ok=True)
        sync_folder(path / FOLDER)
        decide_on_parts(path, parts)
    return parts


def decide_on_parts(path: Path, parts: int) -> None:
    """Say that a crawl has so many parts, which are there; on disk when this returns."""
    write_new(path / FILE, [msgspec.json.encode(PartsFile(parts=parts)), b"\n"])
    sync_folder(path)


def part_folder(path: Path, part: int) -> Path:
    """The folder of a part."""
    return folder_in(path / FOLDER, part)


def folder_in(parts: Path, part: int) -> Path:
    """The folder of a part, in the folder of all of them."""
    return parts / f"{part:04}"


def folders_of(path: Path) -> list[Path]:
    """The folders that hold a crawl: its parts, or the folder itself. Raises FolderError."""
    parts = number_of_parts(path)
    return [part_folder(path, each) for each in range(parts)] if parts else [path]


def check_one(path: Path) -> None:
    """Raise FolderError if the crawl in a folder is in parts: who works in the folder itself would find nothing."""
    if parts := number_of_parts(path):
        raise FolderError(
            f"{path} is in {parts} parts, which several processes share. Go on with the command: it runs them, "
            "also with --processes 1."
        )


def part_of(host: str, parts: int) -> int:
    """The part that a host belongs to."""
    return partition_of(host) * parts // PARTITIONS


def share_out(parts: int, processes: int) -> list[list[int]]:
    """The parts of each process: as many as any other, or one more."""
    return [list(range(first, parts, processes)) for first in range(min(parts, processes))]
