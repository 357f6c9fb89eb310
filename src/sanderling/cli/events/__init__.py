"""The commands of `sanderling events`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="events",
    help="Turn crawled batches into rows, errors and alarms: every item of every batch in exactly one row.",
    help_epilogue="Example:\n\n    sanderling events consume --demo",
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
    "sanderling.cli.events.status:status",
    name="status",
    help="Say how consuming stands: batches, items, errors by category, what waits, what is wrong.\n\n"
    "Works beside the consumer, and changes nothing.\n\n"
    "Exit code 0, 2 if nothing was consumed there.",
    help_epilogue="Example:\n\n    sanderling events status",
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
dead_app = App(
    name="dead",
    help="Dead letters, messages that were given up: see why, and have them tried again.",
    help_epilogue="Example:\n\n    sanderling events dead list",
)
dead_app.command(
    "sanderling.cli.events.dead:list_dead",
    name="list",
    help="Say which messages were given up, why, when, and after how many tries.\n\n"
    "With --json, one object per message.\n\n"
    "Exit code 0, 1 if the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events dead list --limit 5",
)
dead_app.command(
    "sanderling.cli.events.dead:show",
    name="show",
    help="Show all of a message that was given up, and what it says.\n\n"
    "Exit code 0, 1 if it is not among the dead or the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events dead show evt_abc123",
)
dead_app.command(
    "sanderling.cli.events.dead:replay",
    name="replay",
    help="Have messages that were given up tried again, as if they had never failed.\n\n"
    "Exit code 0, 1 if some are not among the dead or the queue is not to be had, 2 if it was not called as it should "
    "be.",
    help_epilogue="Example:\n\n    sanderling events dead replay --all",
)
app.command(dead_app)
forget_app = App(
    name="forget",
    help="Remove what is older than you want to keep.",
    help_epilogue="Example:\n\n    sanderling events forget errors --older-than 90d",
)
forget_app.command(
    "sanderling.cli.events.forget:errors",
    name="errors",
    help="Remove errors that are older than a time; posts stay.\n\n"
    "Works beside the consumer.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events forget errors --older-than 90d",
)
forget_app.command(
    "sanderling.cli.events.forget:processed",
    name="processed",
    help="Remove records of which events were processed, and their messages; rows stay.\n\n"
    "An event that is forgotten cannot be replayed, and its message, if it comes again, is processed again.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events forget processed --older-than 365d",
)
app.command(forget_app)
migrate_app = App(
    name="migrate",
    help="Bring the tables of the database to another revision, up or down.",
    help_epilogue="Example:\n\n    sanderling events migrate status",
)
migrate_app.command(
    "sanderling.cli.events.migrate:up",
    name="up",
    help="Bring the database up to the newest revision, or to one by name; one that is empty is filled with tables.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events migrate up --database postgresql://db/events",
)
migrate_app.command(
    "sanderling.cli.events.migrate:down",
    name="down",
    help="Bring the database down by one revision, or to one by name; --to base removes all tables of ours.\n\n"
    "What a revision has added is lost: make a backup first. Not while somebody consumes.\n\n"
    "Exit code 0, 1 if the database is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events migrate down --to 0003 --yes",
)
migrate_app.command(
    "sanderling.cli.events.migrate:status",
    name="status",
    help="Say which revisions there are, and which of them the database has.\n\n"
    "Exit code 0 if it is at the newest, 1 if it is not or is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling events migrate status",
)
app.command(migrate_app)
