"""The commands of `sanderling pages`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="pages",
    help="Crawl documents politely, with nothing lost.",
    help_epilogue="Example:\n\n    sanderling pages crawl https://example.org/ --out example",
)
app.command(
    "sanderling.cli.pages.crawl:crawl",
    name="crawl",
    help="Crawl documents politely: every URL ends in one row, or in one reason.\n\n"
    "Run the same command again to go on where it ended, or, once it is complete, to fetch what has changed since. The "
    "first Ctrl-C lets what is in flight come to its end, the second stops at once; neither loses anything, nor does "
    "kill -9.\n\n"
    "Exit code 0 if all was fetched, 1 if some was not, 2 if it was not called as it should be, 3 if URLs "
    "still wait, since their hosts did not answer or it was drained, 75 if the servers of a fleet are away (run it "
    "again), 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling pages crawl https://example.org/ --out example --depth 3",
)
app.command(
    "sanderling.cli.pages.ledger:failed",
    name="failed",
    help="Say what failed and why; with --retry, ask for it again.\n\n"
    "With --json, one object per URL; with --json --retry, the summary of the run.\n\n"
    "Exit code 0, or that of the crawl that --retry makes; 2 if the folder holds no crawl.",
    help_epilogue="Example:\n\n    sanderling pages failed example --retry",
)
app.command(
    "sanderling.cli.pages.shell:shell",
    name="shell",
    help="Fetch a page as a crawl would, and try selectors on it in a Python prompt, where it is `page`.\n\n"
    "Exit code 0; 1 if the page could not be fetched, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling pages shell https://example.org/",
)
