"""Runs the systems of the demo beside each other, draws them, and proves at the end what they have."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
from aiohttp import web

from sanderling.cli.commands import all_commands, find_command
from sanderling.cli.context import EXPECTED, Context
from sanderling.cli.demo.journal import journal
from sanderling.cli.demo.orders import orders
from sanderling.cli.demo.posts import posts
from sanderling.cli.demo.shop import shop
from sanderling.cli.demo.social import social
from sanderling.cli.demo.track import track
from sanderling.cli.demo.upstream import Upstream
from sanderling.cli.parse import parse
from sanderling.cli.resolve import build, resolve
from sanderling.cli.screen import is_terminal, live
from sanderling.cli.shell import run_in_shell
from sanderling.clock import Clock, SystemClock
from sanderling.files import Exit, FolderError, make_folder
from sanderling.observe.options import ObserveOptions
from sanderling.observe.render import Line, render
from sanderling.observe.report import current_report
from sanderling.options import OptionError, Options, option
from sanderling.systems import System, load_name
from sanderling.web.dashboard import dashboard

UPSTREAMS: dict[str, Callable[[Clock], Upstream]] = {
    "pages": journal,
    "jobs": shop,
    "polling": track,
    "sequence": orders,
    "events": posts,
    "repos": social,
}


class DemoOptions(Options):
    """Options of `demo`."""

    system: str | None = option(None, "Show this system only.", argument="SYSTEM")
    out: Path = option(Path("demo"), "The folder for what is collected.")
    serve: bool = option(default=False, help="Only serve the upstream of SYSTEM, for your own commands.")
    port: int = option(0, "The port of the upstream, or of the dashboard; 0 takes any.", low=0, high=65535)


def demo(options: DemoOptions, context: Context) -> Exit:
    """Run it; FAILED if anything is missing or there twice."""
    import uvloop  # noqa: PLC0415 - 20 ms

    if options.system is not None and options.system not in UPSTREAMS:
        raise OptionError(f"SYSTEM: found {options.system!r}, expected one of {', '.join(UPSTREAMS)}")
    if options.serve and options.system is None:
        raise OptionError(f"--serve needs a system; expected one of {', '.join(UPSTREAMS)}")
    if not options.serve and options.out.exists() and any(options.out.iterdir()):
        raise FolderError(f"{options.out} is not empty", "remove it, or choose another folder with --out")
    work = _serve(options, context) if options.serve else _Demo(options, context).run()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@asynccontextmanager
async def _serving(upstream: Upstream, port: int) -> AsyncIterator[str]:
    runner = web.AppRunner(upstream.app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
    except OSError as error:
        raise FolderError(f"cannot serve at port {port}: {error.strerror}", "choose another --port") from None
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def _serve(options: DemoOptions, context: Context) -> Exit:
    upstream = UPSTREAMS[str(options.system)](SystemClock())
    async with _serving(upstream, options.port) as url:
        context.print(f"Serving {upstream.shows}, at {url} until you press Ctrl-C. Try, in another terminal:")
        context.print(f"  {context.command_line(upstream.words(url, options.out))}")
        if upstream.watch is not None:
            context.print(f"Then see it in the browser: {upstream.watch(url)}")
        await asyncio.Event().wait()
    return Exit.DONE


class _Demo:
    """One demo."""

    def __init__(self, options: DemoOptions, context: Context) -> None:
        self._options = options
        self._context = context
        self._clock = SystemClock()
        names = [options.system] if options.system is not None else list(UPSTREAMS)
        self._shown = [(each, UPSTREAMS[each.name](self._clock)) for each in context.systems if each.name in names]

    async def run(self) -> Exit:
        """Serve the upstreams, run the systems on them, and check what they have."""
        context = self._context
        make_folder(self._options.out)
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(
                dashboard(self._options.out, context.systems, self._options.port, self._clock)
            )
            context.warn(f"In the browser: {url}/")
            urls = [await stack.enter_async_context(_serving(upstream, 0)) for _, upstream in self._shown]
            for (_, upstream), each in zip(self._shown, urls, strict=True):
                if upstream.watch is not None:
                    context.warn(f"{upstream.system}, live: {upstream.watch(each)}")
            async with asyncio.TaskGroup() as group:
                drawing = group.create_task(self._draw())
                works = [
                    group.create_task(self._work(system, upstream, url))
                    for (system, upstream), url in zip(self._shown, urls, strict=True)
                ]
                await asyncio.wait(works)
                drawing.cancel()
            whole = [
                await self._prove(system, upstream, url, work.result())
                for (system, upstream), url, work in zip(self._shown, urls, works, strict=True)
            ]
        self._say_what_next()
        return Exit.DONE if all(whole) else Exit.FAILED

    async def _work(self, system: System, upstream: Upstream, url: str) -> str:
        """Run one system; why it could not, if so. When one has finished, or failed, the others go on."""
        if upstream.before is not None and (error := await self._type(upstream.before(url, self._folder(system)))):
            return error
        return await self._type(upstream.words(url, self._folder(system)))

    async def _type(self, words: tuple[str, ...]) -> str:
        self._context.warn(f"$ sanderling {' '.join(words)}")
        command, rest = find_command(words, all_commands(self._context.systems))
        if command is None:
            raise RuntimeError(f"there is no command {words}")
        system = next(each for each in self._context.systems if command in each.runs)
        kind = load_name(command.options)
        options: ObserveOptions = build(kind, resolve(kind, parse([*rest, "--quiet"], kind.fields), self._context, {}))
        unseen = replace(self._context, arguments=words, out=io.StringIO(), err=io.StringIO())
        try:
            await run_in_shell(system, options, unseen, self._clock, signals=False)
        except EXPECTED as error:
            return str(error)
        return ""

    async def _draw(self) -> None:
        context = self._context
        if not is_terminal(context.err, context):
            return
        with live(context) as draw:
            while True:
                draw([line for system, _ in self._shown for line in self._lines(system)])
                await self._clock.sleep(0.5)

    def _lines(self, system: System) -> list[Line]:
        folder = self._folder(system)
        report = current_report(folder) if folder.exists() else None
        return [*render(report, self._context.width), []] if report is not None else []

    async def _prove(self, system: System, upstream: Upstream, url: str, error: str) -> bool:
        """Say whether all is there, once."""
        if error:
            self._context.print(f"{system.name}: {error}")
            return False
        module, folder = system.load(), self._folder(system)
        truth = upstream.truth(url)
        with module.records(folder) as rows:
            lines = [line for entry in rows.entries() for line in entry.lines]
        found = [str(msgspec.json.decode(line).get(upstream.key, "")) for line in lines]
        faults = (await module.verify(folder)).faults
        missing, twice = len(truth - set(found)), len(found) - len(set(found))
        refused = f", {upstream.limit.refused} requests refused by the hidden limit" if upstream.limit else ""
        self._context.print(
            f"{system.name}: {upstream.shows}: {len(found)} of {len(truth)} records, {missing} missing,"
            f" {twice} there twice{refused}{f', {len(faults)} faults' if faults else ''}"
        )
        return not (missing or twice or faults)

    def _say_what_next(self) -> None:
        folder = self._options.out
        name = self._shown[0][0].name
        lines = (("status", f"{folder}/{name}"), ("export", f"{folder}/{name}", "--to", f"{folder}/{name}.csv"))
        self._context.print("\nNow try:")
        for words in (*lines, ("dashboard", str(folder))):
            self._context.print(f"  {self._context.command_line(words)}")

    def _folder(self, system: System) -> Path:
        return self._options.out / system.name
