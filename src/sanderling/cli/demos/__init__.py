"""The demos of `sanderling demo`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(name="demo", help="See it work against simulated hosts; nothing leaves this machine.")
app.command(
    "sanderling.cli.demos.house:demo_house",
    name="house",
    help="Watch all five systems work together, here and in a browser; under a minute.\n\n"
    "Each is the real command, in a process of its own; all of them end with this one. Ctrl-C ends it early.\n\n"
    "Exit code 0 if all went well, 1 if one of them ended early or something is not where it should be, 2 if it was "
    "not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling demo house --seconds 120",
)
app.command(
    "sanderling.cli.demos.pages:demo_pages",
    name="pages",
    help="Watch a crawl of a small, partly broken web.",
    help_epilogue="Example:\n\n    sanderling demo pages",
)
app.command(
    "sanderling.cli.demos.sequence:demo_sequence",
    name="sequence",
    help="Watch a crawl of ever-growing ids: catching up, a gap, a pause, a maintenance.",
    help_epilogue="Example:\n\n    sanderling demo sequence",
)
app.command(
    "sanderling.cli.demos.polling:demo_polling",
    name="polling",
    help="Watch a race day being polled: five times a second while a race is flown.",
    help_epilogue="Example:\n\n    sanderling demo polling",
)
app.command(
    "sanderling.cli.demos.events:demo_events",
    name="events",
    help="Watch crawled batches becoming rows and errors, and see what people said.",
    help_epilogue="Example:\n\n    sanderling demo events",
)
app.command(
    "sanderling.cli.demos.limiter:demo",
    name="limiter",
    help="Watch the limiter learn three hosts at once.",
    help_epilogue="Example:\n\n    sanderling demo limiter",
)
