"""What people set for a crawl: of pages, or of a job that they wrote."""

from pathlib import Path
from typing import Annotated, Any, Literal

from sanderling.crawl.scope import UrlPattern
from sanderling.fetch.options import RequestOptions
from sanderling.forms import Bytes, Form, HostPattern, Seconds, SecretOrText, Url
from sanderling.observe.options import ObserveOptions
from sanderling.options import REQUIRED, OptionError, option
from sanderling.readers.automatic import AUTO, ReaderCount
from sanderling.records.handover import HandoverOptions


def _pattern(text: str) -> str:
    return UrlPattern(text).text


Pattern = Annotated[str, Form(_pattern, "a pattern of pages", "PATTERN")]


class CrawlOptions(RequestOptions, ObserveOptions, HandoverOptions, table="crawl", title="What is collected"):
    """What both kinds of crawl take."""

    out: Path = option(REQUIRED, "The folder for what is collected; a crawl that was stopped goes on there.")
    seeds: Path | None = option(None, "A file with more addresses to begin with, one a line; # begins a comment.")
    leave_out: Path | None = option(
        None, "A file of pages, beginnings of addresses (…/*) and hosts that are never requested."
    )
    only: tuple[Pattern, ...] = option(
        (), "Follow links to these pages only: /blog/**, //*.example.org/blog/*.", plan=True
    )
    skip: tuple[Pattern, ...] = option((), "Never follow links to these pages: /login, /*/print.", plan=True)
    every: Seconds | None = option(
        None, "Go on, and visit each page again after this time; then sooner what had changed, later what had not.",
        low=60,
    )  # fmt: skip
    max_per_host: int | None = option(None, "Pages of one host at most.", low=1)
    max_per_domain: int | None = option(None, "Pages of all hosts under one registered domain at most.", low=1)
    store: SecretOrText | None = option(
        None, "Keep what is known in PostgreSQL, where several processes, each with its own --out, share the crawl."
    )
    name: str = option("", "The schema there; the name of --out by default.")
    keep: Literal["html", "warc"] | None = option(
        None, "Keep what hosts sent, too: bodies in files, or whole responses in a web archive."
    )
    max_disk: Bytes | None = option(
        None, "How large the folder may grow; then nothing is requested until there is room.", low=1 << 20
    )
    screenshots: bool = option(default=False, help="Keep a picture of each page that a browser renders.")
    browser: Path | None = option(
        None, "The browser that renders; the first Chromium or Chrome on the PATH by default."
    )
    sandbox: bool = option(default=True, help="Run the browser in its sandbox. As root it has none: --no-sandbox.")
    readers: ReaderCount = option(AUTO, "Processes that read what came; 0 reads it in this one.", low=AUTO, high=256)

    __slots__ = ("given",)  # what was set, defaults not among it; no option itself
    given: dict[str, Any]

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        object.__setattr__(self, "given", values)


class PagesOptions(CrawlOptions, table="pages", title="Which pages"):
    """What `pages crawl` takes."""

    urls: tuple[Url, ...] = option((), "Where to begin; a folder that exists needs none.", argument="URL")
    depth: int = option(100, "Links to follow from the first addresses at most.", low=0, high=1000, plan=True)
    max_pages: int | None = option(None, "Pages to fetch at most; a larger number goes on.", low=1)
    max_same_text: int = option(
        200, "Pages of one kind whose whole text is known already, and four more for each new text; 0: any number.",
        low=0,
    )  # fmt: skip
    allow: tuple[HostPattern, ...] = option(
        (), "Follow links to this host too; *.example.org is that host and all below it.", plan=True
    )
    first: tuple[Pattern, ...] = option((), "Request these pages before the others of their host: /blog/**.")
    keep_noindex: bool = option(default=False, help="Keep what pages say that ask not to be indexed.", plan=True)
    files: tuple[str, ...] = option((), "Keep files of these types: application/pdf, image/*.")
    max_file: Bytes = option(16 << 20, "How large such a file may be.", low=1, high=1 << 30)
    render: tuple[str, ...] = option(
        (), "Have a browser run the scripts of these pages: /app/**, or auto for those that are empty without.",
        plan=True,
    )  # fmt: skip
    text: Literal["fast", "best", "none"] = option(
        "fast", "How the main text is found: best takes trafilatura and ten times as long.", plan=True
    )


class JobOptions(CrawlOptions, table="jobs", title="Which job"):
    """What `run` takes."""

    file: Path = option(REQUIRED, "The file of the job.", argument="FILE")
    out: Path = option(Path(), "The folder for what is collected; a job that was stopped goes on there.")
    set: dict[str, str] = option({}, "An argument of the job.")
    from_: Path | None = option(
        None, "Read what was kept and request nothing: a WARC file, a folder of them, or the folder of --keep."
    )
    try_: int | None = option(None, "Request so many, print their records, and keep nothing.", low=1, high=10_000)

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        if self.out == Path() and self.try_ is None:
            raise OptionError("--out is missing; expected a path, or --try 10 to keep nothing")
        if self.every is not None and (self.from_ is not None or self.try_ is not None):
            raise OptionError("--every visits pages again, and --from and --try end; leave one of them out")
