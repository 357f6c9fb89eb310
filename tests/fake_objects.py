"""Objects in memory, which fail when they are told to."""

from collections.abc import AsyncIterator, Callable, Mapping
from hashlib import sha256

from sanderling.stores.objects import (
    ListedObject,
    ObjectError,
    ObjectFault,
    StoredObject,
    check_metadata,
    shown,
    steps_below,
    steps_of,
    too_large,
)


class MemoryObjects:
    def __init__(self) -> None:
        self.there: dict[str, StoredObject] = {}
        self.puts: list[str] = []
        self.fails: Callable[[str], ObjectFault | None] = lambda _: None  # get, put, delete, list or ping

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        path = "/".join(steps_of(bucket, key))
        self._maybe_fail("get")
        if path not in self.there:
            raise ObjectError(f"{path} is not there", fault=ObjectFault.MISSING)
        if len(self.there[path].body) > most:
            raise too_large(shown(bucket, key), len(self.there[path].body), most)
        return self.there[path]

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        path = "/".join(steps_of(bucket, key))
        check_metadata(metadata)
        self._maybe_fail("put")
        self.there[path] = StoredObject(body, dict(metadata), sha256(body).hexdigest())
        self.puts.append(path)

    async def delete(self, bucket: str, key: str) -> None:
        path = "/".join(steps_of(bucket, key))
        self._maybe_fail("delete")
        self.there.pop(path, None)

    async def list(self, bucket: str, prefix: str) -> AsyncIterator[ListedObject]:
        start = "/".join((*steps_below(bucket, prefix), ""))
        self._maybe_fail("list")
        if bucket not in {path.partition("/")[0] for path in self.puts}:
            raise ObjectError(f"{bucket} is not there", fault=ObjectFault.MISSING)
        for path, found in tuple(self.there.items()):
            if path.startswith(start):
                yield ListedObject(path.partition("/")[2], len(found.body))

    async def ping(self) -> None:
        self._maybe_fail("ping")

    async def close(self) -> None:
        pass

    def _maybe_fail(self, what: str) -> None:
        if (fault := self.fails(what)) is not None:
            raise ObjectError(f"objects: {what} is {fault.value}", fault=fault)
