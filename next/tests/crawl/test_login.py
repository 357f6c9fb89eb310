"""Log-ins that the configuration declares: a form, or cookies of a browser."""

from pathlib import Path

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, crawl, page, pages_options, rows, served

from sanderling.clock import SystemClock
from sanderling.fetch.client import Client
from sanderling.fetch.options import HostOptions, LoginOptions, RequestOptions
from sanderling.files import FolderError
from sanderling.options import OptionError

FORM = '<form method="post" action="/login"><input name="user"><input name="pass" type="password"></form>'


class Members(Site):
    """Shows its pages to who has logged in with the right words; a session is good for three of them."""

    def __init__(self) -> None:
        super().__init__({"/login": self.login, "*": self.member})
        self.sessions: dict[str, int] = {}
        self.fields: list[str] = []

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        if request.method == "POST":
            self.fields.append((await request.read()).decode())
        return await super().__call__(request)

    def login(self, request: web.Request) -> Answer:
        if request.method == "GET":
            return 200, HTML, FORM
        if self.fields[-1] != "user=ann&pass=marked":
            return 200, HTML, FORM
        name = str(len(self.fields))
        self.sessions[name] = 3
        return 200, {**HTML, "Set-Cookie": f"session={name}; Path=/"}, "welcome"

    def member(self, request: web.Request) -> Answer:
        name = request.cookies.get("session", "")
        if not self.sessions.get(name):
            return 302, {"Location": "/login"}, ""
        self.sessions[name] -= 1
        number = int(request.path[1:])
        return 200, HTML, page(f"Page {number}", links=[f"/{number + 1}"] if number < 6 else [])


def with_login(site: Site, **more: object) -> dict[str, HostOptions]:
    login = LoginOptions(url=f"{site.base}/login", fill={"user": "ann", "pass": "env:MEMBERS_PASS"})
    given: dict[str, object] = {"login": login, "plain_http": True}
    return {site.base.partition("//")[2]: HostOptions(**given | more)}


@pytest.mark.real
async def test_a_session_is_begun_and_renewed_and_no_other_host_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBERS_PASS", "marked")
    site, other = Members(), Site({"*": page("Other")})
    async with served(site, other):
        urls = (site.base + "/0", other.base + "/")
        await crawl(pages_options(tmp_path / "a", *urls, hosts=with_login(site), keep="warc"))
        titles = {row["title"] for row in rows(tmp_path / "a").values()}
        monkeypatch.setenv("MEMBERS_PASS", "wrong")
        with pytest.raises(BaseExceptionGroup) as refused:
            await crawl(pages_options(tmp_path / "b", site.base + "/0", hosts=with_login(site)))

    assert titles == {"Other", *(f"Page {n}" for n in range(7))}
    assert len(site.fields) == 4
    assert not any("marked" in path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert refused.group_contains(FolderError, match="it was not accepted")


class Tokens(Members):
    """The same by tokens: each is good for three pages."""

    def login(self, request: web.Request) -> Answer:
        if self.fields[-1] != "grant_type=client_credentials&client_secret=marked":
            return 401, {"Content-Type": "application/json"}, '{"error": "invalid_client"}'
        name = f"token-{len(self.fields)}"
        self.sessions[name] = 3
        return 200, {"Content-Type": "application/json"}, f'{{"access_token": "{name}", "expires_in": 3600}}'

    def member(self, request: web.Request) -> Answer:
        name = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not self.sessions.get(name):
            return 401, HTML, "who are you?"
        self.sessions[name] -= 1
        number = int(request.path[1:])
        return 200, HTML, page(f"Page {number}", links=[f"/{number + 1}"] if number < 6 else [])


@pytest.mark.real
async def test_tokens_of_an_endpoint_are_renewed_and_no_other_host_sees_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBERS_PASS", "marked")
    site, other = Tokens(), Site({"*": page("Other")})
    fill = {"grant_type": "client_credentials", "client_secret": "env:MEMBERS_PASS"}
    async with served(site, other):
        login = LoginOptions(url=f"{site.base}/login", fill=fill, token="body.access_token")
        urls = (site.base + "/0", other.base + "/")
        await crawl(pages_options(tmp_path / "a", *urls, hosts=with_login(site, login=login), keep="warc"))
        titles = {row["title"] for row in rows(tmp_path / "a").values()}
        await crawl(pages_options(tmp_path / "b", urls[0], hosts=with_login(site, login=login, plain_http=None)))
        wrong = LoginOptions(url=f"{site.base}/login", fill=fill, token="body.[")
        with pytest.raises(OptionError, match="login: token"):
            await crawl(pages_options(tmp_path / "c", site.base + "/0", hosts=with_login(site, login=wrong)))

    assert titles == {"Other", *(f"Page {n}" for n in range(7))}
    assert "plain-http = true" in (tmp_path / "b" / "failed.jsonl").read_text()
    assert len(site.fields) == 3
    assert not any("Authorization" in head for head in other.heads)
    assert not any(b"marked" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_what_cannot_be_logged_in_with_is_said_before() -> None:
    login = LoginOptions(url="https://login.example/", fill={"user": "ann"})
    with pytest.raises(OptionError, match="another host"):
        RequestOptions(hosts={"example.org": HostOptions(login=login)})
    RequestOptions(hosts={"*.example": HostOptions(login=login)})
    with pytest.raises(OptionError, match="go together"):
        LoginOptions(url="https://login.example/")
    with pytest.raises(OptionError, match="kept by them"):
        HostOptions(login=login, cookies=False)


async def test_cookies_of_a_browser(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    lines = [
        "# Netscape HTTP Cookie File",
        "#HttpOnly_.example.org\tTRUE\t/\tTRUE\t4000000000\tsid\ta1",
        "www.example.org\tFALSE\t/in\tFALSE\t0\tplace\tb2",
        "other.example\tFALSE\t/\tFALSE\t0\tforeign\tc3",
        "example.org\tFALSE\t/\tFALSE\t1\told\td4",
    ]
    file.write_text("\n".join(lines))
    wall = SystemClock().wall()
    async with Client(RequestOptions(hosts={"*.example.org": HostOptions(cookie_file=file)})) as client:
        assert client.cookies.header("https://www.example.org/in/x", wall) == "place=b2; sid=a1"
        assert client.cookies.header("http://www.example.org/", wall) == ""
        assert client.cookies.header("https://other.example/", wall) == ""
    file.write_text("[{}]")
    with pytest.raises(FolderError, match="line 1: no cookie"):
        async with Client(RequestOptions(hosts={"example.org": HostOptions(cookie_file=file)})):
            pass
