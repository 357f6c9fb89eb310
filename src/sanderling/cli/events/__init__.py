"""The commands of `sanderling events`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="events",
    help="Turn crawled batches into rows, errors and alarms: every item of every batch in exactly one row.",
    help_epilogue="Example:\n\n    sanderling demo events",
)
app.command(
    "sanderling.cli.events.consume:consume",
    name="consume",
    help="Take messages from the queue, analyse the batches that they speak of, and put them into the database.\n\n"
    "Run it again to go on, or several times at once. The first Ctrl-C lets the batches in hand come to their end, the "
    "second stops at once; neither loses anything, nor does kill -9.\n\n"
    "Exit code 0 if it was asked to stop, 1 if it failed, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling events consume --queue amqp://localhost/ --database postgresql://db/events",
)
app.command(
    "sanderling.cli.events.mode:mode",
    name="mode",
    help="Say which formats of messages are processed, or switch them, without a restart.\n\n"
    "Whoever consumes hears of it within a second. Messages of a format that is switched off wait in the queue.\n\n"
    "Exit code 0, 1 if it could not be read or written, 2 if it was not called as it should be.",
    help_epilogue="Example, a rollback, and a canary of a tenth:\n\n    sanderling events mode --no-new\n"
    "    sanderling events mode --new --canary 0.1",
)
app.command(
    "sanderling.cli.events.publish:publish",
    name="publish",
    help="Publish a file of items, or of rows of our crawlers, as batches: into the object store, with a message for "
    "each.\n\n"
    "The same file may be published again: the same batches come of it, and nothing is processed twice.\n\n"
    "Exit code 0, 1 if some lines could not be read or something was not to be had, 2 if it was not called as it "
    "should be.",
    help_epilogue="Example:\n\n    sanderling events publish example/pages.jsonl --job spring-campaign-brand-0 "
    "--platform web",
)
app.command(
    "sanderling.cli.events.replay:replay",
    name="replay",
    help="Process again what was processed since a time: after a fix, or after a rollback.\n\n"
    "Rows stay until the new ones are there. Messages go into the queue, and whoever consumes takes them.\n\n"
    "Exit code 0, 1 if something was not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events replay --from 2026-11-01T08:00:00Z --dry-run",
)
app.command(
    "sanderling.cli.events.migrate:migrate_command",
    name="migrate",
    help="Say which revisions the database has, or bring it to another one, up or down.\n\n"
    "Without a revision it says which there are. head is the newest; base is none, and removes all tables of ours. "
    "What a revision has added is lost on the way down: make a backup first, and not while somebody consumes.\n\n"
    "Exit code 0, 1 if the database is not at the newest or is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events migrate head --database postgresql://db/events",
)
