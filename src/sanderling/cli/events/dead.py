"""What a dead letter of events says: a message that was given up."""

from sanderling.cli.dead_letters import LetterContent
from sanderling.events.envelopes import EnvelopeError, EventEnvelope, LegacyEnvelope, read_envelope


def read(body: bytes) -> LetterContent | str:
    """What a body says, or why it cannot be read."""
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
