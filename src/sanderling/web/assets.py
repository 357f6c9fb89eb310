"""The files of a page: a few small ones that ship with us, read once, and sent with a tag by which they are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from aiohttp import web

from sanderling.web.access import SAFE_HEADERS
from sanderling.web.problems import WORDS, problem

FOLDER = Path(__file__).parent / "dashboard"
INDEX = "index.html"
TYPES: Mapping[str, str] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
MISSING = "the page of the dashboard is not part of this installation; its API is"
# Of ours alone: no script but in our files, nothing from elsewhere, in no frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    **SAFE_HEADERS,
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",  # kept, and asked for again by its tag
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file."""

    body: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, path: Path) -> "Asset":
        """That at a path."""
        body = path.read_bytes()
        return cls(body, TYPES[path.suffix], f'"{sha256(body).hexdigest()[:32]}"')


class Assets:
    """Those of a folder, by name. What is not of a known kind is not sent."""

    def __init__(self, folder: Path = FOLDER) -> None:
        there = sorted(folder.iterdir()) if folder.is_dir() else []
        self.known = {path.name: Asset.of(path) for path in there if path.suffix in TYPES and path.is_file()}

    def answer(self, name: str, request: web.Request) -> web.Response:
        """The file of that name, unless the client has it. Raises ProblemError."""
        asset = self.known.get(name)
        if asset is None:
            raise problem(404, MISSING if name == INDEX else WORDS[404])
        headers = {**HEADERS, "ETag": asset.tag}
        given = {each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(",")}
        if given & {asset.tag, "*"}:
            return web.Response(status=304, headers=headers)
        charset = "utf-8" if asset.kind.startswith("text/") or asset.kind.endswith("+xml") else None
        return web.Response(body=asset.body, content_type=asset.kind, charset=charset, headers=headers)
