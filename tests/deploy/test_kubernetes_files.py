"""The manifests of Kubernetes: pods that may do little, probes on what is served, and commands that ours takes."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own
from deploy_lines import DEPLOY, ROOT, refused
from kubernetes_validate import validate  # type: ignore[import-untyped]  # it has no types
from measured_reports import idle_worker

from sanderling.cli.config.file import parse
from sanderling.cli.config.settings import known
from sanderling.cli.fleet.flags import FleetFlags
from sanderling.cli.fleet.metrics import fleet_metrics
from sanderling.cli.fleet.worker import UNFINISHED
from sanderling.crawls.fleet_worker import HURRY
from sanderling.fetch.http import HttpRules

KUBERNETES = DEPLOY / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
FILES = [KUBERNETES / name for name in KUSTOMIZATION["resources"]]
Manifest = dict[str, Any]
SECRET = KUBERNETES / "secret.example.yaml"
KEDA: Manifest = yaml.safe_load((KUBERNETES / "keda" / "fleet.yaml").read_text())  # of another schema than Kubernetes'


def manifests() -> Iterator[Manifest]:
    for path in FILES:
        yield from yaml.safe_load_all(path.read_text())


ALL = list(manifests())
BY_KIND = {kind: [each for each in ALL if each["kind"] == kind] for kind in {each["kind"] for each in ALL}}
(CONFIGURATION,) = BY_KIND["ConfigMap"]
SETTINGS: str = CONFIGURATION["data"]["sanderling.toml"]


def template(manifest: Manifest) -> Manifest:
    """What pods of a manifest are made from; empty if it makes none."""
    spec = manifest.get("spec", {})
    found: Manifest = spec.get("jobTemplate", {}).get("spec", spec).get("template", {})
    return found


def pod(manifest: Manifest) -> Manifest | None:
    """The pod that a manifest makes, if it makes any."""
    return template(manifest).get("spec")


PODS = {each["metadata"]["name"]: made for each in ALL if (made := pod(each)) is not None}
ANNOTATIONS = {
    each["metadata"]["name"]: template(each)["metadata"].get("annotations", {}) for each in ALL if pod(each) is not None
}


FLEET = next(name for name in PODS if name.startswith("fleet-"))


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def ours(spec: Manifest) -> Manifest:
    """The container of ours in a pod."""
    (found,) = [each for each in spec["containers"] if each["image"].startswith("sanderling:")]
    return dict(found)


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "sanderling.toml"
    path.write_text(SETTINGS)
    return path


def test_the_configuration_is_one_that_we_take() -> None:
    assert parse(SETTINGS, "sanderling.toml", known()).problems == ()


@pytest.mark.parametrize("name", PODS)
def test_our_command_line_takes_what_a_pod_runs(name: str, configuration: Path) -> None:
    assert refused(ours(PODS[name])["args"], configuration) == ""


def test_a_command_that_needs_the_configuration_is_refused_without_it() -> None:
    """So that what is said above is said of both together."""
    assert "--out" in refused(ours(PODS["pages"])["args"])


def test_no_pod_begins_anew_with_every_restart() -> None:
    """With a target a crawl of ids forgets where it was."""
    crawl = tomllib.loads(SETTINGS)["sequence"]["crawl"]

    assert ("begin" in crawl, "target" in crawl) == (True, False)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_as_restricted_as_the_namespace_wants_it(name: str) -> None:
    spec = PODS[name]
    security = spec["securityContext"]

    (namespace,) = BY_KIND["Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001)
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for each in containers(spec):
        confined = each["securityContext"]
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", PODS)
def test_no_variable_of_kubernetes_is_taken_for_a_setting(name: str) -> None:
    """A service called sanderling-events would set SANDERLING_EVENTS_PORT to tcp://…"""
    assert PODS[name]["enableServiceLinks"] is False


@pytest.mark.parametrize("name", PODS)
def test_every_container_says_what_it_needs_and_at_most_takes(name: str) -> None:
    for each in containers(PODS[name]):
        assert {"cpu", "memory"} <= set(each["resources"]["requests"])
        assert "memory" in each["resources"]["limits"]


@pytest.mark.parametrize("name", PODS)
def test_what_is_mounted_is_there(name: str) -> None:
    spec = PODS[name]
    claims = [
        claim["metadata"]["name"]
        for each in ALL
        if each["metadata"]["name"] == name
        for claim in each["spec"].get("volumeClaimTemplates", [])
    ]
    volumes = {volume["name"] for volume in spec["volumes"]} | set(claims)

    mounts = [mount["name"] for each in containers(spec) for mount in each.get("volumeMounts", [])]
    assert set(mounts) == volumes
    for volume in spec["volumes"]:
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        assert claim is None or claim in [each["metadata"]["name"] for each in BY_KIND["PersistentVolumeClaim"]]


@pytest.mark.parametrize("name", ["events", "polling"])
def test_what_serves_an_api_is_probed_there(name: str) -> None:
    container, table = ours(PODS[name]), tomllib.loads(SETTINGS)[name]
    served = table["consume" if name == "events" else "run"]

    assert {"name": "http", "containerPort": served["port"]} in container["ports"]
    # A probe comes from outside of the pod.
    assert served["bind"] == "0.0.0.0"  # noqa: S104 - that is the point
    assert served["token-file"].startswith("/run/secrets/sanderling/")
    probes = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert [probes[each]["path"] for each in probes] == ["/health", "/health", "/ready"]
    assert {each["port"] for each in probes.values()} == {"http"}


@pytest.mark.parametrize("name", [name for name in PODS if name != "events-forget"])
def test_what_runs_for_long_is_scraped_and_probed(name: str) -> None:
    settings, container = tomllib.loads(SETTINGS), ours(PODS[name])

    assert {"name": "metrics", "containerPort": settings["metrics-port"]} in container["ports"]
    # Prometheus comes from outside of the pod.
    assert settings["metrics-bind"] == "0.0.0.0"  # noqa: S104 - that is the point
    assert ANNOTATIONS[name]["prometheus.io/port"] == str(settings["metrics-port"])
    assert {"startupProbe", "livenessProbe"} <= set(container)
    assert PODS[name]["terminationGracePeriodSeconds"] >= 30


def test_a_pod_is_one_process_and_a_job_runs_once_at_a_time() -> None:
    assert all(len(containers(spec)) == 1 for spec in PODS.values())
    assert all(each["spec"]["concurrencyPolicy"] == "Forbid" for each in BY_KIND["CronJob"])


def test_who_asks_a_host_is_alone_and_keeps_its_state() -> None:
    sets = {each["metadata"]["name"]: each["spec"] for each in BY_KIND["StatefulSet"]}

    assert set(sets) == {"sequence", "polling"}
    services = {each["metadata"]["name"]: each["spec"]["selector"] for each in BY_KIND["Service"]}
    for name, spec in sets.items():
        assert spec["replicas"] == 1
        assert spec["serviceName"] == name
        assert services[name] == spec["selector"]["matchLabels"]
        assert services[name].items() <= spec["template"]["metadata"]["labels"].items()


def test_how_many_consumers_there_are_is_left_to_the_autoscaler() -> None:
    scalers = {each["metadata"]["name"]: each["spec"] for each in BY_KIND["HorizontalPodAutoscaler"]}
    deployments = {each["metadata"]["name"]: each["spec"] for each in BY_KIND["Deployment"]}
    budgets = {each["metadata"]["name"]: each["spec"] for each in BY_KIND["PodDisruptionBudget"]}

    assert set(scalers) == {"events"}
    for name, scaler in scalers.items():
        assert scaler["scaleTargetRef"]["name"] == name
        assert "replicas" not in deployments[name]
        assert budgets[name].get("minAvailable", 1) < scaler["minReplicas"]
        assert budgets[name]["selector"] == deployments[name]["selector"]


def test_a_fleet_ends_with_its_crawl_and_is_upgraded_by_another_job_beside_it() -> None:
    (job,), version = BY_KIND["Job"], tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    spec = job["spec"]

    # What a Job runs cannot be changed; one of another name shares the crawl with it.
    assert job["metadata"]["name"] == f"fleet-{version.replace('.', '-')}"
    assert "completions" not in spec  # the first that says that nothing is left speaks for all
    assert PODS[FLEET]["restartPolicy"] == "Never"
    rules = {rule["action"]: rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"][1:]}
    assert rules == {"Ignore": [130], "FailJob": [1, 2]}  # 1: it is done, and would be once more
    assert UNFINISHED not in rules["FailJob"]  # one that was drained is no reason to end all
    (budget,) = [each["spec"] for each in BY_KIND["PodDisruptionBudget"] if each["metadata"]["name"] == "fleet"]
    assert budget["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert 0 < budget["minAvailable"] < spec["parallelism"]


def test_a_worker_of_a_fleet_has_time_to_give_its_parts_back_and_keeps_nothing_in_its_pod() -> None:
    assert PODS[FLEET]["terminationGracePeriodSeconds"] > HURRY + HttpRules().total
    kinds = [set(volume) - {"name"} for volume in PODS[FLEET]["volumes"]]
    assert {"emptyDir"} in kinds
    assert {"persistentVolumeClaim"} not in kinds


def test_more_workers_of_a_fleet_are_begun_by_a_metric_that_workers_serve() -> None:
    (job,), more = BY_KIND["Job"], KEDA["spec"]
    out = next(word for word in ours(PODS[FLEET])["args"] if word.startswith("--out="))
    served = {each.name for each in fleet_metrics(idle_worker(), None)}

    (trigger,) = more["triggers"]
    (metric,) = re.findall(r"sanderling_\w+", trigger["metadata"]["query"])
    assert metric in served
    assert f'crawl="{out.rpartition("/")[2]}"' in trigger["metadata"]["query"]
    assert more["jobTargetRef"]["template"] == job["spec"]["template"]
    assert more["maxReplicaCount"] + job["spec"]["parallelism"] <= FleetFlags().fleet_parts


def test_the_secret_has_every_key_that_is_used_and_no_value() -> None:
    secret = yaml.safe_load(SECRET.read_text())
    text = "".join(path.read_text() for path in FILES)
    keys = set(secret["stringData"])

    assert set(secret["stringData"].values()) == {""}
    assert [key for key in keys if f"/run/secrets/sanderling/{key}" not in text and f"key: {key}" not in text] == []
    used = {line.rpartition("/")[2].strip('"}') for line in text.split() if "/run/secrets/sanderling/" in line}
    assert used <= keys
    assert SECRET not in FILES


def test_every_file_is_applied() -> None:
    others = {SECRET, KUBERNETES / "kustomization.yaml"}

    assert set(KUBERNETES.glob("*.yaml")) == {*FILES, *others}


def test_the_image_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert {ours(spec)["image"] for spec in PODS.values()} == {f"sanderling:{version}"}
    assert [image["newTag"] for image in KUSTOMIZATION["images"]] == [version]


def test_kubectl_can_put_it_together() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")

    command = [kubectl, "kustomize", str(KUBERNETES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours

    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    assert len(built) == len(ALL)
    images = {each["image"] for manifest in built if (spec := pod(manifest)) for each in spec["containers"]}
    assert {image.partition("/")[0] for image in images} == {"registry.example"}


@pytest.mark.parametrize("path", [*FILES, SECRET], ids=lambda path: path.stem)
def test_every_manifest_is_as_its_schema_wants_it(path: Path) -> None:
    for manifest in yaml.safe_load_all(path.read_text()):
        validate(manifest, "1.32", strict=True)
