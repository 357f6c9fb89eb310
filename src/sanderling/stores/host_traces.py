"""Files of a folder that name hosts beside its records, and what must go from them where a host is forgotten."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from sanderling.stores import control_file, cookie_file, limiter_file
from sanderling.stores.durable import FolderError, remove_drafts, sync_folder, write_new

STATUS = "status.json"  # made again by the next run
MODES = {limiter_file.FILE: 0o644, limiter_file.NEWS: 0o644, control_file.FILE: 0o644, cookie_file.FILE: 0o600}


def remove_traces(folder: Path, is_meant: Callable[[str], object]) -> None:
    """Have these files name no host that is meant, and no draft be left of any file. Done again, it changes nothing."""
    (folder / STATUS).unlink(missing_ok=True)
    for name, mode in MODES.items():
        if (folder / name).exists():
            _filter(folder / name, is_meant, mode)
    for path, _, _ in os.walk(folder):
        remove_drafts(Path(path), float("inf"))
    sync_folder(folder)


def _filter(path: Path, is_meant: Callable[[str], object], mode: int) -> None:
    """Write a file of JSON anew if that changes it. Raises FolderError for one that cannot be read."""
    data = path.read_bytes()
    try:
        said = [msgspec.json.decode(each) for each in (data.splitlines() if path.name == limiter_file.NEWS else [data])]
        kept = [_without(each, is_meant) for each in said]
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise FolderError(f"{path} cannot be read, and may name what is to be forgotten", "Remove it.") from None
    if kept != said:
        write_new(path, [b"\n".join(map(msgspec.json.encode, kept)), b"\n"], mode=mode)


def _without(said: Any, is_meant: Callable[[str], object]) -> Any:  # noqa: ANN401 - JSON
    """A list of cookies, or an object with a list of hosts, without those that are meant."""
    if isinstance(said, list):
        return [each for each in said if not is_meant(each["domain"])]
    hosts = said.get("hosts", [])
    return said | {"hosts": [each for each in hosts if not is_meant(each if isinstance(each, str) else each["host"])]}
