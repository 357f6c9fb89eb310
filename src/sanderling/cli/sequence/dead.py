"""What a dead letter of a crawl of ids says: a record that could not be stored."""

from sanderling.cli.dead_letters import LetterContent
from sanderling.cli.times import written
from sanderling.formats.instance import MessageError, decode


def read(body: bytes) -> LetterContent | str:
    """What a body says, or why it cannot be read."""
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
