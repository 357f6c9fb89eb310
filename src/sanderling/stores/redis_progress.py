"""Progress in Redis or Valkey, under keys that other programs may read.

| key | type | what |
|---|---|---|
| `crawler:cursor` | string | all DIDs up to this one were seen to |
| `crawler:completed` | set | DIDs that were archived or failed for good |
| `crawler:failed:{category}` | set | DIDs that failed, each in one of these at most |
| `crawler:segment_num` | string | the segment written last |
| `crawler:stats` | hash | `total_crawled` and `bytes_written`, which only grow, unless something is forgotten |
| `crawler:due` | sorted set | when what is not complete is due, and when hosts that are set aside are |

The score of a DID is its due time in Unix seconds, and in hundredths behind the point how many requests for it failed
in a row. A host is the member `host:NAME CATEGORY`, and its score is its due time below zero: so hosts and DIDs are
read apart. A Redis of release 0.2.0 has no such key: what failed for now is put into it when it is opened, due at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from sanderling.stores.listing import Item, Row, numbers_in
from sanderling.stores.ports import (
    FIRST,
    MOST_FAILURES,
    Due,
    Finished,
    HostAside,
    ProgressError,
    ProgressView,
    Unfinished,
)

# Members asked about in one command: a page of 50,000 DIDs at once would make everyone else wait for it.
CHUNK = 5_000
LISTED, LATEST = 500, 1 << 52  # DIDs that are listed at a time, and a time that all are due by
# The longest anything takes is a record of 50,000 DIDs: half a second of the server's time.
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0

# The server runs it alone and to its end. Not MULTI, since what is to be done depends on what is known: whoever is told
# twice counts once. KEYS: cursor, completed, segment, stats, due, then the failed sets; ARGV: segment, whether there is
# a cursor, cursor, how many are done, how many failed; DID and size of each that is done; DID, key of the category,
# permanence and score of each failure; of each host its score, its member, and all members that it may have had, which
# are as many as there are failed sets.
RECORD = """
local completed, due, sets = KEYS[2], KEYS[5], {}
for i = 6, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then sets[#sets + 1] = KEYS[i] end
end
local function forget(did)
  local known = 0
  for _, set in ipairs(sets) do known = known + redis.call('SREM', set, did) end
  return known
end
local failed = 6 + 2 * ARGV[4]
local hosts = failed + 4 * ARGV[5]
for i = 6, failed - 1, 2 do
  redis.call('ZREM', due, ARGV[i])
  if forget(ARGV[i]) + redis.call('SADD', completed, ARGV[i]) > 0 then
    redis.call('HINCRBY', KEYS[4], 'total_crawled', 1)
    redis.call('HINCRBY', KEYS[4], 'bytes_written', ARGV[i + 1])
  end
end
for i = failed, hosts - 1, 4 do
  if redis.call('SISMEMBER', completed, ARGV[i]) == 0 then
    forget(ARGV[i])
    if redis.call('EXISTS', ARGV[i + 1]) == 0 then sets[#sets + 1] = ARGV[i + 1] end
    redis.call('SADD', ARGV[i + 1], ARGV[i])
    if ARGV[i + 2] == '1' then redis.call('SADD', completed, ARGV[i]) end
    if ARGV[i + 3] == '' then redis.call('ZREM', due, ARGV[i]) else redis.call('ZADD', due, ARGV[i + 3], ARGV[i]) end
  end
end
for i = hosts, #ARGV, #KEYS - 5 + 2 do
  for j = i + 2, i + #KEYS - 5 + 1 do redis.call('ZREM', due, ARGV[j]) end
  if ARGV[i] ~= '' then redis.call('ZADD', due, ARGV[i], ARGV[i + 1]) end
end
redis.call('SET', KEYS[3], ARGV[1])
if ARGV[2] == '1' then redis.call('SET', KEYS[1], ARGV[3]) end
"""
# The members behind a place that may be a member's, or not any more. KEYS: due; ARGV: score and member of the place,
# how many. What stands for the place is gone before anybody can see it.
BEHIND = """
local place = ARGV[2] .. '\\0'
redis.call('ZADD', KEYS[1], ARGV[1], place)
local rank = redis.call('ZRANK', KEYS[1], place)
redis.call('ZREM', KEYS[1], place)
return redis.call('ZRANGE', KEYS[1], rank, rank + ARGV[3] - 1, 'WITHSCORES')
"""


class RedisProgress:
    """Progress at a URL like redis://127.0.0.1:6379/0. A DID may fail in these `categories`, and in no others."""

    def __init__(self, url: str, *, categories: Sequence[str], prefix: str = "crawler:") -> None:
        self._place = _place(url)
        self._cursor, self._completed = f"{prefix}cursor", f"{prefix}completed"
        self._segment, self._stats = f"{prefix}segment_num", f"{prefix}stats"
        self._due = f"{prefix}due"
        self._failed = {category: f"{prefix}failed:{category}" for category in categories}
        with self._plainly():
            self._client = _connect(url, self._place)
            self._record = self._client.register_script(RECORD)
            self._behind = self._client.register_script(BEHIND)
            self._check_types()
            self._upgrade()

    def _keys(self) -> list[str]:
        return [self._cursor, self._completed, self._segment, self._stats, self._due, *self._failed.values()]

    def _upgrade(self) -> None:
        """Schedule what an earlier release has left without a due time, which it does not have if all is complete."""
        exists, crawled, completed, *failed = self._at_once(
            ("EXISTS", self._due),
            ("HGET", self._stats, "total_crawled"),
            *(("SCARD", key) for key in (self._completed, *self._failed.values())),
        )
        if exists or sum(failed) + int(crawled or 0) <= completed:
            return
        for key in self._failed.values():
            some: list[str] = []
            for did in self._client.sscan_iter(key, count=CHUNK):
                some.append(did)
                if len(some) >= CHUNK:
                    self._schedule(some)
                    some = []
            self._schedule(some)

    def _schedule(self, dids: list[str]) -> None:
        """Those that are not complete are due now, unless they are scheduled."""
        if dids and (left := self._incomplete(dids)):
            self._at_once(("ZADD", self._due, "NX", *(word for did in left for word in ("0", did))))

    def _check_types(self) -> None:
        """Before anything is changed, since a script that fails half-way is not undone."""
        expected = ["string", "set", "string", "hash", "zset", *["set"] * len(self._failed)]
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
        with self._plainly():
            (cursor,) = self._at_once(("GET", self._cursor))
        return cursor or ""

    def pending(self, dids: Sequence[str]) -> list[str]:
        with self._plainly():
            left = self._incomplete(dids)
            found: list[str] = []
            for chunk in _chunks(left):
                (scores,) = self._at_once(("ZMSCORE", self._due, *chunk))
                found += (did for did, score in zip(chunk, scores, strict=True) if score is None)
        return found

    def _incomplete(self, dids: Sequence[str]) -> list[str]:
        found: list[str] = []
        for chunk in _chunks(dids):
            (complete,) = self._at_once(("SMISMEMBER", self._completed, *chunk))
            found += (did for did, known in zip(chunk, complete, strict=True) if not known)
        return found

    def due(self, after: Due, until: int, limit: int) -> list[Due]:
        with self._plainly():
            found = self._behind([self._due], [_score(after.due, after.failures), after.did, limit])
        return [each for each in map(_due, *_pairs(found)) if each.due <= until]

    def last_due(self) -> int:
        with self._plainly():
            (found,) = self._at_once(("ZRANGE", self._due, -1, -1, "WITHSCORES"))
        return max([0, *(each.due for each in map(_due, *_pairs(found)))])

    def record(
        self,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        *,
        cursor: str | None,
        segment: int,
        hosts: Sequence[HostAside] = (),
    ) -> None:
        arguments: list[str | int] = [segment, int(cursor is not None), cursor or "", len(done), len(failed)]
        for did, size in done:
            arguments += did, size
        for did, category, permanent, failures, due in failed:
            score = "" if due is None or permanent else _score(due, failures)
            arguments += did, self._failed[category], int(permanent), score
        for host, category, due in hosts:
            arguments += f"-{due}" if category else "", _member(host, category), *self._members(host)
        with self._plainly():
            self._record(self._keys(), arguments)

    def _members(self, host: str) -> list[str]:
        """All that may stand for the host."""
        return [_member(host, category) for category in self._failed]

    def aside(self, limit: int) -> list[HostAside]:
        with self._plainly():
            (found,) = self._at_once(
                ("ZRANGE", self._due, "(0", "-inf", "BYSCORE", "REV", "LIMIT", 0, limit, "WITHSCORES")
            )
        return sorted(map(_aside, *_pairs(found)), key=lambda each: (each.due, each.host))

    def aside_of(self, host: str) -> HostAside | None:
        members = self._members(host)
        with self._plainly():
            (scores,) = self._at_once(("ZMSCORE", self._due, *members))
        known = (_aside(member, score) for member, score in zip(members, scores, strict=True) if score is not None)
        return next(known, None)

    def clear_aside(self) -> None:
        with self._plainly():
            self._at_once(("ZREMRANGEBYSCORE", self._due, "-inf", "(0"))

    def view(self) -> ProgressView:
        with self._plainly():
            cursor, segment, stats, first, scheduled, aside, completed, *failed = self._at_once(
                ("GET", self._cursor),
                ("GET", self._segment),
                ("HMGET", self._stats, "total_crawled", "bytes_written"),
                ("ZRANGE", self._due, 0, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES"),
                ("ZCOUNT", self._due, 0, "+inf"),
                ("ZCOUNT", self._due, "-inf", "(0"),
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
            scheduled=scheduled,
            due=next((each.due for each in map(_due, *_pairs(first))), None),
            hosts_aside=aside,
        )

    def items(self, state: str, after: str) -> Iterator[Row]:
        """DIDs that are asked `again`, those that are due first, or that `failed` for good, in no order.

        Whoever turns the pages while a crawl runs may meet one twice, or not at all. Raises PositionError.
        """
        with self._plainly():
            yield from self._again(after) if state == "again" else self._failures(after)

    def _again(self, after: str) -> Iterator[Row]:
        place = FIRST
        if after:
            due, failures = numbers_in(after, 2)
            place = Due(due, failures, "".join(after.split(" ", 2)[2:]))
        while found := self.due(place, LATEST, LISTED):
            whys = self.reasons([each.did for each in found])
            for place in found:
                why = whys.get(place.did, "")
                item = Item(id=place.did, state="again", why=why, tries=place.failures, next=float(place.due))
                yield f"{place.due} {place.failures} {place.did}", item

    def _failures(self, after: str) -> Iterator[Row]:
        category, cursor, passed = numbers_in(after, 3) if after else (0, 0, 0)
        for number, name in list(enumerate(self._failed))[category:]:
            yield from self._failures_of(number, name, cursor, passed)
            cursor = passed = 0

    def _failures_of(self, number: int, category: str, cursor: int, passed: int) -> Iterator[Row]:
        """The position is that of the server, and how many of what it gives there were passed."""
        while True:
            (found,) = self._at_once(("SSCAN", self._failed[category], cursor, "COUNT", LISTED))
            following, dids = found
            left = set(self._incomplete(dids)) if dids else set()
            for place, did in enumerate(dids[passed:], passed + 1):
                item = Item(id=did, state="failed", why=category)
                yield f"{number} {cursor} {place}", None if did in left else item
            cursor, passed = int(following), 0
            if not cursor:
                return

    def reasons(self, dids: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._plainly():
            for chunk in _chunks(dids):
                member = self._at_once(*(("SMISMEMBER", key, *chunk) for key in self._failed.values()))
                for category, known in zip(self._failed, member, strict=True):
                    found |= {did: category for did, is_member in zip(chunk, known, strict=True) if is_member}
        return found

    def release(self, dids: Sequence[str]) -> None:
        self.forget(dids)

    def forget(self, dids: Sequence[str]) -> None:
        failed = list(self._failed.values())
        with self._plainly():
            for chunk in _chunks(dids):
                complete, *known = self._at_once(*(("SMISMEMBER", key, *chunk) for key in (self._completed, *failed)))
                archived = sum(done and not any(of) for done, *of in zip(complete, *known, strict=True))
                self._at_once(
                    *(("SREM", key, *chunk) for key in (self._completed, *failed)),
                    ("ZREM", self._due, *chunk),
                    ("HINCRBY", self._stats, "total_crawled", -archived),
                )

    def reset(self) -> None:
        with self._plainly():
            self._at_once(("DEL", *self._keys()))

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def __repr__(self) -> str:
        return f"<RedisProgress at {self._place}, {self._completed}>"


def _chunks(dids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (dids[start : start + CHUNK] for start in range(0, len(dids), CHUNK))


def _pairs(found: list[Any]) -> tuple[list[str], list[float]]:
    """Members, and their scores: in one list, or, in the later protocol, as pairs."""
    flat = [word for pair in found for word in pair] if found and not isinstance(found[0], str) else found
    return flat[::2], [float(score) for score in flat[1::2]]


def _score(due: int, failures: int) -> str:
    return f"{due}.{min(failures, MOST_FAILURES):02}"


def _due(did: str, score: float) -> Due:
    due, failures = divmod(round(score * 100), 100)
    return Due(due, failures, did)


def _member(host: str, category: str) -> str:
    return f"host:{host} {category}"


def _aside(member: str, score: float) -> HostAside:
    host, _, category = member.removeprefix("host:").rpartition(" ")
    return HostAside(host, category, round(-score))


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
