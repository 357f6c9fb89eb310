"""Leave, send, learn, redirect, retry: over real sockets, and under virtual time where it waits."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

import aiohttp
import pytest
from scripted_server import ScriptedServer, Step, answer, reset

from sanderling.fetch.attempts import MOST_HOPS, Fetched, Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import BackoffRules, BreakerRules, BudgetRules, Feedback, Limiter, LimiterRules, PaceRules, Permit
from sanderling.outcome import Code
from sanderling.task import SECRET_BODY, Blame, Reply, Task
from sanderling.testing import LoopClock, run_virtual

OWN = GuardRules(private=True, raw_addresses=True)
# As fast as this machine: what is tested here is not the pace.
FAST = LimiterRules(
    pace=PaceRules(initial_rps=1000, max_rps=1000), backoff=BackoffRules(base=0.001, longest=0.01, attempts=3)
)
T = TypeVar("T")
Script = dict[str, list[bytes | list[Step]]]


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(300):
            return await main()

    return asyncio.run(bounded())


def fetch(script: Script, rules: LimiterRules = FAST, path: str = "/") -> tuple[Fetched, list[str], Limiter]:
    async def main() -> tuple[Fetched, list[str], Limiter]:
        limiter = Limiter(rules, rng=Random(1))
        async with ScriptedServer(script) as server, Http(HttpRules(idle=0.5), OWN) as http:
            fetched = await Fetcher(http, limiter).fetch(Task(server.url(path)))
            return fetched, [request.path for request in server.requests], limiter

    return run(main)


def test_a_good_answer_is_the_end_of_it() -> None:
    fetched, paths, limiter = fetch({"/": [answer(200, b"hello")]})

    assert fetched.outcome.code is Code.OK
    assert fetched.reply is not None
    assert fetched.reply.body == b"hello"
    assert (fetched.requests, paths) == (1, ["/"])
    assert limiter.snapshot().top[0].inflight == 0


@pytest.mark.parametrize("first", [answer(500), answer(502), answer(504), [reset], answer(408)])
def test_what_may_pass_is_tried_again(first: bytes | list[Step]) -> None:
    fetched, paths, limiter = fetch({"/": [first, answer(200)]})

    assert fetched.outcome.code is Code.OK
    assert paths == ["/", "/"]
    assert limiter.snapshot().retries == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    fetched, paths, _ = fetch({"/": [answer(status), answer(200)]})

    assert fetched.outcome.status == status
    assert paths == ["/"]


def test_three_tries_and_no_more() -> None:
    fetched, paths, _ = fetch({"/": [answer(500)]})

    assert fetched.outcome.code is Code.HOST_UNAVAILABLE
    assert (fetched.requests, len(paths)) == (3, 3)


def test_a_body_that_stalls_is_tried_again() -> None:
    fetched, paths, _ = fetch({"/": [[answer(Content_Length="10") + b"half", 5.0], answer(200, b"whole")]})

    assert fetched.reply is not None
    assert fetched.reply.body == b"whole"
    assert len(paths) == 2


def test_a_long_retry_after_comes_back_as_a_time_and_is_not_slept_through() -> None:
    fetched, paths, limiter = fetch({"/": [answer(429, Retry_After="60"), answer(200)]})

    assert fetched.outcome.code is Code.RATE_LIMITED
    assert fetched.outcome.retry_after == 60
    assert paths == ["/"]
    assert 50 < limiter.snapshot().top[0].not_before <= 60


def test_an_open_circuit_is_a_deferral_and_no_attempt() -> None:
    rules = LimiterRules(pace=FAST.pace, backoff=FAST.backoff, breaker=BreakerRules(consecutive=1))

    async def main() -> tuple[Fetched, int]:
        limiter = Limiter(rules, rng=Random(1))
        async with ScriptedServer({"/": [answer(500)]}) as server, Http(None, OWN) as http:
            fetcher = Fetcher(http, limiter)
            await fetcher.fetch(Task(server.url()))
            await fetcher.fetch(Task(server.url()))
            fetched = await fetcher.fetch(Task(server.url()))
            return fetched, len(server.requests)

    fetched, asked = run(main)

    assert fetched.outcome.code is Code.DEFERRED
    assert fetched.outcome.retry_after is not None
    assert fetched.outcome.retry_after > 10
    assert (fetched.requests, asked) == (0, 1)


def test_redirects_are_followed_and_counted() -> None:
    script: Script = {
        "/": [answer(301, Location="/b")],
        "/b": [answer(302, Location="c?x=1#part")],
        "/c?x=1": [answer()],
    }

    fetched, paths, _ = fetch(script)

    assert fetched.outcome.code is Code.OK
    assert fetched.reply is not None
    assert fetched.reply.url.endswith("/c?x=1")
    assert (fetched.requests, paths) == (3, ["/", "/b", "/c?x=1"])


def test_who_wants_the_beginning_gets_no_more_of_what_it_moved_to() -> None:
    async def main() -> bytes:
        script: Script = {"/": [answer(301, Location="/b")], "/b": [answer(200, b"0123456789")]}
        async with ScriptedServer(script) as server, Http(None, OWN) as http:
            fetched = await Fetcher(http, Limiter(FAST)).fetch(Task(server.url(), most=4))
            assert fetched.reply is not None
            return fetched.reply.body

    assert run(main) == b"0123"


def test_a_ring_of_redirects_ends_at_once() -> None:
    fetched, paths, _ = fetch({"/": [answer(302, Location="/b")], "/b": [answer(302, Location="/")]})

    assert fetched.outcome.code is Code.REDIRECT_LOOP
    assert paths == ["/", "/b"]


def test_redirects_that_lead_on_and_on_end_after_twenty() -> None:
    script: Script = {f"/{n}": [answer(302, Location=f"/{n + 1}")] for n in range(30)}

    fetched, paths, _ = fetch(script, path="/0")

    assert fetched.outcome.code is Code.REDIRECT_LOOP
    assert len(paths) == MOST_HOPS + 1


def test_a_byte_of_a_location_that_is_no_utf8_stands_for_itself() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9?q=\xc3\xa9\r\nContent-Length: 0\r\n\r\n"

    _, paths, _ = fetch({"/": [moved]})

    assert paths[1].startswith("/caf%E9?q=")


@pytest.mark.parametrize(
    ("said", "code", "detail"),
    [
        ("bytes 0-4/99999", Code.INVALID_RESPONSE, "bytes 0 to 4 of 99999, though no part was asked for"),
        ("bytes 5-9/10", Code.INVALID_RESPONSE, "bytes 5 to 9 of 10, though no part was asked for"),
        ("", Code.INVALID_RESPONSE, "a part that was not asked for, and no Content-Range to say which"),
        ("bytes 0-4/5", Code.OK, ""),
    ],
)
def test_a_part_that_nobody_asked_for_is_no_page(said: str, code: Code, detail: str) -> None:
    fetched, paths, _ = fetch({"/": [answer(206, b"hello", Content_Range=said)]})

    assert (fetched.outcome.code, fetched.outcome.detail, len(paths)) == (code, detail, 1)


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("ftp://host.example/", Code.INVALID_URL),
        ("http://user:secret@host.example/", Code.INVALID_URL),
        ("http://:80/", Code.INVALID_URL),
        ("http://[::1", Code.INVALID_URL),
    ],
)
def test_a_redirect_to_what_is_no_page_is_one_outcome(location: str, code: Code) -> None:
    fetched, _, _ = fetch({"/": [answer(302, Location=location)]})

    assert fetched.outcome.code is code
    assert "secret" not in fetched.outcome.detail


def test_a_redirect_to_an_own_address_is_refused() -> None:
    class Elsewhere(Http):
        """Stands for a public host, which there is none of here."""

        async def send(self, task: Task) -> Reply:
            if task.host == "public.example":
                return Reply(302, (("Location", "http://169.254.169.254/latest/"),), b"", task.url, 0.1)
            return await super().send(task)

    async def main() -> Fetched:
        async with Elsewhere() as http:
            return await Fetcher(http, Limiter(FAST)).fetch(Task("http://public.example/"))

    assert run(main).outcome.code is Code.REFUSED


class Echo(Http):
    """Notes what it is asked to send, and answers from a list."""

    def __init__(self, replies: Sequence[Reply | Exception]) -> None:
        super().__init__()
        self.sent: list[Task] = []
        self._replies = list(replies)

    async def send(self, task: Task) -> Reply:
        self.sent.append(task)
        answer = self._replies.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def reply(status: int, **headers: str) -> Reply:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, pairs, b"", "http://a.example/", 0.1)


SECRETS = (("Authorization", "Bearer x"), ("X-Api-Key", "k"), ("X-Auth-Token", "t"), ("Who", "w"), ("Accept", "a"))


@pytest.mark.parametrize("elsewhere", ["http://b.example/", "http://a.example/"])
def test_secrets_follow_no_redirect_to_another_host_or_into_the_open(elsewhere: str) -> None:
    http = Echo([reply(302, Location="/same"), reply(302, Location=elsewhere), reply(200)])
    task = Task("https://a.example/", headers=SECRETS, secrets=frozenset({"who"}))

    run(lambda: Fetcher(http, Limiter(FAST)).fetch(task))

    assert [sent.headers for sent in http.sent] == [SECRETS, SECRETS, (("Accept", "a"),)]


def test_a_body_that_is_sent_with_secrets_follows_no_redirect_to_another_host() -> None:
    http = Echo([reply(307, Location="/same"), reply(307, Location="https://b.example/"), reply(200)])
    task = Task("https://a.example/", method="POST", body=b"client_secret=x", secrets=frozenset({SECRET_BODY}))

    fetched = run(lambda: Fetcher(http, Limiter(FAST)).fetch(task))

    assert (fetched.outcome.code, len(http.sent)) == (Code.REFUSED, 2)
    assert "b.example" in fetched.outcome.detail


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_post_stays_one_only_where_the_redirect_says_so(status: int, method: str) -> None:
    http = Echo([reply(status, Location="/next"), reply(200)])

    run(lambda: Fetcher(http, Limiter(FAST)).fetch(Task("http://a.example/", method="POST", body=b"x")))

    assert http.sent[1].method == method
    assert http.sent[1].body == (b"x" if method == "POST" else None)


def test_each_hop_asks_leave_of_its_own_host() -> None:
    http = Echo([reply(302, Location="http://b.example/"), reply(200)])
    limiter = Limiter(FAST)

    run(lambda: Fetcher(http, limiter).fetch(Task("http://a.example/")))

    assert {view.host: view.requests for view in limiter.snapshot().top} == {"a.example": 1, "b.example": 1}


def test_rate_headers_slow_the_host_down_ahead_of_the_wall() -> None:
    http = Echo([reply(200, RateLimit_Remaining="10", RateLimit_Reset="100", RateLimit_Limit="100")])
    limiter = Limiter(FAST)

    run(lambda: Fetcher(http, limiter).fetch(Task("http://a.example/")))

    assert limiter.snapshot().top[0].rate == pytest.approx(0.25)


def test_a_host_that_is_down_is_asked_little_more_than_once_per_task() -> None:
    """The retry budget: three tries for each of 400 tasks would be 1,200 requests."""

    async def main() -> int:
        clock = LoopClock()
        rules = LimiterRules(pace=PaceRules(initial_rps=8, max_rps=8), breaker=BreakerRules(consecutive=10**6))
        http = Echo([reply(500)] * 1200)
        fetcher = Fetcher(http, Limiter(rules, clock=clock, rng=Random(1)), clock=clock)
        for number in range(400):
            await fetcher.fetch(Task(f"http://a.example/{number}"))
            if len(http.sent) % 50 == 0:
                await clock.sleep(1)
        return len(http.sent)

    assert run_virtual(main()) <= 400 * 1.1 + 20


# One retry to spend, and none to earn: whoever is not paid back cannot try again.
ONE_RETRY = BudgetRules(share=0.0, reserve=1.0, most=1.0)


def test_a_retry_that_was_worth_it_is_paid_back() -> None:
    http = Echo([reply(500), reply(200)] * 5)
    limiter = Limiter(LimiterRules(pace=FAST.pace, backoff=FAST.backoff, budget=ONE_RETRY))
    fetcher = Fetcher(http, limiter)

    async def main() -> list[Code]:
        return [(await fetcher.fetch(Task("http://a.example/"))).outcome.code for _ in range(5)]

    assert run(main) == [Code.OK] * 5


def test_a_retry_that_was_not_is_spent() -> None:
    http = Echo([reply(500)] * 5)
    limiter = Limiter(LimiterRules(pace=FAST.pace, backoff=FAST.backoff, budget=ONE_RETRY))
    fetcher = Fetcher(http, limiter)

    async def main() -> list[int]:
        return [(await fetcher.fetch(Task("http://a.example/"))).requests for _ in range(2)]

    assert run(main) == [2, 1]


def test_a_retry_that_is_cancelled_while_it_waits_is_paid_back() -> None:
    http = Echo([reply(500)])
    backoff = BackoffRules(base=4.0, longest=4.0, attempts=3)
    limiter = Limiter(LimiterRules(pace=FAST.pace, backoff=backoff, budget=ONE_RETRY), rng=Random(1))

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await Fetcher(http, limiter).fetch(Task("http://a.example/"))

    run(main)
    assert limiter.plan_retry("a.example", 1) is not None


def test_cancelling_a_fetch_teaches_nothing_and_leaks_nothing() -> None:
    async def main() -> Limiter:
        limiter = Limiter(FAST)
        slow: list[Step] = [10.0, answer()]
        async with ScriptedServer({"/": [slow]}) as server, Http(None, OWN) as http:
            task = asyncio.create_task(Fetcher(http, limiter).fetch(Task(server.url())))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return limiter

    (view,) = run(main).snapshot().top
    assert (view.inflight, view.failures, view.latency) == (0, 0, None)


def test_redirects_are_given_as_they_are_to_who_wants_them_so() -> None:
    http = Echo([reply(301, Location="/b"), reply(200)])

    fetched = run(lambda: Fetcher(http, Limiter(FAST), follow=False).fetch(Task("http://a.example/a")))

    assert fetched.reply is not None
    assert (fetched.reply.status, fetched.requests) == (301, 1)


def test_leave_that_was_given_before_is_used_for_the_first_request_only() -> None:
    limiter = Limiter(FAST)
    permit = limiter.try_acquire("a.example")
    assert permit is not None

    fetched = run(lambda: Fetcher(Echo([reply(500), reply(200)]), limiter).fetch(Task("http://a.example/"), permit))

    assert (fetched.outcome.code, fetched.requests) == (Code.OK, 2)
    assert (limiter.snapshot().requests, limiter.snapshot().top[0].inflight) == (2, 0)


class Noting(Limiter):
    """Keeps all that it is told."""

    def __init__(self, rules: LimiterRules = FAST, clock: LoopClock | None = None) -> None:
        super().__init__(rules, clock=clock, rng=Random(1))
        self.heard: list[Feedback] = []

    def feedback(self, permit: Permit, feedback: Feedback) -> None:
        self.heard.append(feedback)
        super().feedback(permit, feedback)


def heard(replies: Sequence[Reply | Exception], blame: Blame | None, *, follow: bool = True) -> list[Feedback]:
    limiter = Noting()
    task = Task("http://a.example/", blame=blame)
    run(lambda: Fetcher(Echo(replies), limiter, follow=follow).fetch(task))
    return limiter.heard


def test_the_limiter_is_told_whose_fault_a_failure_is_and_how_often_the_item_failed() -> None:
    told = heard([reply(500), reply(500), reply(200)], Blame("item", 2))

    assert [each.blame for each in told] == [Blame("item", 2), Blame("item", 3), Blame("item", 4)]


def test_a_refusal_is_no_failure_of_the_item() -> None:
    told = heard([reply(429, Retry_After="0"), reply(200)], Blame("item", 2))

    assert [each.blame for each in told] == [Blame("item", 2), Blame("item", 2)]


@pytest.mark.parametrize(
    ("error", "unsent"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such name"), True),
        (ConnectionRefusedError(), True),
        (ssl.SSLError(1, "bad"), True),
        (aiohttp.ConnectionTimeoutError(), True),
        (aiohttp.ClientConnectorError(None, OSError(errno.EHOSTUNREACH, "no route")), True),  # type: ignore[arg-type]
        (ConnectionResetError(), False),
        (aiohttp.ServerTimeoutError(), False),
        (TimeoutError("idle"), False),
    ],
)
def test_what_was_never_sent_is_told_apart(error: Exception, *, unsent: bool) -> None:
    told = heard([error, reply(200)], None)

    assert [(each.unsent, each.blame) for each in told] == [(unsent, None), (False, None)]


@pytest.mark.parametrize(("latency", "wait"), [(0.1, 10.0), (8.0, 24.0)])
def test_a_probe_waits_ten_seconds_or_three_times_as_long_as_the_host_takes_when_it_is_well(
    latency: float, wait: float
) -> None:
    async def main() -> list[float | None]:
        clock = LoopClock()
        limiter, echo = Noting(clock=clock), Echo([reply(200)] * 3)
        fetcher = Fetcher(echo, limiter, clock=clock)
        limiter.feedback(await limiter.acquire("a.example"), Feedback(200, latency))
        await fetcher.fetch(Task("http://a.example/"))
        for _ in range(5):
            limiter.feedback(await limiter.acquire("a.example"), Feedback(500, 0.1))
        await clock.sleep(limiter.ready_at("a.example") - clock.now())
        await fetcher.fetch(Task("http://a.example/"))
        await fetcher.fetch(Task("http://a.example/"))
        return [task.wait for task in echo.sent]

    before, probe, after = run_virtual(main())

    assert (before, after) == (None, None)
    assert probe == pytest.approx(wait, rel=0.3)


def slow_host(limiter: Limiter, host: str, wait: float) -> None:
    """Let the host ask for that much quiet."""
    permit = limiter.try_acquire(host)
    assert permit is not None
    limiter.feedback(permit, Feedback(429, 0.1, retry_after=wait))


@pytest.mark.parametrize("with_permit", [True, False])
@pytest.mark.parametrize(("wait", "code"), [(4.0, Code.OK), (3600.0, Code.DEFERRED)])
def test_a_hop_to_a_host_that_is_not_ready_within_seconds_comes_back_with_its_time(
    wait: float, code: Code, *, with_permit: bool
) -> None:
    async def main() -> tuple[Fetched, float]:
        clock = LoopClock()
        limiter = Limiter(FAST, clock=clock, rng=Random(1))
        slow_host(limiter, "b.example", wait)
        permit = limiter.try_acquire("a.example") if with_permit else None
        http = Echo([reply(302, Location="http://b.example/"), reply(200)])
        fetched = await Fetcher(http, limiter, clock=clock).fetch(Task("http://a.example/"), permit)
        return fetched, clock.now()

    fetched, took = run_virtual(main())

    assert fetched.outcome.code is code
    assert took < 5
    if code is Code.DEFERRED:
        assert fetched.outcome.retry_after == pytest.approx(wait)
        assert fetched.requests == 1


def test_a_hop_whose_turn_does_not_come_within_seconds_comes_back_too() -> None:
    """The host is asked for quiet while the hop stands in its line."""

    async def main() -> tuple[Fetched, float, int]:
        clock = LoopClock()
        rules = LimiterRules(pace=PaceRules(initial_rps=1, min_rps=0.001, max_rps=1))
        limiter = Limiter(rules, clock=clock, rng=Random(1))
        permit = await limiter.acquire("b.example")

        async def ask_for_quiet() -> None:
            await clock.sleep(0.5)
            limiter.feedback(permit, Feedback(429, 0.5, retry_after=600.0))

        http = Echo([reply(302, Location="http://b.example/"), reply(200)])
        async with asyncio.TaskGroup() as group:
            group.create_task(ask_for_quiet())
            fetched = await Fetcher(http, limiter, clock=clock).fetch(Task("http://a.example/"))
        return fetched, clock.now(), sum(view.waiting for view in limiter.snapshot().top)

    fetched, took, waiting = run_virtual(main())

    assert fetched.outcome.code is Code.DEFERRED
    assert fetched.outcome.retry_after == pytest.approx(595.5)
    assert took == pytest.approx(5)
    assert waiting == 0


def test_a_retry_whose_host_has_closed_meanwhile_is_deferred_and_paid_back() -> None:
    async def main() -> tuple[Fetched, bool]:
        clock = LoopClock()
        backoff = BackoffRules(base=4.0, longest=4.0, attempts=3)
        limiter = Limiter(LimiterRules(pace=FAST.pace, backoff=backoff, budget=ONE_RETRY), clock=clock, rng=Random(1))

        async def close() -> None:
            await clock.sleep(0.1)
            slow_host(limiter, "a.example", 60.0)

        async with asyncio.TaskGroup() as group:
            group.create_task(close())
            fetched = await Fetcher(Echo([reply(500)]), limiter, clock=clock).fetch(Task("http://a.example/"))
        return fetched, limiter.plan_retry("a.example", 1) is not None

    fetched, paid_back = run_virtual(main())

    assert (fetched.outcome.code, fetched.requests) == (Code.DEFERRED, 1)
    assert paid_back


@pytest.mark.parametrize("spent", [True, False])
def test_who_hands_in_a_permit_gets_further_requests_by_it(*, spent: bool) -> None:
    limiter = Limiter(FAST)

    async def main() -> tuple[Fetched, list[str]]:
        hosts: list[str] = []

        class Counted(Permit):
            async def more(self, host: str) -> Permit:
                hosts.append(host)
                return await super().more(host)

        given = await limiter.acquire("a.example")
        permit = Counted(given.owner, given.gate, given.serial)
        if spent:
            permit.release(sent=True)
        http = Echo([reply(302, Location="http://b.example/"), reply(500), reply(200)])
        return await Fetcher(http, limiter).fetch(Task("http://a.example/"), permit), hosts

    fetched, hosts = run(main)

    assert (fetched.outcome.code, fetched.requests) == (Code.OK, 3)
    assert hosts == ["a.example"] * spent + ["b.example", "b.example"]
