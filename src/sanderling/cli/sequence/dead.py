"""`sanderling sequence dead list`, `show` and `replay`: records that could not be stored, why, and another try."""

from sanderling.cli.command_line import AsJson
from sanderling.cli.dead_letters import DeadLetters, Every, Key, Keys, Limit, Said
from sanderling.cli.events.times import written
from sanderling.cli.reach import explained
from sanderling.cli.sequence.place import OWN_LETTERS, USUAL, Letters, Place
from sanderling.formats.instance import MessageError, decode


def list_dead(
    *, limit: Limit = None, json: AsJson = False, letters: Letters = OWN_LETTERS, place: Place = USUAL
) -> None:
    """Say which records could not be stored, and why."""
    explained(DeadLetters("sequence", letters, place, _read).tell_all(limit, as_json=json))


def show(key: Key, /, *, json: AsJson = False, letters: Letters = OWN_LETTERS, place: Place = USUAL) -> None:
    """Show one of them, and what it says."""
    explained(DeadLetters("sequence", letters, place, _read).show(key, as_json=json))


def replay(
    *keys: Keys, every: Every = False, json: AsJson = False, letters: Letters = OWN_LETTERS, place: Place = USUAL
) -> None:
    """Make records ready again, as if they had never failed."""
    explained(DeadLetters("sequence", letters, place, _read).replay(keys, every=every, as_json=json))


def _read(body: bytes) -> Said | str:
    try:
        message = decode(body)
    except MessageError as error:
        return str(error)
    completed, players = message.instance.date_completed, message.instance.players
    return Said(
        {
            "id": message.id,
            "api": message.api,
            "crawled": written(message.crawled),
            "completed": None if completed is None else written(completed),
            "players": f"{len(players):,}" if players else None,
        }
    )
