"""The commands of `sanderling fleet`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="fleet",
    help="See to crawls that several machines share.",
    help_epilogue="Example:\n\n    sanderling fleet status example --fleet postgresql://db.example.org/crawls",
)
app.command(
    "sanderling.cli.fleet.commands:status",
    name="status",
    help="Say who works on a crawl, which parts each has, and how much is left.\n\n"
    "Exit code 0; 2 if the fleet has no such crawl.",
    help_epilogue="Example:\n\n    sanderling fleet status example --fleet postgresql://db.example.org/crawls",
)
app.command(
    "sanderling.cli.fleet.commands:drain",
    name="drain",
    help="Have a worker finish what is in flight, give its parts to others and end; without a name, all of them.\n\n"
    "Exit code 0; 2 if there is no such crawl or worker.",
    help_epilogue="Example:\n\n    sanderling fleet drain example --fleet postgresql://db.example.org/crawls",
)
app.command(
    "sanderling.cli.fleet.commands:retry",
    name="retry",
    help="Have what failed in a crawl of pages, or in a job, asked for again: by those who work on it, or will.\n\n"
    "Exit code 0; 2 if there is no such crawl.",
    help_epilogue="Example:\n\n    sanderling fleet retry example --fleet postgresql://db.example.org/crawls",
)
app.command(
    "sanderling.cli.fleet.commands:forget",
    name="forget",
    help="Delete a crawl: what the servers know of it, and its objects. Nobody may be working on it.\n\n"
    "Exit code 0; 2 if there is no such crawl, or somebody works on it.",
    help_epilogue="Example:\n\n    sanderling fleet forget example --fleet postgresql://db.example.org/crawls "
    "--objects s3://crawls --yes",
)
app.command(
    "sanderling.cli.fleet.pull:pull",
    name="pull",
    help="Make a plain folder of a crawl, in parts, as far as it is now: to verify, to export, to read.\n\n"
    "Run it again for what is new.\n\n"
    "Exit code 0; 1 if something is missing or damaged, 2 if there is no such crawl, or the folder is of another "
    "or was changed.",
    help_epilogue="Example:\n\n    sanderling fleet pull example --fleet postgresql://db.example.org/crawls "
    "--objects s3://crawls --out example",
)
