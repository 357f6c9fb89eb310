"""Progress in Redis or Valkey, under keys that other programs may read.

| key | type | what |
|---|---|---|
| `crawler:cursor` | string | all DIDs up to this one were seen to |
| `crawler:completed` | set | DIDs that were archived or failed for good |
| `crawler:failed:{category}` | set | DIDs that failed, each in one of these at most |
| `crawler:segment_num` | string | the segment written last |
| `crawler:stats` | hash | `total_crawled` and `bytes_written`, which only ever grow |
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from sanderling.stores.ports import Finished, ProgressError, ProgressView, Unfinished

# Members asked about in one command: a page of 50,000 DIDs at once would make everyone else wait for it.
CHUNK = 5_000
# The longest anything takes is a record of 50,000 DIDs: half a second of the server's time.
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0

# The server runs it alone and to its end. Not MULTI, since what is to be done depends on what is known: whoever is told
# twice counts once. KEYS: cursor, completed, segment, stats, then the failed sets; ARGV: segment, whether there is a
# cursor, cursor, how many are done, DID and size of each, then DID, key of the category and permanence of each failure.
RECORD = """
local completed, sets = KEYS[2], {}
for i = 5, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then sets[#sets + 1] = KEYS[i] end
end
local function forget(did)
  local known = 0
  for _, set in ipairs(sets) do known = known + redis.call('SREM', set, did) end
  return known
end
local at = 5 + 2 * ARGV[4]
for i = 5, at - 1, 2 do
  if forget(ARGV[i]) + redis.call('SADD', completed, ARGV[i]) > 0 then
    redis.call('HINCRBY', KEYS[4], 'total_crawled', 1)
    redis.call('HINCRBY', KEYS[4], 'bytes_written', ARGV[i + 1])
  end
end
for i = at, #ARGV, 3 do
  if redis.call('SISMEMBER', completed, ARGV[i]) == 0 then
    forget(ARGV[i])
    if redis.call('EXISTS', ARGV[i + 1]) == 0 then sets[#sets + 1] = ARGV[i + 1] end
    redis.call('SADD', ARGV[i + 1], ARGV[i])
    if ARGV[i + 2] == '1' then redis.call('SADD', completed, ARGV[i]) end
  end
end
redis.call('SET', KEYS[3], ARGV[1])
if ARGV[2] == '1' then redis.call('SET', KEYS[1], ARGV[3]) end
"""


class RedisProgress:
    """Progress at a URL like redis://127.0.0.1:6379/0. A DID may fail in these `categories`, and in no others."""

    def __init__(self, url: str, *, categories: Sequence[str], prefix: str = "crawler:") -> None:
        self._place = _place(url)
        self._cursor, self._completed = f"{prefix}cursor", f"{prefix}completed"
        self._segment, self._stats = f"{prefix}segment_num", f"{prefix}stats"
        self._failed = {category: f"{prefix}failed:{category}" for category in categories}
        with self._plainly():
            self._client = _connect(url, self._place)
            self._record = self._client.register_script(RECORD)
            self._check_types()

    def _keys(self) -> list[str]:
        return [self._cursor, self._completed, self._segment, self._stats, *self._failed.values()]

    def _check_types(self) -> None:
        """Before anything is changed, since a script that fails half-way is not undone."""
        expected = ["string", "set", "string", "hash", *["set"] * len(self._failed)]
        types = self._at_once(*(("TYPE", key) for key in self._keys()))
        for key, kind, found in zip(self._keys(), expected, types, strict=True):
            if found not in (kind, "none"):
                raise ProgressError(f"{key} in Redis at {self._place} is a {found}, expected a {kind}; is it ours?")

    def _at_once(self, *commands: tuple[object, ...]) -> list[Any]:
        """The answers to commands between which nothing else happens."""
        with self._client.pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call] # so is the library
            return pipeline.execute()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn whatever the client raises into a ProgressError."""
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise ProgressError(
                f"no Redis answers at {self._place} ({error}). Nothing that was recorded is lost, if the server keeps "
                "its data; run again when it is back."
            ) from error
        except redis.RedisError as error:
            raise ProgressError(f"Redis at {self._place} refuses: {error}") from error

    def cursor(self) -> str:
        """All DIDs up to this one were seen to; "" at the start."""
        with self._plainly():
            (cursor,) = self._at_once(("GET", self._cursor))
        return cursor or ""

    def pending(self, dids: Sequence[str]) -> list[str]:
        """Of these, in their order, those that are not complete."""
        found: list[str] = []
        with self._plainly():
            for start in range(0, len(dids), CHUNK):
                chunk = dids[start : start + CHUNK]
                (complete,) = self._at_once(("SMISMEMBER", self._completed, *chunk))
                found += (did for did, known in zip(chunk, complete, strict=True) if not known)
        return found

    def record(
        self, done: Sequence[Finished], failed: Sequence[Unfinished], *, cursor: str | None, segment: int
    ) -> None:
        """Keep all of it or nothing; it may be said twice. Without a `cursor` the old one stays."""
        arguments: list[str | int] = [segment, int(cursor is not None), cursor or "", len(done)]
        for did, size in done:
            arguments += did, size
        for did, category, permanent in failed:
            arguments += did, self._failed[category], int(permanent)
        with self._plainly():
            self._record(self._keys(), arguments)

    def failed(self, categories: Sequence[str], after: str, limit: int) -> list[tuple[str, str]]:
        """DIDs after `after` that failed in one of these, but not for good, and their category; by DID, bytewise.

        Sets have no order, so each page looks at all of them, and remembers no more than a few pages.
        """
        found: dict[str, str] = {}
        with self._plainly():
            members = (
                (did, category)
                for category in categories
                for did in self._client.sscan_iter(self._failed[category], count=CHUNK)
                if did > after
            )
            for did, category in members:
                found[did] = category
                if len(found) > 2 * limit + CHUNK:
                    found = self._first(found, limit)
        return list(self._first(found, limit).items())

    def _first(self, failed: dict[str, str], limit: int) -> dict[str, str]:
        """The first of them that did not fail for good."""
        return {did: failed[did] for did in self.pending(sorted(failed))[:limit]}

    def view(self) -> ProgressView:
        """How far it is, counted."""
        with self._plainly():
            cursor, segment, stats, completed, *failed = self._at_once(
                ("GET", self._cursor),
                ("GET", self._segment),
                ("HMGET", self._stats, "total_crawled", "bytes_written"),
                *(("SCARD", key) for key in (self._completed, *self._failed.values())),
            )
        crawled, written = (int(number or 0) for number in stats)
        return ProgressView(
            cursor=cursor or "",
            completed=completed,
            failed={category: dids for category, dids in sorted(zip(self._failed, failed, strict=True)) if dids},
            segment=int(segment or 0),
            total_crawled=crawled,
            bytes_written=written,
        )

    def reset(self) -> None:
        """Forget everything."""
        with self._plainly():
            self._at_once(("DEL", *self._keys()))

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def __repr__(self) -> str:
        return f"<RedisProgress at {self._place}, {self._completed}>"


def _place(url: str) -> str:
    """Where it is, without the password. Raises ProgressError for what is no URL of a Redis."""
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ProgressError("expected the URL of a Redis, like redis://127.0.0.1:6379/0")
    return parts.netloc.rpartition("@")[2] or parts.path


def _connect(url: str, place: str) -> redis.Redis:
    try:
        client = redis.Redis.from_url(
            url,
            decode_responses=True,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            # Once more and at once, for a connection that was closed while nobody used it: all we ask may be asked
            # twice. A server that is down should be said to be.
            retry=Retry(NoBackoff(), 1),
        )
        client.ping()
    except (TypeError, ValueError) as error:  # of a port that is none, or an option after the question mark
        raise ProgressError(f"the URL of the Redis at {place}: {error}") from error
    return client
