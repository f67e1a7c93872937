"""`codehub doctor` on a real cluster: what it says of rights, storage, images, policies and outages."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.kubernetes_checks import kubernetes_findings
from cli.machine_checks import Finding
from cli.main import app
from codehub.adapters.kubernetes.rights import Right, cluster_rights, namespace_rights
from codehub.settings import load_settings
from testkit.kubernetes.api import Api
from testkit.kubernetes.cluster import Cluster
from testkit.kubernetes.deadline import wait_until
from testkit.kubernetes.provisioner import CLASSES_PATH
from tests.contracts.kubernetes_harness import DEAD_SERVER
from tests.kubernetes.conftest import IDE_IMAGE

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NETWORKING = "/apis/networking.k8s.io/v1"
IMAGES = {
    "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": "registry.example/codehub-workspace:1",
    "CODEHUB_KUBERNETES_JOB_IMAGE": "registry.example/codehub-storage-job:1",
}
KINDS = ("pods", "persistentvolumeclaims", "configmaps", "secrets", "serviceaccounts", "events")
UNCHECKED = "not checked: this account may not read it"


def environment(kubeconfig: Path, namespace: str, **more: str) -> dict[str, str]:
    return {
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "k8s",
        "CODEHUB_KUBERNETES_KUBECONFIG": str(kubeconfig),
        "CODEHUB_KUBERNETES_NAMESPACE": namespace,
        "CODEHUB_KUBERNETES_STORAGE_CLASS": "local",
        **IMAGES,
        **more,
    }


def examine(kubeconfig: Path, namespace: str, **more: str) -> dict[str, Finding]:
    settings = load_settings(environment(kubeconfig, namespace, **more))
    return {finding.name: finding for finding in kubernetes_findings(settings)}


def changed_kubeconfig(cluster: Cluster, directory: Path, *, server: str = "", token: str = "") -> Path:
    """Write the administrator's kubeconfig with another server or token."""
    configuration = json.loads(cluster.kubeconfig.read_text())
    if server:
        configuration["clusters"][0]["cluster"]["server"] = server
    if token:
        configuration["users"][0]["user"]["token"] = token
    file = directory / "changed.kubeconfig"
    file.write_text(json.dumps(configuration))
    return file


def rule(right: Right) -> dict[str, object]:
    named = {"resourceNames": [right.name]} if right.name else {}
    return {"apiGroups": [""], "resources": [right.resource], "verbs": [right.verb], **named}


def grant(api: Api, namespace: str, rights: list[Right]) -> None:
    """Give the default account of the namespace these rights in it."""
    role = {"metadata": {"name": "worker"}, "rules": [rule(right) for right in rights]}
    binding = {
        "metadata": {"name": "worker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "worker"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    api.create(f"{RBAC}/namespaces/{namespace}/roles", role)
    api.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)


@contextmanager
def granted_in_cluster(api: Api, namespace: str, rights: list[Right]) -> Iterator[None]:
    """Give the default account of the namespace these rights in the whole cluster."""
    metadata = {"name": f"worker-{namespace}"}
    role = {"metadata": metadata, "rules": [rule(right) for right in rights]}
    binding = {
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": metadata["name"],
        },
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    api.create(f"{RBAC}/clusterroles", role)
    api.create(f"{RBAC}/clusterrolebindings", binding)
    try:
        yield
    finally:
        api.delete(f"{RBAC}/clusterrolebindings/{metadata['name']}")
        api.delete(f"{RBAC}/clusterroles/{metadata['name']}")


def account_token(api: Api, namespace: str) -> str:
    account = api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    secret = api.get(f"/api/v1/namespaces/{namespace}/secrets/{account['secrets'][0]['name']}")
    return base64.b64decode(secret["data"]["token"]).decode()


def deny(api: Api, namespace: str, *directions: str) -> None:
    policy = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": list(directions)}}
    api.create(f"{NETWORKING}/namespaces/{namespace}/networkpolicies", policy)


@contextmanager
def network_plugin(api: Api, namespace: str) -> Iterator[str]:
    """Run a DaemonSet with the name of a plugin that enforces policies; yield its path."""
    labels = {"app": "calico-node"}
    container = {"name": "node", "image": IDE_IMAGE, "imagePullPolicy": "Never"}
    pod = {"containers": [{**container, "command": ["sleep", "3600"]}], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": pod}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    spec = {"selector": {"matchLabels": labels}, "template": template}
    api.create(path, {"metadata": {"name": "calico-node"}, "spec": spec})
    try:
        yield f"{path}/calico-node"
    finally:
        api.delete(f"{path}/calico-node", propagationPolicy="Foreground")


def versions(api: Api, namespace: str) -> dict[str, str]:
    """Return the versions of all objects in a namespace."""
    return {
        f"{kind}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in KINDS
        for each in api.list(f"/api/v1/namespaces/{namespace}/{kind}")
    }


def test_a_cluster_that_has_everything(cluster: Cluster, api: Api, namespace: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    deny(api, namespace, "Ingress", "Egress")
    findings = examine(cluster.kubeconfig, namespace)
    assert list(findings) == [
        "cluster",
        f"namespace {namespace}",
        "rights",
        "rights in the cluster",
        "storage class",
        "images",
        "network policies",
        "policy enforcement",
    ]
    # The test cluster is old and enforces no policies, and the doctor must not pretend otherwise.
    assert {name for name, each in findings.items() if not each.found} == {"cluster", "policy enforcement"}
    assert not any(each.required for each in findings.values() if not each.found)
    assert "v1.20" in findings["cluster"].detail
    assert findings["storage class"].detail == "local, whose volumes can grow"
    assert "unknown" in findings["policy enforcement"].detail


def test_the_doctor_changes_nothing(cluster: Cluster, api: Api, namespace: str) -> None:
    wait_until(lambda: "configmaps/kube-root-ca.crt" in versions(api, namespace), "the namespace is complete")
    before = versions(api, namespace)
    examine(cluster.kubeconfig, namespace)
    assert versions(api, namespace) == before


def test_an_account_with_the_rights_of_a_worker(
    cluster: Cluster, api: Api, namespace: str, tmp_path: Path
) -> None:
    grant(api, namespace, namespace_rights(namespace, "codehub-store-codehub"))
    kubeconfig = changed_kubeconfig(cluster, tmp_path, token=account_token(api, namespace))
    wait_until(lambda: examine(kubeconfig, namespace)["rights"].found, "the rights are in force")
    findings = examine(kubeconfig, namespace)
    lacking = ", ".join(map(str, cluster_rights()))
    assert findings["rights in the cluster"].detail == f"this account may not: {lacking}"
    # The chart does not grant what only the doctor would read.
    for name in ("storage class", "network policies", "policy enforcement"):
        assert (findings[name].detail, findings[name].required) == (UNCHECKED, False)


def test_a_missing_right_is_named(cluster: Cluster, api: Api, namespace: str, tmp_path: Path) -> None:
    needed = namespace_rights(namespace, "codehub-store-codehub")
    missing = Right("delete", "persistentvolumeclaims", namespace)
    assert missing in needed
    grant(api, namespace, [right for right in needed if right != missing])
    kubeconfig = changed_kubeconfig(cluster, tmp_path, token=account_token(api, namespace))
    expected = "this account may not: delete persistentvolumeclaims"
    wait_until(
        lambda: examine(kubeconfig, namespace)["rights"].detail == expected, "only that right is missing"
    )
    finding = examine(kubeconfig, namespace)["rights"]
    assert (finding.found, finding.required) == (False, True)
    assert "Helm chart" in finding.remedy


def test_a_missing_namespace(cluster: Cluster) -> None:
    finding = examine(cluster.kubeconfig, "not-there")["namespace not-there"]
    assert (finding.found, finding.required, finding.detail) == (False, True, "does not exist")


def test_a_namespace_without_pod_security(cluster: Cluster, namespace: str) -> None:
    finding = examine(cluster.kubeconfig, namespace)[f"namespace {namespace}"]
    assert (finding.found, finding.required, finding.detail) == (False, False, "no Pod Security label")


def test_a_missing_storage_class(cluster: Cluster, namespace: str) -> None:
    finding = examine(cluster.kubeconfig, namespace, CODEHUB_KUBERNETES_STORAGE_CLASS="fast")["storage class"]
    assert (finding.found, finding.required, finding.detail) == (False, True, "fast does not exist")


def test_the_default_storage_class(cluster: Cluster, api: Api, namespace: str) -> None:
    unset = environment(cluster.kubeconfig, namespace)
    del unset["CODEHUB_KUBERNETES_STORAGE_CLASS"]

    def found() -> Finding:
        findings = kubernetes_findings(load_settings(unset))
        return next(each for each in findings if each.name == "storage class")

    assert (found().required, found().detail) == (True, "the cluster has no default class")
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    metadata = {"name": "fixed", "annotations": default}
    api.create(CLASSES_PATH, {"metadata": metadata, "provisioner": "codehub.test/none"})
    try:
        assert (found().required, found().detail) == (False, "fixed, whose volumes cannot grow")
    finally:
        api.delete(f"{CLASSES_PATH}/fixed")


def test_images_that_are_in_no_registry(cluster: Cluster, namespace: str) -> None:
    image = "codehub-storage-job:latest"
    findings = examine(cluster.kubeconfig, namespace, CODEHUB_KUBERNETES_JOB_IMAGE=image)
    assert findings["images"].detail == f"in no registry: {image}"


def test_policies_must_deny_both_directions(cluster: Cluster, api: Api, namespace: str) -> None:
    finding = examine(cluster.kubeconfig, namespace)["network policies"]
    assert (finding.required, finding.detail) == (True, "none denies Egress and Ingress by default")
    deny(api, namespace, "Ingress")
    finding = examine(cluster.kubeconfig, namespace)["network policies"]
    assert (finding.required, finding.detail) == (True, "none denies Egress by default")


def test_a_network_plugin_that_enforces_policies(cluster: Cluster, api: Api, namespace: str) -> None:
    with network_plugin(api, namespace) as path:
        wait_until(lambda: api.get(path)["status"]["numberReady"] == 2, "the plugin is ready")
        finding = examine(cluster.kubeconfig, namespace)["policy enforcement"]
    assert finding.found
    assert "calico-node, ready on 2 of 2 nodes" in finding.detail


def test_an_unreachable_cluster(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    findings = examine(changed_kubeconfig(cluster, tmp_path, server=DEAD_SERVER), namespace)
    assert list(findings) == ["cluster"]
    assert (findings["cluster"].found, findings["cluster"].required) == (False, True)
    assert "does not answer" in findings["cluster"].detail
    assert "CODEHUB_KUBERNETES_KUBECONFIG" in findings["cluster"].remedy


def test_credentials_that_the_cluster_does_not_know(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    findings = examine(changed_kubeconfig(cluster, tmp_path, token="unknown"), namespace)  # noqa: S106
    assert list(findings) == ["cluster"]
    assert (findings["cluster"].found, findings["cluster"].required) == (False, True)


def test_the_command_fails_without_a_cluster(
    cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = changed_kubeconfig(cluster, tmp_path, server=DEAD_SERVER)
    monkeypatch.setenv("CODEHUB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "400")
    for name, value in environment(kubeconfig, namespace).items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "Kubernetes does not answer" in result.output
