"""What somebody wants forgotten: in forgotten.json, as hashes by which it is known again, and never asked for.

The file is also the journal of the removal. What is to be removed stands there in plain words before the first of it
is, and until the last of it is: killed in between, whoever opens the folder next removes the rest.
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new

FILE = "forgotten.json"
FORMAT = 1
HASH = 16  # bytes

Wish = tuple[str, str]  # a kind, and what is meant, as it is compared


class ForgottenThing(msgspec.Struct, frozen=True):
    """Something that is known by its hash: a kind, the number of characters that were hashed, and the hash of them."""

    kind: str
    length: int
    hash: str


class ForgottenFile(msgspec.Struct, frozen=True):
    """What the file says."""

    salt: str
    things: tuple[ForgottenThing, ...] = ()
    removing: tuple[str, ...] = ()  # as people wrote it: what of it is left is to be removed
    exports: tuple[str, ...] = ()  # that are to be made anew after that
    format: int = FORMAT


class Forgotten:
    """What a folder has forgotten. Nobody but whoever holds the folder changes it."""

    def __init__(self, path: Path, says: ForgottenFile) -> None:
        self.says = says
        self._path = path
        self._hashes = {(each.kind, each.hash) for each in says.things}
        self._lengths: dict[str, list[int]] = {each.kind: [] for each in says.things}
        for kind, length in sorted({(each.kind, each.length) for each in says.things}):
            self._lengths[kind].append(length)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What the folder has forgotten. Raises FolderError."""
        path = folder / FILE
        with plainly(path):
            if not path.exists():
                return cls(path, ForgottenFile(secrets.token_hex(16)))
            try:
                says = msgspec.json.decode(path.read_bytes(), type=ForgottenFile)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise FolderError(f"{path} is damaged: {error}. Restore it from a copy.") from None
        if says.format > FORMAT:
            raise FolderError(f"{path} is of format {says.format}, this version reads {FORMAT}. Use a newer version.")
        return cls(path, says)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def has(self, kind: str, text: str) -> bool:
        """Whether exactly this was forgotten."""
        return kind in self._lengths and (kind, self._hash(text)) in self._hashes

    def begins(self, kind: str, text: str) -> bool:
        """Whether this begins with something that was forgotten."""
        return any(self.has(kind, text[:length]) for length in self._lengths.get(kind, ()) if length <= len(text))

    def counts(self) -> dict[str, int]:
        """How many things of each kind were forgotten."""
        return dict(sorted(Counter(each.kind for each in self.says.things).items()))

    def begin(self, wishes: Iterable[Wish], removing: Sequence[str], exports: Sequence[str]) -> Self:
        """Decide to forget these; nothing is removed yet."""
        things = [ForgottenThing(kind, len(text), self._hash(text)) for kind, text in wishes]
        return self._written(
            things=tuple(dict.fromkeys((*self.says.things, *things))),
            removing=tuple(dict.fromkeys((*self.says.removing, *removing))),
            exports=tuple(dict.fromkeys((*self.says.exports, *exports))),
        )

    def removed(self) -> Self:
        """All is removed from the folder itself."""
        return self._written(removing=())

    def exported(self, target: str) -> Self:
        """An export was made anew, or cannot be."""
        return self._written(exports=tuple(each for each in self.says.exports if each != target))

    def _written(self, **changes: object) -> Self:
        says = msgspec.structs.replace(self.says, **changes)
        with plainly(self._path):
            write_new(self._path, [msgspec.json.encode(says), b"\n"])
            sync_folder(self._path.parent)
        return type(self)(self._path, says)

    def _hash(self, text: str) -> str:
        key = bytes.fromhex(self.says.salt)
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=HASH, key=key).hexdigest()
