"""The command line. Each command is a file of its own, imported only when it is run, so that `--help` is quick.

Exit codes: 0 all went well, 1 the command failed, 2 it was not called as it should be, 130 Ctrl-C.
Data goes to stdout; logs, progress and errors go to stderr.
"""

import os
import sys
from importlib.metadata import version
from typing import NoReturn

from cyclopts import App, CycloptsError

from sanderling.cli.polling_app import polling

app = App(
    name="sanderling",
    version=lambda: version("sanderling"),
    help="Collect every record from APIs you do not own: as fast as each host allows, never faster, losing nothing.",
    help_format="plaintext",
    help_epilogue="Example, which needs no server: follow a simulated game\n\n    sanderling demo sequence",
    # `main` does it, also for a Ctrl-C that comes while a command is still being imported.
    suppress_keyboard_interrupt=False,
)

pages = App(name="pages", help="Crawl documents politely, with nothing lost.")
pages.command(
    "sanderling.cli.pages:crawl",
    name="crawl",
    help="Crawl documents politely: every URL ends in one row, or in one reason.\n\n"
    "Run the same command again to go on where it ended, or, once it is complete, to fetch what has changed since. The "
    "first Ctrl-C lets what is in flight come to its end, the second stops at once; neither loses anything, nor does "
    "kill -9.\n\n"
    "Exit code 0 if all was fetched, 1 if some was not, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling pages crawl https://example.org/ --out example --depth 3",
)
pages.command(
    "sanderling.cli.pages_ledger:prove",
    name="verify",
    help="Prove that every URL of a crawl is accounted for, once.\n\n"
    "Compares the ledger with the rows and files. Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0 if all adds up, 1 if not, 2 if the folder holds no crawl.",
    help_epilogue="Example:\n\n    sanderling pages verify example",
)
pages.command(
    "sanderling.cli.pages_ledger:failed",
    name="failed",
    help="Say what failed and why; with --retry, ask for it again.\n\n"
    "With --json, one object per URL; with --json --retry, the summary of the run.\n\n"
    "Exit code 0, or that of the crawl that --retry makes; 2 if the folder holds no crawl.",
    help_epilogue="Example:\n\n    sanderling pages failed example --retry",
)
app.command(pages)
app.command(
    "sanderling.cli.doctor:doctor",
    name="doctor",
    help="Say what this installation is made of, and what to do about what it lacks.\n\n"
    "Exit code 0 if nothing is lacking, 1 if something is; all works without, but slower or in part.",
    help_epilogue="Example:\n\n    sanderling doctor",
)
repos = App(
    name="repos",
    help="Archive the repos of every host, and use the archives.",
    help_epilogue="Example:\n\n    sanderling repos inspect archive/segment_0001.rca",
)
repos.command(
    "sanderling.cli.repos:crawl",
    name="crawl",
    help="Archive every repo that the directory lists: each once, or one reason why not.\n\n"
    "Run the same command again to go on where it ended, or, once it is complete, to come back to what failed. The "
    "first Ctrl-C lets what is in flight come to its end, the second stops at once; neither loses anything, nor does "
    "kill -9.\n\n"
    "Exit code 0 if every repo is archived or gone for good, 1 if some failed and may be had later, 2 if it was not "
    "called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example, which needs no server and asks nobody:\n\n    sanderling repos crawl --demo",
)
repos.command(
    "sanderling.cli.repos_progress:status",
    name="status",
    help="Say how far a crawl is: what is archived, what failed and why.\n\n"
    "Works beside a crawl that is running, and changes nothing.",
    help_epilogue="Example:\n\n    sanderling repos status --output-dir archive",
)
repos.command(
    "sanderling.cli.repos_progress:reset",
    name="reset",
    help="Forget how far a crawl is, and delete its segments.\n\n"
    "Nothing else in the folder is touched. Not while a crawl is running there.\n\n"
    "Exit code 0, 1 if nothing was changed, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling repos reset --output-dir archive --yes",
)
directory = App(name="directory", help="Fill the directory: which DIDs exist, and at which host each is.")
directory.command(
    "sanderling.cli.repos_directory:import_file",
    name="import",
    help="Fold an export of the log of did:plc into the directory.\n\n"
    "Lines that are no operation are counted and left out. The same file may be read again.\n\n"
    "Exit code 0, 1 if the file is cut off or damaged, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling repos directory import export.jsonl.gz",
)
directory.command(
    "sanderling.cli.repos_directory:update",
    name="update",
    help="Fill the directory over the network, from where the last update ended.\n\n"
    "Either from the log of did:plc, or from a relay: then every host that it knows lists its repos.\n\n"
    "Exit code 0, 1 if it did not come to its end, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling repos directory update --plc https://plc.directory",
)
repos.command(directory)
repos.command(
    "sanderling.cli.repos_archive:replay_command",
    name="replay",
    help="Load every record of some archives into ClickHouse, embedded or a server, or into Parquet files.\n\n"
    "What was loaded as a whole is remembered and left alone, so the same command may be run again. A damaged repo is "
    "reported, and the others are loaded. A server's password may be in CLICKHOUSE_PASSWORD, or in the file that "
    "CLICKHOUSE_PASSWORD_FILE names.\n\n"
    "Exit code 0 if all was loaded, 1 if something was damaged or could not be written, 2 if it was not called as it "
    "should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling repos replay archive --to chdb:records --collections 'app.bsky.feed.*'",
)
repos.command(
    "sanderling.cli.repos_inspect:inspect_command",
    name="inspect",
    help="Say what is in an archive: its collections, its largest repos, or one repo.\n\n"
    "Exit code 0, 1 if something is damaged or the DID is not there, 2 if it is no archive.",
    help_epilogue="Example:\n\n    sanderling repos inspect archive/segment_0001.rca --verify",
)
repos.command(
    "sanderling.cli.repos_archive:verify_command",
    name="verify",
    help="Compare every checksum of some archives.\n\n"
    "Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0 if all are right, 1 if not, with file and byte of each, 2 if there are no archives.",
    help_epilogue="Example:\n\n    sanderling repos verify archive",
)
repos.command(
    "sanderling.cli.repos_archive:get_command",
    name="get",
    help="Print the records of one repo as JSON lines, from the newest archive that has it.\n\n"
    "Exit code 0, 1 if it is not there or something is damaged, 2 if there are no archives.",
    help_epilogue="Example:\n\n    sanderling repos get did:plc:abcdefghijklmnopqrstuvwx archive",
)
app.command(repos)
sequence = App(
    name="sequence",
    help="Follow an API of ever-growing ids: every id gets its fate, and every record is stored once.",
    help_epilogue="Example:\n\n    sanderling sequence crawl --demo",
)
sequence.command(
    "sanderling.cli.sequence:crawl",
    name="crawl",
    help="Follow ever-growing ids: catch up, stay at the head, skip gaps, lose nothing.\n\n"
    "Run it again without --target to go on where it ended. The first Ctrl-C lets what is in flight come to its end, "
    "the second stops at once; neither loses anything, nor does kill -9.\n\n"
    "Exit code 0 if it came to --until or was asked to stop, 1 if it failed, 2 if it was not called as it should be, "
    "130 after Ctrl-C.",
    help_epilogue="Example, which needs no server and asks nobody:\n\n    sanderling sequence crawl --demo",
)
sequence.command(
    "sanderling.cli.sequence_status:status",
    name="status",
    help="Say how a crawl of ids stands: cursor, head, lag, workers and why so many, what is missed.\n\n"
    "Works beside a crawl that is running, and changes nothing.",
    help_epilogue="Example:\n\n    sanderling sequence status",
)
missed = App(name="missed", help="What a crawl of ids missed: see it, have it asked, take it along, bring it in.")
missed.command(
    "sanderling.cli.sequence_missed:list_missed",
    name="list",
    help="Say which ids a crawl misses, why, since when, and when they are asked again.\n\n"
    "With --json, one object per range. Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0, 1 if the state cannot be read, 2 if no crawl has begun there.",
    help_epilogue="Example:\n\n    sanderling sequence missed list --reason gap",
)
missed.command(
    "sanderling.cli.sequence_missed:retry",
    name="retry",
    help="Let missed ids be asked at once, all of them or some.\n\n"
    "The crawl that is running does so within seconds, otherwise the next. Of a gap some are asked, and each if one "
    "of these is there; with --every, each in any case.\n\n"
    "Exit code 0, 1 if the state cannot be written, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling sequence missed retry --from 2090061917 --to 2090063056 --every",
)
missed.command(
    "sanderling.cli.sequence_missed:export",
    name="export",
    help="Write the ids that are missed to a file, or with - to the output: one to a line, ascending.\n\n"
    "It is written as a whole or not at all. Works beside a crawl that is running, and changes nothing.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if no crawl has begun there.",
    help_epilogue="Example:\n\n    sanderling sequence missed export missed.txt --ranges",
)
missed.command(
    "sanderling.cli.sequence_import:import_missed",
    name="import",
    help="Take in ids that were missed elsewhere, from a file or with - from the input: one to a line.\n\n"
    "An id may be there often, and in any order. What is missed already stays as it is, so the same file may be read "
    "again. Lines that are no ids are told and left out.\n\n"
    "Exit code 0, 1 if some lines are no ids or the state cannot be written, 2 if there is no such file.",
    help_epilogue="Example:\n\n    sanderling sequence missed import missed-pgcrs.log",
)
sequence.command(missed)
sequence.command(
    "sanderling.cli.sequence_store:store",
    name="store",
    help="Store what a crawl has queued, as a process of its own; as many as you like, on any machine.\n\n"
    "For a crawl that runs with --no-store. The first Ctrl-C lets what is in hand be stored, the second stops at once; "
    "neither loses anything, nor does kill -9.\n\n"
    "Exit code 0, 1 if a store was not to be had, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling sequence store --queue amqp://localhost/ --rows postgresql://db/game",
)
dead = App(name="dead", help="Records that could not be stored: see why, and have them tried again.")
dead.command(
    "sanderling.cli.sequence_dead:list_dead",
    name="list",
    help="Say which records could not be stored, why, when, and after how many tries.\n\n"
    "With --json, one object per record.\n\n"
    "Exit code 0, 1 if the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling sequence dead list --show --limit 1",
)
dead.command(
    "sanderling.cli.sequence_dead:replay",
    name="replay",
    help="Have records that could not be stored tried again, as if they had never failed.\n\n"
    "Exit code 0, 1 if some are not among the dead or the queue is not to be had, 2 if it was not called as it should "
    "be.",
    help_epilogue="Example:\n\n    sanderling sequence dead replay --all",
)
sequence.command(dead)
app.command(sequence)
app.command(polling)
app.command(
    "sanderling.cli.why:why",
    name="why",
    help="Say why a host is as slow as it is right now.\n\n"
    "Reads what the crawl that asks it last wrote down, and says how old that is.\n\n"
    "Exit code 0, 1 if no crawl here knows the host, 2 if there is no crawl.",
    help_epilogue="Example:\n\n    sanderling why example.org --out example",
)

demo = App(name="demo", help="See it work against simulated hosts; nothing leaves this machine.")
demo.command("sanderling.cli.demo_pages:demo_pages", name="pages", help="Watch a crawl of a small, partly broken web.")
demo.command(
    "sanderling.cli.demo_sequence:demo_sequence",
    name="sequence",
    help="Watch a crawl of ever-growing ids: catching up, a gap, a pause, a maintenance.",
)
demo.command(
    "sanderling.cli.demo_polling:demo_polling",
    name="polling",
    help="Watch a race day being polled: five times a second while a race is flown.",
)
demo.command("sanderling.cli.demo:demo", name="limiter", help="Watch the limiter learn three hosts at once.")
app.command(demo)

app.command(
    "sanderling.cli.fetch:fetch", name="fetch", help="Ask a few addresses once, politely, and say how it ended."
)

world = App(
    name="world",
    help="Serve a simulated world on this machine, to try things against.",
    help_epilogue="Example: a web of three ordinary hosts and all the odd ones\n\n    sanderling world site --hosts 3",
)
world.command("sanderling.cli.world:site", name="site", help="Serve a small web of simulated hosts, until Ctrl-C.")
world.command(
    "sanderling.cli.world:pds",
    name="pds",
    help="Serve a fleet of simulated ATProto hosts, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world pds --hosts 5 --repos 100",
)
world.command(
    "sanderling.cli.world_game:game",
    name="game",
    help="Serve a simulated game with ever-growing ids, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world game --preset gap --speed 10",
)
world.command(
    "sanderling.cli.world_race:race",
    name="race",
    help="Serve a simulated race day, until Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling world race --preset day --speed 10",
)
app.command(world)


class CommandError(Exception):
    """A command cannot go on, for a reason the user can act on: shown as a message, without a traceback."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def main() -> NoReturn:
    """Run the command that the process was called with, and exit."""
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read this has gone, as `head` does: that ends it like Ctrl-C, and without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(130)


def _run() -> NoReturn:
    try:
        app(print_error=False, exit_on_error=False)
    except CycloptsError as error:
        command = " ".join(("sanderling", *(error.command_chain or ())))
        _exit(2, f"{error}\nSee: {command} --help")
    except CommandError as error:
        _exit(error.code, str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _exit(code: int, message: str) -> NoReturn:
    print(f"sanderling: {message}", file=sys.stderr)
    sys.exit(code)
