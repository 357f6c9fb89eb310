"""The file of compose: as its schema wants it, closed to others, and with commands that ours takes."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own
from deploy_lines import DEPLOY, ROOT, filled, refused, variables_of
from deployed import promtool_says

COMPOSE_FILE = DEPLOY / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = variables_of(DEPLOY / "compose.env.example")
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("sanderling:")}
PROMETHEUS = DEPLOY / "prometheus"
SCRAPED: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
LOCAL: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus-local.yml").read_text())


def words(service: dict[str, Any], variables: dict[str, str]) -> list[str]:
    """The command of a service, as compose splits it."""
    return shlex.split(filled(service["command"], variables))


def secrets_of(service: dict[str, Any]) -> list[str]:
    """The names of the secrets that a service is given."""
    return [each if isinstance(each, str) else each["source"] for each in service.get("secrets", [])]


def test_it_is_as_the_schema_of_compose_wants_it() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE_FILE)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("variables", [{}, EXAMPLE], ids=["defaults", "example"])
@pytest.mark.parametrize("name", OURS)
def test_our_command_line_takes_every_command(name: str, variables: dict[str, str]) -> None:
    assert refused(words(OURS[name], variables)) == ""


def test_every_variable_is_in_the_example_and_every_one_of_the_example_is_used() -> None:
    asked = set(re.findall(r"\$\{(\w+)", COMPOSE_FILE.read_text()))

    assert asked == set(EXAMPLE)


@pytest.mark.parametrize("name", [name for name in OURS if OURS[name]["restart"] != "no"])
def test_no_service_that_is_restarted_begins_anew(name: str) -> None:
    """With --target a crawl of ids forgets where it was."""
    assert "--target" not in words(OURS[name], EXAMPLE)


def test_where_ids_begin_is_said() -> None:
    assert "--begin" in words(OURS["sequence"], EXAMPLE)


def test_the_image_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert {service["image"] for service in OURS.values()} == {f"sanderling:{version}"}


def test_every_image_of_others_has_a_version_and_none_is_that_of_minio() -> None:
    images = [service["image"] for service in SERVICES.values() if service not in OURS.values()]

    assert [image for image in images if not re.fullmatch(r"docker\.io/[\w./-]+:v?\d[\w.-]*", image)] == []
    assert not any("minio" in image for image in images)


def test_ports_are_published_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert len(ports) >= 4
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


def test_servers_are_where_nothing_gets_out() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    for name in ("postgres", "rabbitmq", "seaweedfs", "valkey", "clickhouse"):
        assert SERVICES[name]["networks"] == ["inside"]
        assert "ports" not in SERVICES[name]


def test_passwords_are_files_and_in_no_variable() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            secret = re.search(r"PASSWORD|SECRET|TOKEN|PASSFILE", name)
            assert not secret or value.startswith("/run/secrets/"), name
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), name
        assert not re.search(r"://[^/@]*:[^/@]*@", str(service.get("command", "")))


def test_every_secret_is_declared_and_used_and_made_by_the_script() -> None:
    used = {name for service in SERVICES.values() for name in secrets_of(service)}
    script = (DEPLOY / "make-secrets.sh").read_text()

    assert used == set(COMPOSE["secrets"])
    for name, secret in COMPOSE["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
        assert re.search(rf"\b{re.escape(name)}\b", script), name


@pytest.mark.parametrize("name", OURS)
def test_a_service_is_given_every_secret_that_its_command_reads(name: str) -> None:
    read = set(re.findall(r"/run/secrets/(\S+)", OURS[name]["command"]))
    servers = {"rabbitmq": "rabbitmq_password", "postgres": "pgpass", "clickhouse": "clickhouse_password"}
    places = OURS[name]["command"] + " ".join(map(str, OURS[name]["environment"].values()))

    read |= {secret for server, secret in servers.items() if f"sanderling@{server}" in places}
    # `events migrate` and `forget` ask the database alone.
    alone = name in ("events-migrate", "events-forget")
    assert ({"pgpass"} if alone else read) <= set(secrets_of(OURS[name]))


def test_profiles_are_those_that_the_head_explains() -> None:
    head = COMPOSE_FILE.read_text().partition("\nname:")[0]
    profiles = {profile for service in SERVICES.values() for profile in service["profiles"]}

    assert profiles == {"core", "full", "fleet", "jobs"}
    assert all(f"\n# {profile}: " in head for profile in profiles)
    # What somebody waits for is there whenever he is.
    for service in SERVICES.values():
        for other in service.get("depends_on", {}):
            assert set(service["profiles"]) <= set(SERVICES[other]["profiles"])


def test_every_server_has_a_health_check_and_what_waits_for_it_uses_that() -> None:
    servers = {name: service for name, service in SERVICES.items() if name not in OURS}

    assert all("healthcheck" in service for service in servers.values())
    for name, service in OURS.items():
        conditions = [each["condition"] for each in service.get("depends_on", {}).values()]
        assert set(conditions) <= {"service_healthy"}, name


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_may_do_little(name: str) -> None:
    service = OURS[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_volume_is_declared_and_used() -> None:
    mounts = [mount for service in SERVICES.values() for mount in service.get("volumes", [])]
    named = {mount.split(":")[0] for mount in mounts if not mount.startswith((".", "/"))}

    assert named == set(COMPOSE["volumes"])
    for mount in mounts:
        if mount.startswith("."):
            assert (DEPLOY / mount.split(":")[0]).exists(), mount


def targets(configuration: dict[str, Any]) -> dict[str, list[str]]:
    """What each job scrapes."""
    return {
        job["job_name"]: [target for each in job["static_configs"] for target in each["targets"]]
        for job in configuration["scrape_configs"]
        if "static_configs" in job
    }


def test_workers_of_a_fleet_are_as_many_as_one_likes_and_each_is_scraped() -> None:
    """They share nothing on this machine: no name of a volume, no port."""
    fleet, (job,) = OURS["fleet"], [job for job in SCRAPED["scrape_configs"] if job["job_name"] == "fleet"]

    assert fleet["deploy"]["replicas"] > 1
    assert fleet["volumes"] == ["/var/lib/sanderling"]
    assert not {"ports", "container_name"} & set(fleet)
    assert job["dns_sd_configs"] == [{"names": ["fleet"], "type": "A", "port": 9090}]
    assert set(fleet["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_prometheus_scrapes_every_system() -> None:
    lasting = {name for name, service in OURS.items() if not {"jobs", "fleet"} & set(service["profiles"])}

    assert len(lasting) == 6
    for name in lasting:
        assert targets(SCRAPED)[name] == [f"{name}:9090"]
        assert "--metrics-port 9090" in OURS[name]["command"]
        assert OURS[name]["environment"]["SANDERLING_METRICS_BIND"] == "0.0.0.0"  # noqa: S104 - it is another container
        assert set(OURS[name]["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_prometheus_asks_nobody_who_is_not_there() -> None:
    hosts = {target.split(":")[0] for each in targets(SCRAPED).values() for target in each}

    assert hosts - {"127.0.0.1"} <= set(SERVICES)


def test_prometheus_on_this_machine_asks_the_ports_of_the_units() -> None:
    units = "".join(path.read_text() for path in (DEPLOY / "systemd").glob("*.service"))
    units += "".join(path.read_text() for path in (DEPLOY / "systemd" / "env").glob("*.env"))
    served = {port.replace("%i", number) for port in re.findall(r"--metrics-port (\S+)", units) for number in "12"}

    asked = {job: {target.split(":")[1] for target in each} for job, each in targets(LOCAL).items()}
    asked.pop("prometheus")
    assert set().union(*asked.values()) == served


@pytest.mark.parametrize("configuration", [SCRAPED, LOCAL], ids=["compose", "local"])
def test_prometheus_knows_all_of_our_alarms(configuration: dict[str, Any]) -> None:
    assert set(configuration["rule_files"]) == {path.name for path in PROMETHEUS.glob("*-alerts.yml")}


@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-local.yml"])
def test_promtool_takes_the_configuration(name: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")

    assert promtool_says(promtool, "check", "config", str(PROMETHEUS / name)) == ""


def test_grafana_is_given_our_dashboards_and_where_the_figures_are() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "sanderling.yml").read_text())["providers"]
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])

    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    assert mounts["./grafana"] == provider["options"]["path"]
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    assert {path.stem for path in (DEPLOY / "grafana").glob("*.json")} == {
        "events",
        "pages",
        "polling",
        "repos",
        "sequence",
    }
