"""A refresh token that a host has exchanged for another, in a file that only its owner may read."""

from pathlib import Path

import msgspec

from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new

FILE = "tokens.json"


class _Kept(msgspec.Struct):
    owner: str
    token: str


class TokenFile:
    """The latest refresh token of one owner. A rotated token that is lost locks us out, so it is durable at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, owner: str) -> str | None:
        """The token that was kept for this owner; None if there is none, or one of another. Raises FolderError."""
        with plainly(self._path):
            data = self._path.read_bytes() if self._path.exists() else None
        if data is None:
            return None
        try:
            kept = msgspec.json.decode(data, type=_Kept)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # The message is without what was found: it may be a secret.
            raise FolderError(
                f"{self._path} has no token in it. Remove it, and configure a new refresh token."
            ) from None
        return kept.token if kept.owner == owner else None

    def save(self, owner: str, token: str) -> None:
        """Keep it instead of the one before; on disk when this returns. Raises FolderError."""
        with plainly(self._path):
            write_new(self._path, [msgspec.json.encode(_Kept(owner, token))], mode=0o600)
            sync_folder(self._path.parent)
