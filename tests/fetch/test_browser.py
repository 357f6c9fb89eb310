"""Pages in a real browser, on a web in a dictionary: it has no network of its own, so all that it asks is seen here."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from fake_browser import below, is_browser, is_driver, is_tab

from sanderling.clock import SystemClock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.browser import BrowserRenderer
from sanderling.fetch.guard import GuardRules, check_url
from sanderling.fetch.render import RenderedPage, RenderError, RenderRules, find_browser
from sanderling.limit import Limiter, LimiterRules, PaceRules, Permit
from sanderling.task import Headers, Reply, Task

T = TypeVar("T")
A, B = "https://a.example", "https://b.example"
SOON = RenderRules(quiet=0.15, scripts=1.5, most_requests=20)


class Web:
    """Answers from a dictionary, within the guard, and with leave of a limiter; writes down who asked, and when."""

    def __init__(self, answers: dict[str, Reply], rps: float = 1000.0) -> None:
        self.answers = answers
        self.asked: list[tuple[float, Task]] = []
        self._limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=rps, min_rps=rps, max_rps=rps, burst=1)))
        self._fetcher = Fetcher(self, self._limiter, retry=False)

    async def admit(self, task: Task) -> Permit | None:
        return await self._limiter.acquire(task.host)

    async def send(self, task: Task, permit: Permit | None = None) -> Any:  # noqa: ANN401 - of a page, or of a client
        if permit is not None:
            return (await self._fetcher.fetch(task, permit)).reply
        check_url(task.url, GuardRules())
        self.asked.append((asyncio.get_running_loop().time(), task))
        answer = self.answers.get(task.url, said("not here", status=404))
        return Reply(answer.status, answer.headers, answer.body, task.url, 0.01)

    @property
    def urls(self) -> list[str]:
        return [task.url for _, task in self.asked]


def said(body: str, kind: str = "text/plain", *, status: int = 200, headers: Headers = ()) -> Reply:
    return Reply(status, (("Content-Type", kind), *headers), body.encode(), "https://set.later/", 0.01)


def page(script: str, *, html: str = "", headers: Headers = ()) -> Reply:
    body = f"<!doctype html><title>t</title><div id=root></div>{html}<script>{script}</script>"
    made = said(body, "text/html", headers=headers)
    return Reply(made.status, made.headers, made.body, f"{A}/", 0.01)


SHOW = "const show = text => document.getElementById('root').textContent += text + ';';"


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return find_browser()
    except RenderError as error:
        pytest.skip(str(error))


class Tab:
    """One browser for all tests of the file, on a loop of its own."""

    def __init__(self, program: str, runner: asyncio.Runner) -> None:
        self.renderer = BrowserRenderer(SOON, program, SystemClock())
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(asyncio.wait_for(work, 60))

    def show(self, reply: Reply, web: Web | None = None, **rules: Any) -> RenderedPage:  # noqa: ANN401 - of RenderRules
        self.renderer.rules = RenderRules(**{"quiet": 0.15, "scripts": 1.5, "most_requests": 20, **rules})
        return self.run(self.renderer.render(reply, web or Web({})))

    @property
    def pids(self) -> list[int]:
        """The browser and all its processes."""
        return below(os.getpid())


@pytest.fixture(scope="module")
def tab(program: str) -> Iterator[Tab]:
    with asyncio.Runner() as runner:
        tab = Tab(program, runner)
        tab.run(tab.renderer.__aenter__())
        yield tab
        tab.run(tab.renderer.__aexit__(None, None, None))


def test_a_page_is_what_its_scripts_make_of_it(tab: Tab) -> None:
    web = Web({f"{A}/api": said("made by a script")})

    made = tab.show(page(SHOW + "fetch('/api').then(r => r.text()).then(show)"), web)

    assert b"made by a script;" in made.reply.body
    assert made.reply.header("content-type") == "text/html; charset=utf-8"
    assert (web.urls, made.requests, made.cut, made.onward) == ([f"{A}/api"], 1, "", None)


def test_what_pages_are_not_made_with_is_blocked_and_counted(tab: Tab) -> None:
    web = Web({f"{A}/late.js": said("show('late')", "text/javascript")})
    html = (
        "<img src=/i.png><video src=/v.mp4></video><iframe src=/frame></iframe><object data=/o.pdf></object>"
        "<style>@font-face{font-family:f;src:url(/f.woff)}#root{font-family:f;background:url(/bg.png)}</style>"
        "<link rel=prefetch href=/ahead.html><link rel=stylesheet href=/s.css>"
        "<script src=https://www.googletagmanager.com/gtm.js></script>"
    )
    script = (
        SHOW + "const s = document.querySelector('link[rel=stylesheet]'); s.onload = () => show('styled');"
        "navigator.sendBeacon('/b', 'x'); new WebSocket('wss://a.example/ws');"
        "new EventSource('/stream'); window.open('/popup');"
        "navigator.serviceWorker.register('/worker.js').catch(() => 0);"
        "const late = document.createElement('script'); late.src = '/late.js'; document.body.append(late);"
    )

    made = tab.show(page(script, html=html), web)

    assert web.urls == [f"{A}/late.js"]
    assert b"late;" in made.reply.body
    assert made.blocked >= 8
    assert made.requests == 1


def test_nothing_leaves_the_browser_by_another_way(tab: Tab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        tcp.settimeout(0)
        udp.settimeout(0)
        own, port = f"127.0.0.1:{tcp.getsockname()[1]}", udp.getsockname()[1]
        html = (
            f"<link rel=preconnect href=http://{own}><link rel=prefetch href=http://{own}/p>"
            f"<link rel=modulepreload href=http://{own}/m.js><img src=http://{own}/i><iframe src=http://{own}/f></iframe>"
        )
        script = f"""{SHOW}
            fetch('http://{own}/x').catch(() => show('refused'));
            new Image().src = 'http://{own}/y';
            const code = "try {{ importScripts('http://{own}/w.js') }} catch (e) {{}}; fetch('http://{own}/z')";
            new Worker(URL.createObjectURL(new Blob([code])));
            try {{ new WebSocket('ws://{own}/s') }} catch (e) {{}}
            try {{ new WebTransport('https://{own}/t') }} catch (e) {{}}
            const f = document.createElement('iframe'); document.body.append(f);
            for (const w of [window, f.contentWindow]) try {{
                const rtc = new w.RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},
                    {{urls: 'turn:{own}?transport=tcp', username: 'u', credential: 'c'}}]}});
                rtc.createDataChannel('c'); rtc.createOffer().then(o => rtc.setLocalDescription(o));
            }} catch (e) {{}}
        """

        made = tab.show(page(script, html=html), quiet=0.5)

        assert b"refused;" in made.reply.body
        with pytest.raises(BlockingIOError):
            tcp.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)


def test_a_redirect_is_followed_by_us_and_guarded_at_each_hop(tab: Tab) -> None:
    web = Web(
        {
            f"{A}/away": said(
                "", status=302, headers=(("Location", f"{B}/data"), ("Access-Control-Allow-Origin", "*"))
            ),
            f"{B}/data": said("from b", headers=(("Access-Control-Allow-Origin", "*"),)),
            f"{A}/in": said("", status=302, headers=(("Location", "http://169.254.169.254/latest/meta-data"),)),
        }
    )
    script = SHOW + "for (const u of ['/away', '/in']) fetch(u).then(r => r.text()).then(show, () => show('no ' + u))"

    made = tab.show(page(script), web)

    assert b"from b;" in made.reply.body
    assert sorted(web.urls) == [f"{A}/away", f"{A}/in", f"{B}/data"]
    assert b"no /in" in made.reply.body or made.reply.body.count(b";") >= 2


@pytest.mark.parametrize(
    "script", ["location = 'http://127.0.0.1/secret'", "setTimeout(() => location.replace('http://127.0.0.1/secret'))"]
)
def test_where_a_script_goes_on_to_is_said_and_not_asked_for(tab: Tab, script: str) -> None:
    web = Web({})

    made = tab.show(page(SHOW + "show('kept');" + script), web)

    assert (made.onward, made.cut) == ("http://127.0.0.1/secret", "")
    assert b"kept;" in made.reply.body
    assert web.urls == []


def test_scripts_that_ask_without_end_are_cut(tab: Tab) -> None:
    web = Web({f"{A}/more": said("more")})

    made = tab.show(page("const go = () => fetch('/more').then(go, () => 0); go()"), web, most_requests=5)

    assert len(web.asked) == 5
    assert made.cut == "cut after 5 requests"


def test_a_page_that_never_rests_is_taken_as_it_is(tab: Tab) -> None:
    web = Web({f"{A}/more": said("more")})

    made = tab.show(
        page(SHOW + "show('drawn'); setInterval(() => fetch('/more'), 40)"), web, most_requests=200, quiet=1.0
    )

    assert made.cut == "cut after 2 s: it never rests"
    assert b"drawn;" in made.reply.body


def test_an_alert_a_download_and_a_reload_hold_nothing_up(tab: Tab) -> None:
    script = (
        SHOW + "alert('a'); confirm('b'); show('on');"
        "const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['x']));"
        "a.download = 'x'; a.click();"
        "setTimeout(() => location.reload(), 10)"
    )

    made = tab.show(page(script, headers=(("Content-Disposition", "attachment"),)))

    assert b"on;" in made.reply.body
    assert (made.cut, made.onward) == ("", None)


def test_cookies_and_tokens_stay_with_their_host_and_their_page(tab: Tab) -> None:
    open_to_all = (("Access-Control-Allow-Origin", "*"),)
    web = Web({f"{A}/own": said("a"), f"{B}/other": said("b", headers=open_to_all)})
    first = page(
        "fetch('/own'); fetch('https://b.example/other')", headers=(("Set-Cookie", "s=1"), ("Set-Cookie", "t=2"))
    )

    tab.show(first, web)
    tab.show(page("fetch('/own')"), web)

    sent = [(task.url, dict(task.headers).get("cookie")) for _, task in web.asked]
    assert sorted(sent, key=str) == [(f"{A}/own", "s=1; t=2"), (f"{A}/own", None), (f"{B}/other", None)]
    assert not any("user-agent" in dict(task.headers) for _, task in web.asked)  # the client says who we are


def test_no_host_is_asked_faster_than_its_limiter_allows(tab: Tab) -> None:
    web = Web({f"{host}/{n}": said("x") for host in (A, B) for n in range(6)}, rps=20.0)
    script = f"for (const h of ['{A}', '{B}']) for (let n = 0; n < 6; n++) fetch(h + '/' + n).catch(() => 0)"

    made = tab.show(page(script), web)

    assert (made.requests, made.cut) == (12, "")
    for host in (A, B):
        times = [when for when, task in web.asked if task.url.startswith(host)]
        assert len(times) == 6
        assert times[-1] - times[0] >= 0.21  # five times 0.05, less what the first was late by


def test_scripts_that_pages_share_are_asked_for_once(tab: Tab) -> None:
    web = Web(
        {
            f"{A}/shared.js": said("show('shared')", "text/javascript"),
            f"{A}/fresh.js": said("show(1)", "text/javascript", headers=(("Cache-Control", "no-store"),)),
        }
    )
    shown = page(SHOW, html="<script>window.onload = () => 0</script>")
    both = Reply(
        200,
        shown.headers,
        shown.body + b"<script src=/shared.js></script><script src=/fresh.js></script>",
        f"{A}/",
        0.01,
    )

    for _ in range(2):
        assert b"shared;" in tab.show(both, web).reply.body

    assert sorted(web.urls) == [f"{A}/fresh.js", f"{A}/fresh.js", f"{A}/shared.js"]


def test_a_screenshot_is_a_png_and_has_its_styles(tab: Tab) -> None:
    web = Web({f"{A}/s.css": said("body{background:red}", "text/css")})

    made = tab.show(page("", html="<link rel=stylesheet href=/s.css>"), web, screenshots=True)

    assert made.screenshot is not None
    assert made.screenshot.startswith(b"\x89PNG")
    assert web.urls == [f"{A}/s.css"]


class Killing(Web):
    """A web that kills processes of the browser, when it is asked for something."""

    def __init__(self, which: Callable[[int], bool], tab: Tab) -> None:
        super().__init__({f"{A}/x": said("x")})
        self.killed: list[int] = []
        self._which = which
        self._tab = tab

    async def admit(self, task: Task) -> Permit | None:
        self.killed += filter(self._which, self._tab.pids)
        for pid in self.killed:
            os.kill(pid, signal.SIGKILL)
        return await super().admit(task)


@pytest.mark.parametrize("which", [is_tab, is_browser, is_driver])
def test_what_dies_costs_the_page_that_was_in_it(tab: Tab, which: Callable[[int], bool]) -> None:
    asking = page(SHOW + "fetch('/x').then(r => r.text()).then(show)")
    killing = Killing(which, tab)

    with pytest.raises(RenderError, match="rendering: "):
        tab.show(asking, killing)

    assert killing.killed

    assert b"x;" in tab.show(asking, Web({f"{A}/x": said("x")})).reply.body


def test_a_browser_is_replaced_after_so_many_pages(tab: Tab) -> None:
    before = list(filter(is_browser, tab.pids))

    for _ in range(2):
        tab.show(page(""), pages=1)

    after = list(filter(is_browser, tab.pids))
    assert len(after) == 1
    assert after != before


def test_scripts_that_hold_the_page_for_ever_are_its_failure(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.fetch.browser.ANSWER", 1.0)

    with pytest.raises(RenderError, match="its scripts never end"):
        tab.show(page("while (true) {}"), scripts=0.3)


def test_a_program_that_is_no_browser_is_said_to_be_none() -> None:
    async def start() -> None:
        async with BrowserRenderer(SOON, "/bin/true", SystemClock()):
            pass

    with pytest.raises(RenderError, match="/bin/true does not start: "):
        asyncio.run(start())
