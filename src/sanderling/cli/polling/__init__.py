"""The commands of `sanderling polling`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="polling",
    help="Keep live documents fresh, each at its own pace, and tell who asks what changed.",
    help_epilogue="Example:\n\n    sanderling demo polling",
)
app.command(
    "sanderling.cli.polling.poll:run",
    name="run",
    help="Poll live documents: the whole every ten seconds, what is live five times a second.\n\n"
    "Run it again to go on. The first Ctrl-C lets what is under way come to its end, the second stops at once; neither "
    "loses a change, nor does kill -9. With --once it fetches all that there is once, and ends. What happens is said "
    "in words, or, with log-format set, logged.\n\n"
    "Exit code 0 if it was asked to stop or all was fetched, 1 if it failed, 2 if it was not called as it should be, "
    "130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling polling run --trackside http://192.168.1.7:8080 --private --port 8090",
)
app.command(
    "sanderling.cli.polling.targets:targets",
    name="targets",
    help="Say what is polled, how often, when next, and how it went.\n\n"
    "With --json, one object per target. Works beside the polling, and changes nothing.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if nothing was polled there.",
    help_epilogue="Example:\n\n    sanderling polling targets --live",
)
app.command(
    "sanderling.cli.polling.admin:change",
    name="set",
    help="Set how often a target is run and how much it weighs; pause it, or run it now: one, a kind, or all.\n\n"
    "Whoever polls hears of it within a second, otherwise it counts from the next run. Discovery leaves it alone; "
    "targets that are paused or gone are not run.\n\n"
    "Exit code 0, 1 if there is no such target, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling polling set pilots --interval 30s\n"
    "    sanderling polling set race 7f3a9c --for 30s",
)
app.command(
    "sanderling.cli.polling.targets:settings",
    name="settings",
    help="List the settings, or write one; it is in force within a second.\n\n"
    "What was set stands out. Exit code 0, 1 if the database is not to be had, 2 if there is no such setting or it "
    "cannot be set to that.",
    help_epilogue="Example:\n\n    sanderling polling settings raceActiveMs 250ms",
)
app.command(
    "sanderling.cli.polling.admin:purge",
    name="purge",
    help="Remove all rows and targets, and begin anew; settings stay.\n\n"
    "Whoever polls finds everything again, and whoever follows the changes is told.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling polling purge --yes",
)
