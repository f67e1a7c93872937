"""The Roles of the Helm chart allow what the adapters call, and nothing else."""

import re
from collections.abc import Iterable

import pytest

from codehub.adapters.kubernetes.rights import Right, cluster_rights, namespace_rights
from tests.deploy.helm import NAMESPACE, PARTS, Object, of_kind, rendered
from tests.deploy.programs import ROOT

ADAPTERS = ROOT / "codehub/adapters/kubernetes"
# It reads more than the parts of CodeHub may, for an administrator.
FOR_DOCTOR = "inspection.py"


def verbs_by_resource(rights: Iterable[Right]) -> dict[str, str]:
    """Return each right once: the resource, a name if it is only for one object, and the verbs."""
    found: dict[str, list[str]] = {}
    for right in rights:
        found.setdefault(f"{right.resource} {right.name}".strip(), []).append(right.verb)
    return {name: " ".join(sorted(verbs)) for name, verbs in found.items()}


HOME_STORE = {
    "configmaps codehub-store-codehub": "get",
    "namespaces codehub-workspaces": "get",
}
RIGHTS = {
    "codehub-proxy": {"pods": "get", **HOME_STORE},
    "codehub-api": {"pods": "get", "pods/log": "get", **HOME_STORE},
    "codehub-worker": verbs_by_resource(namespace_rights("codehub-workspaces", "codehub-store-codehub")),
}
CLUSTER_RIGHTS = {"codehub-codehub-worker": verbs_by_resource(cluster_rights())}
RESOURCES = {
    "ConfigMap": "configmaps",
    "Event": "events",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "PodLog": "pods/log",
    "Secret": "secrets",
}


def rights(rules: Iterable[Object]) -> dict[str, str]:
    """Return the verbs by resource; fail if a rule is not of the core group."""
    found: dict[str, str] = {}
    for rule in rules:
        assert rule["apiGroups"] == [""]
        for resource in rule["resources"]:
            name = " ".join([resource, *rule.get("resourceNames", ())])
            assert name not in found
            found[name] = " ".join(sorted(rule["verbs"]))
    return found


def test_each_part_has_exactly_its_rights() -> None:
    assert {name: rights(role["rules"]) for name, role in of_kind("Role").items()} == RIGHTS


def test_only_workers_have_rights_in_the_whole_cluster() -> None:
    assert {name: rights(role["rules"]) for name, role in of_kind("ClusterRole").items()} == CLUSTER_RIGHTS


def test_workers_only_read_in_the_whole_cluster_if_the_installation_wants_that() -> None:
    chosen = rendered("minimal", "--set", "workspaces.storage.retainLostVolumes=false")
    (role,) = [each for each in chosen if each["kind"] == "ClusterRole"]
    assert rights(role["rules"]) == {"nodes": "get list", "persistentvolumes": "get"}


def test_the_rights_are_in_the_namespace_of_the_workspaces_only() -> None:
    assert {role["metadata"]["namespace"] for role in of_kind("Role").values()} == {"codehub-workspaces"}


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_every_role_is_bound_to_the_account_of_its_part(kind: str) -> None:
    bindings = of_kind(f"{kind}Binding")
    assert set(bindings) == set(of_kind(kind))
    for name, binding in bindings.items():
        part = name.rpartition("-")[2]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, name)
        account = {"kind": "ServiceAccount", "name": f"codehub-{part}", "namespace": NAMESPACE}
        assert binding["subjects"] == [account]


def test_parts_without_rights_have_no_account() -> None:
    assert set(of_kind("ServiceAccount")) == set(RIGHTS)
    assert {f"codehub-{part}" for part in PARTS} - set(RIGHTS) == {"codehub-egress"}


def test_the_rights_are_for_the_kinds_that_the_adapters_import() -> None:
    files = [file for file in sorted(ADAPTERS.rglob("*.py")) if file.name != FOR_DOCTOR]
    source = "\n".join(file.read_text() for file in files)
    imports = re.findall(r"^from lightkube\.resources\.(\w+) import (.+)$", source, re.MULTILINE)
    assert {group for group, _ in imports} == {"core_v1"}
    used = {RESOURCES[name.strip()] for _, names in imports for name in names.split(",")}
    granted = {name.split()[0] for name in RIGHTS["codehub-worker"]}
    assert used == granted | {name for each in CLUSTER_RIGHTS.values() for name in each}
