"""Progress in Redis or Valkey, under the seed's keys, which other programs may read (docs/repos.md).

Which DIDs wait, and until when, the ledger knows; what was noted here twice counts once.
"""

from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sanderling.files import Exit, FolderError
from sanderling.options import OptionError
from sanderling.repos.atproto import PERMANENT, RepoCategory
from sanderling.repos.away import ServerAway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CURSOR, COMPLETED, SEGMENT, STATS = (f"crawler:{name}" for name in ("cursor", "completed", "segment_num", "stats"))
FAILED = {category: f"crawler:failed:{category}" for category in RepoCategory}
# DIDs in one command: a page of 50,000 at once would make everyone else wait for it.
CHUNK = 5_000
ANSWER_SECONDS = 30.0
# The server runs it alone and to its end. KEYS: cursor, completed, segment, stats, then the failed sets; ARGV: whether
# the cursor is set (1), dropped (2) or left (0), the cursor, the segment or "", how many are done; DID and size of each
# that is done; DID, number of its failed set and permanence of each other.
_RECORD = """
local function forget(did)
  local known = 0
  for i = 5, #KEYS do known = known + redis.call('SREM', KEYS[i], did) end
  return known
end
local failed = 5 + 2 * ARGV[4]
for i = 5, failed - 1, 2 do
  if forget(ARGV[i]) + redis.call('SADD', KEYS[2], ARGV[i]) > 0 then
    redis.call('HINCRBY', KEYS[4], 'total_crawled', 1)
    redis.call('HINCRBY', KEYS[4], 'bytes_written', ARGV[i + 1])
  end
end
for i = failed, #ARGV, 3 do
  if ARGV[i + 2] == '1' then
    forget(ARGV[i])
    redis.call('SADD', KEYS[2], ARGV[i])
    redis.call('SADD', KEYS[4 + ARGV[i + 1]], ARGV[i])
  elseif redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    forget(ARGV[i])
    redis.call('SADD', KEYS[4 + ARGV[i + 1]], ARGV[i])
  end
end
if ARGV[3] ~= '' then redis.call('SET', KEYS[3], ARGV[3]) end
if ARGV[1] == '1' then redis.call('SET', KEYS[1], ARGV[2]) end
if ARGV[1] == '2' then redis.call('DEL', KEYS[1]) end
"""
_NUMBER = {category: number for number, category in enumerate(FAILED, 1)}


class ArchivedRepo(NamedTuple):
    """A repo that is on disk, and the bytes of its block."""

    did: str
    size: int


class FailedRepo(NamedTuple):
    """A repo that is not."""

    did: str
    category: RepoCategory


class RedisProgress:
    """Progress at HOST:PORT."""

    def __init__(self, address: str, client: Any) -> None:  # noqa: ANN401 - of an extra
        self.place = address
        self._client = client
        self._record = client.register_script(_RECORD)

    async def record(
        self, done: Sequence[ArchivedRepo] = (), failed: Sequence[FailedRepo] = (), *, cursor: str | None = None,
        segment: int | None = None,
    ) -> None:  # fmt: skip
        """Note what ended, all of it at once. An empty cursor drops it. Raises ServerAway."""
        moved = 0 if cursor is None else 1 if cursor else 2
        arguments: list[str | int] = [moved, cursor or "", "" if segment is None else segment, len(done)]
        for did, size in done:
            arguments += did, size
        for did, category in failed:
            arguments += did, _NUMBER[category], int(category in PERMANENT)
        with self._plainly():
            await self._record([CURSOR, COMPLETED, SEGMENT, STATS, *FAILED.values()], arguments)

    async def incomplete(self, dids: Sequence[str]) -> list[str]:
        """Those that are not complete."""
        found: list[str] = []
        with self._plainly():
            for start in range(0, len(dids), CHUNK):
                chunk = dids[start : start + CHUNK]
                known = await self._client.smismember(COMPLETED, chunk)
                found += [did for did, is_known in zip(chunk, known, strict=True) if not is_known]
        return found

    async def status(self) -> dict[str, int | str]:
        """What the seed's `status` shows."""
        with self._plainly():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hgetall(STATS)
                pipe.scard(COMPLETED)
                pipe.get(SEGMENT)
                pipe.get(CURSOR)
                for key in FAILED.values():
                    pipe.scard(key)
                stats, completed, segment, cursor, *failed = await pipe.execute()
        found: dict[str, int | str] = {name: int(value) for name, value in stats.items()}
        found |= {"completed_count": completed}
        found |= {f"failed_{category}": number for category, number in zip(FAILED, failed, strict=True) if number}
        if segment is not None:
            found["segment_num"] = int(segment)
        if cursor is not None:
            found["cursor"] = cursor
        return found if any(found.values()) else {}

    async def reset(self) -> int:
        """Remove all keys of ours; how many there were."""
        with self._plainly():
            return int(await self._client.delete(CURSOR, COMPLETED, SEGMENT, STATS, *FAILED.values()))

    async def forget(self, dids: Sequence[str]) -> None:
        """Remove what is known of these."""
        with self._plainly():
            for start in range(0, len(dids), CHUNK):
                async with self._client.pipeline(transaction=True) as pipe:
                    for key in (COMPLETED, *FAILED.values()):
                        pipe.srem(key, *dids[start : start + CHUNK])
                    await pipe.execute()

    async def check(self) -> None:
        """Raise FolderError if it cannot be reached, or holds something else under our keys."""
        expected = dict.fromkeys((CURSOR, SEGMENT), "string") | {STATS: "hash", COMPLETED: "set"}
        expected |= dict.fromkeys(FAILED.values(), "set")
        try:
            with self._plainly():
                for key, kind in expected.items():
                    found = await self._client.type(key)
                    if found not in (kind, "none"):
                        raise FolderError(
                            f"{key} in Redis at {self.place} is a {found}, expected a {kind}", "is it ours?"
                        )
        except ServerAway as error:
            raise FolderError(str(error), "start it, and run the same command again", Exit.LATER) from None

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        from redis.exceptions import ConnectionError as AwayError  # noqa: PLC0415 - an extra
        from redis.exceptions import RedisError  # noqa: PLC0415
        from redis.exceptions import TimeoutError as SlowError  # noqa: PLC0415

        try:
            yield
        except (AwayError, SlowError, OSError) as error:
            raise ServerAway(f"no Redis answers at {self.place}") from error
        except RedisError as error:
            said = str(error)[:200]
            if said.startswith(("LOADING", "BUSY", "READONLY", "OOM", "MISCONF")):
                raise ServerAway(f"Redis at {self.place} does not take writes now: {said}") from error
            raise FolderError(f"Redis at {self.place} refuses: {said}", "see its log", Exit.LATER) from error


@asynccontextmanager
async def open_redis(address: str) -> "AsyncIterator[RedisProgress]":
    """The progress in the Redis at an address. Raises FolderError if it is away, and OptionError without the extra."""
    try:
        from redis.asyncio import Redis  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError:
        raise OptionError('--redis-address needs an extra; type pip install "sanderling[redis]"') from None
    client = Redis.from_url(
        f"redis://{address}",
        decode_responses=True,
        socket_connect_timeout=5.0,
        socket_timeout=ANSWER_SECONDS,
        # Once more and at once, for a connection that was closed while nobody used it.
        retry=Retry(NoBackoff(), 1),
    )
    try:
        progress = RedisProgress(address, client)
        await progress.check()
        yield progress
    finally:
        await client.aclose()
