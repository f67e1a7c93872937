"""The objects of the Helm chart keep workspaces apart from everything, and give nobody more than needed."""

from collections.abc import Iterable
from typing import Any

import pytest

from codehub.adapters.kubernetes.options import COMPONENT_LABEL, Component
from tests.deploy.helm import (
    NAMESPACE,
    PARTS,
    VALUE_SETS,
    Object,
    container_of,
    environment_of,
    of_kind,
    pods,
    rendered,
)

EVERY_POD = [(values, part) for values in VALUE_SETS for part in (*PARTS, "migrate")]
WORKSPACES = "codehub-workspaces"
WORKSPACE_PODS = {"matchLabels": {COMPONENT_LABEL: Component.WORKSPACE}}
JOB_PODS = {"matchLabels": {COMPONENT_LABEL: Component.STORAGE_JOB}}
DNS_PORTS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


@pytest.mark.parametrize(("values", "part"), EVERY_POD)
def test_our_pods_meet_the_restricted_standard(values: str, part: str) -> None:
    pod = pods(values)[part]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container_of(pods(values)[part])["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
    assert {next(iter(volume.keys() - {"name"})) for volume in pod["volumes"]} <= {"emptyDir", "secret"}


@pytest.mark.parametrize(("values", "part"), EVERY_POD)
def test_only_parts_that_call_kubernetes_have_a_token(values: str, part: str) -> None:
    pod = pods(values)[part]["spec"]
    assert pod["automountServiceAccountToken"] is (part in {"api", "proxy", "worker"})
    assert ("serviceAccountName" in pod) is (part in {"api", "proxy", "worker"})
    accounts = of_kind("ServiceAccount", values).values()
    assert {account["automountServiceAccountToken"] for account in accounts} == {False}


@pytest.mark.parametrize(("values", "part"), EVERY_POD)
def test_services_of_the_release_set_no_variables(values: str, part: str) -> None:
    """A Service codehub-api would set CODEHUB_API_PORT to tcp://..., which is a setting."""
    assert pods(values)[part]["spec"]["enableServiceLinks"] is False


@pytest.mark.parametrize(("values", "part"), EVERY_POD)
def test_our_pods_request_resources_and_have_a_pinned_image(values: str, part: str) -> None:
    container = container_of(pods(values)[part])
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    tag = container["image"].rpartition(":")[2]
    assert tag == ("1.2.3" if values == "everything" else "0.1.0")


@pytest.mark.parametrize("part", PARTS)
def test_parts_are_spread_and_survive_the_drain_of_a_node(part: str) -> None:
    pod = pods()[part]
    constraints = {each["topologyKey"]: each for each in pod["spec"]["topologySpreadConstraints"]}
    assert set(constraints) == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    budget = of_kind("PodDisruptionBudget")[f"codehub-{part}"]["spec"]
    deployment = of_kind("Deployment")[f"codehub-{part}"]["spec"]
    for selector in (budget["selector"], deployment["selector"], *_selectors(constraints.values())):
        assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert selector["matchLabels"]["app.kubernetes.io/component"] == part
    assert budget["maxUnavailable"] == 1
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def _selectors(constraints: Iterable[Object]) -> list[Object]:
    return [each["labelSelector"] for each in constraints]


@pytest.mark.parametrize("part", PARTS)
def test_parts_have_several_replicas(part: str) -> None:
    deployment = of_kind("Deployment")[f"codehub-{part}"]["spec"]
    autoscaler = of_kind("HorizontalPodAutoscaler").get(f"codehub-{part}")
    assert (autoscaler is not None) is (part in {"api", "proxy"})
    # An upgrade must not undo what the autoscaler decided.
    assert ("replicas" in deployment) is (autoscaler is None)
    assert (autoscaler["spec"]["minReplicas"] if autoscaler else deployment["replicas"]) == 2


def test_without_autoscaling_the_number_of_replicas_is_fixed() -> None:
    assert of_kind("HorizontalPodAutoscaler", "small") == {}
    assert {each["spec"]["replicas"] for each in of_kind("Deployment", "small").values()} == {1}


@pytest.mark.parametrize(
    ("part", "setting"),
    [("api", "CODEHUB_API_SHUTDOWN_GRACE_SECONDS"), ("proxy", "CODEHUB_PROXY_DRAIN_SECONDS")],
)
def test_a_pod_serves_until_it_gets_no_new_connections_and_may_then_drain(part: str, setting: str) -> None:
    pod = pods()[part]
    _, seconds = container_of(pod)["lifecycle"]["preStop"]["exec"]["command"]
    drain = int(environment_of(pod)[setting])
    assert int(seconds) >= 5
    assert pod["spec"]["terminationGracePeriodSeconds"] > int(seconds) + drain


def test_the_gateway_and_the_workers_may_finish() -> None:
    gateway, worker = pods()["egress"], pods()["worker"]
    _, seconds = container_of(gateway)["lifecycle"]["preStop"]["exec"]["command"]
    assert gateway["spec"]["terminationGracePeriodSeconds"] > int(seconds)
    grace = int(environment_of(worker)["CODEHUB_WORKER_SHUTDOWN_GRACE_SECONDS"])
    assert worker["spec"]["terminationGracePeriodSeconds"] > grace + 20


@pytest.mark.parametrize("part", PARTS)
def test_parts_have_probes(part: str) -> None:
    container = container_of(pods()[part])
    assert {"startupProbe", "readinessProbe"} <= container.keys()
    # An outage of the database or the API is no reason to restart anything.
    assert "readyz" not in str(container)


def test_a_worker_forgets_that_it_was_ready() -> None:
    container = container_of(pods()["worker"])
    assert container["command"] == ["sh", "-c", "rm -f /tmp/ready && exec python -m worker"]
    assert (
        container["readinessProbe"]["exec"]["command"][-1]
        == environment_of(pods()["worker"])["CODEHUB_WORKER_READY_FILE"]
    )


def test_the_database_is_migrated_before_anything_else_changes() -> None:
    (job,) = of_kind("Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    # Hooks run before the other objects exist: it must not need any.
    assert "serviceAccountName" not in job["spec"]["template"]["spec"]


def test_uninstalling_keeps_the_homes_and_their_walls() -> None:
    kept = {
        (each["kind"], each["metadata"]["name"])
        for each in rendered()
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert kept == {("Namespace", WORKSPACES), ("NetworkPolicy", "codehub-workspaces-deny")}


def test_the_namespace_of_workspaces_admits_only_restricted_pods() -> None:
    labels = of_kind("Namespace")[WORKSPACES]["metadata"]["labels"]
    modes = {name.rpartition("/")[2]: level for name, level in labels.items() if "pod-security" in name}
    assert modes == {"enforce": "restricted", "audit": "restricted", "warn": "restricted"}


def test_nothing_of_the_control_plane_is_among_the_workspaces() -> None:
    assert {each["kind"] for each in rendered() if each["metadata"].get("namespace") == WORKSPACES} == {
        "NetworkPolicy",
        "Role",
        "RoleBinding",
    }


def policies(values: str = "minimal") -> dict[str, Object]:
    """Return the specifications of the policies for workspaces and storage jobs."""
    return {
        name: each["spec"]
        for name, each in of_kind("NetworkPolicy", values).items()
        if each["metadata"]["namespace"] != NAMESPACE
    }


def test_workspaces_are_denied_everything_that_is_not_allowed() -> None:
    assert policies()["codehub-workspaces-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert set(policies()) == {
        "codehub-workspaces-deny",
        "codehub-workspaces-ingress",
        "codehub-workspaces-egress",
        "codehub-workspaces-storage-jobs",
    }


def test_only_the_proxy_and_the_api_connect_to_workspaces() -> None:
    assert policies()["codehub-workspaces-ingress"] == {
        "podSelector": WORKSPACE_PODS,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [_pods_of("proxy"), _pods_of("api")]}],
    }


def test_workspaces_connect_only_to_the_gateway_and_the_name_server() -> None:
    spec = policies()["codehub-workspaces-egress"]
    assert (spec["podSelector"], spec["policyTypes"]) == (WORKSPACE_PODS, ["Egress"])
    gateway, dns = spec["egress"]
    assert gateway == {"to": [_pods_of("egress")], "ports": [{"protocol": "TCP", "port": 3128}]}
    assert dns["ports"] == DNS_PORTS
    (server,) = dns["to"]
    assert server["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "kube-system"}
    assert server["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"}


def test_workspaces_need_no_name_server_if_the_gateway_has_an_address() -> None:
    (only,) = policies("everything")["codehub-workspaces-egress"]["egress"]
    assert only["ports"] == [{"protocol": "TCP", "port": 3128}]
    assert of_kind("Service", "everything")["codehub-egress"]["spec"]["clusterIP"] == "10.96.0.77"


def test_storage_jobs_connect_only_to_s3_and_the_name_server() -> None:
    spec = policies("everything")["codehub-workspaces-storage-jobs"]
    assert (spec["podSelector"], spec["policyTypes"]) == (JOB_PODS, ["Egress"])
    s3, dns = spec["egress"]
    assert s3["ports"] == [{"protocol": "TCP", "port": 8333}]
    assert s3["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "storage"}}}]
    assert dns["ports"] == DNS_PORTS
    anywhere, _ = policies()["codehub-workspaces-storage-jobs"]["egress"]
    assert anywhere == {"ports": [{"protocol": "TCP", "port": 443}]}


def test_only_those_who_need_a_part_of_the_control_plane_connect_to_it() -> None:
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    workspaces = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": WORKSPACES}},
        "podSelector": WORKSPACE_PODS,
    }
    assert _allowed() == {
        "migrate": {},
        "worker": {9111: [monitoring]},
        "api": {8081: [_pods_of("proxy"), monitoring]},
        "proxy": {8080: ["everybody"], 9101: [monitoring]},
        "egress": {3128: [workspaces]},
    }
    assert _allowed("everything")["proxy"][8080] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    ]


def _allowed(values: str = "minimal") -> dict[str, dict[int, list[Any]]]:
    """Return who may connect to which port of which part."""
    found: dict[str, dict[int, list[Any]]] = {}
    for each in of_kind("NetworkPolicy", values).values():
        if each["metadata"]["namespace"] != NAMESPACE:
            continue
        spec = each["spec"]
        assert spec["policyTypes"] == ["Ingress"]
        ports = found.setdefault(spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"], {})
        for rule in spec["ingress"]:
            (port,) = rule["ports"]
            ports.setdefault(port["port"], []).extend(rule.get("from", ["everybody"]))
    return found


def _pods_of(part: str) -> Object:
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "podSelector": {
            "matchLabels": {
                "app.kubernetes.io/name": "codehub",
                "app.kubernetes.io/instance": "codehub",
                "app.kubernetes.io/component": part,
            }
        },
    }


def test_without_policies_there_are_none() -> None:
    assert of_kind("NetworkPolicy", "small") == {}
