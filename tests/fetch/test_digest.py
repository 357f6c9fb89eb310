"""HTTP Digest: the examples of the RFCs, what servers send, and a server that was written from the RFC alone."""

import asyncio
import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.digest import DigestChallenge, DigestSession, DigestUser, answer, read_challenges
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.outcome import Code
from sanderling.task import Task

MUFASA = DigestUser("Mufasa", "Circle of Life")
NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
OPAQUE = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
ASKED = "GET", "/dir/index.html"
PASSWORD = "hunter2"  # noqa: S105 - of the server below
JASON = DigestUser("Jäsøn Doe", "Secret, or not?")


def part(name: str, line: str) -> str:
    found = re.search(rf'[ ,]{name}="?([^",]+)', line)
    return found[1] if found else ""


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616(algorithm: str, response: str) -> None:
    said = f'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={algorithm}, nonce="{NONCE}", '
    (challenge,) = read_challenges((("WWW-Authenticate", f'{said}opaque="{OPAQUE}"'),))

    line = answer(challenge, MUFASA, ASKED, CNONCE, 1)

    assert part("response", line) == response
    assert (part("nc", line), part("qop", line), part("opaque", line)) == ("00000001", "auth", OPAQUE)
    assert "Circle" not in line
    assert "Circle" not in repr(MUFASA)


def test_the_example_with_a_hashed_name_and_the_one_of_rfc_2617() -> None:
    """The first as its erratum 4897 has it: the RFC itself has another hash for SHA-512/256."""
    jason = DigestChallenge(
        "api@example.org",
        "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
        "SHA-512-256",
        opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS",
        userhash=True,
    )
    line = answer(jason, JASON, ("GET", "/doe.json"), "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", 1)
    old = DigestChallenge("testrealm@host.com", "dcd98b7102dd2f0e8b11d0f600bfb0c093", "MD5")

    assert part("username", line) == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
    assert part("response", line) == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"
    assert "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe" in answer(jason._replace(userhash=False), JASON, ASKED, "a", 1)
    proof = answer(old, DigestUser("Mufasa", "Circle Of Life"), ASKED, "0a4f113b", 1)
    assert part("response", proof) == "6629fae49393a05397450978507c4ef1"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('Basic realm="x, Digest nonce=1", Digest realm="a\\"b", nonce="n", stale=TRUE', [('a"b', "n", "MD5", True)]),
        ('Digest nonce="1", algorithm=SHA-256-sess, Digest nonce="2"', [("", "1", "SHA-256-SESS", False)]),
        ('Digest nonce="1", algorithm=TOKEN, Digest nonce="2", qop="auth"', [("", "2", "MD5", False)]),
        ('Digest nonce="1", qop="auth-int"', []),
        ('Digest realm="no nonce"', []),
        ('Digest nonce="1\r\nX: 1", Digest nonce="\udcff"', []),
        ('Negotiate, NTLM TlRMTVNTUAAB==, Bearer error="x"', []),
        ("Digest" + ", nonce=" * 5000, [("", "", "MD5", False)]),
    ],
)
def test_the_first_challenge_that_can_be_answered_is(value: str, found: list[tuple[object, ...]]) -> None:
    read = [
        (each.realm, each.nonce, each.algorithm, each.stale) for each in read_challenges((("www-authenticate", value),))
    ]

    assert read[:1] == found


@given(st.text(max_size=300))
def test_whatever_a_host_says_is_read_or_passed_over(text: str) -> None:
    for challenge in read_challenges((("WWW-Authenticate", f"Digest {text}"),)):
        assert answer(challenge, MUFASA, ASKED, "c", 1).startswith("Digest ")


def test_a_refused_proof_is_not_sent_again_and_a_new_nonce_is() -> None:
    session, first = DigestSession(MUFASA), (("WWW-Authenticate", 'Digest realm="r", nonce="1", qop="auth"'),)
    stale = (("WWW-Authenticate", 'Digest realm="r", nonce="2", qop="auth", stale=true'),)
    later = (("WWW-Authenticate", 'Digest realm="r", nonce="3", qop="auth"'),)

    assert session.prove(*ASKED) == ("", "")
    assert session.learn(401, first, "")
    lines = [session.prove(*ASKED) for _ in range(3)]
    assert [part("nc", line) for line, _ in lines] == ["00000001", "00000002", "00000003"]
    assert session.learn(401, stale, "1")
    assert part("nc", session.prove(*ASKED)[0]) == "00000001"
    assert not session.learn(401, later, "2")  # never accepted: the password is wrong
    assert session.learn(200, (), "3") is False
    assert session.learn(401, first, "3")  # a host that forgets its nonces and does not call them stale


class Guarded(BaseHTTPRequestHandler):
    """Lets in who proves it, by RFC 7616, 3.4.6; every nonce is good for three requests."""

    protocol_version = "HTTP/1.1"
    algorithm = "MD5"
    nonces: dict[str, list[int]]
    asked: list[str]

    def do_GET(self) -> None:
        """Answer."""
        line = self.headers.get("Authorization", "")
        self.asked.append(line)
        nonce = part("nonce", line)
        seen = self.nonces.get(nonce, [])
        good = bool(line) and part("response", line) == self._expected(line) and self.path == part("uri", line)
        used = good and (len(seen) >= 3 or int(part("nc", line), 16) in seen)
        if good and not used and nonce in self.nonces:
            seen.append(int(part("nc", line), 16))
            self._say(200, b"inside")
        else:
            fresh = f"n{len(self.nonces)}"
            self.nonces[fresh] = []
            stale = ", stale=true" if used else ""
            head = f'Digest realm="a realm", qop="auth", algorithm={self.algorithm}, nonce="{fresh}"{stale}'
            self._say(401, b"", ("WWW-Authenticate", head), ("WWW-Authenticate", 'Basic realm="b"'))

    def _expected(self, line: str) -> str:
        hash_of = hashlib.md5 if self.algorithm.startswith("MD5") else hashlib.sha256
        a1 = hash_of(b"me:a realm:hunter2").hexdigest()
        nonce, cnonce = part("nonce", line), part("cnonce", line)
        if self.algorithm.endswith("-sess"):
            a1 = hash_of(f"{a1}:{nonce}:{cnonce}".encode()).hexdigest()
        a2 = hash_of(f"GET:{self.path}".encode()).hexdigest()
        return hash_of(f"{a1}:{nonce}:{part('nc', line)}:{cnonce}:auth:{a2}".encode()).hexdigest()

    def _say(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(params=["MD5", "SHA-256", "MD5-sess", "SHA-256-sess"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    Guarded.algorithm, Guarded.nonces, Guarded.asked = request.param, {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


async def ask(port: int, paths: list[str], password: str = PASSWORD, *, plain_http: bool = True) -> list[Fetched]:
    host = f"127.0.0.1:{port}"
    table = HostTable({host: HostTraffic(digest=DigestUser("me", password), plain_http=plain_http)})
    limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000)))
    async with Http(HttpRules(hosts=table), GuardRules(private=True, raw_addresses=True)) as http:
        fetcher = Fetcher(http, limiter, retry=False)
        found = [await fetcher.fetch(Task(f"http://{host}{path}")) for path in paths]
    assert limiter.snapshot().top[0].requests == sum(each.requests for each in found)  # each had its permit
    return found


def test_a_server_of_the_rfc_lets_us_in_and_calls_old_nonces_stale(port: int) -> None:
    found = asyncio.run(ask(port, [f"/a?q={number}&x=%20" for number in range(5)]))

    assert [each.reply.body for each in found if each.reply] == [b"inside"] * 5
    assert [each.requests for each in found] == [2, 1, 1, 2, 1]
    assert all(("authorization" not in {name.lower() for name, _ in each.reply.sent}) for each in found if each.reply)


def test_a_wrong_password_costs_one_request_each_and_no_proof_goes_by_plain_http(port: int) -> None:
    wrong = asyncio.run(ask(port, ["/a", "/b", "/c"], "wrong"))
    Guarded.asked.clear()
    plain = asyncio.run(ask(port, ["/a"], plain_http=False))

    assert [(each.outcome.code, each.requests) for each in wrong] == [
        (Code.AUTH_FAILED, 2),
        (Code.AUTH_FAILED, 1),
        (Code.AUTH_FAILED, 1),
    ]
    assert (plain[0].outcome.code, Guarded.asked) == (Code.AUTH_FAILED, [""])


def test_the_server_lets_in_another_client_too(port: int) -> None:
    async def main() -> bytes:
        middleware = aiohttp.DigestAuthMiddleware("me", "hunter2")
        session = aiohttp.ClientSession(middlewares=(middleware,))
        async with session as client, client.get(f"http://127.0.0.1:{port}/a?q=1") as reply:
            return await reply.read()

    assert asyncio.run(main()) == b"inside"
