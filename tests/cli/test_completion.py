"""The scripts with which shells complete our commands."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import called

SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_the_commands_and_is_one_to_its_shell(shell: str, tmp_path: Path) -> None:
    done = called("completion", "show", shell)

    assert (done.code, done.err) == (0, "")
    assert all(word in done.out for word in ("sequence", "missed", "dashboard", "leave-out"))
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.out)
        checked = subprocess.run([*SHELLS[shell], tmp_path / "script"], capture_output=True, check=False)  # noqa: S603 - ours
        assert (checked.returncode, checked.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["sanderling", "seq"], ["sequence"]),
        (["sanderling", "repos", "re"], ["replay", "reset"]),
        (["sanderling", "repos", "crawl", "--leave"], ["--leave-out"]),
        (["sanderling", "repos", "crawl", "--zstd"], []),  # a setting is no flag
    ],
)
def test_bash_completes_a_command(typed: list[str], completed: list[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(called("completion", "show", "bash").out)
    words = " ".join(typed)
    script = f"""
        source {tmp_path / "script"}
        COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; COMP_LINE="{words}"; COMP_POINT={len(words)}
        $(complete -p sanderling | sed -E 's/.*-F ([^ ]+).*/\\1/') sanderling {typed[-1]} {typed[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(["/bin/bash", "--norc", "-c", script], capture_output=True, check=False, text=True)  # noqa: S603 - ours

    assert sorted(filter(None, map(str.strip, done.stdout.splitlines()))) == completed, done.stderr


def test_it_is_installed_where_the_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    done = called("completion", "install", "bash")

    assert (done.code, done.err) == (0, "")
    (script,) = tmp_path.rglob("completions/sanderling")
    assert str(script) in done.out
    assert script.read_text() == called("completion", "show", "bash").out
    assert called("completion", "install", "bash").code == 0
