"""The units of systemd: it takes them without a word, they are confined, and our command line takes what they run."""

import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from deploy_lines import DEPLOY, filled, refused, variables_of

from sanderling.cli.fleet.worker import AWAY

SYSTEMD = DEPLOY / "systemd"
UNITS = sorted([*SYSTEMD.glob("*.service"), *SYSTEMD.glob("*.timer")])
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
EXAMPLES = {path.stem: path for path in (SYSTEMD / "env").glob("*.env")}
INSTALLED = "/usr/local/bin/sanderling"
SPECIFIERS = {"%S": "/var/lib", "%d": "/run/credentials", "%i": "1"}
# What no service of ours may do without.
CONFINED = {
    "User": "sanderling",
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "MemoryDenyWriteExecute": "yes",
    "RestrictSUIDSGID": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK",
    "SystemCallArchitectures": "native",
    "KillSignal": "SIGTERM",
}

Settings = dict[str, list[str]]


def settings(unit: Path) -> Settings:
    """All that a unit sets, in whichever section."""
    found: Settings = defaultdict(list)
    for line in unit.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name].append(value)
    return found


def commands(unit: Path) -> list[list[str]]:
    """What a service runs, with the variables of the example that goes with it."""
    said = settings(unit)
    variables = dict(pair.split("=", 1) for line in said["Environment"] for pair in line.split())
    variables |= variables_of(example(unit)) if example(unit) else {}
    found = []
    for line in said["ExecStart"]:
        words = re.sub("%[a-zA-Z]", lambda specifier: SPECIFIERS[specifier[0]], filled(line, variables))
        found.append(shlex.split(words.replace("$ARGS", variables.get("ARGS", ""))))
    return found


def example(unit: Path) -> Path:
    """The file of variables that is an example for a service."""
    (named,) = settings(unit)["EnvironmentFile"]
    return EXAMPLES[Path(named).stem.replace("%i", "example")]


def ids(unit: Path) -> str:
    return unit.name


def analyse(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze on this machine")
    command = [program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """The units with a program that is there; an instance of each template."""
    for unit in UNITS:
        program = str(Path(sys.executable).parent / "sanderling")
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, program))
    return [tmp_path / unit.name.replace("@.", "@1.") for unit in UNITS]


def test_systemd_takes_every_unit_without_a_warning(installed: list[Path]) -> None:
    done = analyse("verify", "--man=no", *map(str, installed))

    said = [line for line in (done.stdout + done.stderr).splitlines() if "sanderling" in line]
    assert said == []
    assert done.returncode == 0


def test_systemd_would_find_a_slip_in_a_unit(tmp_path: Path) -> None:
    broken = tmp_path / "sanderling-broken.service"
    broken.write_text((SYSTEMD / "sanderling-polling.service").read_text().replace("PrivateTmp", "PrivateTemp"))

    said = analyse("verify", "--man=no", str(broken))

    assert "PrivateTemp" in said.stdout + said.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=ids)
def test_systemd_finds_every_service_well_confined(unit: Path) -> None:
    done = analyse("security", "--offline=true", "--threshold=20", "--no-pager", str(unit))

    assert done.returncode == 0, done.stdout.splitlines()[-1]


@pytest.mark.parametrize("unit", SERVICES, ids=ids)
def test_every_service_is_confined_in_the_same_way(unit: Path) -> None:
    said = settings(unit)

    assert {name: said[name] for name in CONFINED} == {name: [value] for name, value in CONFINED.items()}
    assert said["SystemCallFilter"] == ["@system-service", "~@privileged"]
    assert said["MemoryMax"]
    assert said["StateDirectory"][0].startswith("sanderling/")
    assert all(each.startswith("-/etc/sanderling/") for each in said["EnvironmentFile"])


@pytest.mark.parametrize("unit", [unit for unit in SERVICES if "forget" not in unit.name], ids=ids)
def test_what_runs_for_long_is_stopped_gently_and_comes_back(unit: Path) -> None:
    said = settings(unit)

    assert said["Restart"] == ["on-failure"]
    assert said["SuccessExitStatus"] == ["130"]
    assert "2" in said["RestartPreventExitStatus"][0].split()
    assert said["TimeoutStopSec"]


@pytest.mark.parametrize("name", ["sanderling-pages@.service", "sanderling-repos.service"])
def test_a_worker_of_a_fleet_comes_back_when_its_servers_were_away_and_not_when_it_is_done(name: str) -> None:
    (unit,) = [unit for unit in SERVICES if unit.name == name]
    prevented = settings(unit)["RestartPreventExitStatus"][0].split()

    assert str(AWAY) not in prevented
    assert "1" in prevented  # it is done, and something failed


@pytest.mark.parametrize("unit", SERVICES, ids=ids)
def test_our_command_line_takes_what_a_service_runs(unit: Path) -> None:
    found = commands(unit)

    assert found
    for program, *words in found:
        assert program == INSTALLED
        assert "%" not in "".join(words)
        assert refused(words) == ""


@pytest.mark.parametrize("unit", SERVICES, ids=ids)
def test_no_service_begins_anew_with_every_restart(unit: Path) -> None:
    """With --target a crawl of ids forgets where it was."""
    assert all("--target" not in words for words in commands(unit))


@pytest.mark.parametrize("unit", SERVICES, ids=ids)
def test_secrets_are_credentials_and_every_credential_is_used(unit: Path) -> None:
    said = settings(unit)
    given = {each.split(":")[0] for each in said["LoadCredential"]}

    words = " ".join((*said["ExecStart"], *said["Environment"]))
    used = set(re.findall(r"(?:--[a-z-]+-file |_FILE=)%d/(\S+)", words))

    assert used == given
    assert re.findall(r"(?:--[a-z-]+-file |_FILE=)(?!%d/)", words) == []


def test_no_two_services_want_the_same_port() -> None:
    ports = re.findall(r"--(?:metrics-)?port (\S+)", "".join(unit.read_text() for unit in SERVICES))

    assert len(ports) >= 6
    assert len(set(ports)) == len(ports)


def test_every_timer_has_its_service_and_every_example_its_reader() -> None:
    timers = [unit for unit in UNITS if unit.suffix == ".timer"]

    assert [timer.name for timer in timers if timer.with_suffix(".service") not in SERVICES] == []
    assert {example(unit) for unit in SERVICES} == set(EXAMPLES.values())


@pytest.mark.parametrize("path", EXAMPLES.values(), ids=lambda path: path.name)
def test_an_example_has_no_secret(path: Path) -> None:
    secrets = re.findall(r"^#? ?\w*(?:PASSWORD|SECRET|TOKEN|KEY)\w*=(.*)$", path.read_text(), re.MULTILINE)

    assert [value for value in secrets if value] == []
