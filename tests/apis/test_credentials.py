"""Credentials: sent to the job's hosts only, got anew once for all, kept when they rotate, and never shown."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looping import virtual

from sanderling.apis.auth import ApiKey, Auth, Basic, Bearer, Login, OAuth2
from sanderling.apis.credentials import FAILED_PAUSE, REJECTED_PAUSE, Answered, Credentials, TokenStore
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.outcome import Code
from sanderling.stores.durable import FolderError
from sanderling.stores.token_file import TokenFile
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

API, TOKENS = "https://api.example", "https://login.example/token"
HOSTS = ("api.example",)
ENVIRONMENT = {"ID": "me", "SECRET": "hunter2", "REFRESH": "refresh-0"}
OAUTH = OAuth2(TOKENS, "env:ID", "env:SECRET", scopes=("read", "list"), extra={"audience": "a"})
REFRESHING = OAuth2(TOKENS, "env:ID", "env:SECRET", refresh_token="env:REFRESH")  # noqa: S106 - a name
FAST = LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000))


@dataclass
class World:
    """An API and the host of its tokens. Refresh tokens are good for one use, and answers take a second."""

    lifetime: float = 3600.0
    sent: list[Task] = field(default_factory=list)
    good: dict[str, float] = field(default_factory=dict)  # tokens, and until when they are
    refresh: str = "refresh-0"
    faults: list[Reply | Exception] = field(default_factory=list)  # what the host of tokens says first
    accepts: bool = True  # whether the API accepts any token at all
    memory: Memory = field(default_factory=lambda: Memory(1))  # in which bodies are held, as a client does

    async def send(self, task: Task) -> Reply:
        self.sent.append(task)
        await asyncio.sleep(5.0 if "/slow" in task.url else 1.0)
        if task.host == "login.example":
            await self.memory.hold(task.holder or task.url, 100)
            return self.give_token(task)
        if "/away" in task.url:
            return said(task, 302, {}, Location="https://evil.example/")
        token = dict(task.headers).get("Authorization", "").removeprefix("Bearer ")
        now = asyncio.get_running_loop().time()
        known = self.accepts and self.good.get(token, 0.0) > now
        status = 403 if "/secret" in task.url and known else 200 if known or task.host != "api.example" else 401
        return said(task, status, {"url": task.url})

    def give_token(self, task: Task) -> Reply:
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return replace(fault, url=task.url)
        form = dict(parse_qsl((task.body or b"").decode()))
        if form.get("grant_type") == "refresh_token" and form["refresh_token"] != self.refresh:
            return said(task, 400, {"error": "invalid_grant", "error_description": f"{self.refresh} is expected"})
        token = f"token-{len(self.good)}"
        self.good[token] = asyncio.get_running_loop().time() + self.lifetime
        document: dict[str, object] = {"access_token": token, "expires_in": self.lifetime, "data": {"token": token}}
        if "refresh_token" in form:
            self.refresh = f"refresh-{len(self.good)}"
            document["refresh_token"] = self.refresh
        return said(task, 200, document, Set_Cookie=f"session={token}; Path=/")

    def asked(self, host: str) -> int:
        return sum(task.host == host for task in self.sent)


def said(task: Task | None, status: int, document: object, **headers: str) -> Reply:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, pairs, body, task.url if task else TOKENS, 0.1)


class House:
    """Credentials with a fetcher and a limiter around them."""

    def __init__(
        self, auth: Auth, world: World, store: TokenStore | None = None, environment: Mapping[str, str] = ENVIRONMENT
    ) -> None:
        clock = LoopClock()
        self.world = world
        self.limiter = Limiter(FAST, clock=clock)
        self.credentials = Credentials(auth, HOSTS, clock, store, world.memory, environment)
        self._fetcher = Fetcher(world, self.limiter, clock=clock, retry=False)

    async def ask(self, path: str = "/", base: str = API) -> Answered:
        """Ask as the engine does: what the limiter puts off is asked again."""
        while True:
            answer = await self._ask(Task(base + path))
            if answer.outcome.detail != "its host is not ready":
                return answer
            await asyncio.sleep(answer.outcome.retry_after or 1.0)

    async def _ask(self, task: Task) -> Answered:
        permit = await self.limiter.acquire(task.host)
        try:
            return await self.credentials.fetch(self._fetcher, task, permit)
        finally:
            permit.release(sent=True)

    async def ask_many(self, count: int) -> list[Answered]:
        return await asyncio.gather(*(self.ask(f"/{number}") for number in range(count)))

    def check_nothing_is_held(self) -> None:
        assert {host.inflight for host in self.limiter.snapshot().top} == {0}
        assert self.world.memory.total == 0


def codes(answers: list[Answered]) -> set[Code]:
    return {answer.outcome.code for answer in answers}


@pytest.mark.parametrize(
    ("auth", "header", "value", "query"),
    [
        (ApiKey("X-Who", "env:SECRET"), "X-Who", "hunter2", ""),
        (ApiKey("k", "env:SECRET", "query"), "k", None, "a=1&k=hunter2"),
        (ApiKey("k", "env:SECRET", "cookie"), "Cookie", "b=2; k=hunter2", ""),
        (Bearer("env:SECRET"), "Authorization", "Bearer hunter2", ""),
        (Basic("env:ID", "env:SECRET"), "Authorization", "Basic bWU6aHVudGVyMg==", ""),
    ],
)
def test_a_secret_goes_to_the_hosts_of_the_job_and_no_other(
    auth: Auth, header: str, value: str | None, query: str
) -> None:
    world = World()

    async def main() -> Answered:
        house = House(auth, world)
        task = Task(f"{API}/?a=1", headers=(("Cookie", "b=2"),))
        here = await house.credentials.fetch(house._fetcher, task, await house.limiter.acquire(task.host))
        await house.ask(base="https://other.example")
        await house.ask("/away")
        return here

    answer = run_virtual(main())

    first, other, _, evil = world.sent
    assert dict(first.headers).get(header) == value
    assert urlsplit(first.url).query == (query or "a=1")
    assert answer.reply is not None
    assert answer.reply.url == f"{API}/?a=1"
    assert [task.url for task in (other, evil)] == ["https://other.example/", "https://evil.example/"]
    assert "hunter2" not in f"{other.headers}{evil.headers}{other.url}{evil.url}"
    assert "hunter2" not in f"{auth!r}{world.sent!r}{answer!r}"
    assert "bWU6" not in f"{auth!r}{world.sent!r}"


@virtual
async def test_one_token_serves_all_until_shortly_before_its_end() -> None:
    house = House(OAUTH, World())

    assert codes(await house.ask_many(20)) == {Code.OK}
    await asyncio.sleep(3600 - 60 - 15)
    assert codes(await house.ask_many(20)) == {Code.OK}
    assert house.world.asked("login.example") == 1
    await asyncio.sleep(20)
    assert codes(await house.ask_many(20)) == {Code.OK}
    assert house.world.asked("login.example") == 2
    assert house.world.asked("api.example") == 60
    first = house.world.sent[0]
    assert dict(parse_qsl((first.body or b"").decode())) == {
        "grant_type": "client_credentials",
        "scope": "read list",
        "audience": "a",
        "client_id": "me",
        "client_secret": "hunter2",
    }
    house.check_nothing_is_held()


@virtual
async def test_a_token_that_was_withdrawn_is_replaced_once_for_all() -> None:
    house = House(OAUTH, World())
    await house.ask()
    house.world.good.clear()

    assert codes(await house.ask_many(20)) == {Code.OK}
    assert house.world.asked("login.example") == 2
    house.check_nothing_is_held()


@virtual
async def test_an_old_token_that_is_denied_late_costs_no_new_one() -> None:
    house = House(OAUTH, World())
    await house.ask()
    slow = asyncio.create_task(house.ask("/slow"))
    await asyncio.sleep(0.5)
    house.world.good = {"token-none": 0.0}
    assert (await house.ask()).outcome.ok

    assert (await slow).outcome.ok
    assert house.world.asked("login.example") == 2


@virtual
async def test_a_new_token_that_is_not_accepted_either_ends_it_with_a_clear_outcome() -> None:
    house = House(OAUTH, World())
    await house.ask()
    house.world.accepts = False

    answers = await house.ask_many(20)

    assert {(each.outcome.code, each.outcome.status) for each in answers} == {(Code.AUTH_FAILED, 401)}
    said = "api.example does not accept {}OAuth2"
    assert {each.outcome.detail for each in answers} <= {said.format(""), said.format("a new token of ")}
    assert house.world.asked("login.example") == 2
    again = await house.ask()
    assert again.outcome.detail == "api.example does not accept OAuth2"
    assert house.world.asked("login.example") == 2  # a token that never worked is not replaced for each item


@virtual
async def test_what_is_forbidden_is_no_matter_of_the_token() -> None:
    house = House(OAUTH, World())
    await house.ask()

    outcome = (await house.ask("/secret")).outcome

    assert (outcome.code, outcome.status) == (Code.ACCESS_DENIED, 403)
    assert outcome.detail == "api.example accepts OAuth2 and does not let it have this"
    assert house.world.asked("login.example") == 1


@virtual
async def test_who_gives_up_does_not_take_the_token_from_those_who_wait() -> None:
    house = House(REFRESHING, World())
    first = asyncio.create_task(house.ask("/first"))
    await asyncio.sleep(0.5)
    others = asyncio.create_task(house.ask_many(5))
    await asyncio.sleep(0.1)
    first.cancel()

    assert codes(await others) == {Code.OK}
    assert house.world.asked("login.example") == 1
    house.check_nothing_is_held()


@virtual
async def test_a_token_on_its_way_is_waited_for_at_the_end() -> None:
    house = House(REFRESHING, World())
    only = asyncio.create_task(house.ask())
    await asyncio.sleep(0.5)
    only.cancel()

    await house.credentials.close()

    assert house.world.refresh == "refresh-1"
    assert (await house.ask()).outcome.ok
    assert house.world.asked("login.example") == 1


def test_a_rotated_refresh_token_outlives_the_process(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "tokens.json"

    async def live(environment: Mapping[str, str] = ENVIRONMENT) -> Code:
        house = House(REFRESHING, world, TokenFile(path), environment)
        return (await house.ask()).outcome.code

    assert [run_virtual(live()) for _ in range(3)] == [Code.OK] * 3
    assert path.stat().st_mode & 0o777 == 0o600
    spent = [dict(parse_qsl((task.body or b"").decode())).get("refresh_token") for task in world.sent]
    assert [token for token in spent if token] == ["refresh-0", "refresh-1", "refresh-2"]
    world.refresh = "another"
    assert run_virtual(live()) is Code.DEFERRED
    assert run_virtual(live({**ENVIRONMENT, "REFRESH": "another"})) is Code.OK  # one that is configured anew goes first


def test_those_who_share_a_refresh_token_exchange_it_one_after_the_other(tmp_path: Path) -> None:
    """Each has a file handle of its own, as processes have."""
    world = World()

    async def main() -> list[Answered]:
        houses = [House(REFRESHING, world, TokenFile(tmp_path / "tokens.json")) for _ in range(4)]
        return await asyncio.gather(*(house.ask() for house in houses))

    assert codes(run_virtual(main())) == {Code.OK}
    spent = [dict(parse_qsl((task.body or b"").decode())).get("refresh_token") for task in world.sent]
    assert [token for token in spent if token] == [f"refresh-{number}" for number in range(4)]


@virtual
async def test_a_refresh_token_rotates_without_a_store() -> None:
    house = House(REFRESHING, World(lifetime=100))

    for _ in range(4):
        assert (await house.ask()).outcome.ok
        await asyncio.sleep(100)
    assert house.world.asked("login.example") == 4


def test_a_rotated_token_is_kept_before_the_new_token_is_used(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "tokens.json"
    kept: list[bool] = []
    send = world.send

    async def watch(task: Task) -> Reply:
        if task.host == "api.example":
            kept.append(b"refresh-1" in path.read_bytes())
        return await send(task)

    world.send = watch  # type: ignore[method-assign]
    run_virtual(_ask_once(REFRESHING, world, TokenFile(path)))

    assert kept == [True]


async def _ask_once(auth: Auth, world: World, store: TokenStore | None = None) -> Answered:
    return await House(auth, world, store).ask()


def test_a_damaged_file_of_tokens_says_so_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('{"token": "hunter2"')

    with pytest.raises(FolderError, match="has no token in it") as refused:
        run_virtual(_ask_once(REFRESHING, World(), TokenFile(path)))

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("fault", "code", "pause", "why"),
    [
        (said(None, 503, {}), Code.DEFERRED, FAILED_PAUSE, "no token from login.example: HOST_UNAVAILABLE"),
        (said(None, 429, {}, Retry_After="30"), Code.DEFERRED, 30, "no token from login.example: RATE_LIMITED"),
        (ConnectionResetError(), Code.DEFERRED, FAILED_PAUSE, "no token from login.example: ConnectionResetError"),
        (
            said(None, 400, {"error": "invalid_client", "error_description": "hunter2"}),
            Code.AUTH_FAILED,
            REJECTED_PAUSE,
            "HTTP 400 (invalid_client)",
        ),
        (
            said(None, 200, {"error": "bad_verification_code"}),
            Code.AUTH_FAILED,
            REJECTED_PAUSE,
            "(bad_verification_code)",
        ),
        (said(None, 401, b"hunter2"), Code.AUTH_FAILED, REJECTED_PAUSE, "no token from login.example: HTTP 401"),
        (said(None, 200, {"error": "hunter2 is wrong"}), Code.AUTH_FAILED, REJECTED_PAUSE, "access_token is null"),
        (said(None, 200, b"<html>hunter2"), Code.AUTH_FAILED, REJECTED_PAUSE, "access_token is null"),
        (said(None, 200, {"access_token": "a\r\nX: y"}), Code.AUTH_FAILED, REJECTED_PAUSE, "beyond ASCII"),
        (
            said(None, 200, {"access_token": "x" * 9000}),
            Code.AUTH_FAILED,
            REJECTED_PAUSE,
            "access_token is an unusable text",
        ),
        (
            said(None, 307, {}, Location="https://evil.example/"),
            Code.AUTH_FAILED,
            REJECTED_PAUSE,
            "redirect of a request with secrets",
        ),
    ],
)
@virtual
async def test_a_host_without_a_token_is_asked_again_after_a_pause(
    fault: Reply | Exception, code: Code, pause: float, why: str
) -> None:
    house = House(OAUTH, World(faults=[fault]))

    answers = await house.ask_many(10)

    assert codes(answers) == {Code.DEFERRED}  # nothing was asked, so nothing has failed
    assert all(why in each.outcome.detail and "hunter2" not in each.outcome.detail for each in answers)
    assert house.credentials.trouble is not None
    assert house.credentials.trouble.code is code
    await asyncio.sleep(pause - 0.5)
    late = (await house.ask()).outcome
    assert (late.code, house.world.asked("login.example"), house.world.asked("api.example")) == (Code.DEFERRED, 1, 0)
    assert late.retry_after is None or late.retry_after <= 0.5
    await asyncio.sleep(1)
    assert (await house.ask()).outcome.ok
    assert [house.credentials.trouble] == [None]
    assert house.world.asked("evil.example") == 0
    house.check_nothing_is_held()


LOGIN = {"user": "env:ID", "deep": [{"password": "env:SECRET"}]}


@pytest.mark.parametrize(
    ("auth", "body"),
    [
        (Login(TOKENS, "data.token", json=LOGIN, prefix="Bearer "), {"user": "me", "deep": [{"password": "hunter2"}]}),
        (
            Login(TOKENS, "cookie.session", json=LOGIN, prefix="Bearer "),
            {"user": "me", "deep": [{"password": "hunter2"}]},
        ),
        (Login(TOKENS, "access_token", form={"p": "env:SECRET"}, prefix="Bearer ", lasts=60), b"p=hunter2"),
    ],
)
@virtual
async def test_a_login_brings_a_session(auth: Login, body: object) -> None:
    house = House(auth, World(lifetime=auth.lasts))

    for _ in range(2):
        assert codes(await house.ask_many(10)) == {Code.OK}
        await asyncio.sleep(auth.lasts)
    assert house.world.asked("login.example") == 2
    sent = house.world.sent[0].body or b""
    assert (sent if isinstance(body, bytes) else json.loads(sent)) == body
    assert "hunter2" not in repr(auth)


@virtual
async def test_a_login_without_a_token_says_what_it_found() -> None:
    house = House(Login(TOKENS, "data.nothing", json=LOGIN), World())

    outcome = (await house.ask()).outcome

    assert outcome.detail == (
        "no token from login.example: data.nothing is null, expected a text of up to 8192 characters"
    )


@virtual
async def test_what_says_that_a_token_has_expired_may_be_declared() -> None:
    """Some say so with a 200."""
    world = World()
    house = House(replace(OAUTH, expired='status = 200 and url contains "/old"'), world)
    await house.ask()

    outcome = (await house.ask("/old")).outcome

    assert (outcome.code, outcome.detail) == (Code.AUTH_FAILED, "api.example does not accept a new token of OAuth2")
    assert world.asked("login.example") == 2


def test_a_link_that_repeats_the_key_is_cleaned() -> None:
    async def main() -> Credentials:
        return Credentials(ApiKey("api_key", "hunter2", "query"), HOSTS, LoopClock())

    credentials = run_virtual(main())

    assert credentials.clean(f"{API}/?page=2&api%5Fkey=hunter2&b=%20") == f"{API}/?page=2&b=%20"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda _: Bearer("env:NOTHING"),
            "token of Bearer: the environment has no variable 'NOTHING', expected the secret",
        ),
        (lambda folder: Bearer(f"file:{folder}/none"), "cannot be read (No such file or directory)"),
        (lambda _: Bearer("env:EMPTY"), "token of Bearer: the secret is empty"),
        (lambda _: Bearer("hunter2\nX: y"), "token of Bearer: the secret has a line break"),
        (lambda _: Bearer("hünter2"), "the secret for Authorization has a character beyond ASCII"),
        (lambda _: ApiKey("k", "hunter2;x", "cookie"), "the secret for the cookie k has one of"),
        (lambda _: ApiKey("X Y", "hunter2"), "name is 'X Y': header name"),
        (lambda _: ApiKey("a=b", "hunter2", "cookie"), "name is 'a=b', expected one without spaces"),
        (lambda _: ApiKey("k", "hunter2", "body"), "in_ is 'body', expected one of header, query, cookie"),  # type: ignore[arg-type]
        (lambda _: Basic("a:b", "hunter2"), "the user has a colon in it"),
        (lambda _: OAuth2(TOKENS, "a"), "OAuth2 has neither client_secret nor refresh_token"),
        (lambda _: OAuth2("login.example", "a", "hunter2"), "token_url: URL 'login.example' does not start with"),
        (lambda _: OAuth2(TOKENS, "a", "hunter2", scopes="read"), "scopes is a text, expected a tuple"),
        (lambda _: OAuth2(TOKENS, "a", "hunter2", expires_in=0), "expires_in is 0, expected seconds"),
        (lambda _: OAuth2(TOKENS, "a", "hunter2", expired="("), "expired: "),
        (lambda _: OAuth2(TOKENS, "a", "env:NOTHING"), "client_secret of OAuth2: the environment has no variable"),
        (lambda _: Login(TOKENS, "a b", json={}), "token: 'a b', at character 2"),
        (lambda _: Login(TOKENS, "a"), "Login has both of json and form or none"),
        (lambda _: Login(TOKENS, "a", json={"a": {"b": "env:NOTHING"}}), "json of Login, a, b: the environment has no"),
    ],
)
def test_what_cannot_let_us_in_is_refused_before_anything_is_sent(
    make: Callable[[Path], Auth], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - compared below
        Credentials(make(tmp_path), HOSTS, LoopClock(), environment={"EMPTY": ""})

    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2\n")
    world = World(good={"hunter2": 9.0})

    assert run_virtual(_ask_once(Bearer(f"file:{tmp_path}/key"), world)).outcome.ok


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.dictionaries(st.sampled_from(["access_token", "expires_in", "refresh_token", "error"]), inner),
    max_leaves=8,
)


@given(JSON.map(lambda each: json.dumps(each).encode()) | st.binary(), st.integers(200, 599))
def test_no_token_reply_makes_it_raise(body: bytes, status: int) -> None:
    world = World(faults=[said(None, status, body)], good={"": 9.0})

    answer = run_virtual(_ask_once(REFRESHING, world))

    assert answer.outcome.code in (Code.AUTH_FAILED, Code.DEFERRED)  # an API that does not accept it, or no token
