"""Objects in memory, which fail when they are told to."""

from collections.abc import Callable, Mapping

from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject, check_metadata, steps_of


class MemoryObjects:
    def __init__(self) -> None:
        self.there: dict[str, StoredObject] = {}
        self.puts: list[str] = []
        self.fails: Callable[[str], ObjectFault | None] = lambda _: None  # get or put

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        path = "/".join(steps_of(bucket, key))
        self._maybe_fail("get")
        if path not in self.there:
            raise ObjectError(f"{path} is not there", fault=ObjectFault.MISSING)
        if len(self.there[path].body) > most:
            raise ObjectError(f"{path} is large", fault=ObjectFault.TOO_LARGE)
        return self.there[path]

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        path = "/".join(steps_of(bucket, key))
        check_metadata(metadata)
        self._maybe_fail("put")
        self.there[path] = StoredObject(body, dict(metadata), "etag")
        self.puts.append(path)

    async def ping(self) -> None:
        self._maybe_fail("ping")

    async def close(self) -> None:
        pass

    def _maybe_fail(self, what: str) -> None:
        if (fault := self.fails(what)) is not None:
            raise ObjectError(f"objects: {what} is {fault.value}", fault=fault)
