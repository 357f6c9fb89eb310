"""What a reply has in it for whoever reads documents, and errors that say which document it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sanderling.apis.json_bodies import BOM
from sanderling.outcome import Code
from sanderling.stores.documents import LONGEST_DETAIL, SourceError, source_error
from sanderling.task import Reply

# Documents that are polled have some hundred kilobytes, as a rule.
LARGEST = 16 * 2**20


@contextmanager
def within(document: str, reply: Reply) -> Iterator[None]:
    """Errors from in here say the name of the document and the status of the reply."""
    try:
        yield
    except SourceError as error:
        # A status may be any three digits; an outcome has only those that HTTP knows.
        status = reply.status if reply.status <= 599 else 0
        detail = f"{document}: {error.outcome.detail}"[:LONGEST_DETAIL]
        raise SourceError(replace(error.outcome, status=status, detail=detail)) from None


def body_of(reply: Reply) -> bytes:
    """The body of a reply that may have a document in it. Raises SourceError."""
    if reply.status != 200:
        raise source_error(Code.HTTP_ERROR, f"HTTP {reply.status}, expected 200")
    if len(reply.body) > LARGEST:
        raise source_error(Code.TOO_LARGE, f"{len(reply.body)} bytes, expected at most {LARGEST}")
    return reply.body.removeprefix(BOM)
