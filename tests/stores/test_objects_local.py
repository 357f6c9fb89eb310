import asyncio
import os
import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from objects_contract import PACKED, PLENTY, ObjectsContract, Opens, fault, listed, measure_list, played

from sanderling.stores.objects import EXPECTED, PAGE, ObjectError, ObjectFault, Objects, ObjectThreads, open_objects
from sanderling.stores.objects_local import BESIDE, LocalObjects


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def bucket() -> str:
    return "crawl-results"


@pytest.fixture
def opens(folder: Path) -> Opens:
    return lambda: open_objects(f"file:{folder}")


class TestLocalObjects(ObjectsContract):
    pass


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_bucket_is_a_folder_that_is_made_once(tmp_path: Path) -> None:
    async def main() -> None:
        objects = open_objects(f"file:{tmp_path}")
        await objects.make("mine")
        await objects.make("mine")
        await fault(objects.make("../mine"), ObjectFault.UNUSABLE)
        await objects.close()

    asyncio.run(main())
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_an_object_is_a_file_that_anybody_can_read(opens: Opens, folder: Path) -> None:
    played(opens, lambda objects: objects.put("bucket", "a/b.json", b"[1]", PACKED))

    assert files(folder) == {"bucket/a/b.json", "bucket/a/b.json.meta.json"}
    assert (folder / "bucket/a/b.json").read_bytes() == b"[1]"
    assert (folder / "bucket/a/b.json").stat().st_mode & 0o777 == 0o644
    played(opens, lambda objects: objects.delete("bucket", "a/b.json"))
    assert files(folder) == set()


def test_a_file_put_there_by_hand_is_an_object(opens: Opens, folder: Path) -> None:
    (folder / "bucket").mkdir(parents=True)
    (folder / "bucket/batch.json").write_bytes(b"[2]")

    found = played(opens, lambda objects: objects.get("bucket", "batch.json", PLENTY))

    assert (found.body, found.metadata) == (b"[2]", {})


@pytest.mark.parametrize("beside", [b"", b"{}", b"[", b"\xff", b'{"etag": "of another", "metadata": {"a": "b"}}'])
def test_metadata_that_are_not_of_this_body_are_not_believed(opens: Opens, folder: Path, beside: bytes) -> None:
    played(opens, lambda objects: objects.put("bucket", "key", b"body", {"a": "b"}))
    (folder / f"bucket/key{BESIDE}").write_bytes(beside)

    found = played(opens, lambda objects: objects.get("bucket", "key", PLENTY))

    assert (found.body, found.metadata) == (b"body", {})


def test_metadata_are_no_objects(opens: Opens) -> None:
    async def play(objects: Objects) -> None:
        await objects.put("bucket", "key", b"body", {"a": "b"})
        for name in (f"key{BESIDE}", f"new{BESIDE}/key"):
            await fault(objects.get("bucket", name, PLENTY), ObjectFault.UNUSABLE)
            await fault(objects.put("bucket", name, b"", {}), ObjectFault.UNUSABLE)
            await fault(objects.delete("bucket", name), ObjectFault.UNUSABLE)
            await fault(listed(objects, "bucket", name), ObjectFault.UNUSABLE)
        assert await listed(objects, "bucket") == [("key", 4)]
        assert (await objects.get("bucket", "key", PLENTY)).metadata == {"a": "b"}

    played(opens, play)


# --- what else may be in the folder ---


def test_no_link_is_followed_out_of_the_folder(opens: Opens, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (folder / "bucket").mkdir(parents=True)
    (folder / "bucket/file").symlink_to(outside / "secret")
    (folder / "bucket/folder").symlink_to(outside)
    (folder / "linked").symlink_to(outside)
    (folder / "bucket/relative").symlink_to("../../outside/secret")
    (folder / "bucket/dangling").symlink_to(outside / "nowhere")

    async def play(objects: Objects) -> None:
        for bucket, key in (("bucket", "file"), ("bucket", "relative"), ("bucket", "dangling")):
            said = await fault(objects.get(bucket, key, PLENTY), ObjectFault.UNUSABLE)
            assert said.endswith("is a symbolic link, and none is followed")
        for bucket, key in (("bucket", "folder/secret"), ("linked", "secret"), ("bucket", "folder/new/key")):
            said = await fault(objects.get(bucket, key, PLENTY), ObjectFault.UNUSABLE)
            assert "behind a symbolic link" in said
            await fault(objects.put(bucket, key, b"theirs", {}), ObjectFault.UNUSABLE)
            await fault(objects.delete(bucket, key), ObjectFault.UNUSABLE)
            await fault(listed(objects, bucket, key), ObjectFault.UNUSABLE)
        assert await listed(objects, "bucket") == []
        await objects.delete("bucket", "relative")  # the link, and not what it leads to
        await objects.put("bucket", "file", b"ours", {})
        assert (await objects.get("bucket", "file", PLENTY)).body == b"ours"

    played(opens, play)
    assert files(outside) == {"secret"}
    assert (outside / "secret").read_bytes() == b"secret"


def test_what_is_no_plain_file_is_not_waited_for(opens: Opens, folder: Path) -> None:
    (folder / "bucket/folder").mkdir(parents=True)
    os.mkfifo(folder / "bucket/pipe")

    async def play(objects: Objects) -> None:
        assert await listed(objects, "bucket") == []
        await fault(objects.get("bucket", "pipe", PLENTY), ObjectFault.UNUSABLE)
        await fault(objects.get("bucket", "folder", PLENTY), ObjectFault.MISSING)
        await fault(objects.put("bucket", "folder", b"", {}), ObjectFault.UNUSABLE)

    played(opens, play)


def test_nothing_can_be_below_an_object(opens: Opens) -> None:
    async def play(objects: Objects) -> None:
        await objects.put("bucket", "a", b"body", {})
        await fault(objects.get("bucket", "a/b", PLENTY), ObjectFault.MISSING)
        await fault(objects.put("bucket", "a/b", b"", {}), ObjectFault.UNUSABLE)
        await fault(objects.put("bucket", "n" * 256, b"", {}), ObjectFault.UNUSABLE)
        assert (await objects.get("bucket", "a", PLENTY)).body == b"body"

    played(opens, play)


def test_of_a_file_of_a_gigabyte_nothing_is_read(opens: Opens, folder: Path) -> None:
    (folder / "bucket").mkdir(parents=True)
    with (folder / "bucket/large").open("wb") as file:
        file.truncate(1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    played(opens, lambda objects: fault(objects.get("bucket", "large", 64 << 20), ObjectFault.TOO_LARGE))

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_a_file_that_grows_while_it_is_read_is_too_large() -> None:
    """What the system makes up as it is read has no size."""
    process = str(os.getpid())
    assert Path(f"/proc/{process}/limits").stat().st_size == 0

    async def play(objects: Objects) -> None:
        await fault(objects.get(process, "limits", 10), ObjectFault.TOO_LARGE)
        assert (await objects.get(process, "limits", 100_000)).body.startswith(b"Limit")

    played(lambda: LocalObjects(Path("/proc")), play)


def test_a_folder_that_is_gone_is_an_outage_until_it_is_back(opens: Opens, folder: Path) -> None:
    async def play(objects: Objects) -> None:
        await objects.put("bucket", "key", b"body", {})
        shutil.move(folder, f"{folder}-elsewhere")
        for attempt in (
            objects.get("bucket", "key", PLENTY),
            objects.put("bucket", "key", b"", {}),
            objects.delete("bucket", "key"),
            listed(objects, "bucket"),
            objects.ping(),
        ):
            said = await fault(attempt, ObjectFault.DOWN)
            assert str(folder) in said
        shutil.move(f"{folder}-elsewhere", folder)
        await objects.ping()
        assert (await objects.get("bucket", "key", PLENTY)).body == b"body"

    played(opens, play)


@contextmanager
def somebody_else() -> Iterator[None]:
    """Root may do anything, others may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_we_may_not_read_is_refused(opens: Opens, folder: Path) -> None:
    async def play(objects: Objects) -> None:
        await objects.put("bucket", "key", b"body", {})
        (folder / "bucket/key").chmod(0)
        (folder / "bucket").chmod(0o555)
        with somebody_else():
            await fault(objects.get("bucket", "key", PLENTY), ObjectFault.REFUSED)
            await fault(objects.put("bucket", "new", b"", {}), ObjectFault.REFUSED)
            await fault(objects.delete("bucket", "key"), ObjectFault.REFUSED)
            await fault(listed(objects, "bucket"), ObjectFault.REFUSED)

    played(opens, play)
    assert not ObjectError("", fault=ObjectFault.REFUSED).transient


def test_a_writer_that_dies_leaves_the_earlier_object(opens: Opens, folder: Path) -> None:
    """The disk takes no more: the body is not there, the metadata are."""

    async def play(objects: Objects) -> None:
        await objects.put("bucket", "key", b"body", {"a": "b"})
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            await fault(objects.put("bucket", "key", bytes(200_000), {"c": "d"}), ObjectFault.DOWN)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        found = await objects.get("bucket", "key", PLENTY)
        assert (found.body, found.metadata) == (b"body", {})

    played(opens, play)
    assert files(folder) == {"bucket/key", f"bucket/key{BESIDE}"}


@pytest.mark.parametrize("name", [b"back\\slash", b"line\nbreak", b"\xff\xfe", b"folder\\of/key"])
def test_a_file_whose_name_is_no_key_is_not_listed(opens: Opens, folder: Path, name: bytes) -> None:
    path = folder / "bucket" / os.fsdecode(name)
    path.parent.mkdir(parents=True)
    path.touch()
    (folder / "bucket/key").write_bytes(b"body")

    assert played(opens, lambda objects: listed(objects, "bucket")) == [("key", 4)]


def test_a_folder_that_goes_while_it_is_listed_is_no_fault(opens: Opens, folder: Path) -> None:
    (folder / "bucket").mkdir(parents=True)
    for number in range(PAGE + 1):
        (folder / f"bucket/{number}").touch()
    (folder / "bucket/in").mkdir()
    (folder / "bucket/in/key").touch()

    async def gone(objects: Objects) -> list[str]:
        found = []
        async for each in objects.list("bucket", ""):
            shutil.rmtree(folder / "bucket/in", ignore_errors=True)
            found.append(each.key)
        return found

    assert sorted(played(opens, gone)) == sorted(str(number) for number in range(PAGE + 1))


def test_a_list_of_many_takes_the_memory_of_a_page(opens: Opens, folder: Path) -> None:
    count = 20 * PAGE
    for number in range(count):
        path = folder / f"bucket/{number % 10}/{number}"
        if number < 10:
            path.parent.mkdir(parents=True)
        path.touch()

    assert played(opens, measure_list) == count


# --- hands ---


def test_nobody_waits_for_hands_that_are_stuck() -> None:
    stuck = threading.Event()

    async def play() -> int:
        hands = ObjectThreads("file:/far/away", threads=1, seconds=0.2)
        async with asyncio.TaskGroup() as group:
            for attempt in (hands(stuck.wait, 60), hands(len, [])):  # the second finds no hand free
                group.create_task(fault(attempt, ObjectFault.FAILED))
        stuck.set()
        patient = ObjectThreads("file:/far/away", threads=1)
        try:
            return await patient(len, [1, 2])
        finally:
            hands.let_go()
            patient.let_go()

    assert asyncio.run(play()) == 2


def test_what_was_not_begun_when_its_time_was_over_is_never_done() -> None:
    stuck = threading.Event()
    done: list[int] = []

    async def play() -> None:
        hands = ObjectThreads("file:/far/away", threads=1, seconds=0.1)
        async with asyncio.TaskGroup() as group:
            group.create_task(fault(hands(stuck.wait, 60), ObjectFault.FAILED))
            group.create_task(fault(hands(done.append, 1), ObjectFault.FAILED))
        stuck.set()
        hands._seconds = 30.0
        await hands(len, [])  # behind whatever was in line
        hands.let_go()

    asyncio.run(play())
    assert done == []


# --- where it is ---


@pytest.mark.parametrize(
    "url", ["", "file:", "file://", "redis://u:hidden@host", "C:\\hidden", "minio://u:hidden@host"]
)
def test_what_is_no_url_of_a_store_is_refused(url: str) -> None:
    with pytest.raises(ObjectError, match="is no object store with a place; expected file:FOLDER") as refused:
        open_objects(url)
    assert "hidden" not in str(refused.value)
    assert EXPECTED in str(refused.value)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ObjectError, match="file/objects"):
        open_objects(f"file:{tmp_path}/file/objects")


def test_it_is_called_by_its_folder(tmp_path: Path) -> None:
    objects = open_objects(f"file://{tmp_path}/new")

    assert repr(objects) == f"<LocalObjects {tmp_path}/new>"
    assert (tmp_path / "new").is_dir()
    asyncio.run(objects.close())
