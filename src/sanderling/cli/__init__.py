"""The command line. Each command is a file of its own, imported only when it is run, so that `--help` is quick.

Exit codes: 0 all went well, 1 the command failed, 2 it was not called as it should be, 130 Ctrl-C.
Data goes to stdout; logs, progress and errors go to stderr.
"""

import gc
import os
import sys
from importlib.metadata import version
from typing import NoReturn

from cyclopts import App, CycloptsError

from sanderling.cli import config, events, fleet, pages, polling, repos, sequence
from sanderling.cli.command_error import INTERRUPTED, CommandError
from sanderling.cli.everywhere import taken
from sanderling.cli.replaced import explain, old_command
from sanderling.extras import MissingExtraError

app = App(
    name="sanderling",
    version=lambda: version("sanderling"),
    help="Collect every record from APIs you do not own: as fast as each host allows, never faster, losing nothing.\n\n"
    "Every command also takes --home FOLDER, which holds all that it keeps on this machine (by default this folder), "
    "and --config FILE, which sets flags (by default sanderling.toml, here or in the home; none switches that off).",
    help_format="plaintext",
    help_epilogue="Example, which needs no server: follow a simulated game\n\n    sanderling demo sequence",
    # `main` does it, also for a Ctrl-C that comes while a command is still being imported.
    suppress_keyboard_interrupt=False,
)

app.command(pages.app)
app.command(fleet.app)
app.command(
    "sanderling.cli.jobs.run:run",
    name="run",
    help="Run a job of your own, from a Python file, or go on with it; docs/jobs.md says how to write one.\n\n"
    "Records go to records.jsonl in the folder, each once. Run the same command again to go on where it ended, also "
    "with a file that has changed. The first Ctrl-C lets what is in flight come to its end, the second stops at once; "
    "neither loses anything, nor does kill -9.\n\n"
    "Exit code 0 if all went well, 1 if some requests failed, 2 if it was not called as it should be, 3 if requests "
    "still wait, for hosts that did not answer or for readers that are gone, 75 if a function of the job held "
    "everything up, or the servers of a fleet are away (run it again), 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling run posts.py --out posts --set since=2026-01-01",
)
app.command(
    "sanderling.cli.verify:verify",
    name="verify",
    help="Prove that what a crawl of pages or repos, or a job, has kept is whole.\n\n"
    "Of pages, every URL is compared with the rows and files; of a job, every request with the records; of repos, "
    "every checksum of the archives. Works beside what is running, and changes nothing.\n\n"
    "Exit code 0 if all adds up, 1 if not, 2 if there is nothing to verify.",
    help_epilogue="Example:\n\n    sanderling verify posts",
)
app.command(
    "sanderling.cli.records.export:export_command",
    name="export",
    help="Write the records of a folder to a file, a database or a bucket: of any system, or of a job.\n\n"
    "Works beside a crawl that is running, and changes nothing of it. Killed in between, the same command goes on; "
    "each record is there once. With --new it adds what has come since. Numbers keep all their digits.\n\n"
    "Exit code 0, 1 if it could not be read or written, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling export posts --to parquet --where 'likes > 10' --fields id,author.name",
)
app.command(
    "sanderling.cli.records.show:show_command",
    name="show",
    help="Show one record of a folder, with what it was before; or say why it is not there.\n\n"
    "The key is a URL (pages, jobs), an id (sequence, polling, events), a DID or an at:// URI (repos), or what stands "
    "in any field of a job's record.\n\n"
    "Exit code 0, 1 if it is not there, 2 if the folder holds no records.",
    help_epilogue="Example:\n\n    sanderling show example https://example.org/",
)
app.command(
    "sanderling.cli.forget:forget",
    name="forget",
    help="Remove hosts, pages or people from a folder of pages, jobs or repos, and never ask for them again; of "
    "events, what is old.\n\n"
    "Rows, files, archives, Parquet and the exports that can be reached are written anew without them, and the folder "
    "keeps a hash by which they are known again. Killed in between, run it again without a name, and it goes on. "
    "Exports that cannot be reached are named. Of events, rows stay; one whose record is gone cannot be replayed, and "
    "its message, if it comes again, is processed again.\n\n"
    "Exit code 0, 1 if it could not be done now, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling forget example 'https://example.org/people/ann/*'\n"
    "    sanderling forget events errors --older-than 90d",
)
app.command(
    "sanderling.cli.status:status",
    name="status",
    help="Say how all systems of a home stand, or one: what each is at, how much it moves, what is wrong.\n\n"
    "The home is the folder that is given, or the one that --home names, or this one. Given the folder of one system, "
    "or its name in the home, it says all about that one. A home takes a second or two while something runs there, "
    "since it is looked at twice. Changes nothing.\n\n"
    "Exit code 0, 1 if one of a home that runs, or fell silent, is in trouble or a state cannot be read, 2 if nothing "
    "has run there.",
    help_epilogue="Example:\n\n    sanderling status --home /srv/sanderling\n    sanderling status example",
)
app.command(
    "sanderling.cli.top.top:top",
    name="top",
    help="Watch all systems of a home as they live, with their hosts; ? lists the keys, q quits.\n\n"
    "The home is the folder that --home names, or this one. Where stdout is no terminal, it prints lines.\n\n"
    "Exit code 0 after q, 2 if there is no such folder, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling top --home /srv/sanderling --every 2s",
)
app.command(
    "sanderling.cli.doctor.doctor:doctor",
    name="doctor",
    help="Check this installation, this machine, and every service that is configured; say what to do.\n\n"
    "Each check takes 5 seconds at most, and leaves nothing behind. No password is shown.\n\n"
    "Exit code 0 if all that is needed works, 1 if something does not.",
    help_epilogue="Example:\n\n    sanderling doctor --check postgresql://db/events --check amqp://broker/",
)
app.command(
    "sanderling.cli.control:control",
    name="control",
    help="Pause a system, let it go on, leave hosts alone, stop it or drain it, by its folder.\n\n"
    "The folder is the one that --out of the system names. What is said is written there, and the process that runs "
    "hears it within a second. Pausing and hosts outlive the process; stop and drain are for the one that runs.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if there is no such system or host.",
    help_epilogue="Example:\n\n    sanderling control example drain",
)
dead_app = App(
    name="dead",
    help="Dead letters, what a crawl of ids could not store or events gave up: see why, and have them tried again.",
    help_epilogue="Example:\n\n    sanderling dead list events",
)
dead_app.command(
    "sanderling.cli.dead:list_dead",
    name="list",
    help="Say which letters were given up, why, when, and after how many tries.\n\n"
    "With --json, one object per letter.\n\n"
    "Exit code 0, 1 if the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling dead list events --limit 5",
)
dead_app.command(
    "sanderling.cli.dead:show",
    name="show",
    help="Show all of a letter that was given up, and what it says.\n\n"
    "Exit code 0, 1 if it is not among the dead or the queue is not to be had, 2 if it was not called as it should be.",
    help_epilogue="Example:\n\n    sanderling dead show events evt_abc123",
)
dead_app.command(
    "sanderling.cli.dead:replay",
    name="replay",
    help="Have letters that were given up tried again, as if they had never failed.\n\n"
    "Exit code 0, 1 if some are not among the dead or the queue is not to be had, 2 if it was not called as it should "
    "be.",
    help_epilogue="Example:\n\n    sanderling dead replay events --all",
)
app.command(dead_app)
app.command(repos.app)
app.command(sequence.app)
app.command(polling.app)
app.command(events.app)
app.command(config.app)
app.command("sanderling.cli.config.commands:init", name="init", **config.ABOUT_INIT)
app.command(
    "sanderling.cli.dashboard:dashboard",
    name="dashboard",
    help="Serve the dashboard: all systems of a home in a browser, as they run, and what people may do to them.\n\n"
    "Prints its address. Reads what the systems write down, so it may be started and ended at any time. Serves this "
    "machine only, or, with a token, others too.\n\n"
    "Exit code 0 if it was asked to stop, 1 if it failed, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling dashboard --home /srv/sanderling",
)
app.command(
    "sanderling.cli.why:why",
    name="why",
    help="Say why a host is as slow as it is right now.\n\n"
    "Reads what the crawl that asks it last wrote down, and says how old that is.\n\n"
    "Exit code 0, 1 if no crawl here knows the host, 2 if there is no crawl.",
    help_epilogue="Example:\n\n    sanderling why example.org --out example",
)

app.command(
    "sanderling.cli.demos.demo:demo",
    name="demo",
    help="See it work against simulated hosts; nothing leaves this machine.\n\n"
    "house: all systems together, here and in a browser, under a minute. pages: a crawl of a small, partly broken "
    "web. sequence: ever-growing ids, a gap, a pause, a maintenance. repos: a fleet of hosts. polling: a race day, "
    "five times a second while a race is flown. events: batches become rows and errors. limiter: it learns three hosts "
    "at once.\n\n"
    "Each is the real thing, and proves at its end that nothing was lost. Ctrl-C ends it early.\n\n"
    "Exit code 0 if all went well, 1 if something is not where it should be, 2 if it was not called as it should be, "
    "130 after Ctrl-C.",
    help_epilogue="Example:\n\n    sanderling demo house --seconds 120",
)

app.command(
    "sanderling.cli.fetch:fetch",
    name="fetch",
    help="Ask a few addresses once, politely, and say how it ended.",
    help_epilogue="Example:\n\n    sanderling fetch https://example.org/",
)

app.command(
    "sanderling.cli.worlds.world:world",
    name="world",
    help="Serve a simulated world on this machine until Ctrl-C, to try things against.\n\n"
    "site: a web of hosts, ordinary, slow, failing, lying. pds: a fleet of ATProto hosts with a relay. game: reports "
    "under ever-growing ids. race: a race day. api: lists, details, a log-in and a search. social: publishes the "
    "batches of a crawler where `events consume` takes them, and says what must be in the rows at the end.\n\n"
    "Exit code 0, 1 if it failed, 2 if it was not called as it should be, 130 after Ctrl-C.",
    help_epilogue="Example: a web of three ordinary hosts and all the odd ones\n\n    sanderling world site --hosts 3",
)
completion_app = App(
    name="completion",
    help="Let the shell complete commands and flags: bash, zsh and fish.",
    help_epilogue="Example:\n\n    sanderling completion install",
)
completion_app.command(
    "sanderling.cli.completion:install",
    name="install",
    help="Write the script where the shell finds it, and tell the shell to load it.\n\n"
    "The shell is the one this is called from, unless one is named. A new shell has it. What was installed before is "
    "replaced.\n\n"
    "Exit code 0, 1 if it could not be written, 2 if the shell is not known.",
    help_epilogue="Example:\n\n    sanderling completion install",
)
completion_app.command(
    "sanderling.cli.completion:show",
    name="show",
    help="Print the script, for a place of your own.\n\nExit code 0, 2 if the shell is not known.",
    help_epilogue="Example:\n\n    sanderling completion show zsh",
)
app.command(completion_app)


def main() -> NoReturn:
    """Run the command that the process was called with, and exit. Raises OSError if stdout cannot be written to."""
    try:
        _run()
    finally:
        sys.stdout.flush()


def _run() -> NoReturn:
    try:
        words, everywhere = taken(sys.argv[1:])
        if old := old_command(tuple(words)):
            _exit(2, old)
        app.config = (everywhere, _loaded)
        app(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        command = " ".join(("sanderling", *(error.command_chain or ())))
        _exit(2, f"{explain(error)}\nSee: {command} --help")
    except CommandError as error:
        _exit(error.code, str(error))
    except MissingExtraError as error:
        _exit(2, str(error))
    except KeyboardInterrupt:
        _leave()
    sys.exit(0)


def _loaded(*_: object) -> None:
    """Collect garbage from now on, if the process began without; called when the command is known and imported."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _exit(code: int, message: str) -> NoReturn:
    from sanderling.cli.command_line import as_called  # noqa: PLC0415 - most commands need not say anything

    print(f"sanderling: {as_called(message)}", file=sys.stderr)
    if code == INTERRUPTED:
        _leave()
    sys.exit(code)


def _leave() -> NoReturn:
    """End at once, without waiting for threads: one of them may wait for a server that never answers.

    Nothing is lost by that. What they could still do is what nobody was told was done.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)
