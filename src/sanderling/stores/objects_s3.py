"""Objects of an S3 server, by its path-style addresses, through obstore.

Tricky bits:

- obstore heeds AWS_* variables even against what it is told, so whatever says where to go and who we are is said in
  each of its spellings. Others, such as AWS_SERVER_SIDE_ENCRYPTION, are the operator's to set.
- Its synchronous calls are used, in threads. Those for asyncio wake threads of their own, which may end the process
  with SIGABRT if it ends just then.
- Of an answer the size is known before its body is read; a body that is not read is dropped with its connection.
- A key that obstore cannot spell, such as `a//b`, ends a list with UNUSABLE, since nothing comes after it. The mark of
  a folder that other programs put, `a/`, is listed as `a`.
- Where we may not list a bucket, Amazon says 403 for an object that is not there. That is REFUSED, not MISSING.
"""

import os
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from threading import Lock
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape, unescape

import obstore
from obstore.exceptions import BaseError, InvalidPathError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from sanderling.stores.objects import (
    EXPECTED,
    PAGE,
    THREADS,
    ListedObject,
    ObjectError,
    ObjectFault,
    ObjectThreads,
    StoredObject,
    check_metadata,
    shown,
    steps_below,
    steps_of,
    too_large,
)

# Seconds to connect, of silence, and of a whole exchange. One that fails is repeated once, unless much time has passed:
# a connection that was kept may have died of a restart.
CONNECT, SILENCE, EXCHANGE = 5.0, 10.0, 25.0
RETRIES, RETRY_WITHIN = 1, 10.0
PIECE = 1 << 20
# Each has its connections; the names of buckets are a stranger's idea.
MOST_BUCKETS = 16

REGION = "us-east-1"
ENDPOINTS = {"s3+http": "http", "s3+https": "https", "http": "http", "https": "https"}

# Nobody gets anything with such keys, or at such an hour.
LOCKED_OUT = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
REFUSED = ("401 ", "403 ")  # how the status of an answer begins that says so
# No later attempt goes otherwise.
NEVER = frozenset(
    {"InvalidArgument", "InvalidBucketName", "InvalidURI", "KeyTooLongError", "MethodNotAllowed", "NotImplemented"}
)

MAKE_IT = "make it, as with `aws s3 mb`"
NO_BUCKET = f": there is no such bucket; {MAKE_IT}"
PING = "ping"  # an object that nobody has to put
LOCATION = "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
# Somebody was quicker, or it is somebody's: whoever puts something into it is told.
THERE = frozenset({"BucketAlreadyExists", "BucketAlreadyOwnedByYou"})
MOST_SAID = 10_000  # bytes that are read of a refusal

# Of an answer, or of one object in the answer to those that delete.
_CODE = re.compile(r"(?:<Code>|\(code: )(\w{1,60})(?:</Code>|\))")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_STATUS = re.compile(r"status code: (\d{3} [\w ]{0,40})")
_KIND = re.compile(r"kind: (\w{1,20})")
_ODD_METADATA = "contained non UTF-8 characters"


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where a server is, and who we are there; only `place` is ever shown."""

    place: str
    endpoint: str
    region: str
    key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str = field(repr=False)


def server(url: str, environment: Mapping[str, str]) -> S3Server:
    """What `url` says. Raises ObjectError."""
    # The URL may hold a secret, in the wrong place too: no message quotes it, or what is said of it.
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise _wrong("the URL of the object store is none") from None
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or REGION
    if parts.scheme == "s3" and not parts.netloc:
        host, scheme = f"s3.{region}.amazonaws.com", "https"
    elif parts.scheme in ENDPOINTS and parts.hostname:
        host, scheme = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname, ENDPOINTS[parts.scheme]
    else:
        raise _wrong("the URL of the object store names no host")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _wrong(f"the URL of {host} goes on behind its host; buckets are named elsewhere")
    given = bool(parts.username)
    return S3Server(
        place=f"{parts.scheme}://{host}{port}" if parts.netloc else "s3:",
        endpoint=f"{scheme}://{host}{port}",
        region=region,
        key=unquote(parts.username) if parts.username else _variable("AWS_ACCESS_KEY_ID", environment),
        secret=unquote(parts.password) if parts.password else _variable("AWS_SECRET_ACCESS_KEY", environment),
        # It belongs to the keys that stand beside it.
        token="" if given else environment.get("AWS_SESSION_TOKEN", ""),
    )


def _wrong(what: str) -> ObjectError:
    return ObjectError(f"{what}; {EXPECTED}, special characters as %2F", fault=ObjectFault.UNUSABLE)


def _variable(name: str, environment: Mapping[str, str]) -> str:
    if path := environment.get(f"{name}_FILE"):
        try:
            found = Path(path).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            message = f"{name}_FILE: cannot read {path} ({type(error).__name__})"
            raise ObjectError(message, fault=ObjectFault.UNUSABLE) from None
    else:
        found = environment.get(name, "")
    if not found:
        raise ObjectError(
            f"no keys for the object store: put them into its URL, or set {name}", fault=ObjectFault.UNUSABLE
        )
    return found


class S3Objects:
    """Objects at a URL like s3+http://key:secret@127.0.0.1:9000, which is reached when it is needed."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        """Raises ObjectError."""
        self._server = server(url, environment)
        self._hands = ObjectThreads(self._server.place)
        self._buckets: OrderedDict[str, S3Store] = OrderedDict()
        self._turn = Lock()

    def __repr__(self) -> str:
        return f"<S3Objects at {self._server.place}>"

    async def make(self, bucket: str) -> None:
        """Return when the server has such a bucket."""
        steps_of(bucket, PING)
        await self._hands(self._make, bucket)

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        steps_of(bucket, key)
        return await self._hands(self._get, bucket, key, most)

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        steps_of(bucket, key)
        check_metadata(metadata)
        await self._hands(self._put, bucket, key, body, dict(metadata))

    async def delete(self, bucket: str, key: str) -> None:
        steps_of(bucket, key)
        try:
            await self._hands(self._delete, bucket, key)
        except ObjectError as error:
            if error.fault is not ObjectFault.MISSING:
                raise

    async def list(self, bucket: str, prefix: str) -> AsyncIterator[ListedObject]:
        steps_below(bucket, prefix)
        pages = self._pages(bucket, prefix)
        while page := await self._hands(next, pages, ()):
            for each in page:
                yield each

    async def ping(self) -> None:
        try:
            # Nobody has to make that bucket. That there is none, or none for us, is an answer to one who is known.
            await self.get("sanderling-ping", PING, 0)
        except ObjectError as error:
            if error.unavailable:
                raise

    async def close(self) -> None:
        """Let go of the threads and connections."""
        self._hands.let_go()
        with self._turn:
            self._buckets.clear()

    # What follows runs in threads.

    def _make(self, bucket: str) -> None:
        where = f"bucket {bucket} at {self._server.place}"
        try:
            obstore.get(self._bucket(bucket), PING)
        except (BaseError, OSError) as error:
            told = _plain(where, error)
            if told.unavailable or told.fault is ObjectFault.UNUSABLE:
                raise told from None
            if _first(_CODE, str(error)) != "NoSuchBucket":
                return  # it is there; whoever puts something into it is told whether we may
            self._create(bucket, where)

    def _create(self, bucket: str, where: str) -> None:
        # obstore knows objects only: it signs, and we ask.
        url = obstore.sign(self._bucket(bucket), "PUT", "", timedelta(seconds=EXCHANGE))
        region = self._server.region
        body = b"" if region == REGION else LOCATION.format(region=escape(region)).encode()
        try:
            urlopen(Request(url, body, method="PUT"), timeout=SILENCE).close()  # noqa: S310 - of the server that we were told
        except HTTPError as error:
            code = _first(_CODE, error.read(MOST_SAID).decode(errors="replace")) or f"status {error.code}"
            if code in THERE:
                return
            message = f"{where} is not there, and the server does not let us make it ({code}); {MAKE_IT}"
            raise ObjectError(message, fault=ObjectFault.REFUSED) from None
        except (OSError, HTTPException) as error:
            raise _plain(where, error) from None

    def _get(self, bucket: str, key: str, most: int) -> StoredObject:
        where = f"{shown(bucket, key)} at {self._server.place}"
        try:
            found = obstore.get(self._bucket(bucket), key)
            if found.meta["size"] > most:
                raise too_large(where, found.meta["size"], most)
            body = bytearray()
            for piece in found.stream(min_chunk_size=PIECE):
                body += piece
                if len(body) > most:
                    raise too_large(where, len(body), most)
        except (BaseError, OSError) as error:
            raise _plain(where, error) from None
        # Theirs are headers, and begin with a capital.
        metadata = {name: value for name, value in found.attributes.items() if name == name.lower()}
        return StoredObject(bytes(body), metadata, (found.meta["e_tag"] or "").strip('"'))

    def _put(self, bucket: str, key: str, body: bytes, metadata: dict[str, str]) -> None:
        try:
            obstore.put(self._bucket(bucket), key, body, attributes=metadata, use_multipart=False)
        except (BaseError, OSError) as error:
            raise _plain(f"{shown(bucket, key)} at {self._server.place}", error) from None

    def _delete(self, bucket: str, key: str) -> None:
        try:
            obstore.delete(self._bucket(bucket), key)
        except (BaseError, OSError) as error:
            raise _plain(f"{shown(bucket, key)} at {self._server.place}", error) from None

    def _pages(self, bucket: str, prefix: str) -> Iterator[tuple[ListedObject, ...]]:
        try:
            for page in obstore.list(self._bucket(bucket), prefix or None, chunk_size=PAGE):
                yield tuple(ListedObject(each["path"], each["size"]) for each in page)
        except (BaseError, OSError) as error:
            raise _plain(f"{shown(bucket, prefix)} at {self._server.place}", error) from None

    def _bucket(self, name: str) -> S3Store:
        with self._turn:
            if name not in self._buckets:
                self._buckets[name] = self._open(name)
            self._buckets.move_to_end(name)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
            return self._buckets[name]

    def _open(self, name: str) -> S3Store:
        there = self._server
        # An empty one is worse than none, except for taking the place of one that is not ours.
        tell_token = there.token or "AWS_SESSION_TOKEN" in os.environ
        return S3Store(
            name,
            config={"session_token": there.token} if tell_token else None,
            endpoint=there.endpoint,
            aws_endpoint_url_s3=there.endpoint,
            virtual_hosted_style_request=False,
            region=there.region,
            access_key_id=there.key,
            secret_access_key=there.secret,
            skip_signature=False,
            client_options={
                "allow_http": there.endpoint.startswith("http:"),
                "connect_timeout": timedelta(seconds=CONNECT),
                "read_timeout": timedelta(seconds=SILENCE),
                "timeout": timedelta(seconds=EXCHANGE),
                "pool_max_idle_per_host": str(THREADS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_WITHIN)},
        )


def _plain(where: str, error: Exception) -> ObjectError:
    """What went wrong, without the pages that obstore says about it."""
    said = str(error)
    code, status, kind = _first(_CODE, said), _first(_STATUS, said), _first(_KIND, said)
    if isinstance(error, FileNotFoundError) or code == "NoSuchBucket":
        found = NO_BUCKET if code == "NoSuchBucket" else f" is not there ({code or 'not found'})"
        return ObjectError(f"{where}{found}", fault=ObjectFault.MISSING)
    if never := _never(error, said, code):
        return ObjectError(f"{where} {never}", fault=ObjectFault.UNUSABLE)
    words = unescape(_first(_MESSAGE, said))
    reason = (f"{code}: {words}" if words else code) or status or kind or type(error).__name__
    if code in LOCKED_OUT:
        message = f"{where}: the server does not know our keys, or not now ({code}); see AWS_SECRET_ACCESS_KEY"
        return ObjectError(message, fault=ObjectFault.DOWN)
    refused = isinstance(error, PermissionDeniedError | UnauthenticatedError) or code == "AccessDenied"
    if refused or status.startswith(REFUSED):
        return ObjectError(f"{where} is not for us ({reason})", fault=ObjectFault.REFUSED)
    # A server that has answered, or was too slow for once, may be so for this object alone.
    fault = ObjectFault.FAILED if code or status or kind == "Timeout" else ObjectFault.DOWN
    return ObjectError(f"{where} is not to be had now ({reason})", fault=fault)


def _never(error: Exception, said: str, code: str) -> str:
    """Why no later attempt goes otherwise; nothing if one may."""
    if _ODD_METADATA in said:
        return "has metadata that are not ASCII"
    if isinstance(error, InvalidPathError):
        return f"has an object in it whose key cannot be read here; delete it ({said.partition('Debug')[0][:150]!r})"
    return f"cannot be ({code})" if code in NEVER else ""


def _first(pattern: re.Pattern[str], said: str) -> str:
    found = pattern.search(said)
    return found[1].strip() if found else ""
