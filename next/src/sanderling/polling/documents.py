"""Any other JSON: a TOML file says where each document is, how often it is polled, and what its rows are.

[scores]
url = "https://api.example.org/live.json"
every = "2s"
items = "data.games"          # JMESPath: a list, a map of rows by their keys, or one object
key = "id"                    # JMESPath in each row; without it rows are told apart by their place or name
ignore = ["updated_at"]       # fields whose change is none
headers = { Authorization = "env:SCORES_TOKEN" }
"""

import tomllib
from pathlib import Path
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from sanderling.fetch.messages import Headers, check_headers, in_utf8
from sanderling.files import FolderError, read_small
from sanderling.forms import Seconds, SecretOrText, Url
from sanderling.options import REQUIRED, OptionError, Options, option
from sanderling.polling.store import PollTarget
from sanderling.polling.trackside import MOST_ROWS, Document, DocumentError, DocumentScope
from sanderling.redact import Secret

_MOST_DOCUMENTS = 5000
_LONGEST_KEY = 500


class DocumentOptions(Options):
    """One document."""

    url: Url = option(REQUIRED, "Where it is.")
    every: Seconds = option(5.0, "Time between two polls.", low=0.05, high=86_400)
    items: str = option("@", "A JMESPath to its rows: a list, a map, or one object.")
    key: str = option("", "A JMESPath to a row's key; without it, its place or name.")
    ignore: tuple[str, ...] = option((), "Fields of a row whose change is none.")
    headers: dict[str, SecretOrText] = option({}, "Headers of each request.")

    def __init__(self, **values: object) -> None:
        super().__init__(**values)
        try:
            check_headers((name, value if isinstance(value, str) else "") for name, value in self.headers.items())
        except ValueError as error:
            raise OptionError(f"headers: {error}") from None
        for name in ("items", "key"):
            try:
                jmespath.compile(getattr(self, name) or "@")
            except JMESPathError:
                raise OptionError(f"{name}: found {getattr(self, name)[:60]!r}, expected a JMESPath") from None


def read_documents(path: Path) -> dict[str, DocumentOptions]:
    """The documents of a file, by their names. Raises FolderError, OptionError."""
    try:
        content = tomllib.loads(read_small(path, 8 << 20).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FolderError(f"{path} is not TOML: {error}", "see https://toml.io for how values are written") from None
    found = {}
    for name, table in content.items():
        if not isinstance(table, dict):
            raise OptionError(f"{path} has {name[:60]}, expected tables like [scores] with url and every")
        found[name] = DocumentOptions.from_table(table, f"{path} [{name[:60]}]")
    if not 0 < len(found) <= _MOST_DOCUMENTS:
        raise OptionError(f"{path} has {len(found):,} documents, expected 1 to {_MOST_DOCUMENTS:,}")
    return found


class JsonDocuments:
    """What such a file describes, as the scheduler needs it."""

    base = ""

    def __init__(self, documents: dict[str, DocumentOptions]) -> None:
        self._documents = documents
        self._headers = {
            name: tuple((key, value.reveal() if isinstance(value, Secret) else value)
                        for key, value in each.headers.items())
            for name, each in documents.items()
        }  # fmt: skip

    def urls(self) -> set[str]:
        """All of them."""
        return {each.url for each in self._documents.values()}

    def targets(self) -> dict[str, int]:
        """The interval of each document by its name, in milliseconds."""
        return {name: round(each.every * 1000) for name, each in self._documents.items()}

    def place(self, target: PollTarget) -> tuple[str, Headers]:
        """The URL of a document, and the headers for it. Raises DocumentError for one that a person has made up."""
        document = self._documents.get(target.source_id)
        if document is None:
            raise DocumentError("the file of documents does not describe it")
        return document.url, self._headers[target.source_id]

    def read(self, target: PollTarget, body: bytes) -> Document:
        """The rows of a document. Raises DocumentError."""
        return rows_of(target.source_id, self._documents[target.source_id], body)


def rows_of(name: str, options: DocumentOptions, body: bytes) -> Document:
    """The rows that a document has by its description. Raises DocumentError."""
    try:
        items = jmespath.search(options.items, msgspec.json.decode(in_utf8(body, "")))
    except RecursionError:
        raise DocumentError("found JSON that is nested too deeply") from None
    except (ValueError, JMESPathError) as error:
        raise DocumentError(f"found {body[:40]!r}, expected JSON ({error})") from None
    document = Document()
    whole = True
    rows: dict[str, dict[str, Any]] = {}
    for place, item in _named(items, options):
        key = jmespath.search(options.key, item) if options.key else place
        text = str(key) if isinstance(key, str | int) and not isinstance(key, bool) else ""
        if not 0 < len(text) <= _LONGEST_KEY or len(rows) >= MOST_ROWS:
            whole = False
            document.odd.append(f"{name}.{options.key or 'key'}")
            continue
        kept = item
        if isinstance(item, dict):
            kept = {field: value for field, value in item.items() if field not in options.ignore}
        record = msgspec.json.encode(kept, order="sorted").decode().replace("\\u0000", "")
        rows[f"{name}/{text}".replace("\0", "")] = {"document": name, "record": record}
    document.rows["documents"] = rows
    if whole:
        document.scopes.append(DocumentScope("documents", "document", name))
    return document


def _named(items: Any, options: DocumentOptions) -> list[tuple[str | int, Any]]:  # noqa: ANN401 - JSON
    """The rows, each with its place or name."""
    if items is None:
        raise DocumentError(f"found nothing at {options.items}, expected a list, a map or an object")
    if isinstance(items, list):
        return list(enumerate(items))
    if isinstance(items, dict) and items and all(isinstance(each, dict) for each in items.values()):
        return list(items.items())
    return [("0" if not options.key else "", items)]
