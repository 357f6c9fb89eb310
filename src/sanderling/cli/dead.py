"""`sanderling dead list`, `show` and `replay`: what a system gave up, why, and another try for it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.dead_letters import DeadLetterCommands, Every, Key, Keys, LetterContent, Limit
from sanderling.cli.events.place import EventsFolder, EventsQueue
from sanderling.cli.home import set_for
from sanderling.cli.reach import explained
from sanderling.cli.sequence.place import SequenceFolder, SequenceQueue
from sanderling.cli.system_folder import find_folder, system_of
from sanderling.cli.times import written
from sanderling.events.envelopes import EnvelopeError, EventEnvelope, LegacyEnvelope, read_envelope
from sanderling.formats.instance import MessageError, decode
from sanderling.words import printable

At = Annotated[Path, Parameter(help="The folder of a crawl of ids, or of events.")]
Queue = Annotated[
    str | None, Parameter(help="Where its queue is: sqlite:FOLDER or amqp://…; by default as for the system itself.")
]


def list_dead(folder: At, /, *, limit: Limit = None, queue: Queue = None, json: AsJson = False) -> None:
    """Say which letters were given up, and why."""
    explained(_letters(folder, queue).tell_all(limit, as_json=json))


def show(folder: At, key: Key, /, *, queue: Queue = None, json: AsJson = False) -> None:
    """Show one of them, and what it says."""
    explained(_letters(folder, queue).show(key, as_json=json))


def replay(folder: At, /, *keys: Keys, every: Every = False, queue: Queue = None, json: AsJson = False) -> None:
    """Make letters ready again, as if they had never failed."""
    explained(_letters(folder, queue).replay(keys, every=every, as_json=json))


def _letters(folder: Path, queue: str | None) -> DeadLetterCommands:
    """The dead letters of a folder. With a broker there may be no folder here: then it is known by its name."""
    found = find_folder(folder)
    system = system_of(found) or found.name
    given = {} if queue is None else {"queue": queue}
    match system:
        case "sequence":
            said = set_for(("sequence", "store"), ("queue", "queue_name")) | given
            return DeadLetterCommands(SequenceQueue(**said), SequenceFolder(out=found), read_record)
        case "events":
            said = set_for(("events", "consume"), ("queue", "queue_name", "exchange", "routing_key")) | given
            return DeadLetterCommands(EventsQueue(**said), EventsFolder(out=found), read_message)
    there = "nothing of ours is in it" if found.is_dir() else "it is not there"
    why = f"it is of {system}" if system_of(found) else there
    raise CommandError(printable(f"{folder} is no folder of a crawl of ids, or of events: {why}"), code=2)


def read_record(body: bytes) -> LetterContent | str:
    """What a record that could not be stored says, or why it cannot be read."""
    try:
        message = decode(body)
    except MessageError as error:
        return str(error)
    completed, players = message.instance.date_completed, message.instance.players
    return LetterContent(
        {
            "id": message.id,
            "api": message.api,
            "crawled": written(message.crawled),
            "completed": None if completed is None else written(completed),
            "players": f"{len(players):,}" if players else None,
        }
    )


def read_message(body: bytes) -> LetterContent | str:
    """What a message that was given up says, or why it cannot be read."""
    try:
        envelope = read_envelope(body)
    except EnvelopeError as error:
        return str(error)
    about = envelope.context
    whose = {"event_id": about.event_id, "job_id": about.job_id, "project_id": about.project_id}
    said = {"mode": envelope.mode, **whose, "platform": about.platform}
    match envelope:
        case EventEnvelope():
            said |= {"path": envelope.path}
        case LegacyEnvelope():
            said |= {"bucket": envelope.bucket, "path": envelope.path}
    return LetterContent(said, envelope.notes)
