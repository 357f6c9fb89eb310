"""The scripts with which shells complete our commands."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import called

SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script of each shell, in a file."""
    folder, made = tmp_path_factory.mktemp("completion"), {}
    for shell in SHELLS:
        done = called("completion", "show", shell)
        assert (done.code, done.err) == (0, "")
        made[shell] = folder / shell
        made[shell].write_text(done.out)
    return made


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_the_commands_and_is_one_to_its_shell(shell: str, scripts: dict[str, Path]) -> None:
    written = scripts[shell].read_text()

    assert all(word in written for word in ("sequence", "missed", "dashboard", "leave-out"))
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} on this machine that could check the syntax")
    checked = subprocess.run([*SHELLS[shell], scripts[shell]], capture_output=True, check=False)  # noqa: S603 - ours
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
def test_bash_completes_a_command(typed: list[str], completed: list[str], scripts: dict[str, Path]) -> None:
    words = " ".join(typed)
    script = f"""
        source {scripts["bash"]}
        COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; COMP_LINE="{words}"; COMP_POINT={len(words)}
        $(complete -p sanderling | sed -E 's/.*-F ([^ ]+).*/\\1/') sanderling {typed[-1]} {typed[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(["/bin/bash", "--norc", "-c", script], capture_output=True, check=False, text=True)  # noqa: S603 - ours

    assert sorted(filter(None, map(str.strip, done.stdout.splitlines()))) == completed, done.stderr


def test_it_is_installed_where_the_shell_finds_it(
    tmp_path: Path, scripts: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    done = called("completion", "install", "bash")

    assert (done.code, done.err) == (0, "")
    (script,) = tmp_path.rglob("completions/sanderling")
    assert str(script) in done.out
    assert script.read_text() == scripts["bash"].read_text()
    assert called("completion", "install", "bash").code == 0
