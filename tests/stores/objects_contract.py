"""What every object store promises."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.stores.objects import PAGE, ObjectError, ObjectFault, Objects, StoredObject

T = TypeVar("T")
Opens = Callable[[], Objects]

PLENTY = 1 << 30
PACKED = {"compressed": "true", "compression-algorithm": "zstd", "compression-level": "2", "original-size": "2048"}

OF_A_LISTED = 1000  # bytes

# Nobody may take one of them for another.
ODD_KEYS = (
    "plain",
    "deep/er/and/deeper.json",
    "a b",
    " ",
    "\u00e9",
    "e\u0301",
    "%2F",
    "%2e%2e",
    "x#y",
    "x+y",
    "x?y=z",
    "{z}",
    "~t",
    "q*",
    "..a",
    "a..",
    "...",
    '"',
    "\N{WAVING HAND SIGN}/\N{WAVING HAND SIGN}",
    "k" * 200,
)

BAD_NAMES = (
    ("", "key"),
    (".", "key"),
    ("..", "key"),
    (".incoming", "key"),
    ("a/b", "key"),
    ("a\0b", "key"),
    ("b" * 64, "key"),
    ("é", "key"),
    ("good", ""),
    ("good", "/"),
    ("good", "/etc/passwd"),
    ("good", "."),
    ("good", ".."),
    ("good", "../good/key"),
    ("good", "a/../../b"),
    ("good", "a/./b"),
    ("good", "a//b"),
    ("good", "a/"),
    ("good", "a\0b"),
    ("good", "a\nb"),
    ("good", "a\x9fb"),
    ("good", "a\\b"),
    ("good", "..\\up"),
    ("good", "a\ud800b"),
    ("good", "k" * 1025),
)

# Without slashes: where objects are files, none can be below another.
KEYS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\\/"), min_size=1, max_size=40
).filter(lambda key: key not in (".", "..") and not key.endswith(".meta.json"))


def played(opens: Opens, play: Callable[[Objects], Awaitable[T]], seconds: float = 300) -> T:
    """Open a store, and close it afterwards."""

    async def run() -> T:
        objects = opens()
        try:
            async with asyncio.timeout(seconds):
                return await play(objects)
        finally:
            await objects.close()

    return asyncio.run(run())


async def fault(attempt: Awaitable[object], expected: ObjectFault) -> str:
    """What is said of it."""
    with pytest.raises(ObjectError) as failed:
        await attempt
    assert failed.value.fault is expected, failed.value
    return str(failed.value)


async def listed(objects: Objects, bucket: str, prefix: str = "") -> list[tuple[str, int]]:
    """What is there, in order."""
    return sorted([(each.key, each.size) async for each in objects.list(bucket, prefix)])


async def measure_list(objects: Objects) -> int:
    """How many are in `bucket`, if they are listed with the memory of some pages and others have their turn."""
    count = turns = 0
    over = False

    async def others() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await asyncio.sleep(0)

    tracemalloc.start()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(others())
            async for _ in objects.list("bucket", ""):
                count += 1
            over = True
        assert tracemalloc.get_traced_memory()[1] < 4 * PAGE * OF_A_LISTED
    finally:
        tracemalloc.stop()
    assert turns > count / PAGE
    return count


class ObjectsContract:
    """A subclass has the fixtures `opens`, to open the same store again, and `bucket`, in which there is nothing."""

    @pytest.mark.parametrize("body", [b"", b"[]", bytes(range(256)) * 10, b"\x28\xb5\x2f\xfd" * 1_300_000])
    def test_what_is_put_is_got_by_whoever_opens_it(self, opens: Opens, bucket: str, body: bytes) -> None:
        played(opens, lambda objects: objects.put(bucket, "tiktok/proj/brand/batch_000.json", body, PACKED))

        found = played(opens, lambda objects: objects.get(bucket, "tiktok/proj/brand/batch_000.json", len(body)))

        assert (found.body, dict(found.metadata)) == (body, PACKED)
        assert isinstance(found.body, bytes)

    def test_a_second_put_takes_the_place_of_the_first(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> list[StoredObject]:
            found = []
            for body, metadata in ((b"one", PACKED), (b"two", {}), (b"two", {"a": "b"})):
                await objects.put(bucket, "key", body, metadata)
                found.append(await objects.get(bucket, "key", PLENTY))
            return found

        one, two, again = played(opens, play)

        assert [(each.body, dict(each.metadata)) for each in (one, two, again)] == [
            (b"one", PACKED), (b"two", {}), (b"two", {"a": "b"})
        ]  # fmt: skip
        assert one.etag != two.etag == again.etag != ""

    def test_what_is_not_there_is_missing_and_may_come(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> bytes:
            said = await fault(objects.get(bucket, "folder/key", PLENTY), ObjectFault.MISSING)
            assert f"{bucket}/folder/key" in said
            await fault(objects.get("no-such-bucket-of-ours", "key", PLENTY), ObjectFault.MISSING)
            await objects.put(bucket, "folder/key", b"here", {})
            await fault(objects.get(bucket, "folder", PLENTY), ObjectFault.MISSING)
            return (await objects.get(bucket, "folder/key", PLENTY)).body

        assert played(opens, play) == b"here"
        assert ObjectError("", fault=ObjectFault.MISSING).transient

    def test_what_is_too_large_is_refused_with_its_size(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> str:
            await objects.put(bucket, "large", bytes(3_000_000), {})
            assert len((await objects.get(bucket, "large", 3_000_000)).body) == 3_000_000
            return await fault(objects.get(bucket, "large", 2_999_999), ObjectFault.TOO_LARGE)

        said = played(opens, play)

        assert f"{bucket}/large" in said
        assert "has 3,000,000 bytes, expected at most 2,999,999" in said

    def test_each_key_is_an_object_of_its_own(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> None:
            for number, key in enumerate(ODD_KEYS):
                await objects.put(bucket, key, f"body {number}".encode(), {"number": str(number)})
            for number, key in enumerate(ODD_KEYS):
                found = await objects.get(bucket, key, PLENTY)
                assert (found.body, found.metadata["number"]) == (f"body {number}".encode(), str(number)), key

        played(opens, play)

    @pytest.mark.parametrize(("bucket_named", "key"), BAD_NAMES)
    def test_a_name_that_leads_elsewhere_is_never_used(self, opens: Opens, bucket_named: str, key: str) -> None:
        async def play(objects: Objects) -> None:
            attempts: list[Awaitable[object]] = [
                objects.get(bucket_named, key, PLENTY),
                objects.put(bucket_named, key, b"x", {}),
                objects.delete(bucket_named, key),
            ]
            if key:
                attempts.append(listed(objects, bucket_named, key))
            for attempt in attempts:
                said = await fault(attempt, ObjectFault.UNUSABLE)
                assert "expected bucket/key" in said
                assert said.isprintable()

        played(opens, play)
        assert not ObjectError("", fault=ObjectFault.UNUSABLE).transient

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("", "x"),
            ("Up", "x"),
            ("naïve", "x"),
            ("a b", "x"),
            ("a:b", "x"),
            ("content-type", "x"),
            ("storage-class", "x"),
            ("a", "é"),
            ("a", "b\r\nc: d"),
            ("a", " b"),
            ("a", "\0"),
            ("a", "x" * 3000),
        ],
    )
    def test_metadata_that_would_not_come_back_are_a_mistake(
        self, opens: Opens, bucket: str, name: str, value: str
    ) -> None:
        async def play(objects: Objects) -> None:
            with pytest.raises(ValueError, match=r"metadata .*expected"):
                await objects.put(bucket, "key", b"x", {name: value})
            await fault(objects.get(bucket, "key", PLENTY), ObjectFault.MISSING)

        played(opens, play)

    def test_many_at_once_do_not_mix(self, opens: Opens, bucket: str) -> None:
        async def there_and_back(objects: Objects, number: int) -> StoredObject:
            body = number.to_bytes(4) * 5000
            await objects.put(bucket, f"{number}", body, {"number": str(number)})
            return await objects.get(bucket, f"{number}", PLENTY)

        async def play(objects: Objects) -> list[StoredObject]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(there_and_back(objects, number)) for number in range(40)]
            return [task.result() for task in tasks]

        for number, found in enumerate(played(opens, play)):
            assert found.body == number.to_bytes(4) * 5000
            assert found.metadata == {"number": str(number)}

    def test_who_reads_while_others_write_never_sees_half(self, opens: Opens, bucket: str) -> None:
        bodies = [bytes([number]) * (100_000 + number) for number in range(10)]

        async def write(objects: Objects) -> None:
            for body in bodies:
                await objects.put(bucket, "key", body, {"size": str(len(body))})

        async def play(objects: Objects) -> list[StoredObject]:
            await objects.put(bucket, "key", bodies[0], {"size": str(len(bodies[0]))})
            found = []
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(write(objects))
                while not writing.done():
                    await asyncio.sleep(0)  # what is in memory waits for nothing
                    found.append(await objects.get(bucket, "key", PLENTY))
            return found

        for each in played(opens, play):
            assert each.body in bodies
            assert each.metadata.get("size", str(len(each.body))) == str(len(each.body))

    def test_any_key_that_is_one_keeps_any_body(self, opens: Opens, bucket: str) -> None:
        @settings(max_examples=15, deadline=None)
        @given(keys=st.lists(KEYS, min_size=1, max_size=4, unique=True), body=st.binary(max_size=300))
        def holds(keys: list[str], body: bytes) -> None:
            async def play(objects: Objects) -> None:
                for number, key in enumerate(keys):
                    await objects.put(bucket, key, body + bytes([number]), {"n": str(number)})
                for number, key in enumerate(keys):
                    found = await objects.get(bucket, key, PLENTY)
                    assert (found.body, found.metadata) == (body + bytes([number]), {"n": str(number)})

            played(opens, play)

        holds()

    def test_what_is_deleted_is_gone_and_may_come_again(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> StoredObject:
            for key in ("deep/key", "deep/other"):
                await objects.put(bucket, key, b"body", PACKED)
            for _ in range(2):
                await objects.delete(bucket, "deep/key")
                await fault(objects.get(bucket, "deep/key", PLENTY), ObjectFault.MISSING)
            await objects.put(bucket, "deep/key", b"again", {})
            again = await objects.get(bucket, "deep/key", PLENTY)
            await objects.delete(bucket, "deep/key")
            return again

        again = played(opens, play)

        assert (again.body, dict(again.metadata)) == (b"again", {})
        assert played(opens, lambda objects: listed(objects, bucket)) == [("deep/other", 4)]

    def test_to_delete_what_is_not_there_changes_nothing(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> list[tuple[str, int]]:
            await objects.put(bucket, "folder/key", b"body", {})
            for key in ("folder", "folder/ke", "folder/key/below", "fold", "other/key"):
                await objects.delete(bucket, key)
            await objects.delete("no-such-bucket-of-ours", "key")
            assert (await objects.get(bucket, "folder/key", PLENTY)).body == b"body"
            return await listed(objects, bucket)

        assert played(opens, play) == [("folder/key", 4)]

    def test_a_list_has_each_object_below_a_prefix(self, opens: Opens, bucket: str) -> None:
        keys = ("a/b/c", "a/b/d/e", "a/bc", "b/a/b/c", "a b/c", "plain")

        async def play(objects: Objects) -> None:
            for key in keys:
                await objects.put(bucket, key, key.encode(), PACKED)
            for prefix, expected in {
                "": keys,
                "a": ("a/b/c", "a/b/d/e", "a/bc"),
                "a/b": ("a/b/c", "a/b/d/e"),
                "a/b/d": ("a/b/d/e",),
                "a b": ("a b/c",),
                "plain": (),
                "nowhere/near": (),
            }.items():
                assert await listed(objects, bucket, prefix) == sorted((key, len(key)) for key in expected), prefix

        played(opens, play)

    def test_a_list_spells_each_key_as_it_was_put(self, opens: Opens, bucket: str) -> None:
        async def play(objects: Objects) -> None:
            for key in ODD_KEYS:
                await objects.put(bucket, key, key.encode(), {})
            assert await listed(objects, bucket) == sorted((key, len(key.encode())) for key in ODD_KEYS)
            for key in ODD_KEYS:
                await objects.delete(bucket, key)
            assert await listed(objects, bucket) == []

        played(opens, play)

    def test_a_bucket_that_is_not_there_is_missing_to_one_who_lists(self, opens: Opens) -> None:
        async def play(objects: Objects) -> str:
            return await fault(listed(objects, "no-such-bucket-of-ours"), ObjectFault.MISSING)

        assert "no-such-bucket-of-ours" in played(opens, play)

    def test_a_list_of_more_than_a_page_has_all_once(self, opens: Opens, bucket: str) -> None:
        count = 2 * PAGE + 1

        async def put(objects: Objects, numbers: range) -> None:
            for number in numbers:
                await objects.put(bucket, f"{number % 7}/{number:06}", b"", {})

        async def play(objects: Objects) -> None:
            async with asyncio.TaskGroup() as group:
                for first in range(8):
                    group.create_task(put(objects, range(first, count, 8)))
            expected = sorted((f"{number % 7}/{number:06}", 0) for number in range(count))
            assert await listed(objects, bucket) == expected
            async for _ in objects.list(bucket, ""):
                break  # whoever has seen enough goes
            async with asyncio.TaskGroup() as both:
                twins = [both.create_task(listed(objects, bucket, "3")) for _ in range(2)]
            assert twins[0].result() == twins[1].result() == [each for each in expected if each[0].startswith("3/")]

        played(opens, play)

    def test_it_answers_when_it_is_there(self, opens: Opens) -> None:
        played(opens, lambda objects: objects.ping())
