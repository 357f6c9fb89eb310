"""`sanderling events dead list`, `show` and `replay`: messages that were given up, why, and another try for them."""

from sanderling.cli.command_line import AsJson
from sanderling.cli.dead_letters import DeadLetters, Every, Key, Keys, Limit, Said
from sanderling.cli.events.place import OWN_LETTERS, USUAL, Folder, Letters
from sanderling.cli.reach import explained
from sanderling.events.envelopes import EnvelopeError, EventEnvelope, LegacyEnvelope, read_envelope


def list_dead(
    *, limit: Limit = None, json: AsJson = False, letters: Letters = OWN_LETTERS, folder: Folder = USUAL
) -> None:
    """Say which messages were given up, and why."""
    explained(DeadLetters("events", letters, folder, _read).tell_all(limit, as_json=json))


def show(key: Key, /, *, json: AsJson = False, letters: Letters = OWN_LETTERS, folder: Folder = USUAL) -> None:
    """Show one of them, and what it says."""
    explained(DeadLetters("events", letters, folder, _read).show(key, as_json=json))


def replay(
    *keys: Keys, every: Every = False, json: AsJson = False, letters: Letters = OWN_LETTERS, folder: Folder = USUAL
) -> None:
    """Make messages ready again, as if they had never failed."""
    explained(DeadLetters("events", letters, folder, _read).replay(keys, every=every, as_json=json))


def _read(body: bytes) -> Said | str:
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
    return Said(said, envelope.notes)
