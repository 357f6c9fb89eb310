import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import redis as redis_client
from progress_contract import EMPTY, Opens, ProgressContract
from recording import CATEGORIES, batch, crawl, did
from services.process import Missing, free_ports, private_folder, program, running
from services.redis import _wheel, hello

from sanderling.stores.ports import FIRST, Due, Finished, ProgressError, Unfinished
from sanderling.stores.redis_progress import RedisProgress


@pytest.fixture
def client(redis: str) -> Iterator[redis_client.Redis]:
    with closing(redis_client.Redis.from_url(redis, decode_responses=True)) as client:
        yield client


@pytest.fixture
def prefix(client: redis_client.Redis) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's."""
    prefix = f"sanderling-test-{uuid.uuid4().hex}:"
    yield prefix
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)


@pytest.fixture
def opens(redis: str, prefix: str) -> Iterator[Opens]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(RedisProgress(redis, categories=CATEGORIES, prefix=prefix)))


class TestRedisProgress(ProgressContract):
    @pytest.fixture
    def argument(self, redis: str, prefix: str) -> str:
        return f"{redis}#{prefix}"


def test_the_keys_are_those_that_others_read(opens: Opens, client: redis_client.Redis, prefix: str) -> None:
    crawl(opens(), 1)

    kinds = {key.removeprefix(prefix): client.type(key) for key in client.scan_iter(f"{prefix}*")}
    assert kinds == {
        "cursor": "string", "completed": "set", "segment_num": "string", "stats": "hash",
        "failed:not_found": "set", "failed:timeout": "set", "due": "zset",
    }  # fmt: skip
    assert client.hgetall(f"{prefix}stats") == {"total_crawled": "15", "bytes_written": "150"}
    assert client.smembers(f"{prefix}failed:not_found") == {did(0), did(2), did(4)}
    assert client.sismember(f"{prefix}completed", did(0))
    assert client.get(f"{prefix}cursor") == did(19)
    assert RedisProgress.__init__.__kwdefaults__ == {"prefix": "crawler:"}


def test_a_redis_of_release_0_2_0_is_gone_on_with(opens: Opens, client: redis_client.Redis, prefix: str) -> None:
    """It had no due times: what failed for now is due at once, and nothing else is."""
    before = opens()
    gone = Unfinished(did(3), "timeout", permanent=True)
    open_ones = [Unfinished(did(number), "timeout", permanent=False) for number in (1, 2)]
    before.record([Finished(did(4), 5)], [*open_ones, gone], cursor=did(4), segment=1)
    assert not client.exists(f"{prefix}due")

    for _ in range(2):
        after = opens()
        assert after.due(FIRST, 0, 10) == [Due(0, 0, did(1)), Due(0, 0, did(2))]
        assert after.view().scheduled == 2


def test_two_prefixes_do_not_see_each_other(opens: Opens, redis: str, client: redis_client.Redis, prefix: str) -> None:
    crawl(opens(), 1)
    client.set(f"{prefix}of-somebody-else", "x")

    with closing(RedisProgress(redis, categories=CATEGORIES, prefix=f"{prefix}other:")) as other:
        assert other.view() == EMPTY
        crawl(other, 2)
        opens().reset()
        assert other.view().completed == 36

    assert client.get(f"{prefix}of-somebody-else") == "x"


def test_the_keys_of_something_else_are_refused(opens: Opens, client: redis_client.Redis, prefix: str) -> None:
    client.set(f"{prefix}failed:timeout", "x")

    with pytest.raises(ProgressError, match=r"failed:timeout in Redis at .* is a string, expected a set; is it ours"):
        opens()


def test_what_the_server_refuses_is_said(opens: Opens, client: redis_client.Redis, prefix: str) -> None:
    progress = opens()
    client.set(f"{prefix}stats", "x")

    with pytest.raises(ProgressError, match=r"Redis at .* refuses: .*WRONGTYPE"):
        crawl(progress, 1)


@pytest.mark.parametrize("url", ["", "nowhere", "http://127.0.0.1/", "redis://:secret@127.0.0.1:1/0?no_such_option=1"])
def test_what_is_no_url_of_a_redis_is_refused(url: str) -> None:
    with pytest.raises(ProgressError) as refused:
        RedisProgress(url, categories=CATEGORIES)
    assert "secret" not in str(refused.value)


Start = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def mortal() -> Iterator[tuple[str, Start]]:
    """A server of our own that keeps what it was told: where it is, and how to have it run for a while."""
    (port,) = free_ports(1)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        server = program("valkey-server", "redis-server", before_path=_wheel())
    except Missing as why:
        pytest.skip(str(why))
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
    command += ["--appendfsync", "always"]

    with private_folder() as folder:

        @contextmanager
        def start() -> Iterator[None]:
            with running(command, lambda: hello(url, 2), folder=Path(folder)):
                yield

        yield url, start


def test_a_server_that_goes_away_is_said_and_comes_back(mortal: tuple[str, Start]) -> None:
    url, start = mortal
    with start():
        progress = RedisProgress(url, categories=CATEGORIES)
        crawl(progress, 3)
        before = progress.view()

    gone = r"no Redis answers at 127.0.0.1:\d+ .* run again when it is back"
    for attempt in (
        progress.view,
        progress.cursor,
        progress.reset,
        lambda: progress.pending(batch(0)),
        lambda: crawl(progress, 1),
        lambda: progress.due(FIRST, 9, 5),
        lambda: progress.aside(5),
        lambda: RedisProgress(url, categories=CATEGORIES),
    ):
        with pytest.raises(ProgressError, match=gone):
            attempt()

    with start(), closing(progress):
        assert progress.view() == before
        crawl(progress, 2)
        assert progress.view().completed == 5 * 18
