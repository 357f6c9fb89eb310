"""The commands of `sanderling sequence`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="sequence",
    help="Follow an API of ever-growing ids: every id gets its fate, and every record is stored once.",
    help_epilogue="Example:\n\n    sanderling demo sequence",
)
app.command(
    "sanderling.cli.sequence.crawl:crawl",
    name="crawl",
    help="Follow ever-growing ids: catch up, stay at the head, skip gaps, lose nothing.\n\n"
    "Run it again to go on where it ended; with --target it begins anew. The first Ctrl-C lets what is in flight come "
    "to its end, the second stops at once; neither loses anything, nor does kill -9.\n\n"
    "Exit code 0 if it came to --until or was asked to stop, 1 if it failed, 2 if it was not called as it should be, "
    "130 after Ctrl-C.",
    help_epilogue="Example, which needs no server and asks nobody:\n\n    sanderling demo sequence",
)
missed_app = App(
    name="missed",
    help="What a crawl of ids missed: see it, have it asked, take it along, bring it in.",
    help_epilogue="Example:\n\n    sanderling sequence missed list",
)
missed_app.command(
    "sanderling.cli.sequence.missed:list_missed",
    name="list",
    help="Say which ids a crawl misses, why, since when, and when they are asked again.\n\n"
    "With --json, one object per range. Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0, 1 if the state cannot be read, 2 if no crawl has begun there.",
    help_epilogue="Example:\n\n    sanderling sequence missed list --reason gap",
)
missed_app.command(
    "sanderling.cli.sequence.missed:retry",
    name="retry",
    help="Let missed ids be asked at once, all of them or some.\n\n"
    "The crawl that is running does so within seconds, otherwise the next. Of a gap some are asked, and each if one "
    "of these is there; with --every, each in any case.\n\n"
    "Exit code 0, 1 if the state cannot be written, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling sequence missed retry --from 2090061917 --to 2090063056 --every",
)
missed_app.command(
    "sanderling.cli.sequence.missed:export",
    name="export",
    help="Write the ids that are missed to a file, or with - to the output: one to a line, ascending.\n\n"
    "It is written as a whole or not at all. Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if no crawl has begun there.",
    help_epilogue="Example:\n\n    sanderling sequence missed export missed.txt --ranges",
)
missed_app.command(
    "sanderling.cli.sequence.missed_import:import_missed",
    name="import",
    help="Take in ids that were missed elsewhere, from a file or with - from the input: one to a line.\n\n"
    "An id may be there often, and in any order. What is missed already stays as it is, so the same file may be read "
    "again. Lines that are no ids are told and left out.\n\n"
    "Exit code 0, 1 if some lines are no ids or the state cannot be written, 2 if there is no such file.",
    help_epilogue="Example:\n\n    sanderling sequence missed import missed-pgcrs.log",
)
app.command(missed_app)
app.command(
    "sanderling.cli.sequence.store:store",
    name="store",
    help="Store what a crawl has queued, as a process of its own; as many as you like, on any machine.\n\n"
    "For a crawl that runs with --no-store. The first Ctrl-C lets what is in hand be stored, the second stops at once; "
    "neither loses anything, nor does kill -9.\n\n"
    "Exit code 0, 1 if a store was not to be had, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling sequence store --queue amqp://localhost/ --rows postgresql://db/game",
)
