"""The commands of `sanderling dead`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="dead",
    help="Dead letters, what a crawl of ids could not store or events gave up: see why, and have them tried again.",
    help_epilogue="Example:\n\n    sanderling dead list events",
)
app.command(
    "sanderling.cli.dead:list_dead",
    name="list",
    help="Say which letters were given up, why, when, and after how many tries.\n\n"
    "With --json, one object per letter.\n\n"
    "Exit code 0, 1 if the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling dead list events --limit 5",
)
app.command(
    "sanderling.cli.dead:show",
    name="show",
    help="Show all of a letter that was given up, and what it says.\n\n"
    "Exit code 0, 1 if it is not among the dead or the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling dead show events evt_abc123",
)
app.command(
    "sanderling.cli.dead:replay",
    name="replay",
    help="Have letters that were given up tried again, as if they had never failed.\n\n"
    "Exit code 0, 1 if some are not among the dead or the queue is not to be had, 2 if it was not called as it should "
    "be.",
    help_epilogue="Example:\n\n    sanderling dead replay events --all",
)
