"""The commands of `sanderling sequence`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="sequence",
    help="Follow an API of ever-growing ids: every id gets its fate, and every record is stored once.",
    help_epilogue="Example:\n\n    sanderling sequence crawl --demo",
)
app.command(
    "sanderling.cli.sequence.crawl:crawl",
    name="crawl",
    help="Follow ever-growing ids: catch up, stay at the head, skip gaps, lose nothing.\n\n"
    "Run it again to go on where it ended; with --target it begins anew. The first Ctrl-C lets what is in flight come "
    "to its end, the second stops at once; neither loses anything, nor does kill -9.\n\n"
    "Exit code 0 if it came to --until or was asked to stop, 1 if it failed, 2 if it was not called as it should be, "
    "130 after Ctrl-C.",
    help_epilogue="Example, which needs no server and asks nobody:\n\n    sanderling sequence crawl --demo",
)
app.command(
    "sanderling.cli.sequence.status:status",
    name="status",
    help="Say how a crawl of ids stands: cursor, head, lag, workers and why so many, what is missed.\n\n"
    "Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0, 1 if the state cannot be read, 2 if no crawl has begun there.",
    help_epilogue="Example:\n\n    sanderling sequence status",
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
dead_app = App(
    name="dead",
    help="Dead letters, records that could not be stored: see why, and have them tried again.",
    help_epilogue="Example:\n\n    sanderling sequence dead list",
)
dead_app.command(
    "sanderling.cli.sequence.dead:list_dead",
    name="list",
    help="Say which records could not be stored, why, when, and after how many tries.\n\n"
    "With --json, one object per record.\n\n"
    "Exit code 0, 1 if the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling sequence dead list --limit 5",
)
dead_app.command(
    "sanderling.cli.sequence.dead:show",
    name="show",
    help="Show all of a record that could not be stored, and what it says.\n\n"
    "Exit code 0, 1 if it is not among the dead or the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling sequence dead show 16000000001",
)
dead_app.command(
    "sanderling.cli.sequence.dead:replay",
    name="replay",
    help="Have records that could not be stored tried again, as if they had never failed.\n\n"
    "Exit code 0, 1 if some are not among the dead or the queue is not to be had, 2 if it was not called as it should "
    "be.",
    help_epilogue="Example:\n\n    sanderling sequence dead replay --all",
)
app.command(dead_app)
