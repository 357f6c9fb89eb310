"""TLS of every broken kind, and proxies: by option and by variable, that work, refuse, or are away."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fetch.servers import Upstream, fetch, says, upstream

from sanderling.fetch import Client, HttpRequest, RequestOptions
from sanderling.options import OptionError
from sanderling.outcome import Code

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of it: a good one for localhost, one for another name, one that has expired."""
    folder = tmp_path_factory.mktemp("certificates")

    def run(line: str) -> None:
        subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)

    new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for name, subject in (("good", "localhost"), ("other", "other.example")):
        options = f"-subj /CN={subject} -addext subjectAltName=DNS:{subject}"
        run(f"{new} -x509 -days 365 -keyout {name}.key -out {name}.pem {options}")
    # Only `ca` makes one that has expired already.
    run(f"{new} -keyout old.key -out old.csr -subj /CN=localhost")
    (folder / "index").touch()
    (folder / "ca.cnf").write_text(
        "[ca]\ndefault_ca=c\n[c]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n"
        "x509_extensions=x\n[p]\ncommonName=supplied\n[x]\nsubjectAltName=DNS:localhost\n"
    )
    dates = "-startdate 20200101000000Z -enddate 20200201000000Z"
    run(f"openssl ca -batch -selfsign -notext -config ca.cnf -keyfile old.key -in old.csr -out old.pem {dates}")
    (folder / "all.pem").write_text("".join((folder / f"{name}.pem").read_text() for name in ("good", "other", "old")))
    return folder


def server_tls(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


@pytest.fixture
def trusted(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "all.pem"))
    return certificates


@pytest.mark.parametrize(("name", "code"), [("good", Code.OK), ("other", Code.TLS_ERROR), ("old", Code.TLS_ERROR)])
async def test_a_certificate_must_be_that_of_the_host(trusted: Path, name: str, code: Code) -> None:
    async with upstream(says(body=b"ok"), tls=server_tls(trusted, name)) as host:
        got = await fetch(f"https://localhost:{host.port}/")

    assert (got.outcome.code, got.outcome.sent) == (code, code is Code.OK)


async def test_a_certificate_that_nobody_vouches_for(certificates: Path) -> None:
    async with upstream(says(), tls=server_tls(certificates, "good")) as host:
        got = await fetch(f"https://localhost:{host.port}/")

    assert (got.outcome.code, host.heads) == (Code.TLS_ERROR, [])


def alert(what: int) -> bytes:
    return bytes((0x15, 3, 3, 0, 2, 2, what))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b"", Code.CONNECTION_RESET),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Code.TLS_ERROR),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", Code.TLS_ERROR),
        (bytes(999), Code.TLS_ERROR),
        (b"\x16\x03\x03\xff\xff" + bytes(70_000), Code.TLS_ERROR),  # a record that is too long
        (b"\x16\x03\x03\x00\x04\x02\x00\x00\x00", Code.TLS_ERROR),  # an empty greeting
        *((alert(what), Code.TLS_ERROR) for what in (40, 70, 71, 80, 112, 116)),  # no cipher, no version, no name, …
        (bytes((0x15, 3, 3, 0, 2, 1, 0)), Code.CONNECTION_RESET),  # an orderly end
    ],
)
async def test_a_port_that_speaks_no_tls(reply: bytes, code: Code) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        got = await fetch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    assert (got.outcome.code, got.outcome.sent) == (code, False)


@pytest.mark.parametrize(
    "content", [None, "", "no certificates at all", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
async def test_a_ca_that_is_none_is_said_at_the_start(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    with pytest.raises(OptionError, match="SSL_CERT_FILE"):
        async with Client():
            pass


# Proxies.


@asynccontextmanager
async def proxy(answer: bytes = b"") -> AsyncIterator[Upstream]:
    """A proxy that connects, unless it has an answer of its own."""
    it = Upstream([])

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        it.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if answer:
            writer.write(answer)
        else:
            place = it.heads[-1].split()[1]
            far = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, far[1]))
                group.create_task(pump(far[0], writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()


async def test_https_goes_through_a_tunnel_and_the_proxy_sees_no_secret(
    trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "very-secret")
    async with upstream(says(body=b"ok"), tls=server_tls(trusted, "good")) as host, proxy() as way:
        table = {"localhost": {"proxy": f"http://me:pw@127.0.0.1:{way.port}", "bearer": "env:TOKEN"}}
        got = await fetch(f"https://localhost:{host.port}/", hosts=table)

    assert (got.outcome.code, got.body) == (Code.OK, b"ok")
    assert host.header("authorization") == "Bearer very-secret"
    assert host.header("proxy-authorization") is None
    assert way.heads[0].startswith(f"CONNECT localhost:{host.port} ")
    assert way.header("proxy-authorization") == "Basic bWU6cHc="
    assert "very-secret" not in way.heads[0]


async def test_a_proxy_of_the_environment_is_used_unless_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream(says(body=b"from the proxy")) as way, upstream(says(body=b"direct")) as host:
        monkeypatch.setenv("http_proxy", way.url)
        through = await fetch("http://far.example/page?x=1")
        monkeypatch.setenv("no_proxy", "other.example, 127.0.0.1")
        direct = await fetch(host.url)

    assert (through.body, direct.body) == (b"from the proxy", b"direct")
    assert way.heads[0].startswith("GET http://far.example/page?x=1 ")


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://intranet/", "http://db.internal/", "http://[fd00::1]/"])
async def test_behind_a_proxy_nothing_is_asked_for_that_nobody_can_check(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with upstream(says()) as way:
        monkeypatch.setenv("http_proxy", way.url)
        got = await fetch(url, private=False)

    assert (got.outcome.code, way.heads) == (Code.REFUSED, [])
    assert "cannot be checked" in caplog.text


@pytest.mark.parametrize("status", ["403 Forbidden", "407 Proxy Authentication Required", "502 Bad Gateway"])
async def test_a_proxy_that_refuses_is_not_the_hosts_fault(status: str) -> None:
    async with proxy(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()) as way:
        got = await fetch("https://far.example/", hosts={"*": {"proxy": way.url}})

    assert (got.outcome.code, got.outcome.sent, got.outcome.blames_host) == (Code.INTERNAL_ERROR, False, False)
    assert status[:3] in got.outcome.detail


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\n\r\nnot TLS"])
async def test_a_proxy_that_is_none(reply: bytes) -> None:
    async with upstream(reply) as way:
        got = await fetch("https://far.example/", hosts={"*": {"proxy": way.url}})

    assert not got.outcome.ok
    assert got.outcome.category is not None


async def test_a_proxy_that_is_away_is_not_the_hosts_fault() -> None:
    got = await fetch("https://far.example/", hosts={"*": {"proxy": "http://127.0.0.1:1"}})

    assert (got.outcome.code, got.outcome.blames_host) == (Code.INTERNAL_ERROR, False)


async def test_a_proxy_may_be_private_and_what_it_is_beside_may_not() -> None:
    async with upstream(says(body=b"ok")) as way:
        table = {"far.example": {"proxy": f"http://localhost:{way.port}"}}
        async with Client(RequestOptions(hosts=table)) as client:
            through = await client.send(HttpRequest("http://far.example/"))
            direct = await client.send(HttpRequest(f"http://localhost:{way.port}/"))

    assert (through.body, direct.outcome.code) == (b"ok", Code.REFUSED)


async def test_a_variable_that_names_no_proxy_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:port")

    with pytest.raises(OptionError, match="HTTPS_PROXY"):
        async with Client(RequestOptions()):
            pass


@pytest.mark.parametrize(
    "secret",
    [
        {"bearer": "env:TOKEN"},
        {"user": "ann", "password": "env:TOKEN"},
        {"headers": {"X-Plain": "1", "X-Key": "env:TOKEN"}},
        {"cookie-file": "cookies.txt"},
        {"login": {"url": "http://127.0.0.1/", "fill": {"user": "ann"}}},
    ],
    ids=lambda secret: next(iter(secret)),
)
async def test_no_secret_goes_by_http(
    secret: dict[str, object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOKEN", "very-secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cookies.txt").write_text("127.0.0.1\tFALSE\t/\tTRUE\t0\tsid\ta1\n")
    async with upstream(says()) as host:
        refused = await fetch(host.url, hosts={"127.0.0.1": secret})
        plain = await fetch(host.url, hosts={"127.0.0.1": {"headers": {"X-Plain": "1"}}})

    assert (refused.outcome.code, refused.requests, plain.outcome.ok) == (Code.REFUSED, 0, True)
    assert len(host.heads) == 1


async def test_secrets_go_by_https_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "very-secret")
    async with upstream(says()) as host:
        refused = await fetch(host.url, hosts={"127.0.0.1": {"bearer": "env:TOKEN"}})
        sent = await fetch(host.url, hosts={"127.0.0.1": {"bearer": "env:TOKEN", "plain-http": True}})

    assert (refused.outcome.code, refused.requests) == (Code.REFUSED, 0)
    assert "plain-http" in refused.outcome.detail
    assert (sent.outcome.ok, host.header("authorization")) == (True, "Bearer very-secret")


async def test_cookies_come_back_and_can_be_switched_off() -> None:
    async with upstream(says(headers=("Set-Cookie: a=1",)), says(), keep=True) as host:
        async with Client(RequestOptions(private=True, policy="none")) as client:
            await client.send(HttpRequest(host.url))
            await client.send(HttpRequest(host.url, headers=(("Cookie", "b=2"),)))
        await fetch(host.url, hosts={"*": {"cookies": False}})

    assert [host.header("cookie", request) for request in range(3)] == [None, "b=2; a=1", None]
