"""HTTP for people and programs: routes whose types are their description, tokens and guards, streams, errors."""

from sanderling.serving.access import Access, Needs, own_token
from sanderling.serving.routes import Input, Problem, Route
from sanderling.serving.server import serve
from sanderling.serving.stream import StreamEvent, Streams

__all__ = ["Access", "Input", "Needs", "Problem", "Route", "StreamEvent", "Streams", "own_token", "serve"]
