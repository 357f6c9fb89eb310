"""Sessions of a crawl: walls of cookies, log-ins by a form, what outlives a kill, and what is never written down."""

import stat
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from small_web import crawl, page, reply, web

from sanderling import HostSettings
from sanderling.clock import SystemClock
from sanderling.crawls.folder import LedgerFolder
from sanderling.crawls.session import LoginError, Logins
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.jobs import FormLogin
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.pages.rules import CrawlRules
from sanderling.stores.cookie_file import FILE
from sanderling.stores.durable import FolderError
from sanderling.task import Reply, Task

HOME = "https://a.example/"
FORM = "<form method=post action=/in><input type=hidden name=csrf value=c{n}><input name=user><input name=password>"


@dataclass
class Club:
    """A site that shows its pages to those who are logged in; a session is good for so many pages."""

    lasts: int = 1000
    password: str = "hunter2"  # noqa: S105 - a test
    inline: bool = False  # a session that is over is told by the form in place of the page
    own: int = 0  # pages that show the form whoever asks
    sessions: dict[str, int] = field(default_factory=dict)
    sent: list[Task] = field(default_factory=list)

    async def send(self, task: Task) -> Reply:
        self.sent.append(task)
        return self._reply(task, dict(task.headers).get("Cookie", ""), urlsplit(task.url).path)

    def _reply(self, task: Task, cookie: str, path: str) -> Reply:
        if path == "/robots.txt":
            return self._say(task, 404)
        if path == "/login":
            return self._say(task, 200, FORM.format(n=len(self.sent)), Set_Cookie=f"visit={len(self.sent)}")
        if path == "/in":
            return self._log_in(task, cookie)
        sid = cookie.rpartition("sid=")[2].partition(";")[0]
        over = self.sessions.get(sid, 0) <= 0
        if path in [f"/p{number}" for number in range(self.own)] or (over and self.inline):
            return self._say(task, 200, FORM.format(n=0).replace("<form", "<FORM"))
        if over:
            return self._say(task, 302, Location="/login?back=" + path)
        self.sessions[sid] -= 1
        return self._say(task, 200, "".join(f"<a href=/p{number}>p</a>" for number in range(8)) + "Log out")

    def _log_in(self, task: Task, cookie: str) -> Reply:
        fields = dict(parse_qsl((task.body or b"").decode()))
        good = fields["password"] == self.password and f"visit={fields['csrf'][1:]}" in cookie.split("; ")
        if not good:
            return self._say(task, 200, FORM.format(n=0))
        sid = f"sid-{len(self.sessions)}"
        self.sessions[sid] = self.lasts
        return self._say(task, 303, Location="/", Set_Cookie=f"sid={sid}; Path=/; Secure; HttpOnly")

    @staticmethod
    def _say(task: Task, status: int, html: str = "", **headers: str) -> Reply:
        found = reply(status, html.encode(), Content_Type="text/html", **headers)
        return Reply(found.status, found.headers, found.body, task.url, 0.1)

    @property
    def logins(self) -> int:
        return sum(task.method == "POST" for task in self.sent)


def club_rules(success: str = "Log out") -> CrawlRules:
    login = FormLogin("https://a.example/login", {"user": "me", "password": "env:CLUB"}, success)
    return CrawlRules(hosts={"*.example": HostSettings(login=login)})


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUB", "hunter2")


def written(folder: Path) -> str:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != FILE)
    return "".join(path.read_bytes().decode("latin-1") for path in files)


def test_a_wall_of_cookies_is_passed_and_a_loop_is_one(tmp_path: Path) -> None:
    of = web(
        **{
            HOME: [page(status=302, Location=HOME, Set_Cookie="seen=1"), page("/loop")],
            f"{HOME}loop": page(status=302, Location=f"{HOME}loop", Set_Cookie="same=1"),
        }
    )

    crawled = crawl(tmp_path / "out", of, HOME)

    assert crawled.row(HOME)["status"] == 200
    assert of.urls.count(HOME) == 2
    assert of.urls.count(f"{HOME}loop") == 2
    assert (len(crawled.rows), len(crawled.failed)) == (1, 1)


@pytest.mark.parametrize("inline", [False, True], ids=["redirect", "form"])
def test_a_crawl_logs_in_once_and_again_when_its_session_is_over(tmp_path: Path, inline: bool) -> None:  # noqa: FBT001
    club = Club(lasts=5, inline=inline)

    crawled = crawl(tmp_path / "out", club, HOME, rules=club_rules())

    assert {urlsplit(url).path for url in crawled.fetched} == {"/", *(f"/p{number}" for number in range(8))}
    assert crawled.complete
    assert 2 <= club.logins <= 4
    assert "hunter2" not in written(tmp_path)
    assert "sid-" not in written(tmp_path)
    assert stat.S_IMODE((tmp_path / "out" / FILE).stat().st_mode) == 0o600
    assert all("Log out" in row["text"] for row in crawled.rows)


def test_pages_with_a_form_of_their_own_do_not_make_it_log_in_for_each(tmp_path: Path) -> None:
    club = Club(own=7)

    crawled = crawl(tmp_path / "out", club, HOME, rules=club_rules())

    assert 2 <= club.logins <= 4
    assert crawled.complete
    assert len(crawled.fetched) >= 2 + 4
    assert {each["outcome"] for each in crawled.failed} == {"AUTH_FAILED"}


@pytest.mark.parametrize(
    ("rules", "said"),
    [(club_rules(), "the form again"), (club_rules("Welcome"), "lacks 'Welcome', the sign of success")],
    ids=["password", "success"],
)
def test_who_is_not_let_in_stops_and_says_so(tmp_path: Path, rules: CrawlRules, said: str) -> None:
    club = Club(password="other" if "form" in said else "hunter2")

    with pytest.raises(LoginError, match=said):
        crawl(tmp_path / "out", club, HOME, rules=rules)

    assert club.logins == 1
    assert "hunter2" not in written(tmp_path)
    assert crawl(tmp_path / "out", Club(), rules=club_rules(), resume=True).complete


def test_a_secret_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUB")

    with pytest.raises(LoginError, match="no variable 'CLUB'"):
        crawl(tmp_path / "out", Club(), HOME, rules=club_rules())


class Killed(BaseException):
    """As kill -9, between two steps."""


def test_cookies_are_on_disk_before_what_was_fetched_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    of = web(**{HOME: page("/b", Set_Cookie="sid=1"), f"{HOME}b": page()})
    with monkeypatch.context() as patch:
        patch.setattr(LedgerFolder, "commit", die)
        with pytest.raises((Killed, BaseExceptionGroup)):
            crawl(tmp_path / "out", of, HOME)

    crawl(tmp_path / "out", of, resume=True)

    assert dict(of.tasks[-1].headers)["Cookie"] == "sid=1"
    crawl(tmp_path / "out", of, HOME)  # once more, from the beginning: the session is over
    asked = [dict(task.headers).get("Cookie") for task in of.tasks if task.url == HOME]
    assert asked[-1] is None


def test_cookies_that_are_none_are_said_and_not_shown(tmp_path: Path) -> None:
    of = web(**{HOME: page()})
    crawl(tmp_path / "out", of, HOME)
    (tmp_path / "out" / FILE).write_text('[{"name": "secret-thing"}]')

    with pytest.raises(FolderError, match=r"cookies\.json has no cookies in it") as caught:
        crawl(tmp_path / "out", of, HOME)

    assert "secret-thing" not in str(caught.value)


WALLS = {
    "by a cookie": ("https://sso.example.org/in?x=1", {"Set_Cookie": "try=1"}),
    "by its host in the address": ("https://sso.example.org/in?back=https%3A%2F%2Fwww.example.org%2Fa", {}),
    "at the same host": ("https://www.example.org/consent?to=%2Fa", {}),
}


@pytest.mark.parametrize("how", WALLS)
def test_a_wall_that_sets_a_cookie_and_leads_back_is_passed(tmp_path: Path, how: str) -> None:
    (wall, first), home, step = WALLS[how], "https://www.example.org/a", "https://sso.example.org/step"
    of = web(
        **{
            home: [page(status=302, Location=wall, **first), page("/b", title="inside")],
            wall: page(status=302, Location=step, Set_Cookie="own=1"),
            step: page(status=302, Location=home, Set_Cookie="sso=1; Domain=example.org; Path=/"),
            "https://www.example.org/b": page(title="b"),
        }
    )

    crawled = crawl(tmp_path / "out", of, home)

    assert crawled.row(home)["title"] == "inside"
    assert (len(crawled.fetched), crawled.failed) == (2, [])
    assert [of.urls.count(each) for each in (home, wall, step)] == [2, 1, 1]


def test_a_wall_that_does_not_lead_back_costs_one_request_more_and_not_one_for_each_page(tmp_path: Path) -> None:
    home = "https://www.example.org/"
    wall = {f"{home}p{each}": page(status=302, Location=f"{home}login?to=/p{each}") for each in range(9)}
    forms = {f"{home}login?to=/p{each}": page(title="form") for each in range(9)}
    of = web(**{home: page(*(f"/p{each}" for each in range(9))), **wall, **forms})

    crawled = crawl(tmp_path / "out", of, home, rules=CrawlRules(per_host=1))

    assert crawled.complete
    assert len([url for url in of.urls if "login" in url]) == 9 + 1


def test_a_wall_that_leads_back_for_ever_is_a_loop_and_one_that_is_refused_is_not_asked(tmp_path: Path) -> None:
    home, wall = "https://www.example.org/", "https://sso.example.net/in?back=www.example.org"
    of = web(
        **{
            home: page(status=302, Location=wall, Set_Cookie="a=1"),
            wall: page(status=302, Location=home, Set_Cookie="b=1"),
        }
    )
    guarded = web(
        **{
            home: page(status=302, Location=wall, Set_Cookie="a=1"),
            wall: page(status=302, Location=home),
            "https://sso.example.net/robots.txt": reply(200, b"User-agent: *\nDisallow: /"),
        }
    )

    looped, refused = crawl(tmp_path / "a", of, home), crawl(tmp_path / "b", guarded, home)

    assert of.urls.count(home) <= 4
    assert looped.complete
    assert wall not in guarded.urls
    assert refused.row(home)["moved_to"] == wall


def test_a_cookie_bomb_loses_no_page(tmp_path: Path) -> None:
    bomb = reply(200, b'<a href="/b">b</a>', Content_Type="text/html")
    cookies = tuple(("Set-Cookie", f"n{number}={'x' * 4000}") for number in range(500))
    bomb = Reply(200, (*bomb.headers, *cookies), bomb.body, HOME, 0.1)
    of = web(**{HOME: bomb, f"{HOME}b": page()})

    crawled = crawl(tmp_path / "out", of, HOME)

    assert len(crawled.fetched) == 2
    assert len(dict(of.tasks[-1].headers)["Cookie"]) < 8000
    assert (tmp_path / "out" / FILE).stat().st_size < 300_000


@pytest.mark.parametrize(
    ("page", "own", "each", "told"),
    [
        ("http://a.example/login", None, None, True),
        ("HTTP://a.example/login", False, True, True),
        ("http://a.example/login", True, None, False),
        ("http://a.example/login", None, True, False),
        ("https://a.example/login", None, None, False),
    ],
)
def test_a_password_goes_by_https_alone(
    monkeypatch: pytest.MonkeyPatch, *, page: str, own: bool | None, each: bool | None, told: bool
) -> None:
    monkeypatch.setenv("CLUB", "hunter2")
    login = FormLogin(page, {"password": "env:CLUB"})
    hosts = {"a.example": HostSettings(login=login, plain_http=own), "*": HostSettings(plain_http=each)}
    clock, limiter = SystemClock(), Limiter()
    one = Fetcher(Http(), limiter)

    with pytest.raises(LoginError, match="plain-http") if told else nullcontext():
        Logins(hosts, one, one, Memory(1), clock, lambda: None)
