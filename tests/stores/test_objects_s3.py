import asyncio
import re
import resource
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlsplit

import obstore
import pytest
from objects_contract import PACKED, PLENTY, ObjectsContract, Opens, fault, listed, measure_list, played
from services.process import Missing, free_ports, private_folder, program, running
from services.s3 import BUCKET, S3, hello

from sanderling.stores import objects_s3
from sanderling.stores.objects import PAGE, PATIENCE, ObjectError, ObjectFault, Objects, open_objects
from sanderling.stores.objects_s3 import S3Objects, server

KEYS = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "hidden"}
NOBODY: Mapping[str, str] = {}


def url_of(s3: S3) -> str:
    login = f"{quote(s3.access_key_id, '')}:{quote(s3.secret_access_key, '')}"
    return f"s3+{s3.endpoint.replace('://', f'://{login}@')}"


@pytest.fixture
def opens(s3: S3) -> Opens:
    return lambda: open_objects(url_of(s3), NOBODY)


@pytest.fixture
def bucket(s3: S3) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's; made with its first object, as SeaweedFS does."""
    mine = replace(s3, bucket=f"sanderling-test-{uuid.uuid4().hex[:20]}")
    hello(url_of(mine).removeprefix("s3+") + f"/{mine.bucket}", 10)
    yield mine.bucket
    store = mine.store()
    for page in obstore.list(store):
        obstore.delete(store, [each["path"] for each in page])


class TestS3Objects(ObjectsContract):
    pass


def test_metadata_are_what_other_programs_read_and_write(opens: Opens, s3: S3, bucket: str) -> None:
    theirs = replace(s3, bucket=bucket).store()
    obstore.put(theirs, "theirs", b"1", attributes={"Content-Type": "application/json", "compressed": "TRUE"})

    async def play(objects: Objects) -> dict[str, str]:
        await objects.put(bucket, "ours", b"2", PACKED)
        return dict((await objects.get(bucket, "theirs", PLENTY)).metadata)

    assert played(opens, play) == {"compressed": "TRUE"}
    assert PACKED.items() <= obstore.get(theirs, "ours").attributes.items()


def test_more_buckets_than_are_kept_open_are_all_there(opens: Opens) -> None:
    async def play(objects: Objects) -> None:
        assert isinstance(objects, S3Objects)
        for _ in range(2):
            for number in range(objects_s3.MOST_BUCKETS + 5):
                await fault(objects.get(f"no-such-bucket-{number}", "key", PLENTY), ObjectFault.MISSING)
        assert len(objects._buckets) == objects_s3.MOST_BUCKETS

    played(opens, play)


# --- a server that says odd things ---

REPLY = """HTTP/1.1 {status}\r
Content-Length: {size}\r
ETag: "tag"\r
Last-Modified: Fri, 05 Dec 2025 10:00:00 GMT\r
{headers}\r
"""
ERROR = """<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>said</Message></Error>"""


def reply(status: str, body: bytes = b"", headers: str = "", size: int | None = None) -> bytes:
    head = REPLY.format(status=status, size=len(body) if size is None else size, headers=headers)
    return head.encode("latin-1") + body


def refusal(status: str, code: str) -> bytes:
    return reply(status, ERROR.format(code=code).encode(), "Content-Type: application/xml\r\n")


class Odd:
    """An S3 server that says what it is told to, whoever asks for what."""

    def __init__(self) -> None:
        self.says: Callable[[asyncio.StreamWriter], Awaitable[None]] = silence
        self.sent = 0
        self.asked: list[str] = []
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as listener:
            yield f"s3+http://somebody:hidden@127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            for task in self._serving:
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.asked.append(head.decode())
                size = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                await reader.readexactly(int(size[1]) if size else 0)
                await self.says(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.transport.abort()


async def silence(writer: asyncio.StreamWriter) -> None:
    del writer
    await asyncio.Event().wait()


def saying(*answers: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """One after the other; the last again and again."""
    left = list(answers)

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return say


Play = Callable[[Objects, Odd], Awaitable[None]]


def with_odd(play: Play) -> None:
    async def run() -> None:
        odd = Odd()
        async with asyncio.timeout(300), odd.opened() as url:
            objects = open_objects(url, NOBODY)
            try:
                await play(objects, odd)
            finally:
                await objects.close()

    asyncio.run(run())


def test_a_server_that_hangs_has_failed_and_then_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_s3, "SILENCE", 0.3)

    async def play(objects: Objects, odd: Odd) -> None:
        # Long before an exchange would have to be over.
        async with asyncio.timeout(objects_s3.EXCHANGE / 2), asyncio.TaskGroup() as group:
            for attempt in (
                objects.get("b", "k", PLENTY),
                objects.put("b", "k", b"x", {}),
                objects.delete("b", "k"),
                listed(objects, "b"),
                objects.ping(),
            ):
                group.create_task(fault(attempt, ObjectFault.FAILED))
        odd.says = saying(reply("200 OK", b"body"))
        assert (await objects.get("b", "k", PLENTY)).body == b"body"

    with_odd(play)


def test_a_server_that_drips_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_s3, "EXCHANGE", 1.0)

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(reply("200 OK", size=1000))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.1)

    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = drip
        async with asyncio.timeout(PATIENCE / 2):
            await fault(objects.get("b", "k", PLENTY), ObjectFault.DOWN)

    with_odd(play)


def test_of_an_object_of_a_gigabyte_nothing_is_read() -> None:
    async def pour(writer: asyncio.StreamWriter) -> None:
        writer.write(reply("200 OK", size=1 << 30))
        while poured["size"] < 1 << 30:
            writer.write(bytes(1 << 20))
            await writer.drain()
            poured["size"] += 1 << 20

    poured = {"size": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = pour
        said = await fault(objects.get("b", "k", 64 << 20), ObjectFault.TOO_LARGE)
        assert "has 1,073,741,824 bytes, expected at most 67,108,864" in said

    with_odd(play)
    assert poured["size"] < 50 << 20  # what fits into the buffers of two sockets
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


@pytest.mark.parametrize(
    ("answer", "expected", "said"),
    [
        (refusal("404 Not Found", "NoSuchKey"), ObjectFault.MISSING, "is not there (NoSuchKey)"),
        (refusal("404 Not Found", "NoSuchBucket"), ObjectFault.MISSING, "no such bucket; make it, as with `aws s3 mb"),
        (reply("404 Not Found"), ObjectFault.MISSING, "is not there (not found)"),
        (refusal("403 Forbidden", "AccessDenied"), ObjectFault.REFUSED, "is not for us (AccessDenied: said)"),
        (refusal("403 Forbidden", "AllAccessDisabled"), ObjectFault.REFUSED, "(AllAccessDisabled: said)"),
        (reply("401 Unauthorized"), ObjectFault.REFUSED, "(401 Unauthorized)"),
        (refusal("403 Forbidden", "InvalidAccessKeyId"), ObjectFault.DOWN, "does not know our keys"),
        (refusal("403 Forbidden", "SignatureDoesNotMatch"), ObjectFault.DOWN, "see AWS_SECRET_ACCESS_KEY"),
        (refusal("400 Bad Request", "ExpiredToken"), ObjectFault.DOWN, "(ExpiredToken)"),
        (refusal("403 Forbidden", "RequestTimeTooSkewed"), ObjectFault.DOWN, "(RequestTimeTooSkewed)"),
        (refusal("400 Bad Request", "InvalidBucketName"), ObjectFault.UNUSABLE, "cannot be (InvalidBucketName)"),
        (refusal("400 Bad Request", "RequestTimeout"), ObjectFault.FAILED, "(RequestTimeout: said)"),
        (refusal("429 Too Many Requests", "SlowDown"), ObjectFault.FAILED, "(SlowDown: said)"),
        (refusal("503 Service Unavailable", "SlowDown"), ObjectFault.FAILED, "is not to be had now (SlowDown: said)"),
        (reply("500 Internal Server Error"), ObjectFault.FAILED, "(500 Internal Server Error)"),
        (refusal("301 Moved Permanently", "PermanentRedirect"), ObjectFault.DOWN, ""),
        (b"what is this?\r\n\r\n", ObjectFault.DOWN, ""),
        (reply("200 OK", b"x", "x-amz-meta-a: caf\xe9\r\n"), ObjectFault.UNUSABLE, "has metadata that are not ASCII"),
    ],
)
def test_what_a_server_says_is_told_in_a_line(answer: bytes, expected: ObjectFault, said: str) -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(answer)
        told = await fault(objects.get("bucket", "folder/key", PLENTY), expected)
        assert said in told
        assert re.match(r"'bucket/folder/key' at s3\+http://127\.0\.0\.1:\d+\b", told)
        assert "hidden" not in told + repr(objects)
        assert len(told) < 200
        assert told.isprintable()

    with_odd(play)


@pytest.mark.parametrize(
    ("answer", "expected", "said"),
    [
        (refusal("403 Forbidden", "AccessDenied"), ObjectFault.REFUSED, "is not for us (AccessDenied: said)"),
        (reply("401 Unauthorized"), ObjectFault.REFUSED, "(401 Unauthorized)"),
        (refusal("403 Forbidden", "InvalidAccessKeyId"), ObjectFault.DOWN, "does not know our keys"),
        (refusal("400 Bad Request", "InvalidBucketName"), ObjectFault.UNUSABLE, "cannot be (InvalidBucketName)"),
        (refusal("503 Service Unavailable", "SlowDown"), ObjectFault.FAILED, "is not to be had now (SlowDown: said)"),
        (reply("500 Internal Server Error"), ObjectFault.FAILED, "(500 Internal Server Error)"),
        (reply("200 OK", b"<what is this?"), ObjectFault.DOWN, ""),
        (b"what is this?\r\n\r\n", ObjectFault.DOWN, ""),
    ],
)
def test_one_who_deletes_or_lists_is_told_the_same(answer: bytes, expected: ObjectFault, said: str) -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(answer)
        for attempt in (objects.delete("bucket", "folder/key"), listed(objects, "bucket", "folder/key")):
            told = await fault(attempt, expected)
            assert said in told
            assert re.match(r"'bucket/folder/key' at s3\+http://127\.0\.0\.1:\d+\b", told)
            assert "hidden" not in told
            assert told.isprintable()

    with_odd(play)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDenied", ObjectFault.REFUSED),
        ("InternalError", ObjectFault.FAILED),
        ("SignatureDoesNotMatch", ObjectFault.DOWN),
    ],
)
def test_a_server_that_deletes_all_but_this_is_believed(code: str, expected: ObjectFault) -> None:
    """It says 200 and has its errors inside."""
    body = f"<DeleteResult><Error><Key>k</Key><Code>{code}</Code><Message>said</Message></Error></DeleteResult>"

    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(reply("200 OK", body.encode(), "Content-Type: application/xml\r\n"))
        assert code in await fault(objects.delete("b", "k"), expected)

    with_odd(play)


PART = (
    "<Contents><Key>{key}</Key><LastModified>2025-12-05T10:00:00.000Z</LastModified><ETag>&quot;tag&quot;</ETag>"
    "<Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


def listing(keys: Iterable[str], onward: str = "") -> bytes:
    more = f"<NextContinuationToken>{onward}</NextContinuationToken>" if onward else ""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>bucket</Name><IsTruncated>{str(bool(onward)).lower()}</IsTruncated>{more}"
        f"{''.join(PART.format(key=key) for key in keys)}</ListBucketResult>"
    )
    return reply("200 OK", body.encode(), "Content-Type: application/xml\r\n")


def test_a_list_of_a_hundred_thousand_takes_the_memory_of_a_page() -> None:
    """The pages are made as they are asked for."""

    async def say(writer: asyncio.StreamWriter) -> None:
        page = len(odds[0].asked)
        writer.write(listing((f"{page}/{number}" for number in range(PAGE)), f"page-{page}" if page < 100 else ""))
        await writer.drain()

    async def play(objects: Objects, odd: Odd) -> None:
        odds.append(odd)
        odd.says = say
        assert await measure_list(objects) == 100_000
        assert ["continuation-token" in head for head in odd.asked] == [False, *(99 * [True])]

    odds: list[Odd] = []
    with_odd(play)


def test_a_page_that_fails_ends_the_list_and_does_not_shorten_it() -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(listing(["a"] * PAGE, "page-2"), refusal("403 Forbidden", "AccessDenied"))
        pages = objects.list("b", "")
        assert [(await anext(pages)).key for _ in range(PAGE)] == ["a"] * PAGE
        await fault(anext(pages), ObjectFault.REFUSED)

    with_odd(play)


@pytest.mark.parametrize("key", ["a//b", "../up", "a/./b", "a&#10;b"])
def test_a_key_of_somebody_else_that_is_none_is_named(key: str) -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(listing(["good", key]))
        told = await fault(listed(objects, "b"), ObjectFault.UNUSABLE)
        assert key.partition("&")[0] in told
        assert "delete it" in told
        assert told.isprintable()

    with_odd(play)


def test_a_bucket_that_is_not_there_is_named_to_one_who_writes() -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(refusal("404 Not Found", "NoSuchBucket"))
        told = await fault(objects.put("crawl-results", "folder/key", b"body", {}), ObjectFault.MISSING)
        assert told.endswith("there is no such bucket; make it, as with `aws s3 mb`")

    with_odd(play)


NO_BUCKET = refusal("404 Not Found", "NoSuchBucket")


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([refusal("404 Not Found", "NoSuchKey")], ["GET /mine/ping"]),
        ([refusal("403 Forbidden", "AccessDenied")], ["GET /mine/ping"]),
        ([NO_BUCKET, reply("200 OK")], ["GET /mine/ping", "PUT /mine/"]),
        ([NO_BUCKET, refusal("409 Conflict", "BucketAlreadyOwnedByYou")], ["GET /mine/ping", "PUT /mine/"]),
    ],
)
def test_a_bucket_is_made_where_there_is_none(answers: list[bytes], asked: list[str]) -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        assert isinstance(objects, S3Objects)
        odd.says = saying(*answers)
        await objects.make("mine")
        assert [head.partition("?")[0].partition(" HTTP/")[0] for head in odd.asked] == asked
        assert "hidden" not in "".join(odd.asked)

    with_odd(play)


@pytest.mark.parametrize(
    ("answer", "expected", "said"),
    [
        (
            refusal("403 Forbidden", "AccessDenied"),
            ObjectFault.REFUSED,
            "does not let us make it (AccessDenied); make it, as",
        ),
        (reply("405 Method Not Allowed"), ObjectFault.REFUSED, "does not let us make it (status 405)"),
        (b"what is this?\r\n\r\n", ObjectFault.DOWN, "is not to be had now (BadStatusLine)"),
    ],
)
def test_a_bucket_that_may_not_be_made_is_said(answer: bytes, expected: ObjectFault, said: str) -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        assert isinstance(objects, S3Objects)
        odd.says = saying(NO_BUCKET, answer)
        told = await fault(objects.make("mine"), expected)
        assert re.match(r"bucket mine at s3\+http://127\.0\.0\.1:\d+ ", told)
        assert said in told

    with_odd(play)


def test_a_real_server_has_a_bucket_after_it_was_made_and_keeps_it(s3: S3) -> None:
    mine = replace(s3, bucket=f"sanderling-test-{uuid.uuid4().hex[:20]}")

    async def main() -> bytes:
        objects = open_objects(url_of(mine), NOBODY)
        try:
            await objects.make(mine.bucket)
            await objects.put(mine.bucket, "key", b"body", {})
            await objects.make(mine.bucket)
            return (await objects.get(mine.bucket, "key", PLENTY)).body
        finally:
            await objects.close()

    assert asyncio.run(main()) == b"body"
    obstore.delete(mine.store(), ["key"])


def test_a_body_that_ends_early_is_no_object() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(reply("200 OK", b"half", size=1000))
        await writer.drain()
        writer.transport.close()

    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = half
        await fault(objects.get("b", "k", PLENTY), ObjectFault.DOWN)

    with_odd(play)


def test_one_stumble_is_nobodys_concern() -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        odd.says = saying(refusal("503 Service Unavailable", "SlowDown"), reply("200 OK", b"body"))
        assert (await objects.get("b", "k", PLENTY)).body == b"body"
        assert len(odd.asked) == 2

    with_odd(play)


def test_one_who_is_known_and_may_do_little_is_answered() -> None:
    async def play(objects: Objects, odd: Odd) -> None:
        for code in ("AccessDenied", "InvalidBucketName"):
            odd.says = saying(refusal("403 Forbidden", code))
            await objects.ping()
        odd.says = saying(refusal("403 Forbidden", "SignatureDoesNotMatch"))
        await fault(objects.ping(), ObjectFault.DOWN)

    with_odd(play)


# --- a server that comes and goes ---


@contextmanager
def weed(folder: Path, ports: list[int], secret: str) -> Iterator[None]:
    """A SeaweedFS that has the same place and the same keys in every life."""
    names = ("master", "volume", "filer", "s3", "admin")
    command = [program("weed", before_path=str(Path(sys.executable).parent)), "mini", "-dir=.", "-ip=127.0.0.1"]
    command += ["-ip.bind=127.0.0.1", "-master.telemetry=false", "-webdav=false", "-admin.ui=false"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-filer.localSocket={folder / 'filer.sock'}"]
    command += [f"-s3.localSocket={folder / 's3.sock'}"]
    command += [f"-{name}.port={port}" for name, port in zip(names, ports, strict=True)]
    keys = {"PATH": "/usr/bin:/bin", "AWS_ACCESS_KEY_ID": "sanderling", "AWS_SECRET_ACCESS_KEY": secret}
    url = f"http://sanderling:{secret}@127.0.0.1:{ports[3]}/{BUCKET}"
    with running(command, lambda: hello(url, 5), folder=folder, environment=keys):
        yield


@asynccontextmanager
async def alive(folder: Path, ports: list[int], secret: str) -> AsyncIterator[None]:
    """The same, while others work."""
    life = weed(folder, ports, secret)
    await asyncio.to_thread(life.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(life.__exit__, None, None, None)


class Load:
    """Puts objects without end, each until it is there."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.there: list[str] = []
        self.faults: list[ObjectFault] = []
        self.over = False
        self._news = asyncio.Event()

    async def run(self, name: str) -> None:
        number = 0
        while not self.over:
            try:
                await self._objects.put(BUCKET, f"{name}/{number}", name.encode(), PACKED)
            except ObjectError as error:
                self.faults.append(error.fault)
                await asyncio.sleep(0.05)
            else:
                self.there.append(f"{name}/{number}")
                number += 1
            self._news.set()

    async def more(self, what: Sized, count: int) -> None:
        wanted = len(what) + count
        while len(what) < wanted:
            self._news.clear()
            await self._news.wait()


def test_a_server_that_is_stopped_and_started_under_load_loses_nothing() -> None:
    secret, ports = uuid.uuid4().hex, free_ports(5)

    async def play(folder: Path) -> None:
        objects = open_objects(f"s3+http://sanderling:{secret}@127.0.0.1:{ports[3]}", NOBODY)
        load = Load(objects)
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            async with alive(folder, ports, secret):
                for name in ("a", "b", "c"):
                    group.create_task(load.run(name))
                await load.more(load.there, 50)
            await load.more(load.faults, 3)
            async with alive(folder, ports, secret):
                await load.more(load.there, 50)
                load.over = True
                for key in load.there:
                    found = await objects.get(BUCKET, key, PLENTY)
                    assert (found.body, found.metadata) == (key[0].encode(), PACKED)
        assert ObjectFault.DOWN in load.faults
        assert all(each in (ObjectFault.DOWN, ObjectFault.FAILED) for each in load.faults)
        await objects.close()

    with private_folder() as folder:
        try:
            asyncio.run(play(Path(folder)))
        except* Missing as why:
            pytest.skip(str(why.exceptions[0]))


# --- where it is, and who we are ---


def test_a_url_says_where_and_who(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    filed = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "secret")}
    temporary = {**KEYS, "AWS_SESSION_TOKEN": "hidden token", "AWS_REGION": "eu-west-3"}

    full = server("s3+https://me%40home:pa%2Fss@host.example:99/", temporary)
    bare = server("s3+http://[::1]:9000", temporary)
    amazon = server("s3:", filed)
    usual = server("http://me@127.0.0.1:9000", KEYS)

    assert (full.endpoint, full.place) == ("https://host.example:99", "s3+https://host.example:99")
    assert (full.key, full.secret, full.token, full.region) == ("me@home", "pa/ss", "", "eu-west-3")
    assert (bare.endpoint, bare.key, bare.secret) == ("http://[::1]:9000", "somebody", "hidden")
    assert bare.token == "hidden token"  # noqa: S105 - one of ours
    assert (amazon.endpoint, amazon.place) == ("https://s3.us-east-1.amazonaws.com", "s3:")
    assert (amazon.key, amazon.secret) == ("me", "from a file")
    assert (usual.endpoint, usual.key, usual.secret) == ("http://127.0.0.1:9000", "me", "hidden")
    for each in (full, bare, amazon):
        assert not re.search("hidden|pa/ss|from a file|somebody|me@home", repr(each))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3+http://", "names no host"),
        ("s3:hidden", "goes on behind its host"),
        ("s3://hidden", "names no host"),
        ("s3+http://u:hidden@host:port", "is none"),
        ("s3+http://u:hidden/@host", "is none|goes on behind"),
        ("s3+http://u:hidden@host/bucket", "goes on behind its host; buckets are named elsewhere"),
        ("s3+http://u:hidden@host?region=x", "goes on behind its host"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str, expected: str) -> None:
    with pytest.raises(ObjectError, match=rf"({expected}).*; expected file:FOLDER, s3\+http://") as refused:
        open_objects(url, KEYS)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "set AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": "me"}, "set AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY_FILE": "/no/where"}, "_FILE: cannot read /no/where"),
    ],
)
def test_without_keys_it_is_said_where_to_put_them(environment: Mapping[str, str], expected: str) -> None:
    with pytest.raises(ObjectError, match=expected):
        open_objects("s3+http://127.0.0.1:1", environment)


def test_where_nobody_listens_nobody_answers() -> None:
    said = played(
        lambda: open_objects("s3+http://u:hidden@127.0.0.1:1", NOBODY),
        lambda objects: fault(objects.ping(), ObjectFault.DOWN),
    )

    assert re.search(r"at s3\+http://127.0.0.1:1 is not to be had now \(Connect\)", said)
    assert "hidden" not in said


def test_the_environment_of_somebody_else_changes_nothing(
    s3: S3, bucket: str, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_SESSION_TOKEN": "theirs",
        "AWS_ACCESS_KEY_ID": "theirs",
        "AWS_SECRET_ACCESS_KEY": "theirs",
        "AWS_SKIP_SIGNATURE": "true",
        "AWS_ENDPOINT": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_BUCKET": "theirs",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
        "AWS_REGION": "xx-theirs-1",
    }.items():
        monkeypatch.setenv(name, value)
    del s3

    async def play(objects: Objects) -> bytes:
        await objects.ping()
        await objects.put(bucket, "key", b"body", PACKED)
        return (await objects.get(bucket, "key", PLENTY)).body

    assert played(opens, play) == b"body"


def test_wrong_keys_are_said_and_not_shown(s3: S3) -> None:
    wrong = url_of(replace(s3, secret_access_key="hidden"))  # noqa: S106 - none
    place = urlsplit(s3.endpoint).netloc

    said = played(lambda: open_objects(wrong, NOBODY), lambda objects: fault(objects.ping(), ObjectFault.DOWN))

    assert f"{place}: the server does not know our keys" in said
    assert "hidden" not in said


def test_a_process_that_used_it_ends_well(s3: S3) -> None:
    """Whatever threads the client has, none may take the process down with it."""
    script = (
        "import asyncio, sys\n"
        "from sanderling.stores.objects import open_objects\n"
        "async def main():\n"
        "    objects = open_objects(sys.argv[1])\n"
        "    await objects.ping()\n"
        "asyncio.run(main())\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", script, url_of(s3)], timeout=300, check=False)  # noqa: S603 - ours
        assert ended.returncode == 0
