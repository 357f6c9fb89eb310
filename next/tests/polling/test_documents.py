"""Any JSON, by its description."""

import json
from pathlib import Path
from typing import Any

import pytest

from sanderling.files import FolderError
from sanderling.options import OptionError
from sanderling.polling.documents import DocumentOptions, JsonDocuments, read_documents, rows_of
from sanderling.polling.store import PollTarget
from sanderling.polling.trackside import DocumentError


def rows(content: Any, **options: Any) -> dict[str, Any]:
    given = DocumentOptions(url="https://api.example.org/x.json", **options)
    found = rows_of("x", given, json.dumps(content).encode()).rows["documents"]
    return {key: json.loads(str(row["record"])) for key, row in found.items()}


SHAPES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    ({"a": 1, "b": [2]}, {}, {"x/0": {"a": 1, "b": [2]}}),
    ([{"id": 7}, {"id": 8}], {}, {"x/0": {"id": 7}, "x/1": {"id": 8}}),
    ([{"id": 7}, {"id": 8}], {"key": "id"}, {"x/7": {"id": 7}, "x/8": {"id": 8}}),
    ({"one": {"n": 1}, "two": {"n": 2}}, {}, {"x/one": {"n": 1}, "x/two": {"n": 2}}),
    ({"data": {"games": [{"g": {"id": "q"}, "at": 5}]}}, {"items": "data.games", "key": "g.id", "ignore": ["at"]},
     {"x/q": {"g": {"id": "q"}}}),
    ([1, None, "text"], {}, {"x/0": 1, "x/1": None, "x/2": "text"}),
    ([{"id": None}, {"id": "good"}], {"key": "id"}, {"x/good": {"id": "good"}}),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "expected"), SHAPES)
def test_the_rows_of_a_shape(content: Any, options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert rows(content, **options) == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b'{"data":null}', b"\xff\xfe\xff"])
def test_what_cannot_be_read_changes_nothing(body: bytes) -> None:
    with pytest.raises(DocumentError):
        rows_of("x", DocumentOptions(url="https://api.example.org/", items="data"), body)


def test_rows_without_a_key_delete_nothing() -> None:
    given = DocumentOptions(url="https://api.example.org/", key="id")
    assert not rows_of("x", given, b'[{"id":1},{}]').scopes
    assert rows_of("x", given, b'[{"id":1}]').scopes


def test_a_file_is_checked_before_anything_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "documents.toml"
    monkeypatch.setenv("SCORES_TOKEN", "hush")
    file.write_text('[a]\nurl="https://a.example/"\nevery="2s"\nheaders={X-Key="env:SCORES_TOKEN"}\n')
    found = JsonDocuments(read_documents(file))
    assert found.targets() == {"a": 2000}
    assert found.place(PollTarget("document", "a", 2000)) == ("https://a.example/", (("X-Key", "hush"),))
    with pytest.raises(DocumentError):
        found.place(PollTarget("document", "other", 2000))

    for text, says in [
        ("", "1 to"),
        ("[a", "TOML"),
        ("a=1", "tables"),
        ("[a]\n", "url"),
        ('[a]\nurl="https://a.example/"\nitmes="x"\n', "did you mean items"),
        ('[a]\nurl="https://a.example/"\nitems="]["\n', "JMESPath"),
        ('[a]\nurl="https://a.example/"\nheaders={"a b"="c"}\n', "header"),
    ]:
        file.write_text(text)
        with pytest.raises((OptionError, FolderError), match=says):
            read_documents(file)
