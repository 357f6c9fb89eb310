"""One name, one thing: a reader who finds a class by its name has found it."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/sanderling"


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(SOURCE)))
    return found


def test_a_public_class_name_exists_once() -> None:
    assert {name: files for name, files in public_classes().items() if len(files) > 1} == {}
