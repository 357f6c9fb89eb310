"""`sanderling pages shell`: fetch a page, and try selectors on it in a prompt."""

import code
import sys

from sanderling.cli.client import make_http
from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import ReachFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.loop import run
from sanderling.cli.options import DEFAULT, Options, expose_limiter, observe
from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.http import Http, HttpRules
from sanderling.jobs.page import Page
from sanderling.jobs.request import Request
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.task import Task

RPS = 8.0  # to each host at most
ANYBODY = ReachFlags()
BANNER = """{page!r}
Try page.css('h1').text, page.css('a::attr(href)').getall(), page.xpath('//h1'), page.markdown(), page.links().
fetch('/path') brings another page. Ctrl-D ends this."""


def shell(url: str, /, *, reach: ReachFlags = ANYBODY, options: Options = DEFAULT) -> None:
    """Fetch a page as a crawl would, and open a Python prompt in which it is `page`."""
    limiter = make_limiter(LimiterRules(pace=PaceRules.up_to(reach.most(RPS))))
    names: dict[str, object] = {}

    def fetch(address: str) -> Page:
        """Another page, relative to this one; it is `page` from then on."""
        before = names.get("page")
        request = before.follow(address) if isinstance(before, Page) else Request(address)
        http = make_http(HttpRules(), reach.contact, private=reach.private)
        names["page"] = found = _page(request, run(_fetch(_task(request.url), limiter, http, options)))
        return found

    names |= {"page": fetch(url), "fetch": fetch}
    try:
        import readline  # noqa: PLC0415 - for the arrow keys; not every Python has it
        import rlcompleter  # noqa: PLC0415 - the same

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    sys.ps1, sys.ps2 = ("page> ", "....> ") if sys.stdin.isatty() else ("", "")
    code.interact(BANNER.format(page=names["page"]), local=names, exitmsg="")


def _task(url: str) -> Task:
    try:
        return Task(url)
    except ValueError as error:
        raise CommandError(str(error), code=2) from None


async def _fetch(task: Task, limiter: Limiter, http: Http, options: Options) -> Fetched:
    async with observe(options, expose_limiter(limiter)), http:
        return await Fetcher(http, limiter).fetch(task)


def _page(request: Request, fetched: Fetched) -> Page:
    if fetched.reply is None:
        raise CommandError(f"cannot fetch {request.url}: {fetched.outcome.code}: {fetched.outcome.detail}")
    return Page(fetched.reply, request, {})
