"""The cookies of a crawl, in a file beside its ledger that only its owner may read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new

FILE = "cookies.json"

C = TypeVar("C")


def load_cookies(folder: Path, kind: type[C]) -> list[C]:
    """The cookies, each of a `kind`, that an earlier run has kept there. Raises FolderError."""
    path = folder / FILE
    with plainly(path):
        data = path.read_bytes() if path.exists() else None
    if data is None:
        return []
    try:
        return msgspec.json.decode(data, type=list[kind])  # type: ignore[valid-type] # a parameter
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # The message is without what was found: it may let somebody in.
        raise FolderError(f"{path} has no cookies in it. Remove it: then the crawl goes on without.") from None


def save_cookies(folder: Path, cookies: Iterable[Any]) -> None:
    """Keep these instead of the ones before, all of them or none; on disk when this returns. Raises FolderError."""
    path = folder / FILE
    with plainly(path):
        write_new(path, [msgspec.json.encode(list(cookies))], mode=0o600)
        sync_folder(folder)
