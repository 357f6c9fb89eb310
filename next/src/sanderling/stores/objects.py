"""Objects: in a store that speaks S3, or in a folder with BUCKET/KEY under it."""

from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from sanderling.files import Exit, FolderError


class ObjectsAway(Exception):  # noqa: N818 - it says what happened
    """The store cannot be used now, whichever object it is."""


class ObjectMissing(Exception):  # noqa: N818 - the same
    """The object is not there, or may not be read; perhaps not yet."""


class Objects(Protocol):
    """A store of objects in buckets."""

    async def size(self, bucket: str, key: str) -> int:
        """The bytes of an object. Raises the errors above."""

    async def get(self, bucket: str, key: str) -> bytes:
        """An object. Raises the errors above."""

    async def check(self) -> None:
        """Raise FolderError if the store cannot be used."""


class ObjectFolder:
    """Files: for one machine, and for tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, bucket: str, key: str) -> Path:
        path = self._folder / bucket / key
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise ObjectMissing(f"{bucket}/{key} leads out of {self._folder}")
        return path

    async def size(self, bucket: str, key: str) -> int:
        """The bytes of an object."""
        path = self._path(bucket, key)
        try:
            return path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectMissing(f"{bucket}/{key} is not in {self._folder}") from None
        except OSError as error:
            raise _of_disk(error, f"{bucket}/{key}") from None

    async def get(self, bucket: str, key: str) -> bytes:
        """An object."""
        try:
            return self._path(bucket, key).read_bytes()
        except OSError as error:
            raise _of_disk(error, f"{bucket}/{key}") from None

    async def check(self) -> None:
        """A folder that is not there yet has no objects."""


def _of_disk(error: OSError, name: str) -> Exception:
    if isinstance(error, PermissionError | IsADirectoryError | FileNotFoundError) or error.errno == 36:  # too long
        return ObjectMissing(f"{name}: {error.strerror}")
    return ObjectsAway(f"{name}: {error.strerror}")


class S3Objects:
    """A store at `s3:` or `https://HOST:PORT`; its keys come by the environment, as for all of its clients."""

    def __init__(self, url: str) -> None:
        try:
            from obstore.store import S3Store  # noqa: PLC0415 - an extra
        except ImportError:
            raise FolderError("object stores need obstore", 'pip install "sanderling[s3]"') from None
        parts = urlsplit(url)
        region = parse_qs(parts.query).get("region", ["us-east-1"])[0]
        self._endpoint = f"{parts.scheme}://{parts.netloc}" if parts.netloc and parts.scheme != "s3" else None
        self._stores: dict[str, Any] = {}

        def make(bucket: str) -> Any:  # noqa: ANN401 - obstore's
            more: dict[str, Any] = {"endpoint": self._endpoint} if self._endpoint else {}
            return S3Store(
                bucket, region=region, **more,
                client_options={"allow_http": True, "timeout": "30s", "connect_timeout": "5s",
                                "pool_max_idle_per_host": "10"},
                retry_config={"max_retries": 2, "retry_timeout": _seconds(20)},
            )  # fmt: skip

        self._make = make

    async def _ask(self, bucket: str, key: str, action: str) -> Any:  # noqa: ANN401 - obstore's
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError  # noqa: PLC0415

        if bucket not in self._stores:
            self._stores[bucket] = self._make(bucket)
        try:
            return await (obstore.head_async if action == "head" else obstore.get_async)(self._stores[bucket], key)
        except (NotFoundError, FileNotFoundError):
            raise ObjectMissing(f"{bucket}/{key} is not there") from None
        except (PermissionDeniedError, PermissionError):
            raise ObjectMissing(f"{bucket}/{key} may not be read") from None
        except (BaseError, OSError, ValueError) as error:
            raise ObjectsAway(f"{bucket}/{key}: {str(error)[:300]}") from None

    async def size(self, bucket: str, key: str) -> int:
        """The bytes of an object."""
        return int((await self._ask(bucket, key, "head"))["size"])

    async def get(self, bucket: str, key: str) -> bytes:
        """An object."""
        return bytes(await (await self._ask(bucket, key, "get")).bytes_async())

    async def check(self) -> None:
        """Raise FolderError if the store cannot be reached."""
        try:
            await self._ask("crawl-results", "sanderling-is-it-there", "head")
        except ObjectMissing:
            return
        except ObjectsAway as error:
            raise FolderError(
                f"the object store cannot be used: {error}", "check that it runs, and --objects", Exit.LATER
            ) from None


def _seconds(number: int) -> Any:  # noqa: ANN401 - a timedelta
    from datetime import timedelta  # noqa: PLC0415

    return timedelta(seconds=number)


def open_objects(place: str, folder: Path) -> Objects:
    """What --objects names: s3://, http(s)://, file:FOLDER; by default `objects` in the folder of the run."""
    if place.startswith(("s3:", "http://", "https://")):
        return S3Objects(place)
    return ObjectFolder(Path(place.removeprefix("file:")) if place else folder / "objects")
