"""Files that flags name."""

from pathlib import Path

import pytest

from sanderling.cli.command_error import CommandError
from sanderling.cli.flag_files import read, secret, section


def test_a_secret_has_no_blanks_around_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("  sesame\n")

    assert read("--key-file", tmp_path / "key") == "sesame"


def test_the_file_counts_more_than_the_variable(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("filed")
    variables = {"KEY": "set"}

    assert secret("--key-file", tmp_path / "key", "KEY", variables) == "filed"
    assert secret("--key-file", None, "KEY", variables) == "set"
    assert secret("--key-file", None, "KEY", {}) == ""


@pytest.mark.parametrize("body", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_named_with_its_flag(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "key"
    if body is not None:
        path.write_bytes(body)

    with pytest.raises(CommandError, match=f"^--key-file: cannot read {path} ") as caught:
        read("--key-file", path)

    assert caught.value.code == 2


def test_a_description_is_a_section_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "api.toml"
    path.write_text('[api]\nurl = "https://a.example/{id}"\n')

    assert section("--api-file", path, "api") == {"url": "https://a.example/{id}"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[api", "--api-file: {path} is no TOML: "),
        ("url = 1", "--api-file: {path} has no section [api]"),
        ("api = 1", "--api-file: {path} has no section [api]"),
    ],
)
def test_any_other_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "api.toml"
    path.write_text(text)

    with pytest.raises(CommandError) as caught:
        section("--api-file", path, "api")

    assert str(caught.value).startswith(says.format(path=path))
    assert caught.value.code == 2
