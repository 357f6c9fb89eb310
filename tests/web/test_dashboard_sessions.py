"""The door of the dashboard: who may come in and what for, how a session begins, and what ends with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.cookies import SimpleCookie
from pathlib import Path

import aiohttp
from dashboard_house import NAME, TOKEN, Dashboard, Quick, dashboard, watching
from known_reports import PAGES, put
from looping import in_loop
from structlog.testing import capture_logs

from sanderling.testing import FakeClock
from sanderling.web.access import Access, Token
from sanderling.web.sessions import LASTING, LONGEST_WAIT, MOST_PEERS, MOST_SESSIONS, Attempts, Door, Sessions

CLOSED = ["/api/house", "/api/stream", "/api/hosts", "/api/audit", "/nothing/here"]
PAUSE = {"action": "pause", "system": "pages"}


@asynccontextmanager
async def logged_in(home: Path) -> AsyncIterator[tuple[Dashboard, str]]:
    """Somebody who came with the token, and what their page must send along."""
    async with dashboard(home, token=TOKEN, bearer=False) as house:
        answer = await house.ask("POST", "/api/login", {"token": TOKEN})
        assert answer.status == 200, answer.body
        yield house, answer.data["csrf"]


# Who may come in.


@in_loop
async def test_without_the_token_nothing_is_told(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        statuses = {path: (await house.ask("GET", path)).status for path in CLOSED}
        action = await house.ask("POST", "/api/actions", PAUSE, house.own)
        cookie = await house.ask("GET", "/api/house", headers={"Cookie": f"sanderling_{house.address.port}=guess"})
        session = await house.ask("GET", "/api/session")

    assert statuses == dict.fromkeys(CLOSED, 401)
    assert (action.status, cookie.status) == (401, 401)
    assert session.data == {"secured": True, "in": False, "csrf": None}
    assert not (tmp_path / "audit.jsonl").exists()


@in_loop
async def test_programs_come_with_the_token_and_need_nothing_else(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path, token=TOKEN) as house:
        seen, done = await house.ask("GET", "/api/house"), await house.ask("POST", "/api/actions", PAUSE)
        session = await house.ask("GET", "/api/session")

    assert (seen.status, done.status) == (200, 200)
    assert seen.data["secured"] is True
    assert session.data == {"secured": True, "in": True, "csrf": None}


@in_loop
async def test_a_wrong_token_is_refused_and_slowed_down(tmp_path: Path) -> None:
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        wrong = await house.ask("POST", "/api/login", {"token": TOKEN + "x"})
        bearer = await house.ask("GET", "/api/house", headers={"Authorization": "Bearer wrong-and-long-enough"})
        again = [house.ask("POST", "/api/login", {"token": "wrong"}) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in again]
        statuses = sorted(task.result().status for task in tasks)
        retry = {task.result().headers.get("Retry-After") for task in tasks if task.result().status == 429}
        right = await house.ask("POST", "/api/login", {"token": TOKEN})

    assert (wrong.status, bearer.status) == (401, 401)
    assert "Set-Cookie" not in wrong.headers
    assert TOKEN not in wrong.body.decode()
    assert statuses == [401, 429, 429]
    assert retry == {f"{LONGEST_WAIT:.0f}"}
    assert right.status == 200


def test_wrong_tokens_cost_more_and_more_until_they_are_forgotten() -> None:
    class Waits(FakeClock):
        waited: list[float] = []  # noqa: RUF012 - of this test

        async def sleep(self, seconds: float) -> None:
            self.waited.append(seconds)

    clock = Waits()

    async def main() -> None:
        attempts = Attempts(clock)
        for _ in range(8):
            await attempts.wrong("peer")
        await attempts.wrong("another")
        attempts.right("another")
        await attempts.wrong("another")
        clock.advance(700)
        await attempts.wrong("peer")
        for number in range(2 * MOST_PEERS):
            await attempts.wrong(f"{number}")
        assert len(attempts._wrong) == MOST_PEERS

    asyncio.run(main())

    assert clock.waited[:11] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 0.25, 0.25, 0.25]


@in_loop
async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(tmp_path: Path) -> None:
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        plain = await house.ask("POST", "/api/login", {"token": TOKEN})
        proxied = await house.ask("POST", "/api/login", {"token": TOKEN}, {"X-Forwarded-Proto": "https"})
        port = house.address.port

    (cookie,) = SimpleCookie(plain.headers["Set-Cookie"]).values()
    assert cookie.key == f"sanderling_{port}"
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert (cookie["max-age"], cookie["domain"], cookie["secure"]) == (f"{LASTING:.0f}", "", "")
    assert len(cookie.value) >= 40
    assert plain.data["csrf"] not in plain.headers["Set-Cookie"]
    assert proxied.headers["Set-Cookie"].endswith("; Secure")
    assert TOKEN not in str(plain.headers)


@in_loop
async def test_people_come_with_a_cookie_and_change_something_only_with_the_word_of_our_page(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with logged_in(tmp_path) as (house, csrf):
        seen, session = await house.ask("GET", "/api/house"), await house.ask("GET", "/api/session")

        async def act(**headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await house.ask("POST", "/api/actions", PAUSE, named)).status

        own, foreign = house.address.url, "http://evil.example"
        refused = [
            await act(Origin=own),
            await act(X_CSRF_Token=csrf[:-1], Origin=own),
            await act(X_CSRF_Token=csrf),
            await act(X_CSRF_Token=csrf, Origin=foreign),
            await act(X_CSRF_Token=csrf, Origin="null"),
            await act(X_CSRF_Token=csrf, Origin=f"http://127.0.0.1:{house.address.port + 1}"),
            await act(X_CSRF_Token=csrf, Sec_Fetch_Site="cross-site"),
            await act(X_CSRF_Token=csrf, Origin=own, Sec_Fetch_Site="same-site"),
        ]
        before = house.audited()
        done = [
            await act(X_CSRF_Token=csrf, Origin=own),
            await act(X_CSRF_Token=csrf, Sec_Fetch_Site="same-origin"),
            await act(X_CSRF_Token=csrf, Origin=own.replace("http:", "https:")),  # through a proxy
        ]
        (entry, *_) = house.audited()

    assert (seen.status, session.data) == (200, {"secured": True, "in": True, "csrf": csrf})
    assert refused == [403] * 8
    assert before == []
    assert done == [200] * 3
    assert (entry.who, entry.from_) == (NAME, "127.0.0.1")


@in_loop
async def test_without_a_token_this_machine_is_served_and_no_page_of_a_stranger(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with dashboard(tmp_path) as house:
        session = (await house.ask("GET", "/api/session")).data
        word = {"X-CSRF-Token": session["csrf"]}
        port = house.address.port

        async def get(path: str, **headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await house.ask("GET", path, headers=named)).status

        rebound = [await get(path, Host=f"evil.example:{port}") for path in ("/api/session", "/api/house", "/health")]
        foreign = [await get("/api/house", Origin="http://evil.example"), await get("/", Sec_Fetch_Site="cross-site")]
        acts = [
            (await house.ask("POST", "/api/actions", PAUSE, headers)).status
            for headers in ({}, {"X-CSRF-Token": "guess"}, {**word, "Origin": "http://evil.example"}, word)
        ]
        login = await house.ask("POST", "/api/login", {"token": TOKEN})
        (entry,) = house.audited()

    assert session == {"secured": False, "in": True, "csrf": session["csrf"]}
    assert rebound == [403] * 3
    assert foreign == [403] * 2
    assert acts == [403, 403, 403, 200]
    assert login.status == 409
    assert (entry.who, entry.from_) == ("this machine", "127.0.0.1")


def test_a_session_lasts_half_a_day_and_there_are_not_too_many() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    first = sessions.begin()

    clock.advance(LASTING - 1)
    lasting = sessions.of(first.id)
    clock.advance(2)
    over = sessions.of(first.id)
    for _ in range(2 * MOST_SESSIONS):
        sessions.begin()

    assert (lasting, over) == (first, None)
    assert len(sessions) == MOST_SESSIONS
    assert sessions.of("") is None


@in_loop
async def test_a_session_is_of_the_dashboard_that_began_it(tmp_path: Path) -> None:
    async with logged_in(tmp_path) as (house, csrf):
        cookies = {cookie.key: cookie.value for cookie in house.client.cookie_jar}
        async with dashboard(tmp_path, token=TOKEN, bearer=False) as other:
            (value,) = cookies.values()
            headers = {"Cookie": f"sanderling_{other.address.port}={value}", "X-CSRF-Token": csrf}
            answer = await other.ask("GET", "/api/house", headers=headers)

    assert answer.status == 401


# Who leaves.


@in_loop
async def test_who_logs_out_is_out_and_that_is_recorded(tmp_path: Path) -> None:
    put(tmp_path / "pages", PAGES)
    async with logged_in(tmp_path) as (house, csrf):
        own = {"X-CSRF-Token": csrf, **house.own}
        kept = {cookie.key: cookie.value for cookie in house.client.cookie_jar}
        out = await house.ask("POST", "/api/logout", headers=own)
        session = await house.ask("GET", "/api/session")
        stolen = {"Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())}
        after = [(await house.ask("GET", path, headers=stolen)).status for path in ("/api/house", "/api/audit")]
        acted = await house.ask("POST", "/api/actions", PAUSE, {**own, **stolen})
        (entry,) = house.audited()
        removed = not list(house.client.cookie_jar)

    assert (out.status, out.data) == (200, {"done": "you are logged out"})
    assert removed
    (cookie,) = SimpleCookie(out.headers["Set-Cookie"]).values()
    assert (cookie.value, cookie["max-age"], cookie["path"]) == ("", "0", "/")
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
    assert session.data == {"secured": True, "in": False, "csrf": None}
    assert (after, acted.status) == ([401, 401], 401)
    assert (entry.action, entry.who, entry.from_, entry.done) == ("log_out", NAME, "127.0.0.1", True)


@in_loop
async def test_nobody_is_logged_out_by_a_strangers_page(tmp_path: Path) -> None:
    async with logged_in(tmp_path) as (house, csrf):
        attempts: list[dict[str, str]] = [
            {},
            house.own,
            {"X-CSRF-Token": csrf},
            {"X-CSRF-Token": csrf, "Origin": "http://evil.example"},
            {"X-CSRF-Token": csrf, "Sec-Fetch-Site": "same-site"},
        ]
        refused = [(await house.ask("POST", "/api/logout", headers=each)).status for each in attempts]
        by_get = await house.ask("GET", "/api/logout")
        session = await house.ask("GET", "/api/session")
        audited = house.audited()

    assert refused == [403] * 5
    assert by_get.status == 405
    assert session.data["in"] is True
    assert audited == []


@in_loop
async def test_who_has_no_session_cannot_log_out(tmp_path: Path) -> None:
    async with dashboard(tmp_path / "a", token=TOKEN) as house:
        by_token = await house.ask("POST", "/api/logout")
    async with dashboard(tmp_path / "b") as house:
        local = await house.ask("POST", "/api/logout", headers=await house.page())
    async with dashboard(tmp_path / "c", token=TOKEN, bearer=False) as house:
        nobody = await house.ask("POST", "/api/logout", headers=house.own)

    assert (by_token.status, local.status, nobody.status) == (409, 409, 401)


@in_loop
async def test_who_logs_out_is_out_also_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    async with logged_in(tmp_path) as (house, csrf):
        (tmp_path / "audit.jsonl").mkdir()
        out = await house.ask("POST", "/api/logout", headers={"X-CSRF-Token": csrf, **house.own})
        session = await house.ask("GET", "/api/session")

    assert out.status == 503
    assert out.data["detail"].startswith("it was done, and could not be recorded")
    assert session.data["in"] is False


@in_loop
async def test_a_stream_ends_with_its_session_and_no_other_does(tmp_path: Path) -> None:
    async with (
        logged_in(tmp_path) as (house, csrf),
        with_the_token(house) as program,
        watching(program) as stays,
        watching(house) as ends,
    ):
        await house.ask("POST", "/api/logout", headers={"X-CSRF-Token": csrf, **house.own})
        await ends
        for _ in range(2):
            await house.live.look()
        stayed = not stays.done()
        house.streams.close()

    assert stayed


@in_loop
async def test_a_stream_ends_when_its_session_has_lasted_long_enough(tmp_path: Path) -> None:
    clock = Later()
    async with dashboard(tmp_path, token=TOKEN, bearer=False, clock=clock) as house:
        await house.ask("POST", "/api/login", {"token": TOKEN})
        async with watching(house) as ends:
            clock.later = LASTING
            await ends
        again = await house.ask("GET", "/api/stream")

    assert again.status == 401


class Later(Quick):
    """Quick, and as much later as somebody says."""

    later = 0.0

    def now(self) -> float:
        return super().now() + self.later


@asynccontextmanager
async def with_the_token(house: Dashboard) -> AsyncIterator[Dashboard]:
    """The same dashboard, seen by a program that has the token."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield replace(house, client=client)


@in_loop
async def test_a_page_at_another_port_of_this_machine_gets_nothing_with_our_cookie(tmp_path: Path) -> None:
    async with logged_in(tmp_path) as (house, _):
        foreign = {"Sec-Fetch-Site": "same-site", "Origin": f"http://127.0.0.1:{house.address.port + 1}"}
        statuses = [
            (await house.ask("GET", path, headers={name: value})).status
            for path in ("/api/house", "/api/stream", "/api/audit")
            for name, value in foreign.items()
        ]
        own = await house.ask("GET", "/api/house", headers=house.own)

    assert statuses == [403] * 6
    assert own.status == 200


@in_loop
async def test_cookies_that_others_wrote_badly_do_not_hide_ours(tmp_path: Path) -> None:
    async with logged_in(tmp_path) as (house, _):
        ((name, value),) = ((cookie.key, cookie.value) for cookie in house.client.cookie_jar)
        async with aiohttp.ClientSession() as client:
            plain = replace(house, client=client)
            headers = {"Cookie": f'{{"a": 1}}; other={{"b": "c d"}}; =x; y; {name}={value}; z=1'}
            answer = await plain.ask("GET", "/api/house", headers=headers)

    assert answer.status == 200


@in_loop
async def test_wrong_tokens_are_told_in_one_line_for_many(tmp_path: Path) -> None:
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        with capture_logs() as lines:
            for _ in range(3):
                await house.ask("POST", "/api/login", {"token": "wrong-but-long-enough"})
                await house.ask("GET", "/api/house", headers={"Authorization": "Bearer wrong-but-long-enough"})

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert {line["event"] for line in warnings} == {"access_refused"}
    assert sum(line["attempts"] for line in warnings) <= 6
    assert "wrong-but" not in str(lines)


def test_a_door_without_a_token_and_one_with_it_say_so() -> None:
    clock = FakeClock()

    assert Door(Access(None, clock), clock, NAME).secured is False
    assert Door(Access(Token(TOKEN), clock), clock, NAME).secured is True
