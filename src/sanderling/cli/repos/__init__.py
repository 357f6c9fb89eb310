"""The commands of `sanderling repos`, and their help. Each is imported only when it is run."""

from cyclopts import App

app = App(
    name="repos",
    help="Archive the repos of every host, and use the archives.",
    help_epilogue="Example:\n\n    sanderling repos inspect archive/segment_0001.rca",
)
app.command(
    "sanderling.cli.repos.crawl:crawl",
    name="crawl",
    help="Archive every repo that the directory lists: each once, or one reason why not.\n\n"
    "Run the same command again to go on where it ended, or, once it is complete, to come back to what failed. The "
    "first Ctrl-C lets what is in flight come to its end, the second stops at once; neither loses anything, nor does "
    "kill -9.\n\n"
    "Exit code 0 if every repo is archived or gone for good, 1 if it failed, 2 if it was not called as it should be, "
    "3 if some repos are left, which the same command asks for first, 75 if the servers of a fleet are away (run it "
    "again), 130 after Ctrl-C.",
    help_epilogue="Example, which needs no server and asks nobody:\n\n    sanderling demo repos",
)
app.command(
    "sanderling.cli.repos.progress:reset",
    name="reset",
    help="Forget how far a crawl is, and delete its segments.\n\n"
    "Nothing else in the folder is touched. Not while a crawl is running there.\n\n"
    "Exit code 0, 1 if nothing was changed, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling repos reset --out archive --yes",
)
app.command(
    "sanderling.cli.repos.directory:fill",
    name="directory",
    help="Fill the directory: which DIDs exist, and at which host each is.\n\n"
    "From a FILE that has the log of did:plc, from that log itself, or from a relay: then every host that it knows "
    "lists its repos. Over the network it goes on where the last update ended; a file may be read again. Lines that "
    "are no operation are counted and left out.\n\n"
    "Exit code 0, 1 if it did not come to its end or the file is damaged, 2 if it was not called as it should be, 130 "
    "after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling repos directory --plc https://plc.directory",
)
app.command(
    "sanderling.cli.repos.archive:replay_command",
    name="replay",
    help="Load every record of some archives into ClickHouse, embedded or a server, or into Parquet files.\n\n"
    "What was loaded as a whole is remembered and left alone, so the same command may be run again. A damaged repo is "
    "reported, and the others are loaded. A server's password may be in CLICKHOUSE_PASSWORD, or in the file that "
    "CLICKHOUSE_PASSWORD_FILE names.\n\n"
    "Exit code 0 if all was loaded, 1 if something was damaged or could not be written, 2 if it was not called as it "
    "should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling repos replay archive --to chdb:records --collections 'app.bsky.feed.*'",
)
app.command(
    "sanderling.cli.repos.inspect:inspect_command",
    name="inspect",
    help="Say what is in an archive: its collections, its largest repos, or one repo.\n\n"
    "Exit code 0, 1 if something is damaged or the DID is not there, 2 if it is no archive.",
    help_epilogue="Example:\n\n    sanderling repos inspect archive/segment_0001.rca --verify",
)
app.command(
    "sanderling.cli.repos.get:get_command",
    name="get",
    help="Get one repo: by its DID out of archives, or by DID or handle from wherever it lives.\n\n"
    "With archives, prints its records as JSON lines, as it was crawled last, whatever the order of the archives. "
    "Without, finds out who a handle is and which host has the repo, and archives it in a folder of its own.\n\n"
    "Exit code 0, 1 if it is not there or something is damaged, 2 if there are no archives, 3 if its host did not "
    "give it; then the same command tries again.",
    help_epilogue="Example:\n\n    sanderling repos get did:plc:abcdefghijklmnopqrstuvwx archive",
)
