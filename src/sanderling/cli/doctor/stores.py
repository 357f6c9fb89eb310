"""A Redis, an S3, a ClickHouse, a Prometheus: which version, what we may do there, and its clock.

Their clients block, so each is asked in a thread of its own, with time-outs below those of the check.
"""

import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from sanderling.cli.doctor.findings import FAIL, OK, WARN, CheckError, CheckFinding, skew
from sanderling.cli.doctor.services import AWAY, Say, Service
from sanderling.clock import SystemClock
from sanderling.observe.prometheus import TOKEN, PrometheusError, PrometheusServer
from sanderling.redact import redact_url
from sanderling.stores.clickhouse import ClickhouseError, open_clickhouse
from sanderling.stores.objects import ObjectError

SECONDS = 4.0  # that a client waits; less than a check may take, so that it says what it waited for
OLDEST_REDIS = (6, 2)  # which has SMISMEMBER
BUCKET = "crawl-results"
BODY = b"sanderling doctor\n"
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_REASON = re.compile(r"status code: (\d{3} [\w ]{0,40})|kind: (\w{1,20})")
_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def check_redis(service: Service) -> list[CheckFinding]:
    """Ask a Redis. Raises CheckError."""
    import redis  # noqa: PLC0415 - an extra, which need not be there

    try:
        client = redis.Redis.from_url(
            service.url, decode_responses=True, socket_connect_timeout=SECONDS, socket_timeout=SECONDS, retry=None
        )
        try:
            return _redis_found(service, client)
        finally:
            client.close()
    except redis.AuthenticationError as error:
        raise CheckError(f"{redact_url(service.url)} does not know us: {error}", "look at user and password") from None
    except redis.RedisError as error:
        raise CheckError(f"{redact_url(service.url)}: {error}", AWAY) from None
    except (TypeError, ValueError, OSError) as error:  # of a port that is none, or an option after the question mark
        raise CheckError(
            f"that is no URL of a Redis ({type(error).__name__})", "expected redis://host:6379/0"
        ) from None


def _redis_found(service: Service, client: Any) -> list[CheckFinding]:  # noqa: ANN401 - an extra
    info, clock = client.info(), SystemClock()
    found = [redis_version(service.what, info, redact_url(service.url))]
    before = clock.wall()
    seconds, micros = client.time()
    found.append(skew(f"{service.what}: clock", seconds + micros / 1e6, before, clock.wall()))
    key = f"sanderling:doctor:{uuid4().hex}"
    client.set(key, "1", ex=60)
    right = client.get(key) == "1" and client.delete(key) == 1
    state = CheckFinding(f"{service.what}: keys", OK, "set, read and deleted")
    found.append(state if right else CheckFinding(f"{service.what}: keys", FAIL, "what was set was not there", AWAY))
    found.append(redis_keeping(f"{service.what}: keeping", info))
    return found


def redis_version(what: str, info: dict[str, Any], place: str) -> CheckFinding:
    """What to say of a version. A Valkey says which Redis it is like."""
    like = str(info.get("redis_version", ""))
    valkey = info.get("valkey_version")
    found = f"Valkey {valkey} at {place}" if valkey else f"Redis {like} at {place}"
    number = _NUMBERS.match(like)
    if number is not None and (int(number[1]), int(number[2])) >= OLDEST_REDIS:
        return CheckFinding(what, OK, found)
    return CheckFinding(what, FAIL, found, f"expected {OLDEST_REDIS[0]}.{OLDEST_REDIS[1]} or later")


def redis_keeping(what: str, info: dict[str, Any]) -> CheckFinding:
    """Whether it forgets keys when its memory is full."""
    policy, most = str(info.get("maxmemory_policy", "noeviction")), int(info.get("maxmemory", 0))
    if most and policy not in ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"):
        advice = "CONFIG SET maxmemory-policy noeviction: what is forgotten would be archived again"
        return CheckFinding(what, WARN, f"forgets keys when its memory is full ({policy})", advice)
    return CheckFinding(what, OK, f"forgets nothing when its memory is full ({policy})")


def check_s3(service: Service) -> list[CheckFinding]:
    """Ask an S3, by an object that is put, read and deleted. Raises CheckError."""
    import obstore  # noqa: PLC0415 - an extra, which need not be there
    from obstore.exceptions import BaseError  # noqa: PLC0415
    from obstore.store import S3Store  # noqa: PLC0415

    from sanderling.stores.objects_s3 import server  # noqa: PLC0415

    try:
        there = server(service.url, os.environ)
    except ObjectError as error:
        raise CheckError(str(error)) from None
    found = _dated(f"{service.what}: clock", there.endpoint)
    bucket, key = service.name or BUCKET, f"sanderling-doctor/{uuid4().hex}"
    store = S3Store(
        bucket,
        config={"session_token": there.token} if there.token else None,
        endpoint=there.endpoint,
        aws_endpoint_url_s3=there.endpoint,
        virtual_hosted_style_request=False,
        region=there.region,
        access_key_id=there.key,
        secret_access_key=there.secret,
        client_options={"allow_http": True, "connect_timeout": f"{SECONDS}s", "timeout": f"{SECONDS}s"},
        retry_config={"max_retries": 0},
    )
    doing = "put"
    try:
        if said := _missing(lambda: obstore.get(store, key)):
            return [*found, s3_refusal(service.what, f"{bucket} at {there.place}", doing, said)]
        obstore.put(store, key, BODY)
        doing = "read"
        right = bytes(obstore.get(store, key).bytes()) == BODY
        doing = "deleted"
        obstore.delete(store, key)
    except (BaseError, OSError) as error:
        return [*found, s3_refusal(service.what, f"{bucket} at {there.place}", doing, str(error))]
    place = f"bucket {bucket} at {there.place}"
    if not right:
        return [*found, CheckFinding(service.what, FAIL, f"{place}: what was read is not what was put", AWAY)]
    return [CheckFinding(service.what, OK, f"{place}: an object was put, read and deleted"), *found]


def _missing(get: Callable[[], object]) -> str:
    """What the server says of a bucket that is not there; some would make it for whoever puts something into it."""
    try:
        get()
    except FileNotFoundError as error:
        return str(error) if "NoSuchBucket" in str(error) else ""
    return ""


def s3_refusal(what: str, place: str, doing: str, said: str) -> CheckFinding:
    """What to say of an S3 that did not do what was asked."""
    code = found[1] if (found := _CODE.search(said)) else ""
    if code in ("NoSuchBucket", "InvalidBucketName"):
        return CheckFinding(what, FAIL, f"there is no bucket {place}", "make it, or name another as bucket in [events]")
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"):
        return CheckFinding(what, FAIL, f"bucket {place}: our keys are not known ({code})", "see AWS_SECRET_ACCESS_KEY")
    if code == "RequestTimeTooSkewed":
        return CheckFinding(what, FAIL, f"bucket {place}: our clocks differ too much", "set both by NTP")
    if code == "AccessDenied":
        return CheckFinding(
            what, FAIL, f"bucket {place}: no object may be {doing}", "let these keys put, get and delete"
        )
    return CheckFinding(what, FAIL, f"bucket {place}: no object could be {doing} ({code or _short(said)})", AWAY)


def _short(said: str) -> str:
    """What matters of what obstore says, which goes on for pages."""
    found = _REASON.search(said)
    return (found[1] or found[2]).strip() if found else " ".join(said.split())[:60]


def _dated(what: str, endpoint: str) -> list[CheckFinding]:
    """How far the clock of an HTTP server is off, if it says what time it is; it does so in whole seconds."""
    parts, clock = urlsplit(endpoint), SystemClock()
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=SECONDS / 2)
    # Whoever does not answer this will not answer what follows either, and that says why.
    with closing(connection), suppress(OSError, HTTPException, ValueError):
        before = clock.wall()
        connection.request("HEAD", "/")
        theirs = parsedate_to_datetime(connection.getresponse().getheader("Date") or "").timestamp() + 0.5
        return [skew(what, theirs, before, clock.wall())]
    return []


def check_clickhouse(service: Service) -> list[CheckFinding]:
    """Ask a ClickHouse. Raises CheckError."""
    clock, table = SystemClock(), f"sanderling_doctor_{uuid4().hex}"
    try:
        database = open_clickhouse(service.url)
        before = clock.wall()
        ((version, theirs),) = database.rows("SELECT version(), toFloat64(now64(3))")
        found = [
            CheckFinding(service.what, OK, f"ClickHouse {version} at {database.place}"),
            skew(f"{service.what}: clock", float(theirs), before, clock.wall()),
        ]
    except ClickhouseError as error:
        raise CheckError(str(error), "is it up, and are user, password and database right?") from None
    return [*found, _tables(f"{service.what}: tables", database.execute, table)]


def _tables(what: str, execute: Callable[[str], None], table: str) -> CheckFinding:
    """Whether tables can be made: by making one. There are no transactions, so it is dropped again."""
    try:
        execute(f"CREATE TABLE {table} (probe UInt8) ENGINE = Memory")
        execute(f"DROP TABLE {table}")
    except ClickhouseError as error:
        return CheckFinding(what, FAIL, f"cannot be made: {error}", "grant CREATE TABLE, INSERT, SELECT and DROP TABLE")
    return CheckFinding(what, OK, "can be made")


async def check_prometheus(service: Service, say: Say) -> None:
    """Ask a Prometheus. Raises CheckError."""
    try:
        async with PrometheusServer(service.url, os.environ.get(TOKEN, ""), SECONDS) as server:
            await server.query("up", SystemClock().wall())
    except (PrometheusError, ValueError) as error:
        raise CheckError(str(error), "is it up, and is that its address?") from None
    say(CheckFinding(service.what, OK, f"a Prometheus answers at {redact_url(service.url)}"))
